// SPDX-License-Identifier: Apache-2.0
// Common parts of the tests of the executor's rules: callbacks that record their runs, on an executor with one lane.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "exec_virtual.h"

namespace exec_virtual {

// A callback that writes its name and performs an action.
struct Probe {
  Probe(Bench &the_bench, std::string &the_log, char the_name, tide_priority_t priority,
        tide_callback_kind_t kind = TIDE_CALLBACK_GUARD, bool always = false)
      : bench(the_bench), log(the_log), name(the_name) {
    callback.kind = kind;
    callback.priority = priority;
    callback.always = always;
    callback.context = this;
    callback.handle = this;
    callback.execute = [](tide_callback_t *, void *context) { static_cast<Probe *>(context)->run(); };
    EXPECT_EQ(tide_executor_add(&bench.executor, &callback), TIDE_OK);
  }
  void run() {
    log += name;
    if (action) action();
  }
  void notify() { tide_executor_notify(&callback); }

  Bench &bench;
  std::string &log;
  char name;
  tide_callback_t callback{};
  std::function<void()> action;
};

// A timer that records when it ran.
struct Clock {
  Clock(Bench &the_bench, int64_t period, tide_priority_t priority = 0) : bench(the_bench) {
    timer.period_ns = period;
    timer.callback.priority = priority;
    timer.callback.context = this;
    timer.on_expiry = [](tide_timer_t *expired, int64_t) {
      auto *clock = static_cast<Clock *>(expired->callback.context);
      clock->times.push_back(clock->bench.machine.now);
      clock->bench.machine.execute(clock->execution);
      if (clock->action) clock->action();
    };
    EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_OK);
  }

  Bench &bench;
  tide_timer_t timer{};
  int64_t execution = 0;
  std::vector<int64_t> times;
  std::function<void()> action;
};

using Times = std::vector<int64_t>;

inline void rounds_until(Bench &bench, int64_t end) {
  while (bench.machine.now < end && tide_executor_round(&bench.executor, end) >= 0) {}
}

// Tests of the policies tide and batch on two platforms: one has a single kind of critical section, the other has
// separate sections that exclude lanes and interrupts.
class BothPolicies : public testing::TestWithParam<std::tuple<tide_policy_t, bool>> {
 protected:
  BothPolicies() : bench(policy()) {
    if (std::get<1>(GetParam())) bench.machine.split();
    bench.init();
  }
  static tide_policy_t policy() { return std::get<0>(GetParam()); }
  Bench bench;
  std::string log;
};

}  // namespace exec_virtual
