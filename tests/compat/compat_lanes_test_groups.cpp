// SPDX-License-Identifier: Apache-2.0
// Calls for callback groups in the style of rclc: each reason for a refusal, and the effect of groups on lanes that are
// threads.
#include <atomic>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::lanes_test_groups {

class Groups : public Spinning {
 protected:
  Groups() : Spinning(3) {}
  void spin_with(size_t lanes) {
    const std::array<tide_lane_settings_t, 3> settings{};
    ASSERT_OK(tide_rclc_executor_set_lanes(&executor, settings.data(), lanes));
  }
};

TEST_F(Groups, EveryRefusalHasAName) {
  tide_callback_group_t first{}, second{}, third{};
  EXPECT_REFUSED(tide_rclc_callback_group_init(nullptr, TIDE_GROUP_EXCLUSIVE), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_callback_group_init(&first, static_cast<tide_group_kind_t>(7)), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  ASSERT_OK(tide_rclc_callback_group_init(&first, TIDE_GROUP_EXCLUSIVE));
  ASSERT_OK(tide_rclc_callback_group_init(&second, TIDE_GROUP_REENTRANT));
  EXPECT_REFUSED(tide_rclc_callback_group_init(&third, TIDE_GROUP_EXCLUSIVE), RCL_RET_BAD_ALLOC,
                 TIDE_ERROR_CAPACITY_GROUPS);
  rcl_timer_t timer{}, other_timer{};
  ASSERT_OK(rclc_timer_init_default(&timer, &support, kMillisecond, [](rcl_timer_t *, int64_t) {}));
  ASSERT_OK(rclc_timer_init_default(&other_timer, &support, kMillisecond, [](rcl_timer_t *, int64_t) {}));
  EXPECT_REFUSED(tide_rclc_timer_set_group(&timer, &third), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_rclc_timer_set_group(nullptr, &first), RCL_RET_TIMER_INVALID);
  EXPECT_REFUSED(tide_rclc_subscription_set_group(nullptr, &first), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(tide_rclc_guard_condition_set_group(nullptr, &first), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_OK(tide_rclc_timer_set_group(&timer, &first));
  ASSERT_OK(tide_rclc_timer_set_group(&other_timer, &first));
  ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  EXPECT_REFUSED(tide_rclc_timer_set_group(&timer, &second), RCL_RET_ERROR, TIDE_ERROR_STATE);
  EXPECT_REFUSED(tide_rclc_callback_group_fini(&first), RCL_RET_ERROR, TIDE_ERROR_STATE);
  rclc_executor_t other = executor_of(2);
  EXPECT_REFUSED(rclc_executor_add_timer(&other, &other_timer), RCL_RET_ALREADY_INIT, TIDE_ERROR_EXISTS);
  ASSERT_OK(tide_rclc_timer_set_group(&other_timer, nullptr));
  ASSERT_OK(rclc_executor_add_timer(&other, &other_timer));
  EXPECT_OK(rclc_executor_fini(&other));
  EXPECT_OK(rclc_executor_remove_timer(&executor, &timer));
  EXPECT_OK(tide_rclc_callback_group_fini(&first));
  EXPECT_EQ(timer.impl->timer.callback.group, nullptr) << "nothing refers to what is free";
  ASSERT_OK(tide_rclc_callback_group_init(&third, TIDE_GROUP_EXCLUSIVE));
  EXPECT_OK(tide_rclc_callback_group_fini(&third));
  EXPECT_OK(tide_rclc_callback_group_fini(&third)) << "twice is nothing";
}

TEST_F(Groups, TheReadysetPolicyTakesLanesAndGroups) {
  ASSERT_OK(tide_rclc_executor_set_policy(&executor, TIDE_POLICY_READYSET));
  std::array<tide_lane_settings_t, 2> banded{};
  banded[1].least_level = 2;
  EXPECT_REFUSED(tide_rclc_executor_set_lanes(&executor, banded.data(), 2), RCL_RET_UNSUPPORTED,
                 TIDE_ERROR_UNSUPPORTED);
  spin_with(2);
  tide_callback_group_t group{};
  ASSERT_OK(tide_rclc_callback_group_init(&group, TIDE_GROUP_EXCLUSIVE));
  static std::atomic<int> runs, inside, overlaps;
  runs = inside = overlaps = 0;
  std::array<rcl_timer_t, 3> timers{};
  for (rcl_timer_t &timer : timers) {
    ASSERT_OK(rclc_timer_init_default(&timer, &support, kMillisecond / 4, [](rcl_timer_t *, int64_t) {
      if (inside.fetch_add(1) != 0) overlaps++;
      pass_time(20us);
      inside--;
      runs++;
    }));
    ASSERT_OK(tide_rclc_timer_set_group(&timer, &group));
    ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
  }
  Spinner spinner(executor);
  EXPECT_TRUE(eventually([] { return runs >= 100; }));
  spinner.stop();
  EXPECT_EQ(overlaps, 0);
  tide_executor_counters_t counters{};
  tide_executor_get_counters(tide_rclc_executor_core(&executor), &counters);
  EXPECT_GT(counters.set_updates, 0u) << "waits that an expiry ended";
  EXPECT_LE(counters.set_updates, counters.callbacks_run);
}

}  // namespace tide::compat::test::lanes_test_groups
