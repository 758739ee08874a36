// SPDX-License-Identifier: Apache-2.0
// The readyset policy: the processing windows of several lanes, and what the model of one lane (exec_model_test.cpp)
// does not state.
#include "exec_bands.h"

namespace exec_lanes_test_readyset {

struct ReadySet : exec_virtual::Bands {
  ReadySet() { policy = TIDE_POLICY_READYSET; }

  void run_all() {
    while (round(0) > 0) {}
  }
};

TEST_F(ReadySet, KindsComeInTheirOrderAndThenRegistration) {
  start({0});
  Probe &guard = add('g', 9, nullptr, TIDE_CALLBACK_GUARD), &client = add('c', 8, nullptr, TIDE_CALLBACK_CLIENT);
  Probe &service = add('v', 7, nullptr, TIDE_CALLBACK_SERVICE), &first = add('1', 1), &second = add('2', 6);
  add_timer('t', 0, 10);
  for (Probe *probe : {&second, &guard, &first, &service, &client}) notify(*probe);
  machine.now = 10;
  run_all();
  EXPECT_EQ(log, "t12vcg") << "whatever their priorities and the order of arrival";
  EXPECT_EQ(updates(), 1u) << "a timer that is due is not a polling point";
}

TEST_F(ReadySet, AnIdleLaneIsAPollingPointForAll) {
  start({0, 0});
  Probe &a = add('a', 1), &b = add('b', 1), &c = add('c', 1), &d = add('d', 1);
  a.action = [&] {
    notify(d);
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "ab") << "the rest of the window goes first";
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "abcd") << "and then the other lane polls while this one still runs";
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
  };
  for (Probe *probe : {&a, &b, &c}) notify(*probe);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(updates(), 2u);
}

TEST_F(ReadySet, WhatIsBlockedKeepsItsPlaceAndBlocksNobody) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 3> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &a = add('a', 1, &group), &b = add('b', 1, &group), &c = add('c', 1), &d = add('d', 1);
  a.action = [&] {
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "ac") << "b is in the set and may not run";
    notify(a);
    notify(d);
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "acd") << "nothing eligible was left: a polling point, though b is in the set";
    notify(c);
    notify(d);
    a.action = nullptr;
  };
  for (Probe *probe : {&a, &b, &c}) notify(*probe);
  EXPECT_EQ(round(0), 1);
  run_all();
  EXPECT_EQ(log, "acdabcd") << "a joined at that polling point, and c and d came after it";
}

TEST_F(ReadySet, ACallbackWithoutGroupDoesNotOverlapItself) {
  start({0, 0});
  Probe &a = add('a', 1);
  notify(a);
  notify(a);
  a.action = [&] {
    if (log != "a") return;
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aa");
}

TEST_F(ReadySet, AReentrantOneOverlapsItselfFromTheNextPollingPointOn) {
  start({0, 0});
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_OK);
  Probe &a = add('a', 1, &group), &b = add('b', 1, &group);
  notify(a);
  notify(a);
  notify(b);
  a.action = [&] {
    if (log != "a") return;
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "ab") << "one instance a window";
    EXPECT_EQ(round(1), 1);
    log += '.';
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "aba.");
}

TEST_F(ReadySet, IdleLanesAreWokenOneForEach) {
  start({0, 0, 0});
  Probe &a = add('a', 1), &b = add('b', 1);
  // Lanes 1 and 2 sleep within their rounds when both become ready.
  machine.at(1, [&] {
    machine.at(2, [&] {
      notify(a);
      notify(b);
      EXPECT_EQ(woken().size(), 2u);
    });
    EXPECT_EQ(round(2, 3), 1);
  });
  EXPECT_EQ(round(1, 3), 1);
  EXPECT_EQ(log, "ab");
  EXPECT_EQ(updates(), 1u) << "the second one finds the rest of the window";
}

