// SPDX-License-Identifier: Apache-2.0
// Chains can name servers and clients of actions.
#include "action_msgs/msg/goal_status_array.hpp"
#include "program.h"
#include "rclcpp_action/rclcpp_action.hpp"
#include "test_msgs/action/fibonacci.hpp"

namespace tide_rclcpp {
namespace {

using Fibonacci = test_msgs::action::Fibonacci;
using Goal = rclcpp_action::ServerGoalHandle<Fibonacci>;

class Actions : public Program {
 protected:
  auto make_server(const std::shared_ptr<rclcpp::Node> &node, const std::string &name,
                   const rcl_action_server_options_t &options = rcl_action_server_get_default_options()) {
    return rclcpp_action::create_server<Fibonacci>(
        node, name,
        [](const rclcpp_action::GoalUUID &, const std::shared_ptr<const Fibonacci::Goal> &) {
          return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
        },
        [](const std::shared_ptr<Goal> &) { return rclcpp_action::CancelResponse::REJECT; },
        [](const std::shared_ptr<Goal> &goal) {
          const auto result = std::make_shared<Fibonacci::Result>();
          result->sequence = {0, 1, 1, goal->get_goal()->order};
          goal->succeed(result);
        },
        options);
  }
};

std::uint64_t runs_of(const std::string &lines, const std::string &name) {
  const std::string head = "tide-execution " + name + " ";
  const std::size_t at = lines.find(head);
  return at == std::string::npos ? 0 : std::stoull(lines.substr(at + head.size()));
}

TEST_F(Actions, AreOfTheChainThatNamesThem) {
  const auto node = make_node("robot");
  const std::string of_node = node->get_fully_qualified_name();
  Options options = with({}, {"arm 4: action_client " + of_node + " " + space() + "/move as ask, action_server * " +
                                  space() + "/move as move",
                              "none 2: action_server * /move, action_client " + of_node + " " + space() + "/other"});
  options.measured_file = ::testing::TempDir() + "tide_actions_{pid}";
  Executor executor(options);
  const auto server = make_server(node, "move");
  const auto other = make_server(node, "other");
  const auto client = rclcpp_action::create_client<Fibonacci>(node, "move");
  executor.add_node(node);
  EXPECT_EQ(executor.unmatched(),
            (std::vector<std::string>{"chain none: action_server * /move",
                                      "chain none: action_client " + of_node + " " + space() + "/other"}));
  const std::vector<std::string> without = executor.without_chain();
  EXPECT_EQ(std::count(without.begin(), without.end(), "action_server " + of_node + " " + space() + "/other"), 1);
  EXPECT_EQ(std::count(without.begin(), without.end(), "action_server " + of_node + " " + space() + "/move"), 0);
  ASSERT_TRUE(client->wait_for_action_server(seconds(20)));
  Fibonacci::Goal goal;
  goal.order = 5;
  int last = 0;
  rclcpp_action::Client<Fibonacci>::SendGoalOptions send;
  send.result_callback = [&](const rclcpp_action::ClientGoalHandle<Fibonacci>::WrappedResult &result) {
    last = result.result->sequence.back();
  };
  (void)client->async_send_goal(goal, send);
  for (int tries = 0; tries < 20000 && last == 0; tries++) executor.spin_once(milliseconds(1));
  EXPECT_EQ(last, 5);
  const std::string lines = executor.measurement_lines();
  EXPECT_GE(runs_of(lines, "arm/ask"), 2u) << lines;
  EXPECT_GE(runs_of(lines, "arm/move"), 2u) << lines;
  EXPECT_EQ(lines.find("none/"), std::string::npos) << lines;
}

TEST_F(Actions, LateOnesGetTheirPriorityToo) {
  const auto node = make_node("late");
  Executor executor(with({}, {"arm 4: action_server * " + space() + "/late"}));
  executor.add_node(node);
  EXPECT_EQ(executor.unmatched().size(), 1u);
  const auto server = make_server(node, "late");
  executor.spin_all(seconds(1));
  EXPECT_TRUE(executor.unmatched().empty());
}

// No event reports that a result has expired, only a timer in the wait set. Each status message lists the goals that
// the server still keeps.
TEST_F(Actions, GoalsAreForgottenWhenTheirResultsExpire) {
  for (const bool several : {false, true}) {
    const auto node = make_node("forgets");
    Executor executor(several ? with({"one from 0", "two from 0"}) : Options{});
    rcl_action_server_options_t keeps = rcl_action_server_get_default_options();
    keeps.result_timeout.nanoseconds = 1;
    const auto server = make_server(node, "forget", keeps);
    const auto client = rclcpp_action::create_client<Fibonacci>(node, "forget");
    std::atomic<std::size_t> kept{0}, goals{0}, results{0};
    const auto status = node->create_subscription<action_msgs::msg::GoalStatusArray>(
        space() + "/forget/_action/status", 10,
        [&](action_msgs::msg::GoalStatusArray::ConstSharedPtr got) { kept.store(got->status_list.size()); });
    executor.add_node(node);
    ASSERT_TRUE(client->wait_for_action_server(seconds(20)));
    const Spinning spinning(executor);
    rclcpp_action::Client<Fibonacci>::SendGoalOptions send;
    send.goal_response_callback = [&](const auto &) { goals++; };
    send.result_callback = [&](const auto &) { results++; };
    EXPECT_TRUE(eventually([&] {
      if (goals.load() == results.load() && client->action_server_is_ready())
        (void)client->async_send_goal(Fibonacci::Goal(), send);
      return goals.load() >= 60 && kept.load() <= 2;
    })) << kept.load()
        << " of " << goals.load() << " goals are kept";
  }
}

}  // namespace
}  // namespace tide_rclcpp
