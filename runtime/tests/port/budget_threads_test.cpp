// SPDX-License-Identifier: Apache-2.0
// Threads under budgets. If the system refuses real-time scheduling, the test checks that the refusal is reported.
#include "eventually.h"
#include "tide/budget_posix.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <random>
#include <thread>

#include "tide/status.h"

namespace budget_threads_test {

constexpr int kSupervisor = 30, kHigh = 20;
constexpr int64_t kMillisecond = 1'000'000;

int64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int priority_of(pthread_t thread) {
  int policy = 0;
  sched_param parameter{};
  EXPECT_EQ(pthread_getschedparam(thread, &policy, &parameter), 0);
  return policy == SCHED_FIFO ? parameter.sched_priority : 0;
}

class BudgetThreads : public testing::Test {
 protected:
  void SetUp() override { status_ = tide_posix_budgets_start(&budgets_, kSupervisor, TIDE_POSIX_ANY_CPU); }
  void TearDown() override { tide_posix_budgets_stop(&budgets_); }

  // True if the system permits real-time scheduling; otherwise checks that the status says so.
  bool permitted() const {
    if (status_ == TIDE_OK) return true;
    EXPECT_EQ(status_, TIDE_ERROR_NOT_PERMITTED);
    return false;
  }

  int status_ = 0;
  tide_posix_budgets_t budgets_{};
};

struct Lane {
  tide_posix_budget_t budget{};
  tide_replenishment_t replenishments[6]{};

  tide_budget_config_t config(int64_t budget_ns, int64_t period_ns, int low = 0) {
    return {.priority = kHigh,
            .low_priority = low,
            .budget_ns = budget_ns,
            .period_ns = period_ns,
            .replenishments = replenishments,
            .maximum_replenishments = 6};
  }
};

// A busy lane is lowered when its budget is used up and raised when it is replenished. It uses no more than the bound
// in tide/budget.h plus the delays of late accounting.
TEST_F(BudgetThreads, FallsAndRisesAndStaysWithinItsBudget) {
  if (!permitted()) return;
  Lane lane;
  std::thread thread([&] {
    const int64_t period = 20 * kMillisecond;
    const tide_budget_config_t config = lane.config(2 * kMillisecond, period);
    const int64_t start = read_clock(CLOCK_MONOTONIC), before = read_clock(CLOCK_THREAD_CPUTIME_ID);
    ASSERT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_OK);
    const int64_t attached = read_clock(CLOCK_THREAD_CPUTIME_ID);
    ASSERT_EQ(priority_of(pthread_self()), kHigh);
    for (int round = 0; round < 5; round++) {
      while (priority_of(pthread_self()) != 0) {}
      while (priority_of(pthread_self()) != kHigh) {}
    }
    tide_budget_counters_t counters;
    const int64_t asked = read_clock(CLOCK_THREAD_CPUTIME_ID);
    ASSERT_EQ(tide_posix_budget_counters(&lane.budget, &counters), TIDE_OK);
    const auto counted = static_cast<int64_t>(counters.used_ns + counters.low_ns);
    EXPECT_GE(counted, asked - attached);  // all the processor time of the lane, counted once
    EXPECT_LE(counted, read_clock(CLOCK_THREAD_CPUTIME_ID) - before);
    const int64_t length = read_clock(CLOCK_MONOTONIC) - start;
    const int64_t periods = (length + period - 1) / period + 1;
    EXPECT_GE(counters.exhaustions, 5u);
    EXPECT_GE(counters.replenishments, 5u);
    EXPECT_GE(counters.used_ns, 5u * 2 * kMillisecond);
    EXPECT_LE(counters.used_ns, static_cast<uint64_t>(periods * config.budget_ns) + counters.overrun_ns);
    EXPECT_EQ(lane.budget.failures, 0u);
    EXPECT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_OK);
    EXPECT_EQ(priority_of(pthread_self()), 0);
  });
  thread.join();
}

