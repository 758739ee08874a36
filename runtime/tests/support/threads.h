// SPDX-License-Identifier: Apache-2.0
// A platform on real threads, in time that the test owns: the clock advances with actions of the threads, by a step
// each time one of them waits for a turn and a little each time one reads it. Other load of the machine therefore does
// not affect the clock.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "tide/lock.h"
#include "tide/platform.h"
#include "tide/status.h"

namespace tide::test {

class Threads {
 public:
  Threads() {
    platform.context = this;
    platform.now_ns = [](void *context) { return static_cast<Threads *>(context)->now_ns(); };
    platform.critical_enter = [](void *context) -> uintptr_t {
      static_cast<Threads *>(context)->critical.lock();
      return 0;
    };
    platform.critical_exit = [](void *context, uintptr_t) { static_cast<Threads *>(context)->critical.unlock(); };
    platform.event_init = [](void *, tide_event_t *event) { event->state = 0; };
    platform.event_set = [](void *context, tide_event_t *event) {
      const std::lock_guard lock(static_cast<Threads *>(context)->events);
      event->state = 1;
    };
    platform.event_wait = [](void *context, tide_event_t *event, int64_t deadline_ns) {
      auto *self = static_cast<Threads *>(context);
      return int{self->turns_until([&] { return self->take(event); }, deadline_ns)};
    };
  }
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;

  int64_t now_ns() { return clock_ns.fetch_add(kLookNs) + kLookNs; }

  // Lets other threads run, and advances the clock by a step.
  void turn() {
    clock_ns.fetch_add(kTurnNs);
    std::this_thread::yield();
  }

  // Repeats this until the condition holds (returns true) or the clock reaches the deadline.
  template <typename Condition> bool turns_until(Condition condition, int64_t deadline_ns = INT64_MAX) {
    while (!condition()) {
      if (now_ns() >= deadline_ns) return false;
      turn();
    }
    return true;
  }

  tide_platform_t platform{};
  std::recursive_mutex critical;

 private:
  static constexpr int64_t kLookNs = 50, kTurnNs = 5000;

  bool take(tide_event_t *event) {
    const std::lock_guard lock(events);
    const bool set = event->state != 0;
    event->state = 0;
    return set;
  }

  std::mutex events;
  std::atomic<int64_t> clock_ns{1'000'000'000};
};

// An executor with a lane for each level, a callback in each, and a lock.
template <size_t count> struct LanesOfLevels {
  tide_executor_t executor{};
  std::array<tide_lane_t, count> lanes{};
  std::array<tide_callback_t, count> callbacks{};
  std::array<tide_callback_t *, count> registered{};
  std::array<tide_queue_entry_t *, count * count> ready{}, timers{};
  std::array<std::function<void()>, count> bodies;
  tide_lock_set_t set{};
  tide_lock_t lock{};

  void init(const tide_platform_t *platform, const tide_lock_port_t *port, tide_scheduling_t scheduling) {
    tide_executor_config_t config{};
    config.platform = platform;
    config.callbacks = registered.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = count;
    config.lanes = lanes.data();
    config.lane_count = count;
    for (size_t index = 0; index < count; index++) {
      tide_lane_settings_t &settings = lanes[index].settings;
      settings.least_level = static_cast<uint8_t>(index + 1);
      settings.scheduling = scheduling;
      settings.priority = scheduling == TIDE_SCHEDULING_FIFO ? 10 + 10 * static_cast<int>(index) : 0;
      settings.may_run_normally = true;
    }
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
    for (size_t index = 0; index < count; index++) {
      callbacks[index].kind = TIDE_CALLBACK_GUARD;
      callbacks[index].priority = static_cast<tide_priority_t>(TIDE_PRIORITY(index + 1, 0));
      callbacks[index].context = &bodies[index];
      callbacks[index].execute = [](tide_callback_t *, void *context) {
        (*static_cast<std::function<void()> *>(context))();
      };
      EXPECT_EQ(tide_executor_add(&executor, &callbacks[index]), TIDE_OK);
    }
    EXPECT_EQ(tide_lock_set_init(&set, platform, port), TIDE_OK);
    EXPECT_EQ(tide_lock_init(&lock, &set), TIDE_OK);
  }
};

}  // namespace tide::test
