// SPDX-License-Identifier: Apache-2.0
// What the agent reports about itself, its links and its clients: notices for the user, and /diagnostics of ROS 2
// (diagnostic_msgs/msg/DiagnosticArray), which rqt and Foxglove show.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/limits.h"
#include "core/middleware.h"
#include "tide/cdr.h"

namespace tide::agent {

// ---- vitals: the reported state. Counts begin at the start of the agent; those of a client, at its first connection
// ----

// Response times of a service. If the client uses the service: from the time at which DDS accepts a request until its
// reply is taken from DDS. If the client provides it: from the time at which a request is taken from DDS until DDS
// accepts the reply.
struct ServiceVitals {
  std::string name;
  bool serves = false;
  uint64_t replies = 0;
  Time last_ns = 0, greatest_ns = 0;
};

struct ClientVitals {
  uint32_t key = 0;
  std::string place;    // name of the client's endpoint
  bool silent = false;  // the client was probed and has not answered
  Time silence_ns = 0;  // time since the client's last message
  size_t entities = 0;
  size_t queued = 0, queue = 0;  // nodes of the client's transmitter: queued is the number in use, queue the total
  uint64_t messages_in = 0, bytes_in = 0, messages_out = 0, bytes_out = 0;
  uint64_t repeated = 0;                // retransmissions to the client
  uint64_t lost_from = 0;               // messages from the client that never arrived or that the agent dropped
  uint64_t lost_to = 0;                 // samples for the client that DDS or the agent dropped
  uint64_t refused = 0;                 // creations and messages of the client that the agent refused
  uint64_t limited = 0;                 // number of times a limit of the agent was reached
  std::vector<ServiceVitals> services;  // services with at least one reply
};

struct LinkCounters {
  uint64_t bytes_in = 0, bytes_out = 0;  // including framing
  uint64_t frames_in = 0, frames_out = 0, checksum_errors = 0, send_dropped = 0, receive_dropped = 0, reopened = 0;
  uint64_t connections_refused = 0, connections_timed_out = 0;
};

struct LinkVitals : LinkCounters {
  std::string name{};            // as in the agent's "ready" line
  uint64_t bits_per_second = 0;  // 0: unknown
};
using LinksVitals = std::function<void(std::vector<LinkVitals> &links)>;

// State at the end of a period.
struct AgentVitals {
  const std::vector<ClientVitals> &clients;
  Counters counters;
  const Limits &limits;
};

// ---- notices ----

// Lines for the user. Each cause gets a line when it first occurs and then, as long as it occurs again, a line with the
// count every ten seconds. Each client that connects, leaves or is refused something gets a line, up to kEventLines
// different lines in ten seconds.
class Notices {
 public:
  using Sink = std::function<void(const std::string &)>;
  explicit Notices(Sink sink) : sink_(std::move(sink)) {}

  // `cause`: a constant text, which also says what to do. `who`: the client or host concerned.
  void tell(const char *cause, const std::string &who, Time now);
  // Prints the line, but the same line at most once in ten seconds.
  void event(const std::string &line, Time now);
  static constexpr size_t kEventLines = 64;
  // Reports the counts. Returns when to call again.
  Time poll(Time now);

 private:
  struct Told {
    uint64_t more = 0;   // number of occurrences since the last line
    std::string last{};  // peer or client of the last occurrence
    Time since_ns = 0;
  };
  Sink sink_;
  std::map<std::string, Told> told_;  // by cause
  std::set<std::string> lines_;       // lines of events printed since lines_since_ns_
  Time lines_since_ns_ = 0;
  uint64_t more_lines_ = 0;
};

// ---- levels, with hysteresis ----

enum class Level : uint8_t { kOk = 0, kWarning = 1, kError = 2 };  // as in diagnostic_msgs/DiagnosticStatus

// Alarm for a count that should not grow. Its level is a warning if the count grew in at least one of the last ten
// periods. It becomes an error when the count grew in eight of the last ten periods, and stays an error until the count
// grew in at most four of them.
class CountAlarm {
 public:
  // `total` is the value at the end of a period.
  void update(uint64_t total) {
    history_ = static_cast<uint16_t>((history_ << 1u | (total != total_ ? 1u : 0u)) & kMask);
    recent_ = recent_ - ring_[place_] + (total - total_);
    ring_[place_] = total - total_;
    place_ = (place_ + 1) % kPeriods;
    total_ = total;
    const int bad = std::popcount(history_);
    failing_ = bad >= (failing_ ? kStay : kRaise);
  }
  Level level() const {
    if (failing_) return Level::kError;
    return history_ == 0 ? Level::kOk : Level::kWarning;
  }
  uint64_t recent() const { return recent_; }  // sum over the last ten periods

