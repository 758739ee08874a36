// SPDX-License-Identifier: Apache-2.0
// Several lanes and the distribution of callbacks among them: in virtual time, with explicit rounds of each lane.
#include <cstring>
#include <thread>  // the tests in exec_lanes_test_*.cpp use threads

#include "exec_bands.h"

namespace exec_lanes_test {

using exec_virtual::Bands;

TEST_F(Bands, EachLevelIsServedByItsOwnLane) {
  start({0, 2, 5});
  Probe &low = add('l', TIDE_PRIORITY(1, 7)), &middle = add('m', TIDE_PRIORITY(4, 255)),
        &high = add('h', TIDE_PRIORITY(5, 0));
  notify(low);
  EXPECT_EQ(woken(), "0");
  notify(middle);
  EXPECT_EQ(woken(), "1");
  notify(high);
  EXPECT_EQ(woken(), "2") << "no other lane hears of it";
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "l") << "the less urgent lane leaves the others' alone";
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(round(2), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "lhm");
}

TEST_F(Bands, TheLowestLaneServesWhatIsBelowItsLevel) {
  start({2, 5});
  Probe &low = add('l', 0);
  notify(low);
  EXPECT_EQ(woken(), "0");
  EXPECT_EQ(round(0), 1);
}

TEST_F(Bands, AnUrgentTimerRunsOnItsLaneWhileALessUrgentCallbackRuns) {
  start({0, 3});
  Probe &low = add('l', 1);
  add_timer('t', TIDE_PRIORITY(3, 0), 10);
  low.action = [&] {
    machine.execute(25);  // in the middle of its run, the other lane is scheduled
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(round(0), TIDE_ERROR_STATE) << "its own lane is busy";
    log += '.';
  };
  notify(low);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "lt.");
  EXPECT_EQ(round(0, 29), TIDE_ERROR_TIMEOUT) << "the timer is not this lane's";
  EXPECT_EQ(log, "lt.");
}

TEST_F(Bands, FramesWakeAndAreDigestedByTheirOwnLane) {
  start({0, 3});
  Probe &low = add('l', TIDE_PRIORITY(1, 1)), &high = add('h', TIDE_PRIORITY(3, 1));
  frames = {&high};
  tide_executor_wake_for_frames(&executor);
  EXPECT_EQ(woken(), "1");
  EXPECT_EQ(round(0), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(frames.size(), 1u) << "a less urgent lane never digests it";
  frames.push_back(&low);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "l");
  EXPECT_EQ(woken(), "1") << "what is left may have become processable by that; its own notification needs no event";
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "lh");
  tide_executor_wake_for_frames(&executor);
  EXPECT_EQ(woken(), "") << "nothing is left";
}

TEST_F(Bands, AChangedPriorityMovesWhatIsReadyAndTheTimer) {
  start({0, 3});
  Probe &callback = add('c', 1), &timer = add_timer('t', 1, 10);
  notify(callback);
  woken();
  EXPECT_EQ(tide_executor_set_priority(&executor, &callback.timer.callback, TIDE_PRIORITY(3, 1)), TIDE_OK);
  EXPECT_EQ(tide_executor_set_priority(&executor, &timer.timer.callback, TIDE_PRIORITY(4, 1)), TIDE_OK);
  EXPECT_EQ(woken(), "1");
  EXPECT_EQ(round(0, 50), TIDE_ERROR_TIMEOUT);
  EXPECT_EQ(round(1, 50), 1);
  EXPECT_EQ(round(1, 50), 1);
  EXPECT_EQ(log, "tc") << "by its new priority";
}

TEST_F(Bands, IdleLanesOfABandAreWokenOneByOne) {
  start({0, 0, 0});
  Probe &a = add('a', 1), &b = add('b', 2), &c = add('c', 3);
  // All lanes fall asleep while three callbacks become ready.
  machine.at(5, [&] { notify(a); });
  EXPECT_EQ(round(0, 5), 1);
  EXPECT_EQ(log, "a");
  EXPECT_EQ(round(1, 6), TIDE_ERROR_TIMEOUT);
  woken();
  notify(b);
  notify(c);
  EXPECT_EQ(woken(), "") << "a lane that is in no round is not idle";
  b.action = [&] { EXPECT_EQ(round(2), TIDE_ERROR_TIMEOUT); };
  c.action = [&] { EXPECT_EQ(round(1), 1); };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "acb") << "the lanes share what is ready, the most urgent first";
}

TEST_F(Bands, ACallbackDoesNotOverlapItself) {
  start({0, 0});
  Probe &a = add('a', 3), &b = add('b', 1);
  notify(a);
  notify(a);
  notify(b);
  a.action = [&] {
    if (log == "a") {
      EXPECT_EQ(round(1), 1);
      EXPECT_EQ(log, "ab") << "the second lane takes the less urgent one";
      EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
    }
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aba");
}

TEST_F(Bands, AReentrantGroupOverlapsItself) {
  start({0, 0});
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_OK);
  Probe &a = add('a', 3, &group);
  notify(a);
  notify(a);
  a.action = [&] {
    if (log == "a") {
      EXPECT_EQ(round(1), 1);
      log += '.';
    }
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(log, "aa.");
}

TEST_F(Bands, AnExclusiveGroupWaitsWithoutBlockingOthers) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 3> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &a = add('a', 5, &group), &b = add('b', 6, &group), &c = add('c', 7, &group), &other = add('o', 1);
  notify(a);
  a.action = [&] {
    notify(b);
    notify(c);
    notify(other);
    EXPECT_EQ(round(1), 1);
    EXPECT_EQ(log, "ao") << "the group is taken; the less urgent one outside of it is eligible";
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aocb") << "then the most urgent of the group";
}

TEST_F(Bands, TheNextOfAGroupIsFoundOnItsOwnBand) {
  start({0, 3});
  std::array<tide_queue_entry_t *, 2> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &low = add('l', 1, &group), &high = add('h', TIDE_PRIORITY(3, 0), &group);
  notify(low);
  low.action = [&] {
    notify(high);
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT) << "the data of the group are in use";
    woken();
  };
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(woken(), "1");
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "lh");
}

