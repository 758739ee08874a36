// SPDX-License-Identifier: Apache-2.0
// An action, parameters and a timer on three lanes, each of which is a thread. Other threads of the program use the
// action and the parameters at the same time.
#include <test_interfaces/action/count.h>

#include <atomic>

#include "parameters/parameters.h"
#include "tide/rclc_action.h"

namespace tide::compat::test::lanes_servers_test {

using GoalRequest = test_interfaces__action__Count_SendGoal_Request;
using GoalFeedback = test_interfaces__action__Count_FeedbackMessage;
using GoalResult = test_interfaces__action__Count_GetResult_Response;

constexpr size_t kGoals = 8;
constexpr uint8_t kRounds = 30;

std::atomic<int> ticks;

class Servers : public Parameters {
 protected:
  Servers() : Parameters(RCLC_EXECUTOR_PARAMETER_SERVER_HANDLES + 2) {}
  void SetUp() override {
    Parameters::SetUp();
    std::array<tide_lane_settings_t, 3> lanes{};
    lanes[1].least_level = 2;
    lanes[2].least_level = 4;
    ASSERT_OK(tide_rclc_executor_set_lanes(&executor, lanes.data(), lanes.size()));
    rclc_parameter_options_t wanted = {true, 4, false, false};
    ASSERT_OK(rclc_parameter_server_init_with_option(&parameters, &node, &wanted));
    ASSERT_OK(rclc_executor_add_parameter_server_with_context(&executor, &parameters, nullptr, nullptr));
    add_three();
    ASSERT_OK(rclc_action_server_init_default(&action, &node, &support,
                                              ROSIDL_GET_ACTION_TYPE_SUPPORT(test_interfaces, Count), "count"));
    ASSERT_OK(rclc_executor_add_action_server(&executor, &action, kGoals, requests, sizeof requests[0], on_goal,
                                              on_cancel, this));
    ASSERT_OK(tide_rclc_action_server_set_priority(&action, TIDE_PRIORITY(2, 1)));
    ASSERT_OK(rclc_timer_init_default2(&timer, &support, RCL_MS_TO_NS(1), on_tick, true));
    ASSERT_OK(rclc_executor_add_timer(&executor, &timer));
    tide_rclc_timer_set_priority(&timer, TIDE_PRIORITY(4, 1));
    spun_elsewhere = true;
    ticks = 0;
    spinner = Thread([this] { EXPECT_OK(rclc_executor_spin(&executor)); });
  }
  void TearDown() override {
    tide_executor_stop(tide_rclc_executor_core(&executor));
    spinner.join();
    for (auto &thread : runners) thread.join();
    Parameters::TearDown();
  }
  static void on_tick(rcl_timer_t *, int64_t) { ticks++; }
  static rcl_ret_t on_goal(rclc_action_goal_handle_t *goal, void *context) {
    auto *self = static_cast<Servers *>(context);
    self->runners.emplace_back([self, goal] { self->run(goal); });
    return RCL_RET_ACTION_GOAL_ACCEPTED;
  }
  static bool on_cancel(rclc_action_goal_handle_t *, void *) { return true; }

  // Run by a thread of the program: sends feedback, sets a parameter, and sends the result.
  void run(rclc_action_goal_handle_t *goal) {
    const int32_t target = static_cast<const GoalRequest *>(goal->ros_goal_request)->goal.target;
    GoalFeedback feedback{};
    EXPECT_OK(rclc_action_publish_feedback(goal, &feedback));
    (void)rclc_parameter_set_double(&parameters, "gain", target);
    GoalResult result{};
    result.result.reached = target;
    while (rclc_action_send_result(goal, GOAL_STATE_SUCCEEDED, &result) != RCL_RET_OK) pass_time(1ms);
    ended++;
  }
  Octets ask_action(const std::string &part, const Octets &request, uint8_t asker) {
    const std::string name = "/count/_action/" + part;
    const size_t before = server.replies(name).size();
    agent::SampleIdentity identity{};
    identity[0] = asker;
    identity[20] = ++asked_;
    EXPECT_TRUE(eventually([&] { return server.ask(name, request, identity); }));
    EXPECT_TRUE(eventually([&] { return server.replies(name).size() > before; })) << part;
    return server.replies(name).empty() ? Octets(32) : server.replies(name).back().payload;
  }
  static Octets goal_bytes(uint8_t number) {
    Octets bytes(16, number);
    bytes.insert(bytes.end(), {number, 0, 0, 0});
    return bytes;
  }

  rclc_action_server_t action{};
  GoalRequest requests[kGoals]{};
  rcl_timer_t timer{};
  Thread spinner;
  std::vector<Thread> runners;
  std::atomic<int> ended = 0;
  uint8_t asked_ = 0;
};

TEST_F(Servers, EveryRequestIsAnsweredWhileThreadsUseThem) {
  std::atomic<bool> over = false;
  Thread changer([&] {
    for (int64_t value = 0; !over; value++) {
      (void)rclc_parameter_set_int(&parameters, "count", value);
      int64_t read = -1;
      EXPECT_OK(rclc_parameter_get_int(&parameters, "count", &read));
      pass_time(1ms);
    }
  });
  for (uint8_t round = 1; round <= kRounds; round++) {
    ASSERT_EQ(ask_action("send_goal", goal_bytes(round), 1).at(0), 1) << int{round};
    EXPECT_EQ(set({truth("on", round % 2 == 0)}), std::vector<std::string>{"yes "});
    EXPECT_EQ(get({"on"}), std::vector<std::string>{round % 2 == 0 ? "true" : "false"});
    const Octets result = ask_action("get_result", Octets(16, round), 1);
    EXPECT_EQ(result.at(0), GOAL_STATE_SUCCEEDED);
    EXPECT_EQ(result.at(4), round);
  }
  over = true;
  changer.join();
  EXPECT_TRUE(eventually([&] { return ended == int{kRounds}; }))
      << "the last result may arrive before its thread goes on";
  EXPECT_GT(ticks, 0);
  tide_action_counters_t counters{};
  EXPECT_OK(tide_rclc_action_server_get_counters(&action, &counters));
  EXPECT_EQ(counters.goals, uint32_t{kRounds});
  EXPECT_EQ(counters.replies_lost, 0u);
}

}  // namespace tide::compat::test::lanes_servers_test
