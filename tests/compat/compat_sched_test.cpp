// SPDX-License-Identifier: Apache-2.0
// The names of the published prototype. Each subscription has a lane, and one of the lanes has a budget.
#include <rclc/executor_sched.h>

#include <atomic>

#include "connected.h"
#include "tide/pools.h"

namespace tide::compat::test::sched_test {

std::atomic<int> counts[2], priorities[2];
std::atomic<bool> fell;

int own_priority() { return sim::Task::current() == nullptr ? 0 : sim::Task::current()->priority(); }

void on_high(const void *) {
  priorities[1] = own_priority();
  while (counts[1] == 0 && own_priority() != 0) pass_time(100us);  // until its budget is used up
  if (own_priority() == 0) fell = true;
  counts[1]++;
}
void on_low(const void *) {
  priorities[0] = own_priority();
  counts[0]++;
}

class Sched : public Spinning {
 protected:
  Sched() : Spinning(3) {}
  void SetUp() override {
    Spinning::SetUp();
    fell = false;
    for (int index = 0; index < 2; index++) {
      counts[index] = priorities[index] = 0;
      subscribe(topics[index], "sched" + std::to_string(index));
    }
  }
  static rclc_executor_sched_parameter_t sporadic() {
    rclc_executor_sched_parameter_t parameter{};
    parameter.policy = SCHED_SPORADIC;
    parameter.param.sched_priority = 20;
    parameter.param.sched_ss_low_priority = 0;
    parameter.param.sched_ss_repl_period.tv_nsec = 50'000'000;
    parameter.param.sched_ss_init_budget.tv_nsec = 3'000'000;
    parameter.param.sched_ss_max_repl = 100;
    return parameter;
  }
  static rclc_executor_sched_parameter_t fifo() {
    rclc_executor_sched_parameter_t parameter{};
    parameter.policy = SCHED_FIFO;
    parameter.param.sched_priority = 10;
    return parameter;
  }
  rcl_ret_t add(int index, rclc_subscription_callback_t callback, const rclc_executor_sched_parameter_t &parameter) {
    return rclc_executor_add_subscription_sched(&executor, &topics[index].subscription, &topics[index].message,
                                                callback, ON_NEW_DATA, &parameter);
  }

  Heard topics[2];
};

TEST_F(Sched, ALaneForEachSubscriptionAndABudgetForOne) {
  ASSERT_OK(add(1, on_low, fifo()));
  rclc_executor_real_time_scheduling_init(&executor);  // discards the subscription
  ASSERT_OK(add(1, on_high, sporadic()));
  ASSERT_OK(add(0, on_low, fifo()));
  EXPECT_NE(add(0, on_low, fifo()), RCL_RET_OK);
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_EXISTS);
  std::atomic<bool> ended = false;
  rcl_ret_t result = RCL_RET_ERROR;
  int cause = 0;
  Thread spinner([&] {
    result = rclc_executor_start_multi_threading_for_nuttx(&executor);
    cause = tide_rclc_last_status();
    ended = true;
  });
  for (int32_t number = 1; number < 1000 && !ended && (counts[0] < 3 || counts[1] < 1); number++) {
    server.offer("rt/sched1", int32_bytes(number));
    server.offer("rt/sched0", int32_bytes(number));
    pass_time(5ms);
  }
  tide_executor_stop(tide_rclc_executor_core(&executor));
  spinner.join();
  EXPECT_EQ(result, RCL_RET_OK) << text_of(cause);
  EXPECT_GE(counts[0], 3);
  EXPECT_GE(counts[1], 1);
  EXPECT_EQ(priorities[0], 10);
  EXPECT_TRUE(fell);
}

TEST_F(Sched, RefusesWhatItCannotDo) {
  const auto refused = [&](int status, auto change) {
    rclc_executor_sched_parameter_t parameter = sporadic();
    change(parameter);
    rcl_reset_error();
    EXPECT_NE(add(0, on_low, parameter), RCL_RET_OK);
    EXPECT_EQ(text_of(tide_rclc_last_status()), text_of(status));
  };
  refused(TIDE_ERROR_UNSUPPORTED, [](auto &p) { p.policy = 77; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_max_repl = 0; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_max_repl = 1 << 16; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_init_budget.tv_nsec = 0; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_init_budget.tv_sec = 1; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_repl_period.tv_sec = INT64_MAX; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_repl_period.tv_nsec = -1; });
  refused(TIDE_ERROR_ARGUMENT, [](auto &p) { p.param.sched_ss_low_priority = 20; });
  EXPECT_NE(rclc_executor_add_subscription_sched(&executor, &topics[0].subscription, &topics[0].message, on_low, ALWAYS,
                                                 nullptr),
            RCL_RET_OK);
  EXPECT_NE(add(0, nullptr, fifo()), RCL_RET_OK);
  EXPECT_NE(rclc_executor_start_multi_threading_for_nuttx(nullptr), RCL_RET_OK);
  EXPECT_NE(rclc_executor_publish(nullptr, nullptr, nullptr), RCL_RET_OK);
}

}  // namespace tide::compat::test::sched_test
