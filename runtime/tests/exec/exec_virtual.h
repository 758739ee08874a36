// SPDX-License-Identifier: Apache-2.0
// A machine in virtual time for the tests of the executor: the clock moves only by execution and by waiting, and
// interrupts happen at given times, in the middle of executions and of waits.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tide/executor.h"
#include "tide/status.h"

namespace exec_virtual {

class Machine {
 public:
  Machine() {
    platform.context = this;
    platform.now_ns = [](void *context) { return self(context).now; };
    platform.critical_enter = [](void *context) -> uintptr_t {
      self(context).sections++;
      return static_cast<uintptr_t>(self(context).depth++);
    };
    platform.critical_exit = [](void *context, uintptr_t state) {
      EXPECT_EQ(state, static_cast<uintptr_t>(--self(context).depth));
      self(context).open();
    };
    platform.event_init = [](void *, tide_event_t *event) { event->state = 0; };
    platform.event_set = [](void *context, tide_event_t *event) {
      EXPECT_EQ(self(context).depth, 0) << "an event was set within the critical section";
      event->state = 1;
    };
    platform.event_wait = [](void *context, tide_event_t *event, int64_t deadline) {
      return self(context).wait(event, deadline);
    };
  }
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  // From now on, lanes are excluded by a separate section, in which interrupts can occur.
  void split() {
    platform.lanes_enter = [](void *context) -> uintptr_t {
      self(context).open();
      EXPECT_FALSE(self(context).interrupted) << "an interrupt took the lock of the lanes";
      return static_cast<uintptr_t>(self(context).lanes_depth++);
    };
    platform.lanes_exit = [](void *context, uintptr_t state) {
      EXPECT_EQ(self(context).depth, 0) << "the lanes were let in within the critical section";
      self(context).open();
      EXPECT_EQ(state, static_cast<uintptr_t>(--self(context).lanes_depth));
    };
  }

  // Makes an interrupt occur at that time; it performs the action.
  void at(int64_t time, std::function<void()> action) { interrupts.emplace(time, std::move(action)); }

  // The running callback computes for this time, and interrupts occur meanwhile.
  void execute(int64_t duration) {
    const int64_t end = now + duration;
    while (interrupt_until(end)) {}
    now = end;
  }

  tide_platform_t platform{};
  int64_t now = 0;
  int depth = 0, lanes_depth = 0;
  int waits = 0;
  int sections = 0;               // number of critical sections entered
  std::function<void()> between;  // true: an interrupt occurs at every possible place, except within an interrupt
  bool hung = false;              // set by an unlimited wait that no event can end

 private:
  static Machine &self(void *context) { return *static_cast<Machine *>(context); }

  void open() {
    if (depth > 0 || interrupted || !between) return;
    interrupted = true;
    between();
    interrupted = false;
  }

  bool interrupt_until(int64_t limit) {
    if (interrupts.empty() || interrupts.begin()->first > limit) return false;
    auto node = interrupts.extract(interrupts.begin());
    now = std::max(now, node.key());
    node.mapped()();
    return true;
  }

  int wait(tide_event_t *event, int64_t deadline) {
    EXPECT_EQ(depth + lanes_depth, 0) << "slept within the critical section";
    waits++;
    EXPECT_LT(waits, 1000000) << "busy loop";
    while (interrupt_until(now)) {}
    while (event->state == 0) {
      if (interrupt_until(deadline)) {
        while (interrupt_until(now)) {}
        continue;
      }
      if (deadline == TIDE_FOREVER) {
        hung = true;
        ADD_FAILURE() << "nothing will ever end this wait";
        std::abort();
      }
      now = std::max(now, deadline);
      return 0;
    }
    event->state = 0;
    return 1;
  }

  bool interrupted = false;
  std::multimap<int64_t, std::function<void()>> interrupts;
};

// An executor with storage.
class Bench {
 public:
  explicit Bench(tide_policy_t policy, size_t places = 32, size_t lane_count = 1)
      : callbacks(places), ready(places), timers(places), lanes(lane_count) {
    config.platform = &machine.platform;
    config.policy = policy;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = places;
    config.lanes = lanes.data();
    config.lane_count = lanes.size();
  }

  void init() { ASSERT_EQ(tide_executor_init(&executor, &config), TIDE_OK); }

  Machine machine;
  std::vector<tide_callback_t *> callbacks;
  std::vector<tide_queue_entry_t *> ready, timers;
  std::vector<tide_lane_t> lanes;
  tide_executor_config_t config{};
  tide_executor_t executor{};
};

}  // namespace exec_virtual
