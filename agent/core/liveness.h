// SPDX-License-Identifier: Apache-2.0
// Whether a client is still there: when it was heard, when it is asked for a sign of life, and when it is given up.
#pragma once

#include <cstdint>

#include "core/limits.h"
#include "core/output.h"

namespace tide::agent {

class Liveness {
 public:
  enum class State { kAlive, kSilent, kGone };

  // announced_ns: silence that the client announced; 0: none. timeout_ns: in place of it; 0: it is never asked.
  Liveness(const Limits &limits, Counters &counters, Time announced_ns, Time timeout_ns, Time now)
      : limits_(limits), counters_(counters), announced_ns_(announced_ns), timeout_ns_(timeout_ns), last_heard_(now) {}

  // Its session begins anew.
  void restart(Time announced_ns, Time timeout_ns, Time now);
  void heard(Time now);
  // It answers questions: it will answer a probe.
  void answered() { answers_ = true; }
  bool answers() const { return answers_; }
  bool is_watched() const { return silence_ns() != 0; }
  State state() const { return state_; }
  Time last_heard() const { return last_heard_; }
  bool answers_probes() const { return announced_ns_ != 0 || answers_; }
  // Asks for a sign of life, unless it was asked just now.
  void ask(Output &output, Time now);
  // Timers. Returns when to call again. output: null, if nothing was ever sent: then it is not asked either.
  Time poll(Output *output, Time now);

 private:
  void probe(Output &output);
  Time silence_ns() const { return announced_ns_ != 0 ? announced_ns_ : timeout_ns_; }

  const Limits &limits_;
  Counters &counters_;
  Time announced_ns_, timeout_ns_;
  Time last_heard_;
  Time asked_ns_ = 0;
  uint32_t unanswered_ = 0;
  State state_ = State::kAlive;
  bool answers_ = false;
};

}  // namespace tide::agent
