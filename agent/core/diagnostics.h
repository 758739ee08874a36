// SPDX-License-Identifier: Apache-2.0
// What the agent tells ROS 2 of itself: /diagnostics (diagnostic_msgs/msg/DiagnosticArray), as rqt and Foxglove show
// it. Each period one array, while somebody reads it: a status of the agent, one of each link, one of each client. Of
// many clients those that are not well come first, and all others in turns: an array has `clients` of them at most, and
// 60,000 bytes. The status of the agent counts all. Nothing grows but with the clients that are there.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/alarm.h"
#include "core/diagnostic_array.h"
#include "core/middleware.h"
#include "core/notices.h"
#include "core/vitals.h"

namespace tide::agent {

struct DiagnosticsOptions {
  Time period_ns = 0;               // 0: nothing is told, and no participant is made for it
  std::string name = "tide_agent";  // of its node, and what names of statuses begin with
  std::string instance;             // what tells this agent from others
  size_t clients = 64;              // in one array, at most
  LinksVitals links;                // unset: none
};

// Of an agent, at the end of a period.
struct AgentVitals {
  const std::vector<ClientVitals> &clients;
  Counters counters;
  const Limits &limits;
};

class Diagnostics {
 public:
  Diagnostics(Middleware &middleware, const DiagnosticsOptions &options, int domain, Notices &notices,
              std::function<int64_t()> wall_clock_ns);

  // Publishes when it is time. look: asked for then. Returns when to call again.
  template <typename Look>
  Time poll(Time now, const Look &look) {
    if (now < next_ns_) return next_ns_;
    next_ns_ = now + options_.period_ns;
    update(look(), now);
    return next_ns_;
  }
  // A client was given up.
  void lost(uint32_t key, const std::string &place, Time now);

 private:
  struct ClientAlarms {
    CountAlarm lost, refused, limited;
    FillAlarm queue;
    uint32_t round = 0;  // that it was seen in last
    Level level(const ClientVitals &vitals) const;
  };
  struct LinkAlarms {
    CountAlarm damaged, dropped, refused;
    Level level() const;
  };
  struct Lost {
    uint32_t key;
    std::string place;
    Time at_ns;
  };

  void update(const AgentVitals &vitals, Time now);
  void update_alarms(const AgentVitals &vitals, Time now);
  bool is_ready(Time now);
  void make_writer();
  void choose(const std::vector<ClientVitals> &clients);
  void tell_agent(const AgentVitals &vitals);
  void tell_link(size_t number);
  bool tell_client(const ClientVitals &vitals);
  void tell_lost(const Lost &lost, Time now);
  std::string named(const std::string &what) const { return options_.name + ": " + what; }

  Middleware &middleware_;
  const DiagnosticsOptions &options_;
  int domain_;
  Notices &notices_;
  std::function<int64_t()> wall_clock_ns_;
  std::unique_ptr<Participant> participant_;
  std::unique_ptr<Writer> writer_;
  Time next_ns_, retry_ns_ = 0;
  std::unordered_map<uint32_t, ClientAlarms> alarms_;
  std::vector<LinkVitals> links_;
  std::vector<LinkAlarms> link_alarms_;
  CountAlarm turned_away_, given_up_;
  std::deque<Lost> lost_;
  std::vector<size_t> unwell_, well_, chosen_;  // places of clients
  size_t turn_ = 0;
  uint32_t round_ = 0;
  std::unique_ptr<DiagnosticArray> array_;
};

}  // namespace tide::agent
