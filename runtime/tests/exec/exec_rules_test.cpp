// SPDX-License-Identifier: Apache-2.0
// Rules of the executor that the model (exec_model_test.cpp) does not state, in virtual time: removal, stopping,
// policies, refused calls, the number of waits and triggers of the program.
#include <algorithm>
#include <cstring>
#include <memory>

#include "exec_rules.h"

namespace exec_rules_test {

using namespace exec_virtual;

bool always(tide_callback_t *const *, size_t, void *) { return true; }

INSTANTIATE_TEST_SUITE_P(ExecRules, BothPolicies,
                         testing::Combine(testing::Values(TIDE_POLICY_TIDE, TIDE_POLICY_BATCH), testing::Bool()),
                         [](const auto &each) {
                           const std::string policy = std::get<0>(each.param) == TIDE_POLICY_TIDE ? "tide" : "batch";
                           return std::get<1>(each.param) ? policy + "_split" : policy;
                         });

TEST_P(BothPolicies, CallbacksMayRemoveThemselvesAndOthersOfTheirRound) {
  Probe first(bench, log, 'a', 9), second(bench, log, 'b', 8), third(bench, log, 'c', 7), fourth(bench, log, 'd', 6);
  tide_executor_set_trigger(&bench.executor, tide_trigger_all, nullptr);
  first.action = [&] {
    EXPECT_EQ(tide_executor_remove(&bench.executor, &first.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &second.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &fourth.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &fourth.callback), TIDE_ERROR_NOT_FOUND);
    second.notify();
  };
  for (Probe *probe : {&first, &second, &third, &fourth}) probe->notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), 2);
  EXPECT_EQ(log, "ac");
  EXPECT_EQ(bench.executor.count, 1u);
  EXPECT_EQ(bench.executor.ready_count, 0u);
  EXPECT_EQ(third.callback.index, 0u);
  Probe fifth(bench, log, 'e', 5);
  third.notify();
  fifth.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 10), 2);
}

// The memory of a removed callback may be reused, so nothing may refer to it any more.
TEST_P(BothPolicies, NothingRemembersARemovedCallback) {
  Probe first(bench, log, 'a', 9);
  auto last = std::make_unique<Probe>(bench, log, 'b', 8);
  auto clock = std::make_unique<Clock>(bench, 10);
  tide_executor_set_trigger(&bench.executor, always, nullptr);
  first.action = [&] {
    EXPECT_EQ(tide_executor_remove(&bench.executor, &last->callback), TIDE_OK);
    EXPECT_EQ(tide_executor_remove(&bench.executor, &clock->timer.callback), TIDE_OK);
    std::memset(static_cast<void *>(&last->callback), 0x55, sizeof last->callback);
    std::memset(static_cast<void *>(&clock->timer), 0x55, sizeof clock->timer);
    first.action = nullptr;
  };
  first.notify();
  last->notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 0), 1);
  EXPECT_EQ(bench.lanes[0].band->timer_list.count, 0u);
  last.reset();
  clock.reset();
  Probe other(bench, log, 'c', 7);
  first.notify();
  other.notify();
  EXPECT_EQ(tide_executor_round(&bench.executor, 100), 2);
  EXPECT_EQ(log, "aac");
}

TEST_P(BothPolicies, StopEndsSpinAndIsNotLostWhenItComesFirst) {
  Probe probe(bench, log, 'a', 0);
  bench.machine.at(50, [&] { tide_executor_stop(&bench.executor); });
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(bench.machine.now, 50);
  tide_executor_stop(&bench.executor);
  probe.notify();
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(log, "");
  probe.action = [&] {
    tide_executor_stop(&bench.executor);
    EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_ERROR_STATE);
  };
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(log, "a");
}

TEST_P(BothPolicies, PolicyMayChangeBetweenRounds) {
  Probe first(bench, log, 'a', 0), second(bench, log, 'b', 9);
  first.notify();
  second.notify();
  const tide_policy_t other = policy() == TIDE_POLICY_TIDE ? TIDE_POLICY_BATCH : TIDE_POLICY_TIDE;
  first.action = [&] { EXPECT_EQ(tide_executor_set_policy(&bench.executor, policy()), TIDE_ERROR_STATE); };
  EXPECT_EQ(tide_executor_set_policy(&bench.executor, other), TIDE_OK);
  rounds_until(bench, 10);
  EXPECT_EQ(log, other == TIDE_POLICY_TIDE ? "ba" : "ab");
  log.clear();
  first.action = nullptr;
  first.notify();
  second.notify();
  EXPECT_EQ(tide_executor_set_policy(&bench.executor, policy()), TIDE_OK);
  rounds_until(bench, 20);
  EXPECT_EQ(log, policy() == TIDE_POLICY_TIDE ? "ba" : "ab");
}

