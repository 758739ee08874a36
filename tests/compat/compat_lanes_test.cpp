// SPDX-License-Identifier: Apache-2.0
// Executors with several lanes, and several executors: each frame is processed by the executor and lane to which it
// belongs.
#include <atomic>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::lanes_test {

tide_lane_settings_t lane(uint8_t least_level, tide_scheduling_t scheduling = TIDE_SCHEDULING_INHERIT,
                          int priority = 0) {
  tide_lane_settings_t settings{};
  settings.least_level = least_level;
  settings.scheduling = scheduling;
  settings.priority = priority;
  return settings;
}

class Lanes : public Spinning {
 protected:
  Lanes() : Spinning(3) {}
  struct Subscribed {
    rcl_subscription_t subscription{};
    std_msgs__msg__Int32 message{};
    std::string topic;
    std::atomic<int> count = 0;
    std::atomic<bool> in_order = true, held = false, inside = false;
  };

  void SetUp() override {
    Spinning::SetUp();
    for (size_t i = 0; i < subscribed.size(); i++) {
      subscribed[i].topic = "topic" + std::to_string(i);
      ASSERT_OK(rclc_subscription_init_default(&subscribed[i].subscription, &node, int32_type(),
                                               subscribed[i].topic.c_str()));
    }
  }

  // The numbers must come in order, from 1. The callback does not end as long as the test holds it.
  static void on_number(const void *message, void *context) {
    auto *one = static_cast<Subscribed *>(context);
    one->inside = true;
    if (static_cast<const std_msgs__msg__Int32 *>(message)->data != one->count + 1) one->in_order = false;
    eventually([&] { return !one->held; });
    one->count++;
    one->inside = false;
  }
  void add(rclc_executor_t &to, size_t place, uint8_t level) {
    Subscribed &one = subscribed[place];
    ASSERT_OK(rclc_executor_add_subscription_with_context(&to, &one.subscription, &one.message, on_number, &one,
                                                          ON_NEW_DATA));
    ASSERT_OK(tide_rclc_subscription_set_priority(&one.subscription, TIDE_PRIORITY(level, 1)));
  }
  void offer(size_t place, int32_t number) {
    ASSERT_TRUE(eventually([&] { return server.offer("rt/" + subscribed[place].topic, int32_bytes(number)); }));
  }
  // Waits until the agent knows the streams for all levels.
  void settle() {
    ASSERT_TRUE(eventually([&] {
      const bool waits = masked([](const tide_session_t &session) { return session.readers_waiting; });
      return !waits && tide_session_is_idle(session(), 0);
    }));
  }

  std::array<Subscribed, 3> subscribed;
};

TEST_F(Lanes, AnUrgentMessageIsHandledWhileALessUrgentCallbackRuns) {
  const std::array lanes{lane(0), lane(2)};
  ASSERT_OK(tide_rclc_executor_set_lanes(&executor, lanes.data(), lanes.size()));
  add(executor, 0, 1);
  add(executor, 1, 3);
  settle();
  Spinner spinner(executor);
  Subscribed &low = subscribed[0], &high = subscribed[1];
  for (int number = 1; number <= 20; number++) {
    low.held = true;
    offer(0, number);
    EXPECT_TRUE(eventually([&] { return low.inside.load(); }));
    offer(1, number);
    EXPECT_TRUE(eventually([&] { return high.count == number; })) << number;
    EXPECT_TRUE(low.inside);
    low.held = false;
    EXPECT_TRUE(eventually([&] { return low.count == number; }));
  }
  EXPECT_TRUE(low.in_order && high.in_order);
  spinner.stop();
}

TEST_F(Lanes, ABusyExecutorLosesNothingReliableWhileAnotherIsAwake) {
  rclc_executor_t other = executor_of(3);
  add(executor, 0, 1);
  add(other, 1, 3);
  settle();
  Thread first([&] { EXPECT_OK(rclc_executor_spin(&executor)); });
  Thread second([&] { EXPECT_OK(rclc_executor_spin(&other)); });
  Subscribed &busy = subscribed[0], &awake = subscribed[1];
  constexpr int kMessages = 10;  // far more than fit into a subscription's queue of four
  busy.held = true;
  for (int number = 1; number <= kMessages; number++) {
    offer(0, number);
    offer(1, number);
    EXPECT_TRUE(eventually([&] { return awake.count == number; })) << number;
  }
  EXPECT_EQ(busy.count, 0);
  busy.held = false;
  EXPECT_TRUE(eventually([&] { return busy.count == kMessages; })) << busy.count;
  EXPECT_TRUE(busy.in_order);
  tide_executor_stop(tide_rclc_executor_core(&executor));
  tide_executor_stop(tide_rclc_executor_core(&other));
  first.join();
  second.join();
  EXPECT_OK(rclc_executor_fini(&other));
}

TEST_F(Lanes, FramesOfAnExecutorThatEndsAreInNobodysWay) {
  rclc_executor_t other = executor_of(3);
  add(executor, 0, 1);
  add(other, 1, 1);
  settle();
  bring([&] { return server.offer("rt/topic1", int32_bytes(1)); }); /* for the executor that never spins */
  offer(0, 1);
  EXPECT_OK(rclc_executor_spin_some(&executor, 50 * kMillisecond));
  EXPECT_EQ(subscribed[0].count, 0) << "the same stream: it waits behind the other's";
  EXPECT_OK(rclc_executor_fini(&other));
  EXPECT_OK(rclc_executor_spin_some(&executor, 20'000 * kMillisecond));
  EXPECT_EQ(subscribed[0].count, 1);
}

TEST_F(Lanes, WhatCannotBeIsRefused) {
  constexpr std::array<tide_lane_settings_t, 4> many{};
  const std::array falling{lane(2), lane(0)};
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, many.data(), 0), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, many.data(), 4), RCL_RET_ERROR, TIDE_ERROR_CAPACITY_LANES);
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, falling.data(), 2), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  ASSERT_OK(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_BATCH));
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, many.data(), 2), RCL_RET_UNSUPPORTED, TIDE_ERROR_UNSUPPORTED);
  ASSERT_OK(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_TIDE));
  EXPECT_EQ(tide_rclc_executor_refused_lane(&executor), -1);
  ASSERT_OK(tide_rclc_executor_set_lanes(&executor, many.data(), 3));
  EXPECT_REFUSED(rclc_executor_spin_some(&executor, 0), RCL_RET_UNSUPPORTED, TIDE_ERROR_UNSUPPORTED);
  ASSERT_OK(tide_rclc_executor_set_lanes(&executor, many.data(), 1));
  EXPECT_OK(rclc_executor_spin_some(&executor, 0));
  add(executor, 0, 1);
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, many.data(), 2), RCL_RET_ERROR, TIDE_ERROR_STATE);
}

TEST_F(Lanes, NothingRunsWhenALaneCannotBeScheduled) {
  const std::array lanes{lane(0), lane(2, TIDE_SCHEDULING_FIFO, 1000)};
  ASSERT_OK(tide_rclc_executor_set_lanes(&executor, lanes.data(), lanes.size()));
  add(executor, 0, 1);
  settle();
  offer(0, 1);
  EXPECT_REFUSED(rclc_executor_spin(&executor), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_rclc_executor_refused_lane(&executor), 1);
  EXPECT_EQ(subscribed[0].count, 0);
}

}  // namespace tide::compat::test::lanes_test
