// SPDX-License-Identifier: Apache-2.0
// Random delays at the locks and events of a test's threads, to produce orders that do not occur on an idle machine.
// The linker redirects calls of the wrapped functions to this file (TideTests.cmake). A failure prints the seed;
// TIDE_DELAYS sets a seed, and 0 disables the delays. Threads with the same seed draw the same delays, but the order of
// events also depends on the machine.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tide/platform.h"

namespace {

uint64_t seed_of_run() {
  const char *given = std::getenv("TIDE_DELAYS");
  return given == nullptr ? std::random_device{}() | 1u : std::strtoull(given, nullptr, 10);
}

const uint64_t seed = seed_of_run();
std::atomic<uint64_t> threads{0};

void delay() {
  if (seed == 0) return;
  static thread_local uint64_t random = (seed + ++threads) * UINT64_C(0x9e3779b97f4a7c15) | 1u;
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  const uint64_t drawn = random >> 32;
  if (drawn % 32 == 0) {
    for (uint64_t turns = drawn / 32 % 4; turns > 0; turns--) sched_yield();
  } else if (drawn % 32 == 1) {
    // Volatile, so the compiler keeps the loop. Not atomic: atomic operations take locks of ThreadSanitizer's runtime.
    for (volatile uint64_t turns = drawn / 32 % 16384; turns > 0;) turns = turns - 1;
  }
}

class Report : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult &result) override {
    if (result.failed()) std::printf("the delays at locks are those of TIDE_DELAYS=%llu\n", (unsigned long long)seed);
  }
};
[[maybe_unused]] const bool reported = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Report);
  return true;
}();

}  // namespace

extern "C" {
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
__attribute__((weak)) const tide_platform_t *__real_tide_port_platform(void);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  delay();
  return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
  const int result = __real_pthread_mutex_unlock(mutex);
  delay();
  return result;
}

// The port's platform has its own locks and events.
const tide_platform_t *__wrap_tide_port_platform(void);
const tide_platform_t *__wrap_tide_port_platform(void) {
  static const tide_platform_t *const real = __real_tide_port_platform();
  static const tide_platform_t delayed = [] {
    tide_platform_t platform = *real;
    platform.critical_enter = [](void *context) {
      delay();
      return real->critical_enter(context);
    };
    platform.critical_exit = [](void *context, uintptr_t state) {
      real->critical_exit(context, state);
      delay();
    };
    platform.event_set = [](void *context, tide_event_t *event) {
      delay();
      real->event_set(context, event);
      delay();
    };
    platform.event_wait = [](void *context, tide_event_t *event, int64_t deadline_ns) {
      delay();
      return real->event_wait(context, event, deadline_ns);
    };
    return platform;
  }();
  return &delayed;
}
}