// A lane that sleeps without budget has its priority again when it wakes.
TEST_F(BudgetThreads, IsRaisedWhileItSleeps) {
  if (!permitted()) return;
  Lane lane;
  std::atomic<bool> sleeps = false, wake = false;
  std::thread thread([&] {
    const tide_budget_config_t config = lane.config(kMillisecond, 30 * kMillisecond);
    ASSERT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_OK);
    const tide_budget_hooks_t hooks = tide_posix_budget_hooks(&lane.budget);
    while (priority_of(pthread_self()) != 0) {}
    hooks.block(hooks.context);
    sleeps = true;
    wake.wait(false);
    hooks.ready(hooks.context);
    tide_budget_counters_t counters;
    EXPECT_EQ(tide_posix_budget_counters(&lane.budget, &counters), TIDE_OK);
    EXPECT_EQ(counters.activations, 2u);
    EXPECT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_OK);
  });
  while (!sleeps) std::this_thread::yield();
  while (priority_of(thread.native_handle()) != kHigh) std::this_thread::yield();
  wake = true;
  wake.notify_all();
  thread.join();
}

// Random sequences of calls on lanes, from several threads: there is no race (ThreadSanitizer) and no refused change,
// and the bound in tide/budget.h holds.
TEST_F(BudgetThreads, RandomPrograms) {
  if (!permitted()) return;
  const int64_t start = read_clock(CLOCK_MONOTONIC);
  constexpr int kLanes = 6;
  Lane lanes[kLanes];
  std::atomic<bool> done = false;
  std::atomic<int> attached = 0;
  const auto program = [&](int index) {
    std::mt19937_64 random(static_cast<uint64_t>(index) + 1);
    Lane &lane = lanes[index];
    const tide_budget_config_t config = lane.config(kMillisecond / 2 * (index + 1), 20 * kMillisecond);
    ASSERT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_OK);
    attached++;
    for (int step = 0; step < 60; step++) {
      switch (random() % 4) {
        case 0: tide_posix_spin_cpu(static_cast<int64_t>(random() % 400'000)); break;
        case 1:
          tide_posix_budget_block(&lane.budget);
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));  // clock: a pace
          tide_posix_budget_ready(&lane.budget);
          break;
        case 2: {
          tide_budget_counters_t counters;
          ASSERT_EQ(tide_posix_budget_counters(&lane.budget, &counters), TIDE_OK);
          break;
        }
        default:
          if (random() % 8 != 0) break;
          ASSERT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_OK);
          ASSERT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_ERROR_STATE);
          ASSERT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_OK);
      }
    }
    tide_budget_counters_t counters;
    ASSERT_EQ(tide_posix_budget_counters(&lane.budget, &counters), TIDE_OK);
    const int64_t periods = (read_clock(CLOCK_MONOTONIC) - start) / config.period_ns + 2;
    EXPECT_LE(counters.used_ns, static_cast<uint64_t>(periods * config.budget_ns) + counters.overrun_ns);
    EXPECT_EQ(lane.budget.failures, 0u);
    done.wait(false);
    EXPECT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_OK);
  };
  std::vector<std::thread> threads;
  for (int index = 0; index < kLanes; index++) threads.emplace_back(program, index);
  // Wake-ups that are meant for other threads, attached or not.
  std::mt19937_64 random(99);
  while (attached < kLanes) std::this_thread::yield();
  for (int wake = 0; wake < 200; wake++) {
    tide_posix_budget_ready(&lanes[random() % kLanes].budget);
    tide::test::let_others_run(random() % 60);
  }
  done = true;
  done.notify_all();
  for (std::thread &thread : threads) thread.join();
}

TEST_F(BudgetThreads, StopDetachesAll) {
  if (!permitted()) return;
  Lane lane;
  std::atomic<int> stage = 0;
  std::thread thread([&] {
    const tide_budget_config_t config = lane.config(kMillisecond, 10 * kMillisecond);
    ASSERT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_OK);
    stage = 1;
    stage.wait(1);
  });
  while (stage != 1) std::this_thread::yield();
  tide_posix_budgets_stop(&budgets_);
  EXPECT_EQ(priority_of(thread.native_handle()), 0);
  EXPECT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_ERROR_STATE);
  tide_posix_budget_ready(&lane.budget);  // no effect
  tide_posix_budget_block(&lane.budget);
  tide_posix_budgets_stop(&budgets_);
  EXPECT_EQ(tide_posix_budgets_start(&budgets_, kSupervisor, 0), TIDE_OK);
  stage = 2;
  stage.notify_all();
  thread.join();
}