TEST_P(BothPolicies, BadArgumentsAreRefused) {
  tide_executor_t other{};
  for (const auto &spoil : std::vector<std::function<void(tide_executor_config_t &)>>{
           [](auto &config) { config.platform = nullptr; }, [](auto &config) { config.callbacks = nullptr; },
           [](auto &config) { config.ready_storage = nullptr; }, [](auto &config) { config.timer_storage = nullptr; },
           [](auto &config) { config.callback_count = 0; }, [](auto &config) { config.lanes = nullptr; },
           [](auto &config) { config.lane_count = 0; }, [](auto &config) { config.spin_timeout_ns = -1; },
           [](auto &config) { config.policy = static_cast<tide_policy_t>(7); },
           [](auto &config) {
             config.source.most_urgent = [](void *, tide_priority_t, tide_priority_t) -> int32_t { return 0; };
           }}) {
    tide_executor_config_t config = bench.config;
    spoil(config);
    EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_ARGUMENT);
  }
  EXPECT_EQ(tide_executor_init(nullptr, &bench.config), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_round(nullptr, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_spin(nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_set_trigger(nullptr, nullptr, nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_set_policy(&bench.executor, static_cast<tide_policy_t>(7)), TIDE_ERROR_ARGUMENT);
  tide_callback_t callback{};
  EXPECT_EQ(tide_executor_add(&bench.executor, &callback), TIDE_ERROR_ARGUMENT);
  tide_executor_notify(&callback);
  tide_executor_notify(nullptr);
  EXPECT_EQ(tide_executor_set_priority(&bench.executor, &callback, 1), TIDE_ERROR_NOT_FOUND);
  tide_timer_t timer{};
  timer.on_expiry = [](tide_timer_t *, int64_t) {};
  EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_timer_reset(&timer), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_timer_cancel(nullptr), TIDE_ERROR_ARGUMENT);
  timer.period_ns = TIDE_FOREVER;  // the expiry is never within reach, and nothing overflows
  EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_OK);
  EXPECT_EQ(tide_executor_add_timer(&bench.executor, &timer), TIDE_ERROR_EXISTS);
  EXPECT_EQ(tide_timer_set_period(&timer, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_timer_set_phase(&timer, -1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_round(&bench.executor, 1000), TIDE_ERROR_TIMEOUT);
}

TEST_P(BothPolicies, FullExecutorRefusesAndFreedPlacesAreUsedAgain) {
  std::vector<std::unique_ptr<Probe>> probes;
  for (size_t index = 0; index < bench.callbacks.size(); index++) {
    probes.push_back(std::make_unique<Probe>(bench, log, 'a', 0));
  }
  tide_callback_t extra = probes[0]->callback;
  EXPECT_EQ(tide_executor_add(&bench.executor, &extra), TIDE_ERROR_FULL);
  EXPECT_EQ(tide_executor_remove(&bench.executor, &probes[3]->callback), TIDE_OK);
  EXPECT_EQ(tide_executor_add(&bench.executor, &extra), TIDE_OK);
  for (auto &probe : probes) probe->notify();
  tide_executor_notify(&extra);
  rounds_until(bench, 10);
  EXPECT_EQ(log.size(), bench.callbacks.size());
}

// The array of callbacks serves registration, triggers and the batch policy; a tide round never reads it.
TEST(ExecRules, TideRoundDoesNotLookAtTheTableOfCallbacks) {
  Bench bench(TIDE_POLICY_TIDE);
  bench.init();
  std::string log;
  Probe probe(bench, log, 'a', 1);
  Clock clock(bench, 10);
  std::fill(bench.callbacks.begin(), bench.callbacks.end(), nullptr);
  probe.notify();
  rounds_until(bench, 30);
  EXPECT_EQ(log, "a");
  EXPECT_EQ(clock.times, (Times{10, 20, 30}));
}

TEST(ExecRules, HooksSeeEveryRun) {
  Bench bench(TIDE_POLICY_TIDE);
  std::string log;
  bench.config.context = &log;
  bench.config.on_start = [](void *context, tide_callback_t *, int64_t now) {
    *static_cast<std::string *>(context) += "<" + std::to_string(now);
  };
  bench.config.on_end = [](void *context, tide_callback_t *callback, int64_t now) {
    EXPECT_EQ(callback->end_ns, now);
    *static_cast<std::string *>(context) += ">" + std::to_string(now);
  };
  bench.init();
  Clock clock(bench, 10);
  clock.execution = 3;
  rounds_until(bench, 20);
  EXPECT_EQ(log, "<10>13<20>23");
  EXPECT_EQ(clock.timer.callback.runs, 2u);
  EXPECT_EQ(clock.timer.callback.execution_maximum_ns, 3);
  EXPECT_EQ(clock.timer.callback.ready_ns, 20);
}

// ---- timers ----

TEST_P(BothPolicies, ManyMissedPeriodsCostOneStep) {
  Clock clock(bench, 1);
  bench.machine.now = INT64_C(3600000000000);
  EXPECT_EQ(tide_executor_round(&bench.executor, 0), 1);
  EXPECT_EQ(clock.timer.next_ns, INT64_C(3600000000001));
  EXPECT_EQ(clock.timer.skipped, UINT32_MAX) << "the count stays at its maximum";
}

TEST_P(BothPolicies, TimerOnlyExecutorSleepsOnceAnExpiry) {
  Clock clock(bench, 1000);
  rounds_until(bench, 100000);
  EXPECT_EQ(clock.times.size(), 100u);
  EXPECT_LE(bench.machine.waits, 101);
  EXPECT_EQ(bench.executor.counters.timers_expired, 100u);
  EXPECT_EQ(bench.executor.counters.callbacks_run, 100u);
}

// ---- triggers, and callbacks that run in every round whose trigger holds ----

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
  tide_executor_set_trigger(&bench.executor, always, nullptr);
  probe.action = [&] { log.size() == 3 ? tide_executor_stop(&bench.executor) : void(); };
  EXPECT_EQ(tide_executor_spin(&bench.executor), TIDE_OK);
  EXPECT_EQ(bench.machine.now, INT64_C(3000000000));
}

}  // namespace exec_rules_test
