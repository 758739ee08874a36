// SPDX-License-Identifier: Apache-2.0
// What random programs on real threads are made of: a platform of the C++ library, dice, and seeds that replay.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>

#include "tide/platform.h"

namespace exec_threads {

// A platform of the C++ library.
class Host {
 public:
  Host() {
    platform.context = this;
    platform.now_ns = [](void *) -> int64_t {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
    };
    platform.critical_enter = [](void *context) -> uintptr_t {
      static_cast<Host *>(context)->mutex.lock();
      return 0;
    };
    platform.critical_exit = [](void *context, uintptr_t) { static_cast<Host *>(context)->mutex.unlock(); };
    platform.event_init = [](void *, tide_event_t *event) { event->state = 0; };
    platform.event_set = [](void *context, tide_event_t *event) {
      auto *self = static_cast<Host *>(context);
      const std::lock_guard lock(self->event_mutex);
      event->state = 1;
      self->changed.notify_all();
    };
    platform.event_wait = [](void *context, tide_event_t *event, int64_t deadline) {
      auto *self = static_cast<Host *>(context);
      std::unique_lock lock(self->event_mutex);
      while (event->state == 0) {
        const int64_t left = deadline - self->platform.now_ns(context);
        if (left <= 0) return 0;
        self->changed.wait_for(lock, std::chrono::nanoseconds(std::min<int64_t>(left, 1'000'000'000)));
      }
      event->state = 0;
      return 1;
    };
  }
  tide_platform_t platform{};

 private:
  std::recursive_mutex mutex;
  std::mutex event_mutex;
  std::condition_variable changed;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine(seed) {}
  int between(int low, int high) { return low + static_cast<int>(engine() % static_cast<uint64_t>(high - low + 1)); }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine;
};

inline uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

}  // namespace exec_threads
