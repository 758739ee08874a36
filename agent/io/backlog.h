// SPDX-License-Identifier: Apache-2.0
// What has come faster than it can be dealt with. A link takes everything out of the kernel, whose one queue for all
// clients would let seconds pass and then drop anything, and keeps it here: a line for each endpoint, served in turns
// of equal time, so that a client waits behind nobody's flood, nor behind what is dear to answer. Endpoints without a
// session that has been used are strangers: together they get a small share of the time as long as others wait.
// What a line has no room for is lost by the one who floods, and nothing is dealt with out of turn: the oldest samples
// of best-effort streams go first, then what comes, which its sender repeats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "core/agent.h"

namespace tide::agent {

enum class Standing : uint8_t { kSession, kStranger };

struct BacklogLimits {
  size_t messages = 16384;         // of an endpoint: what the agent deals with in about 30 ms
  size_t bytes = size_t{2} << 20;  // the same
  size_t total_bytes = size_t{32} << 20;
  size_t endpoints = 1024;
  size_t messages_a_turn = 64;    // of an endpoint
  Time turn_ns = 200'000;         // the same; who took longer sits out
  size_t stranger_messages = 32;  // of an endpoint; of any endpoint, those outside of sessions
  size_t strangers = 512;         // that have a line
  Time session_weight = 8;        // of the time of endpoints with a session against that of all strangers
};

class Backlog {
 public:
  using Deliver = std::function<void(Endpoint endpoint, Bytes message)>;
  using StandingOf = std::function<Standing(Endpoint endpoint)>;
  using Clock = std::function<Time()>;

  // deliver: in the order of arrival for each endpoint. Must not call this. standing_of: as it is now; none: everybody
  // has a session. clock: what deliveries take by it; none: nothing.
  explicit Backlog(Deliver deliver, const BacklogLimits &limits = {}, StandingOf standing_of = {}, Clock clock = {});

  bool empty() const { return lines_.empty(); }
  // Keeps a copy, or drops what there is no room for.
  void push(Endpoint endpoint, Bytes message);
  // Delivers at most so many messages, and no more once they are so many octets or took so long.
  void serve(size_t messages, size_t bytes = SIZE_MAX, Time time_ns = INT64_MAX);
  // How many were lost.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Line {
    std::vector<uint8_t> bytes;  // messages, each after its length
    size_t first = 0, messages = 0;
    Time debt_ns = 0;  // what its turns took beyond their time; negative: what others ended early left
    Standing standing = Standing::kSession;
    size_t used() const { return bytes.size() - first; }
  };
  struct Class {
    std::deque<Endpoint> turns;  // those who have a line
    Time served_ns = 0;          // by its weight
  };
  struct Allowance {
    size_t messages, bytes;
    Time until;
    bool is_over(Time now) const { return messages == 0 || bytes == 0 || now >= until; }
  };

  Bytes front(const Line &line) const;
  void pop(Line &line);
  bool make_room(Line &line, size_t length);
  bool has_no_place(Endpoint endpoint, Standing standing, Bytes message) const;
  void begin(Endpoint endpoint, Line &line, Standing standing);
  Class &next_class();
  // What it took.
  Time turn(Endpoint endpoint, Line &line, Allowance &allowance);
  Standing standing_of(Endpoint endpoint) const { return standing_of_ ? standing_of_(endpoint) : Standing::kSession; }
  Time now() const { return clock_ ? clock_() : 0; }
  Class &class_of(Standing standing) { return classes_[static_cast<size_t>(standing)]; }
  const Class &class_of(Standing standing) const { return classes_[static_cast<size_t>(standing)]; }

  Deliver deliver_;
  BacklogLimits limits_;
  StandingOf standing_of_;
  Clock clock_;
  std::unordered_map<Endpoint, Line> lines_;
  std::array<Class, 2> classes_;
  size_t total_bytes_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace tide::agent
