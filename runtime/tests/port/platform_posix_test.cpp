// SPDX-License-Identifier: Apache-2.0
// The POSIX platform and the executor on it: real threads, real time.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "eventually.h"
#include "tide/executor.h"
#include "tide/port.h"
#include "tide/posix.h"
#include "tide/status.h"

namespace platform_posix_test {

constexpr int64_t millisecond = 1000000;

const tide_platform_t &platform() { return *tide_port_platform(); }
int64_t now() { return platform().now_ns(platform().context); }

int64_t processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

struct Event {
  Event() { platform().event_init(platform().context, &event); }
  void set() { platform().event_set(platform().context, &event); }
  int wait(int64_t deadline) { return platform().event_wait(platform().context, &event, deadline); }
  tide_event_t event{};
};

TEST(PlatformPosix, ClockIsMonotonicAndWallClockIsOfThisCentury) {
  int64_t last = now();
  for (int times = 0; times < 100000; times++) {
    const int64_t next = now();
    ASSERT_GE(next, last);
    last = next;
  }
  EXPECT_GT(platform().wall_ns(platform().context), INT64_C(1600000000000000000));
}

TEST(PlatformPosix, EventIsStickyAndOneWaitTakesIt) {
  Event event;
  event.set();
  event.set();
  EXPECT_EQ(event.wait(TIDE_FOREVER), 1);
  EXPECT_EQ(event.wait(0), 0);
  event.set();
  EXPECT_EQ(event.wait(0), 1) << "a deadline in the past polls";
  EXPECT_EQ(event.wait(INT64_MIN), 0);
}

TEST(PlatformPosix, WaitNeverTimesOutEarly) {
  Event event;
  for (int times = 0; times < 200; times++) {  // enough pauses, all different, for a wake-up lead
    const int64_t deadline = now() + (times * 7919 % 200) * 1000;
    ASSERT_EQ(event.wait(deadline), 0);
    ASSERT_GE(now(), deadline) << times;
  }
  for (int64_t duration = 1; duration < 3 * millisecond; duration = duration * 5 / 4 + 1) {
    const int64_t deadline = now() + duration;
    ASSERT_EQ(event.wait(deadline), 0);
    ASSERT_GE(now(), deadline);
  }
}

#ifdef __linux__
TEST(PlatformPosix, ThreadThatWaitsAsksForPreciseTimers) {
  std::thread([] {
    Event event;
    EXPECT_EQ(event.wait(now() + 1000), 0);
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 1);
  }).join();
}
#endif

// Two threads pass a token back and forth; if a wake-up were lost, the test would hang.
TEST(PlatformPosix, NoWakeUpIsLostBetweenTwoThreads) {
  constexpr int exchanges = 20000;
  Event there, back;
  std::thread other([&] {
    for (int times = 0; times < exchanges; times++) {
      ASSERT_EQ(there.wait(TIDE_FOREVER), 1);
      back.set();
    }
  });
  for (int times = 0; times < exchanges; times++) {
    there.set();
    ASSERT_EQ(back.wait(now() + 20000 * millisecond), 1) << times;
  }
  other.join();
}

// The deadlines are so short that setting the event races with the timeout.
TEST(PlatformPosix, SetRacingWithTheDeadlineIsSeenByThisWaitOrTheNext) {
  constexpr int sets = 5000;
  Event event, taken;
  std::thread other([&] {
    for (int times = 0; times < sets; times++) {
      event.set();
      ASSERT_EQ(taken.wait(TIDE_FOREVER), 1);
    }
  });
  for (int seen = 0, timeouts = 0; seen < sets;) {
    if (event.wait(now() + 1000 * (timeouts % 20)) == 1) {
      seen++;
      timeouts = 0;
      taken.set();
    } else {
      ASSERT_LT(++timeouts, 1000000) << "a wake-up was lost";
    }
  }
  other.join();
}

