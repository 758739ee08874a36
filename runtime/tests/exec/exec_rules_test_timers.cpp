// SPDX-License-Identifier: Apache-2.0
// Timers: their grid, effects of an overrun, and changes while they wait or run.
#include "exec_rules.h"

namespace exec_rules_test_timers {

using namespace exec_virtual;

TEST_P(BothPolicies, TimerKeepsItsGrid) {
  Clock clock(bench, 50000);
  clock.execution = 7;
  rounds_until(bench, 200000);
  EXPECT_EQ(clock.times, (Times{50000, 100000, 150000, 200000}));
  EXPECT_EQ(clock.since, (Times{50000, 50000, 50000, 50000}));
  EXPECT_EQ(clock.timer.callback.execution_maximum_ns, 7);
  EXPECT_EQ(clock.timer.callback.ready_ns, 200000);
}

TEST_P(BothPolicies, SkippedExpiriesAreCountedAndTheGridIsKept) {
  Clock clock(bench, 10);
  clock.action = [&] { bench.machine.execute(clock.times.size() == 1 ? 35 : 0); };
  rounds_until(bench, 70);
  EXPECT_EQ(clock.times, (Times{10, 45, 50, 60, 70}));  // 20 runs late, at 45, and this run also counts for 30 and 40
  EXPECT_EQ(clock.timer.skipped, 2u);
}

TEST_P(BothPolicies, ManyMissedPeriodsCostOneStep) {
  Clock clock(bench, 1);
  bench.machine.now = INT64_C(3600000000000);
  EXPECT_EQ(tide_executor_round(&bench.executor, 0), 1);
  EXPECT_EQ(clock.timer.next_ns, INT64_C(3600000000001));
  EXPECT_EQ(clock.timer.skipped, UINT32_MAX) << "the count stays at its maximum";
}

TEST_P(BothPolicies, TimerMayCancelResetAndRetimeItself) {
  Clock clock(bench, 10);
  clock.action = [&] {
    if (clock.times.size() == 2) {
      tide_timer_cancel(&clock.timer);
      EXPECT_EQ(tide_timer_until_next_ns(&clock.timer, bench.machine.now), TIDE_FOREVER);
    }
  };
  rounds_until(bench, 100);
  EXPECT_EQ(clock.times, (Times{10, 20}));
  EXPECT_TRUE(clock.timer.canceled);
  tide_timer_reset(&clock.timer);
  clock.action = [&] { tide_timer_set_period(&clock.timer, 30); };  // has effect from the next expiry on
  EXPECT_EQ(tide_timer_until_next_ns(&clock.timer, 100), 10);
  rounds_until(bench, 200);
  EXPECT_EQ(clock.times, (Times{10, 20, 110, 120, 150, 180}));
  tide_timer_set_phase(&clock.timer, 215);
  rounds_until(bench, 250);
  EXPECT_EQ(clock.times.back(), 245);
}

TEST_P(BothPolicies, CancelAndResetTakeBackAnExpiryThatHasNotRun) {
  Clock first(bench, 10, 2);
  Clock second(bench, 10, 1);
  Clock third(bench, 10, 0);
  first.action = [&] {
    tide_timer_cancel(&second.timer);
    tide_timer_reset(&third.timer);
    tide_timer_cancel(&first.timer);
  };
  rounds_until(bench, 25);
  EXPECT_EQ(first.times, (Times{10}));
  EXPECT_EQ(second.times, (Times{}));
  EXPECT_EQ(third.times, (Times{20}));
}

TEST_P(BothPolicies, TimerOnlyExecutorSleepsOnceAnExpiry) {
  Clock clock(bench, 1000);
  rounds_until(bench, 100000);
  EXPECT_EQ(clock.times.size(), 100u);
  EXPECT_LE(bench.machine.waits, 101);
  EXPECT_EQ(bench.executor.counters.timers_expired, 100u);
  EXPECT_EQ(bench.executor.counters.callbacks_run, 100u);
}

}  // namespace exec_rules_test_timers