// The budgets are stopped while lanes call, detach and end. Each lane's memory ends with its thread.
TEST_F(BudgetThreads, StopWhileLanesRun) {
  if (!permitted()) return;
  constexpr int kLanes = 3;
  for (int round = 0; round < 30; round++) {
    std::latch attached{kLanes + 1};
    const auto program = [&](int index) {
      const auto lane = std::make_unique<Lane>();
      const tide_budget_config_t config = lane->config(kMillisecond, 10 * kMillisecond);
      EXPECT_EQ(tide_posix_budget_attach(&budgets_, &lane->budget, pthread_self(), &config), TIDE_OK);
      attached.arrive_and_wait();
      for (int call = 0; call < index; call++) {
        tide_posix_budget_block(&lane->budget);
        tide_posix_budget_ready(&lane->budget);
      }
      tide_posix_budget_detach(&lane->budget);
      EXPECT_EQ(priority_of(pthread_self()), 0);
    };
    std::vector<std::thread> threads;
    for (int index = 0; index < kLanes; index++) threads.emplace_back(program, index);
    attached.arrive_and_wait();
    tide_posix_budgets_stop(&budgets_);
    for (std::thread &thread : threads) thread.join();
    ASSERT_EQ(tide_posix_budgets_start(&budgets_, kSupervisor, TIDE_POSIX_ANY_CPU), TIDE_OK);
  }
}

TEST_F(BudgetThreads, RefusesWhatIsNoBudget) {
  EXPECT_EQ(tide_posix_budgets_start(nullptr, kSupervisor, TIDE_POSIX_ANY_CPU), TIDE_ERROR_ARGUMENT);
  tide_posix_budgets_t other{};
  EXPECT_EQ(tide_posix_budgets_start(&other, 0, TIDE_POSIX_ANY_CPU), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_posix_budgets_start(&other, 100, TIDE_POSIX_ANY_CPU), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_posix_budgets_start(&other, kSupervisor, 1 << 20), TIDE_ERROR_ARGUMENT);
  Lane lane;
  tide_budget_config_t config = lane.config(1, 2);
  EXPECT_EQ(tide_posix_budget_attach(&other, &lane.budget, pthread_self(), &config), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_posix_budget_counters(&lane.budget, nullptr), TIDE_ERROR_STATE);
  if (!permitted()) return;
  EXPECT_EQ(tide_posix_budgets_start(&budgets_, kSupervisor, TIDE_POSIX_ANY_CPU), TIDE_ERROR_STATE);
  const auto refused = [&](auto change) {
    tide_budget_config_t wanted = lane.config(kMillisecond, 10 * kMillisecond);
    change(wanted);
    const int status = tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &wanted);
    if (status == TIDE_OK) tide_posix_budget_detach(&lane.budget);
    return status == TIDE_ERROR_ARGUMENT;
  };
  EXPECT_FALSE(refused([](auto &) {}));
  EXPECT_TRUE(refused([](auto &c) { c.priority = kSupervisor; }));
  EXPECT_TRUE(refused([](auto &c) { c.priority = 0; }));
  EXPECT_TRUE(refused([](auto &c) { c.low_priority = -1; }));
  EXPECT_TRUE(refused([](auto &c) { c.low_priority = kHigh; }));
  EXPECT_TRUE(refused([](auto &c) { c.budget_ns = 0; }));
  config = lane.config(kMillisecond, 10 * kMillisecond);
  ASSERT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_OK);
  EXPECT_EQ(tide_posix_budget_attach(&budgets_, &lane.budget, pthread_self(), &config), TIDE_ERROR_EXISTS);
  EXPECT_EQ(tide_posix_budget_detach(&lane.budget), TIDE_OK);
}

// A user without the permission gets a message with the remedy, not a budget without effect.
TEST(BudgetRights, WithoutThemItSaysWhatToDo) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_RTPRIO, &none);
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);
    tide_posix_budgets_t budgets{};
    _exit(tide_posix_budgets_start(&budgets, kSupervisor, TIDE_POSIX_ANY_CPU) == TIDE_ERROR_NOT_PERMITTED ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  const std::string advice = tide_posix_budget_advice(TIDE_ERROR_NOT_PERMITTED);
  EXPECT_NE(advice.find("cap_sys_nice"), std::string::npos);
  EXPECT_NE(advice.find("ulimit -r"), std::string::npos);
  EXPECT_EQ(advice.find('\n'), std::string::npos);
}

}  // namespace budget_threads_test