TEST_F(Bands, WhatIsRemovedWhileItRunsIsNotTouchedAfterwards) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 2> storage{};
  tide_group_t group{};
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), storage.size()), TIDE_OK);
  Probe &a = add('a', 2, &group), &b = add('b', 1, &group);
  a.action = [&] {
    EXPECT_TRUE(tide_executor_is_running(&executor, &a.timer.callback));
    EXPECT_EQ(tide_executor_remove_idle(&executor, &a.timer.callback), TIDE_ERROR_STATE);
    EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
    std::memset(static_cast<void *>(&a.timer), 0x55, sizeof a.timer);
    notify(b);
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT) << "the group is still taken";
  };
  notify(a);
  EXPECT_EQ(round(0), 1);
  EXPECT_FALSE(tide_executor_is_running(&executor, &a.timer.callback));
  EXPECT_EQ(a.timer.callback.runs, UINT64_C(0x5555555555555555));
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "ab");
  EXPECT_EQ(tide_executor_remove_idle(&executor, &b.timer.callback), TIDE_OK);
}

TEST_F(Bands, OneThatIsAddedAgainWhileItRunsStillDoesNotOverlap) {
  start({0, 0});
  Probe &a = add('a', 2);
  a.action = [&] {
    if (log != "a") return;
    EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
    EXPECT_EQ(tide_executor_add(&executor, &a.timer.callback), TIDE_OK);
    notify(a);
    EXPECT_EQ(round(1), TIDE_ERROR_TIMEOUT);
  };
  notify(a);
  EXPECT_EQ(round(0), 1);
  EXPECT_EQ(round(1), 1);
  EXPECT_EQ(log, "aa");
}

TEST_F(Bands, AStopIsSeenByEveryLane) {
  start({0, 3, 3});
  for (int again = 0; again < 2; again++) {
    tide_executor_stop(&executor);
    EXPECT_EQ(tide_executor_spin_lane(&executor, 1), TIDE_OK);
    EXPECT_EQ(tide_executor_spin_lane(&executor, 0), TIDE_OK);
    EXPECT_EQ(tide_executor_spin_lane(&executor, 1), TIDE_OK) << "not all have seen it yet";
    EXPECT_EQ(tide_executor_spin_lane(&executor, 2), TIDE_OK);
    EXPECT_FALSE(executor.stopped) << "the next spin starts afresh";
  }
}

TEST_F(Bands, WhatNeedsOneLaneIsRefusedWithSeveral) {
  start({0, 3});
  EXPECT_EQ(tide_executor_round(&executor, 0), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_spin(&executor), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_set_trigger(&executor, tide_trigger_all, nullptr), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_set_trigger(&executor, nullptr, nullptr), TIDE_OK);
  EXPECT_EQ(tide_executor_set_policy(&executor, TIDE_POLICY_BATCH), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_executor_lane_round(&executor, 2, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_executor_spin_lane(&executor, 2), TIDE_ERROR_ARGUMENT);
  tide_callback_t always{};
  always.always = true;
  always.execute = [](tide_callback_t *, void *) {};
  EXPECT_EQ(tide_executor_add(&executor, &always), TIDE_ERROR_UNSUPPORTED);
  tide_executor_t other{};
  config.policy = TIDE_POLICY_BATCH;
  EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_UNSUPPORTED);
  config.policy = TIDE_POLICY_TIDE;
  lanes[0].settings.least_level = 127;
  EXPECT_EQ(tide_executor_init(&other, &config), TIDE_ERROR_ARGUMENT);
}

TEST_F(Bands, GroupsHaveTheirLimits) {
  start({0, 0});
  std::array<tide_queue_entry_t *, 1> storage{};
  tide_group_t group{};
  EXPECT_EQ(tide_group_init(nullptr, TIDE_GROUP_REENTRANT, nullptr, 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, nullptr, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), 0), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_group_init(&group, static_cast<tide_group_kind_t>(5), storage.data(), 1), TIDE_ERROR_ARGUMENT);
  ASSERT_EQ(tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, storage.data(), 1), TIDE_OK);
  Probe &a = add('a', 1, &group);
  tide_callback_t second = a.timer.callback;
  EXPECT_EQ(tide_executor_add(&executor, &second), TIDE_ERROR_FULL);
  tide_executor_t other{};
  std::vector<tide_lane_t> other_lanes(2);
  std::array<tide_queue_entry_t *, 32> other_ready{}, other_timers{};
  std::array<tide_callback_t *, 16> other_callbacks{};
  config.lanes = other_lanes.data();
  config.callbacks = other_callbacks.data();
  config.ready_storage = other_ready.data();
  config.timer_storage = other_timers.data();
  ASSERT_EQ(tide_executor_init(&other, &config), TIDE_OK);
  EXPECT_EQ(tide_executor_add(&other, &second), TIDE_ERROR_ARGUMENT) << "a group belongs to one executor";
  EXPECT_EQ(tide_executor_remove(&executor, &a.timer.callback), TIDE_OK);
  EXPECT_EQ(tide_executor_add(&other, &second), TIDE_OK);
}

}  // namespace exec_lanes_test
