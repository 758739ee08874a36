// SPDX-License-Identifier: Apache-2.0
// Triggers, and callbacks that run in every round whose trigger holds.
#include "exec_rules.h"

namespace exec_rules_test_triggers {

using namespace exec_virtual;

TEST_P(BothPolicies, TriggerThatIsFalseLosesNothingAndSleeps) {
  Probe first(bench, log, 'a', 0);
  Probe second(bench, log, 'b', 1);
  tide_executor_set_trigger(&bench.executor, tide_trigger_all, nullptr);
  Clock clock(bench, 10, 2);
  bench.machine.at(35, [&] { first.notify(); });
  bench.machine.at(77, [&] { second.notify(); });
  const int waits = bench.machine.waits;
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), 3);
  EXPECT_EQ(bench.machine.now, 77);
  EXPECT_EQ(log, policy() == TIDE_POLICY_TIDE ? "ba" : "ab");
  EXPECT_EQ(clock.times, (Times{77}));
  EXPECT_LE(bench.machine.waits - waits, 5) << "a due timer must not make a false trigger spin";
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(bench.machine.now, 1000);
}

TEST_P(BothPolicies, TriggerOneWaitsForItsHandleThenRunsAll) {
  Probe first(bench, log, 'a', 0);
  Probe second(bench, log, 'b', 1);
  tide_executor_set_trigger(&bench.executor, tide_trigger_one, &second);
  first.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), TIDE_ERROR_TIMEOUT);
  second.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 2);
}

TEST_P(BothPolicies, TriggerMayBecomeTrueByAWakeUpAlone) {
  Probe probe(bench, log, 'a', 0);
  bool open = false;
  tide_executor_set_trigger(
      &bench.executor, [](tide_callback_t *const *, size_t, void *object) { return *static_cast<bool *>(object); },
      &open);
  probe.notify();
  bench.machine.at(500, [&] {
    open = true;
    tide_executor_wake(&bench.executor);
  });
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), 1);
  EXPECT_EQ(bench.machine.now, 500);
}

TEST_P(BothPolicies, TriggerAlwaysRunsTheAlwaysCallbacksWhenTheTimeIsOver) {
  Probe probe(bench, log, 'a', 0, TIDE_CALLBACK_SUBSCRIPTION, true);
  Probe other(bench, log, 'b', 1, TIDE_CALLBACK_SUBSCRIPTION);
  tide_executor_set_trigger(&bench.executor, tide_trigger_always, nullptr);
  EXPECT_EQ(tide_executor_round(&bench.executor, 100), 1);
  EXPECT_EQ(bench.machine.now, 100);
  EXPECT_EQ(log, "a");
}

TEST_P(BothPolicies, AlwaysCallbacksRunInEveryTriggeredRound) {
  Probe low(bench, log, 'a', 1, TIDE_CALLBACK_SUBSCRIPTION, true);
  Probe middle(bench, log, 'b', 2);
  Probe high(bench, log, 'c', 3, TIDE_CALLBACK_SUBSCRIPTION, true);
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), TIDE_ERROR_TIMEOUT) << "alone they do not trigger";
  middle.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 3);
  EXPECT_EQ(log, policy() == TIDE_POLICY_TIDE ? "cba" : "abc");
  high.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 2);
  EXPECT_EQ(tide_executor_remove(&bench.executor, &high.callback), TIDE_OK);
  middle.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 20), 2);
}

TEST_P(BothPolicies, SpinLooksAtATriggerEverySpinTimeout) {
  Probe probe(bench, log, 'a', 0, TIDE_CALLBACK_SUBSCRIPTION, true);
  tide_executor_set_trigger(&bench.executor, tide_trigger_always, nullptr);
  probe.action = [&] { log.size() == 3 ? tide_executor_stop(&bench.executor) : void(); };
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(bench.machine.now, INT64_C(3000000000));
}

}  // namespace exec_rules_test_triggers
