// SPDX-License-Identifier: Apache-2.0
// Threads that are scheduled before they run. Privileged features are tested if they are permitted, otherwise their
// refusal is tested; each test reports which of the two it tested.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tide/posix_thread.h"
#include "tide/status.h"

namespace thread_test {

struct Seen {
  std::atomic<int> runs{0};
  int policy = -1, priority = -1;
  bool takes_signals = true;
  cpu_set_t affinity{};
};

void look(void *context) {
  auto *seen = static_cast<Seen *>(context);
  sched_param parameter{};
  pthread_getschedparam(pthread_self(), &seen->policy, &parameter);
  seen->policy = sched_getscheduler(0);
  seen->priority = parameter.sched_priority;
  pthread_getaffinity_np(pthread_self(), sizeof seen->affinity, &seen->affinity);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  seen->takes_signals = sigismember(&blocked, SIGTERM) == 0;
  seen->runs++;
}

tide_posix_thread_config_t config_of(Seen &seen, int policy, int priority) {
  tide_posix_thread_config_t config{};
  config.scheduling.policy = policy;
  config.scheduling.priority = priority;
  config.scheduling.cpu = TIDE_POSIX_ANY_CPU;
  config.function = look;
  config.context = &seen;
  return config;
}

int first_cpu() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpu++;
  return cpu;
}

bool may(int policy, int priority) {
  bool allowed = false;
  std::thread([&] {
    const sched_param parameter{.sched_priority = priority};
    allowed = pthread_setschedparam(pthread_self(), policy, &parameter) == 0;
  }).join();
  return allowed;
}

// The settings apply before the function runs; if they are refused, it never runs.
void expect_policy(int policy, int priority) {
  Seen seen;
  auto config = config_of(seen, policy, priority);
  config.scheduling.cpu = first_cpu();
  tide_posix_thread_t thread;
  const int status = tide_posix_thread_start(&thread, &config);
  if (!may(policy, priority)) {
    EXPECT_EQ(status, TIDE_ERROR_NOT_PERMITTED);
    EXPECT_EQ(seen.runs, 0);
    return;
  }
  ASSERT_EQ(status, TIDE_OK);
  tide_posix_thread_join(&thread);
  EXPECT_EQ(seen.runs, 1);
  EXPECT_EQ(seen.policy, policy);
  EXPECT_EQ(seen.priority, priority);
  EXPECT_EQ(CPU_COUNT(&seen.affinity), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<unsigned>(config.scheduling.cpu), &seen.affinity));
  EXPECT_FALSE(seen.takes_signals);
}

TEST(PosixThread, NormalIsInForceBeforeTheFunctionRuns) { expect_policy(SCHED_OTHER, 0); }
TEST(PosixThread, FifoIsInForceBeforeTheFunctionRuns) { expect_policy(SCHED_FIFO, 11); }
TEST(PosixThread, RoundRobinIsInForceBeforeTheFunctionRuns) { expect_policy(SCHED_RR, 7); }

TEST(PosixThread, RefusesWhatMakesNoSense) {
  Seen seen;
  tide_posix_thread_t thread;
  const auto good = config_of(seen, SCHED_OTHER, 0);
  EXPECT_EQ(tide_posix_thread_start(nullptr, &good), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_posix_thread_start(&thread, nullptr), TIDE_ERROR_ARGUMENT);
  auto config = good;
  config.function = nullptr;
  EXPECT_EQ(tide_posix_thread_start(&thread, &config), TIDE_ERROR_ARGUMENT);
  config = good;
  config.scheduling.policy = 12345;
  EXPECT_EQ(tide_posix_thread_start(&thread, &config), TIDE_ERROR_ARGUMENT);
  config = good;
  config.scheduling.cpu = CPU_SETSIZE;
  EXPECT_EQ(tide_posix_thread_start(&thread, &config), TIDE_ERROR_ARGUMENT);
  config = good;
  config.stack_bytes = 65536;
  config.stack_touch_bytes = 4096;
  EXPECT_EQ(tide_posix_thread_start(&thread, &config), TIDE_ERROR_ARGUMENT) << "no room for the function";
  for (const int64_t runtime_ns : {int64_t{0}, int64_t{-1}, int64_t{200'000'000}}) {
    config = config_of(seen, SCHED_DEADLINE, 0);
    config.scheduling.runtime_ns = runtime_ns;
    config.scheduling.deadline_ns = config.scheduling.period_ns = 100'000'000;
    EXPECT_EQ(tide_posix_thread_start(&thread, &config), TIDE_ERROR_ARGUMENT) << runtime_ns;
  }
  config.scheduling.runtime_ns = 1'000'000;
  config.scheduling.cpu = first_cpu();
  EXPECT_EQ(tide_posix_thread_start(&thread, &config), TIDE_ERROR_ARGUMENT) << "deadline threads are not pinned";
  EXPECT_EQ(seen.runs, 0);
  EXPECT_EQ(tide_posix_schedule(nullptr), TIDE_ERROR_ARGUMENT);
}

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// Excluded from ThreadSanitizer, because accesses to its shadow memory fault as well.
__attribute__((noinline, no_sanitize_thread)) void use_stack(void *context) {
  volatile char memory[384 * 1024];
  const long before = minor_faults();
  for (size_t place = 0; place < sizeof memory; place += 4096) memory[place] = 1;
  *static_cast<long *>(context) = minor_faults() - before;
}

TEST(PosixThread, TheTouchedStackCausesNoFaultLater) {
  long faults[2] = {-1, -1};
  for (int touched = 0; touched < 2; touched++) {
    tide_posix_thread_config_t config{};
    config.scheduling.cpu = TIDE_POSIX_ANY_CPU;
    config.stack_bytes = 8 * 1024 * 1024;  // because sanitizers keep much thread-local storage there
    config.stack_touch_bytes = touched == 1 ? 512 * 1024 : 0;
    config.function = use_stack;
    config.context = &faults[touched];
    tide_posix_thread_t thread;
    ASSERT_EQ(tide_posix_thread_start(&thread, &config), TIDE_OK);
    tide_posix_thread_join(&thread);
  }
#if !defined(__SANITIZE_THREAD__)  // the first access touches the sanitizer's shadow of the stack
  EXPECT_LE(faults[1], 2);
#endif
  EXPECT_GE(faults[0], faults[1]);
}

TEST(PosixThread, CpuLatencyIsHeldOrRefused) {
  const int descriptor = tide_posix_hold_cpu_latency(0);
  if (descriptor >= 0) {
    EXPECT_EQ(close(descriptor), 0);
  } else {
    EXPECT_TRUE(descriptor == TIDE_ERROR_NOT_PERMITTED || descriptor == TIDE_ERROR_UNSUPPORTED) << descriptor;
  }
}

}  // namespace thread_test
