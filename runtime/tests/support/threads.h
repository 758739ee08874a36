// SPDX-License-Identifier: Apache-2.0
// A platform on real threads, in time that the test owns: the clock advances with actions of the threads, by a step
// each time one of them waits for a turn and a little each time one reads it. Other load of the machine therefore does
// not affect the clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "tide/platform.h"

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
  template <typename Condition>
  bool turns_until(Condition condition, int64_t deadline_ns = INT64_MAX) {
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

}  // namespace tide::test
