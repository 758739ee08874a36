// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent.h"
#include "core/middleware.h"
#include "sim/board/plan.h"
#include "sim/engine/engine.h"
#include "sim/engine/line.h"
#include "sim/engine/random.h"
#include "tide/framing.h"

namespace tide::sim {

// ---- services in memory ----

// Clients and servers are nodes, or agents on behalf of boards. Each service has one server. Names are those of
// services, without the prefix rq/ and the suffix Request.
class Services {
 public:
  using Payload = std::vector<uint8_t>;
  using Take = std::function<void(const Payload &payload)>;
  using Serve = std::function<void(const Payload &request, Take reply)>;
  // Must call `deliver`, at once or later, in the order of its own calls.
  using Carry = std::function<void(std::function<void()> deliver)>;

  // Adds the server in a node of the simulation; it stays for the whole run.
  void serve(const std::string &service, Serve serve) { entry(service).serve = std::move(serve); }
  void ask(const std::string &service, const Payload &request, Take reply);

  // watch_...: adds an observer of requests or replies that arrive in ROS 2. carry_...: sets how they are delayed on
  // the way to an agent. Both stay for the whole run.
  void watch_requests(const std::string &service, Take take) { entry(service).requests.push_back(std::move(take)); }
  void watch_replies(const std::string &service, Take take) { entry(service).replies.push_back(std::move(take)); }
  void carry_requests(const std::string &service, Carry carry) { entry(service).to_server = std::move(carry); }
  void carry_replies(const std::string &service, Carry carry) { entry(service).to_asker = std::move(carry); }

  // Number of replies from boards for which no request was open.
  uint64_t unasked_replies() const { return unasked_replies_; }

  std::unique_ptr<agent::Requester> create_requester(const agent::Service &service, agent::Wake wake);
  std::unique_ptr<agent::Replier> create_replier(const agent::Service &service, agent::Wake wake);

 private:
  friend class BusRequester;
  friend class BusReplier;
  struct Entry {
    Serve serve;
    class BusReplier *replier = nullptr;
    std::vector<class BusRequester *> requesters;
    std::vector<Take> requests, replies;
    Carry to_server, to_asker;
  };
  Entry &entry(const std::string &service) { return entries_[service]; }
  bool is_served(const std::string &service) { return entry(service).serve || entry(service).replier != nullptr; }
  void answer(const std::string &service, uint64_t number, const Payload &reply);

  std::map<std::string, Entry> entries_;
  std::map<uint64_t, Take> asked_;  // by number: requests that have no reply yet
  uint64_t last_ = 0, unasked_replies_ = 0;
};

// ---- topics in memory, and ROS 2 nodes ----

// The middleware of simulated agents. Topics are volatile: a sample reaches only the subscriptions that exist when it
// is published.
class Bus : public agent::Middleware {
 public:
  using Payload = std::vector<uint8_t>;
  using Receive = std::function<void(const Payload &payload)>;

  std::unique_ptr<agent::Participant> create_participant(int domain, const std::string &name) override;

  // Subscribes a node of the simulation; the subscription stays for the whole run.
  void subscribe(const std::string &topic, Receive receive);
  // Returns the number of agents' readers that received the sample.
  size_t publish(const std::string &topic, const Payload &payload);
  Services services;

 private:
  friend class BusParticipant;
  friend class BusReader;
  friend class BusWriter;
  std::map<std::string, std::vector<Receive>> subscriptions_;
  std::map<std::string, std::vector<class BusReader *>> readers_;
};

// A ROS 2 executor whose lanes take ready callbacks in an order drawn from the seed.
class HostExecutor {
 public:
  HostExecutor(Engine &engine, unsigned lanes, uint64_t seed);
  // Makes an execution ready; `body` is called at its end. Executions of the same `callback` begin in the order of
  // these calls. `alone`: they do not overlap each other.
  void add(const void *callback, Time execution, bool alone, std::function<void()> body);

 private:
  enum class Order { kOldest, kNewest, kAny };
  struct Ready {
    const void *callback;
    Time execution;
    bool alone;
    std::function<void()> body;
  };
  void begin();
  bool may_run(const Ready &one) const { return !one.alone || !running_.contains(one.callback); }

  Engine &engine_;
  unsigned free_lanes_;
  Random random_;
  Order order_;
  std::deque<Ready> ready_;
  std::set<const void *> running_;  // running callbacks that must not overlap themselves
};

// A callback of a ROS 2 node. On its own core, it processes messages in the order of arrival.
class HostCallback {
 public:
  // `executor`: null if the callback has its own core. `group`: its exclusive group; null if it is in none.
  HostCallback(Engine &engine, Time execution, HostExecutor *executor, const void *group)
      : engine_(engine), execution_(execution), executor_(executor), group_(group) {}
  // Starts the callback; `body` runs when the execution ends.
  void run(std::function<void()> body);

 private:
  Engine &engine_;
  Time execution_;
  HostExecutor *executor_;
  const void *group_;
  Time free_at_ = 0;
};

// ---- the agent's end of the line ----

class AgentHost {
 public:
  struct Manner {
    Time least = 0, most = 0;  // latency from the last byte on the line to the agent, uniformly distributed; frames
                               // keep their order
    Acknowledges acknowledges = Acknowledges::kAlways;
    Time heartbeat_delay = agent::kLineHeartbeatDelay;
    Time slot = 0;  // more than 0: the latency is instead slot_delay() of slots_us, with this length of a slot
    std::vector<unsigned> slots_us = {};
  };

  AgentHost(Engine &engine, Bus &bus, Line &down, const Manner &manner, uint64_t seed);
  AgentHost(const AgentHost &) = delete;
  AgentHost &operator=(const AgentHost &) = delete;

  // Call this when a frame has arrived over the line.
  void receive(const Line::Bytes &frame);
  // Ends the agent. After `outage`, a new agent takes its place, without the state of the old one.
  void restart(Time outage);

  // on_input is called before the agent receives a message, on_output when the agent begins to send one.
  std::function<void(agent::Bytes message)> on_input, on_output;
  unsigned restarts() const { return restarts_; }
  // Number of replies to requests of the board that the agent had forgotten because of too many later requests.
  uint64_t replies_unmatched() const { return agent_->counters().replies_unmatched; }

 private:
  void begin();
  Random &latencies_of(const Line::Bytes &frame);
  void input(const Line::Bytes &frame);
  void schedule(Time time);
  void pump();
  void send();
  bool next(std::vector<uint8_t> &message);
  void note_heartbeat(agent::Bytes message);
  bool is_unasked(agent::Bytes message);

  Engine &engine_;
  Bus &bus_;
  Line &down_;
  Manner manner_;
  const uint64_t seed_;
  // By root: each timer's messages have their own sequence of latencies, independent of all other messages. 0 is for
  // messages of no timer, otherwise 1 + the number of the timer.
  std::map<size_t, Random> latencies_;
  std::array<size_t, 256> senders_{};  // by stream: 1 + the timer that sent its latest sample
  std::unique_ptr<agent::Agent> agent_;
  unsigned life_ = 0, restarts_ = 0;
  bool sending_ = false, pump_due_ = false;
  Time last_input_ = 0, next_poll_ = kForever;
  tide_framing_reader_t reader_{};
  std::vector<uint8_t> buffer_;
  std::vector<agent::Endpoint> ready_;
  std::array<bool, 256> asked_{};  // by stream: true if a HEARTBEAT must be answered
};

}  // namespace tide::sim