TEST_F(ReadySet, WhoTakesTheFirstOfAWindowWakesAnotherForTheRest) {
  start({0, 0});
  Probe &a = add('a', 1), &b = add('b', 1);
  a.action = [&] { log += woken(); };
  machine.at(1, [&] {  // lane 1 sleeps; no lane has taken the frames yet
    frames = {&a, &b};
    EXPECT_EQ(round(0), 1);
    EXPECT_EQ(log, "a1");
  });
  EXPECT_EQ(round(1, 3), 1);
  EXPECT_EQ(log, "a1b");
}

TEST_F(ReadySet, ARemovalKeepsTheOrderOfRegistration) {
  start({0});
  Probe &a = add_timer('a', 0, 10), &b = add_timer('b', 0, 10);
  add_timer('c', 0, 10);
  add_timer('d', 0, 10);
  machine.now = 10;
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(tide_executor_remove(&executor, &b.timer.callback), TIDE_OK);
  EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
  Probe &e = add_timer('e', 0, 10);
  notify(e);
  run_all();
  EXPECT_EQ(log, "acde") << "c and d moved up, and are still before e";
}

TEST_F(ReadySet, ChangingThePolicyKeepsWhatIsReady) {
  start({0, 0});
  Probe &a = add('a', 1), &b = add('b', 9);
  notify(a);
  notify(b);
  EXPECT_EQ(tide_executor_set_policy(&executor, TIDE_POLICY_TIDE), TIDE_OK);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "b");
  notify(b);
  EXPECT_EQ(tide_executor_set_policy(&executor, TIDE_POLICY_READYSET), TIDE_OK);
  run_all();
  EXPECT_EQ(log, "bab");
}

TEST_F(ReadySet, WhatRclcppDoesNotHaveIsRefused) {
  start({0});
  EXPECT_EQ(tide_executor_set_trigger(&executor, tide_trigger_all, nullptr), TIDE_ERROR_UNSUPPORTED);
  tide_callback_t always{};
  always.always = true;
  always.execute = [](tide_callback_t *, void *) {};
  EXPECT_EQ(tide_executor_add(&executor, &always), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_set_policy(&executor, static_cast<tide_policy_t>(9)), TIDE_ERROR_ARGUMENT);
  ASSERT_EQ(tide_executor_set_policy(&executor, TIDE_POLICY_TIDE), TIDE_OK);
  ASSERT_EQ(tide_executor_set_trigger(&executor, tide_trigger_all, nullptr), TIDE_OK);
  EXPECT_EQ(tide_executor_set_policy(&executor, TIDE_POLICY_READYSET), TIDE_ERROR_UNSUPPORTED);
  std::vector<tide_lane_t> banded(2);
  banded[1].settings.least_level = 3;
  config.lanes = banded.data();
  config.lane_count = 2;
  tide_executor_t other{};
  EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_UNSUPPORTED) << "one set for all lanes";
}

// The paper counts how often each lane updates its set.
TEST_F(ReadySet, TheTidePolicyAsksItsSourceAtEachChoice) {
  start({0});
  Probe &a = add('a', 9), &b = add('b', 9), &c = add('c', 1), &d = add('d', 1);
  a.action = [&] { notify(c); };
  b.action = [&] { notify(d); };
  for (const tide_policy_t way : {TIDE_POLICY_READYSET, TIDE_POLICY_TIDE}) {
    ASSERT_EQ(tide_executor_set_policy(&executor, way), TIDE_OK);
    const uint64_t before = updates();
    notify(a);
    notify(b);
    run_all();
    EXPECT_EQ(updates() - before, way == TIDE_POLICY_TIDE ? 4u : 2u);
  }
  EXPECT_EQ(log, "abcdabcd");
}

TEST_F(ReadySet, AWaitThatAnExpiryEndsIsAPollingPoint) {
  start({0});
  add_timer('t', 0, 10);
  EXPECT_EQ(round(0, 30), 1);
  EXPECT_EQ(updates(), 1u);
}

}  // namespace exec_lanes_test_readyset