  static constexpr size_t kPeriods = 10;

 private:
  static constexpr uint16_t kMask = (1u << kPeriods) - 1;
  static constexpr int kRaise = 8, kStay = 5;

  uint64_t total_ = 0, recent_ = 0;
  uint64_t ring_[kPeriods]{};
  size_t place_ = 0;
  uint16_t history_ = 0;
  bool failing_ = false;
};

// Alarm for a queue. The warning begins when the queue is 80 % full and ends below 60 %; the error begins at 95 % and
// ends below 80 %.
class FillAlarm {
 public:
  void update(size_t used, size_t all) {
    const size_t percent = all == 0 ? 0 : 100 * used / all;
    const bool error = percent >= (level_ == Level::kError ? 80u : 95u);
    const bool warning = percent >= (level_ == Level::kOk ? 80u : 60u);
    level_ = error ? Level::kError : warning ? Level::kWarning : Level::kOk;
  }
  Level level() const { return level_; }

 private:
  Level level_ = Level::kOk;
};

// ---- /diagnostics ----

// Serialises a DiagnosticArray while it is built, in memory that is allocated once. A status that does not fit is
// omitted.
class DiagnosticArray {
 public:
  static constexpr size_t kBytesMaximum = 60'000;  // fits one datagram

  void begin(int64_t wall_clock_ns);
  void status(Level level, std::string_view name, std::string_view message, std::string_view hardware);
  // Adds a key and its value to the current status.
  void value(std::string_view key, uint64_t value);
  void value(std::string_view key, std::string_view value);
  // Ends the current status. Returns false if the status did not fit and was omitted.
  bool end_status();
  // The array; valid until the next call of begin.
  Bytes end();

 private:
  void put(std::string_view text) { tide_cdr_put_string(&cdr_, text.data(), text.size()); }
  void put_count(size_t position, uint32_t count);

  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kBytesMaximum);
  tide_cdr_t cdr_{};
  size_t count_at_ = 0, status_at_ = 0, values_at_ = 0;
  uint32_t count_ = 0, values_ = 0;
};

struct DiagnosticsOptions {
  Time period_ns = 0;               // 0: off, and there is no participant
  std::string name = "tide_agent";  // name of the node; also prefix of the status names
  std::string instance;             // hardware_id, which distinguishes several agents
  size_t clients = 64;              // greatest number of clients in one array
  LinksVitals links;                // unset if there are no links
};

// While the topic has a reader, publishes one array in each period, with a status of the agent, of each link and of
// each client. If not all clients fit, unhealthy ones come first, and the clients that do not fit take turns; the
// agent's status counts all clients.
class Diagnostics {
 public:
  Diagnostics(Middleware &middleware, const DiagnosticsOptions &options, int domain, Notices &notices,
              std::function<int64_t()> wall_clock_ns);

  // Publishes the result of `look` when a period has ended. Returns when to call again.
  template <typename Look> Time poll(Time now, const Look &look) {
    if (now < next_ns_) return next_ns_;
    next_ns_ = now + options_.period_ns;
    update(look(), now);
    return next_ns_;
  }
  // Call this when a client was removed.
  void lost(uint32_t key, const std::string &place, Time now);

 private:
  struct ClientAlarms {
    CountAlarm lost, refused, limited;
    FillAlarm queue;
    uint32_t round = 0;  // the last round in which the client existed
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
  std::vector<size_t> unwell_, well_, chosen_;  // indexes of the clients
  size_t turn_ = 0;
  uint32_t round_ = 0;
  std::unique_ptr<DiagnosticArray> array_;
};

}  // namespace tide::agent