TEST(PlatformPosix, CriticalSectionNestsAndExcludes) {
  std::atomic<int> inside = -1, intrusions = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; thread++) {
    threads.emplace_back([&, thread] {
      for (int times = 0; times < 2000; times++) {
        const uintptr_t outer = platform().critical_enter(platform().context);
        inside = thread;
        const uintptr_t inner = platform().critical_enter(platform().context);
        platform().critical_exit(platform().context, inner);
        if (times % 20 == 0) {
          std::this_thread::yield();
        }
        intrusions += inside == thread ? 0 : 1;
        platform().critical_exit(platform().context, outer);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  EXPECT_EQ(intrusions, 0) << "leaving the inner section must not open the outer one";
}

TEST(PlatformPosix, CriticalSectionPassesOnWhatWaits) {
  std::vector<std::thread> threads;
  int64_t counted = 0;  // written only by the owner of the event
  const uintptr_t state = platform().critical_enter(platform().context);
  for (int thread = 0; thread < 4; thread++) {
    threads.emplace_back([&] {
      for (int times = 0; times < 500; times++) {
        const uintptr_t inner = platform().critical_enter(platform().context);
        counted++;
        if (times % 50 == 0) tide::test::let_others_run(20);  // let the waiter fall asleep
        platform().critical_exit(platform().context, inner);
      }
    });
  }
  tide::test::let_others_run(200);
  EXPECT_EQ(counted, 0);
  platform().critical_exit(platform().context, state);
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(counted, 2000);
}

TEST(PlatformPosix, CriticalSectionWorksInAChildProcess) {
  platform().critical_exit(platform().context, platform().critical_enter(platform().context));
  const pid_t child = fork();
  if (child == 0) {
    std::thread other([] {
      for (int times = 0; times < 1000; times++) {
        platform().critical_exit(platform().context, platform().critical_enter(platform().context));
      }
    });
    for (int times = 0; times < 1000; times++) {
      const uintptr_t outer = platform().critical_enter(platform().context);
      const uintptr_t inner = platform().critical_enter(platform().context);
      platform().critical_exit(platform().context, inner);
      platform().critical_exit(platform().context, outer);
    }
    other.join();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(PlatformPosix, SpinTakesProcessorTimeOfThisThread) {
  const int64_t start = processor_time();
  tide_posix_spin_cpu(20 * millisecond);
  const int64_t took = processor_time() - start;
  EXPECT_GE(took, 20 * millisecond);
  EXPECT_LT(took, 2 * 20 * millisecond);  // clock: this thread's processor time
  tide_posix_spin_cpu(-1);
}

TEST(PlatformPosix, SchedulingIsSetOrRefusedWithItsReason) {
  std::thread([] {
    EXPECT_EQ(tide_posix_set_scheduling(SCHED_OTHER, 0, TIDE_POSIX_ANY_CPU), TIDE_OK);
    EXPECT_EQ(tide_posix_set_scheduling(12345, 0, TIDE_POSIX_ANY_CPU), TIDE_ERROR_ARGUMENT);
    EXPECT_EQ(tide_posix_set_scheduling(SCHED_FIFO, 1000, TIDE_POSIX_ANY_CPU), TIDE_ERROR_ARGUMENT);
    EXPECT_EQ(tide_posix_set_scheduling(SCHED_OTHER, 0, 100000), TIDE_ERROR_ARGUMENT);
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int cpu = 0;
    while (!CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) {
      cpu++;
    }
    const int status = tide_posix_set_scheduling(SCHED_FIFO, 10, cpu);
    if (status == TIDE_OK) {
      EXPECT_EQ(sched_getscheduler(0) & SCHED_FIFO, SCHED_FIFO);
      EXPECT_EQ(sched_getcpu(), cpu);
      EXPECT_EQ(tide_posix_set_scheduling(SCHED_RR, 5, 100000), TIDE_ERROR_ARGUMENT);
      EXPECT_EQ(sched_getscheduler(0), SCHED_FIFO) << "nothing is changed when a part of it is refused";
    } else {
      EXPECT_EQ(status, TIDE_ERROR_NOT_PERMITTED);
    }
  }).join();
}

// ---- the executor on threads ----

struct Spinner {
  explicit Spinner(tide_policy_t policy) {
    tide_executor_config_t config{};
    config.platform = &platform();
    config.policy = policy;
    config.callbacks = callbacks.data();
    config.ready_storage = ready.data();
    config.timer_storage = timers.data();
    config.callback_count = callbacks.size();
    config.lanes = &lane;
    config.lane_count = 1;
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
  }
  void spin_until(const std::function<bool()> &condition) {
    std::thread stopper([&] {
      EXPECT_TRUE(tide::test::eventually(condition));
      tide_executor_stop(&executor);
    });
    EXPECT_EQ(tide_executor_spin(&executor), TIDE_OK);
    stopper.join();
  }
  std::array<tide_callback_t *, 16> callbacks{};
  std::array<tide_queue_entry_t *, 16> ready{}, timers{};
  tide_lane_t lane{};
  tide_executor_t executor{};
};

struct Counter {
  Counter(Spinner &spinner, tide_priority_t priority) {
    callback.kind = TIDE_CALLBACK_GUARD;
    callback.priority = priority;
    callback.context = this;
    callback.execute = [](tide_callback_t *, void *context) { static_cast<Counter *>(context)->runs++; };
    EXPECT_EQ(tide_executor_add(&spinner.executor, &callback), TIDE_OK);
  }
  tide_callback_t callback{};
  std::atomic<int64_t> runs = 0;
};

class OnThreads : public testing::TestWithParam<tide_policy_t> {};
INSTANTIATE_TEST_SUITE_P(PlatformPosix, OnThreads, testing::Values(TIDE_POLICY_TIDE, TIDE_POLICY_BATCH),
                         [](const auto &each) { return each.param == TIDE_POLICY_TIDE ? "tide" : "batch"; });

// One notification at a time, and the next one only after the run, so that each finds the executor asleep or falling
// asleep.
TEST_P(OnThreads, NotificationWakesASleepingExecutor) {
  Spinner spinner(GetParam());
  Counter counter(spinner, 1);
  std::thread other([&] {
    for (int64_t times = 1; times <= 5000; times++) {
      tide_executor_notify(&counter.callback);
      if (!tide::test::eventually([&] { return counter.runs >= times; })) {
        ADD_FAILURE() << "notification " << times << " was lost";
        break;
      }
    }
    tide_executor_stop(&spinner.executor);
  });
  EXPECT_EQ(tide_executor_spin(&spinner.executor), TIDE_OK);
  other.join();
}

// Timers that other threads cancel, reset, and give new periods and priorities; for ThreadSanitizer.
TEST_P(OnThreads, TimersMayBeChangedFromOtherThreads) {
  Spinner spinner(GetParam());
  std::array<tide_timer_t, 4> timers{};
  std::atomic<int> expiries = 0;
  for (tide_timer_t &timer : timers) {
    timer.period_ns = 20000;
    timer.callback.context = &expiries;
    timer.on_expiry = [](tide_timer_t *expired, int64_t since) {
      EXPECT_GE(since, 0);
      ++*static_cast<std::atomic<int> *>(expired->callback.context);
    };
    ASSERT_EQ(tide_executor_add_timer(&spinner.executor, &timer), TIDE_OK);
  }
  std::atomic<bool> over = false;
  std::thread other([&] {
    for (uint32_t times = 0; !over; times++) {
      tide_timer_t &timer = timers[times % timers.size()];
      tide_timer_cancel(&timer);
      tide_timer_reset(&timer);
      tide_timer_set_period(&timer, 10000 + times % 10000);
      tide_timer_set_phase(&timer, now() + 5000);
      tide_executor_set_priority(&spinner.executor, &timer.callback, static_cast<tide_priority_t>(times % 7));
      EXPECT_LT(tide_timer_until_next_ns(&timer, now()), TIDE_FOREVER);
      std::this_thread::yield();
    }
  });
  spinner.spin_until([&] { return expiries > 2000; });
  over = true;
  other.join();
  EXPECT_GT(spinner.executor.counters.callbacks_run, 100u);
}

// Timers are never early, and are exactly on the grid, under any load of the machine.
TEST_P(OnThreads, TimersOfFiftyMicrosecondsNeverFireEarly) {
  constexpr int64_t period = 50000;
  Spinner spinner(GetParam());
  struct Watched {
    tide_timer_t timer{};
    std::vector<int64_t> expiries, late;
    std::atomic<int> count = 0;
  } watched;
  watched.timer.period_ns = period;
  watched.timer.callback.context = &watched;
  watched.timer.on_expiry = [](tide_timer_t *timer, int64_t) {
    auto *each = static_cast<Watched *>(timer->callback.context);
    each->late.push_back(now() - timer->callback.ready_ns);
    each->expiries.push_back(timer->callback.ready_ns);
    ++each->count;
  };
  ASSERT_EQ(tide_executor_add_timer(&spinner.executor, &watched.timer), TIDE_OK);
  spinner.spin_until([&] { return watched.count > 5000; });
  ASSERT_FALSE(watched.late.empty());
  EXPECT_GE(*std::min_element(watched.late.begin(), watched.late.end()), 0);
  const int64_t run_or_skipped = static_cast<int64_t>(watched.late.size()) + watched.timer.skipped;
  EXPECT_EQ((watched.timer.next_ns - watched.expiries.front()) / period, run_or_skipped);
  EXPECT_EQ((watched.timer.next_ns - watched.expiries.front()) % period, 0);
  EXPECT_TRUE(std::is_sorted(watched.expiries.begin(), watched.expiries.end()));
}

}  // namespace platform_posix_test
