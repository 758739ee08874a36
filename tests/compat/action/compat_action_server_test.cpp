// SPDX-License-Identifier: Apache-2.0
// Servers of actions: goals, feedback, results at once and later, cancellations, the status topic; also under overload.
#include <atomic>
#include <map>
#include <random>
#include <set>

#include <test_msgs/action/fibonacci.h>

#include "actions.h"

namespace tide::compat::test::action_server_test {

constexpr size_t kGoals = 3;

class ActionServer : public Actions {
 protected:
  void SetUp() override {
    Actions::SetUp();
    ASSERT_OK(rclc_action_server_init_default(&action, &node, &support, count_type(), "count"));
    ASSERT_OK(rclc_executor_add_action_server(&executor, &action, kGoals, requests, sizeof requests[0], on_goal,
                                              on_cancel, this));
  }
  static rcl_ret_t on_goal(rclc_action_goal_handle_t *goal, void *context) {
    auto *self = static_cast<ActionServer *>(context);
    const auto *request = static_cast<const GoalRequest *>(goal->ros_goal_request);
    self->targets.push_back(request->goal.target);
    if (request->goal.target > 100) return RCL_RET_ACTION_GOAL_REJECTED;
    self->running.push_back(goal);
    return RCL_RET_ACTION_GOAL_ACCEPTED;
  }
  static bool on_cancel(rclc_action_goal_handle_t *goal, void *context) {
    auto *self = static_cast<ActionServer *>(context);
    self->asked_to_cancel.push_back(id_of(goal));
    return self->agrees;
  }
  bool send_goal(uint8_t number, int32_t target) {
    return call("send_goal", bytes_of(goal_id(number), {target})).at(0) == 1;
  }
  rcl_ret_t finish(rclc_action_goal_handle_t *goal, rcl_action_goal_state_t state, int32_t reached) {
    GoalResult result{};
    result.result.reached = reached;
    return rclc_action_send_result(goal, state, &result);
  }
  // Requests a goal's result. Returns the state of the goal and the last number of the result.
  std::pair<int, int32_t> ask_result(uint8_t number) {
    return result_in(call("get_result", bytes_of(goal_id(number), {})));
  }
  static std::pair<int, int32_t> result_in(const Octets &bytes) { return {bytes.at(0), word_at(bytes, 4)}; }
  // Calls the action's cancel service. Returns the return code of the reply and the goals that are being cancelled.
  std::pair<int, std::set<GoalId>> cancel(const GoalId &id, int32_t sec = 0, int32_t nanosec = 0) {
    const Octets bytes = call("cancel_goal", bytes_of(id, {sec, nanosec}));
    std::set<GoalId> goals;
    for (int32_t place = 0; place < word_at(bytes, 4); place++)
      goals.insert(id_at(bytes, 8 + 24 * static_cast<size_t>(place)));
    return {bytes.at(0), goals};
  }
  // The states of goals in the latest message on the status topic.
  std::map<GoalId, int> states() {
    std::map<GoalId, int> latest;
    const auto written = server.written("rt/count/_action/status");
    if (written.empty()) return latest;
    size_t position = 4;
    for (int32_t place = 0; place < word_at(written.back(), 0); place++) {
      const GoalId id = id_at(written.back(), position);
      position = (position + 16 + 3) / 4 * 4 + 8;  // the time is aligned, the next id is not
      latest[id] = written.back().at(position++);
    }
    return latest;
  }
  bool spin_until_states(const std::map<GoalId, int> &wanted) {
    return spin_until([&] { return states() == wanted; });
  }
  tide_action_counters_t counters() {
    tide_action_counters_t counters{};
    EXPECT_OK(tide_rclc_action_server_get_counters(&action, &counters));
    return counters;
  }

  rclc_action_server_t action{};
  GoalRequest requests[kGoals]{};
  std::vector<int32_t> targets;
  std::vector<rclc_action_goal_handle_t *> running;
  std::vector<GoalId> asked_to_cancel;
  bool agrees = true;
};

TEST_F(ActionServer, IsNamedAsRos2NamesIt) {
  for (const char *wanted :
       {"rq/count/_action/send_goalRequest", "rr/count/_action/cancel_goalReply", "rq/count/_action/get_resultRequest",
        "rt/count/_action/feedback", "rt/count/_action/status",
        "test_interfaces::action::dds_::Count_SendGoal_Request_",
        "test_interfaces::action::dds_::Count_GetResult_Response_",
        "test_interfaces::action::dds_::Count_FeedbackMessage_", "action_msgs::srv::dds_::CancelGoal_Request_",
        "action_msgs::msg::dds_::GoalStatusArray_"}) {
    EXPECT_TRUE(server.heard(wanted)) << wanted;
  }
}

TEST_F(ActionServer, AGoalRunsFromItsRequestToItsResult) {
  ASSERT_TRUE(send_goal(1, 42));
  ASSERT_EQ(targets, std::vector<int32_t>{42});
  EXPECT_EQ(id_of(running[0]), goal_id(1));
  EXPECT_TRUE(spin_until_states({{goal_id(1), GOAL_STATE_EXECUTING}}));
  GoalFeedback feedback{};
  feedback.feedback.now = 7;
  EXPECT_OK(rclc_action_publish_feedback(running[0], &feedback));
  ASSERT_TRUE(eventually([&] { return server.written("rt/count/_action/feedback").size() == 1; }));
  EXPECT_EQ(server.written("rt/count/_action/feedback")[0], bytes_of(goal_id(1), {7}));

  ASSERT_TRUE(ask_part("get_result", bytes_of(goal_id(1), {})));
  spin_for_a_while();
  EXPECT_EQ(count_of("get_result"), 0u);
  EXPECT_OK(finish(running[0], GOAL_STATE_SUCCEEDED, 42));
  ASSERT_TRUE(spin_until([&] { return count_of("get_result") == 1; }));
  EXPECT_EQ(result_in(reply("get_result", 0)), std::make_pair(int{GOAL_STATE_SUCCEEDED}, 42));
  EXPECT_TRUE(spin_until_states({{goal_id(1), GOAL_STATE_SUCCEEDED}}));
  EXPECT_EQ(counters().goals, 1u);
  EXPECT_EQ(counters().results, 1u);
}

TEST_F(ActionServer, ARefusedGoalLeavesNothing) {
  EXPECT_FALSE(send_goal(1, 101));
  spin_for_a_while();
  EXPECT_TRUE(states().empty());
  for (uint8_t number = 2; number < 12; number++) EXPECT_FALSE(send_goal(number, 200));
  EXPECT_EQ(counters().refused, 11u);
}

TEST_F(ActionServer, ARefusedGoalThatComesAgainIsRefusedAgain) {
  constexpr GoalId kZero{};
  EXPECT_EQ(call("send_goal", bytes_of(kZero, {5})).at(0), 1) << "no id stands for none";
  EXPECT_FALSE(send_goal(1, 200));
  EXPECT_FALSE(send_goal(1, 5));
  EXPECT_EQ(counters().repeated, 1u);
  for (uint8_t number = 2; number < 6; number++) EXPECT_FALSE(send_goal(number, 200));
  EXPECT_TRUE(send_goal(1, 5)) << "four are remembered";
}

TEST_F(ActionServer, AResultIsKeptForThoseWhoAskLaterAndAgain) {
  ASSERT_TRUE(send_goal(1, 5));
  EXPECT_OK(finish(running[0], GOAL_STATE_ABORTED, 3));
  for (int again = 0; again < 3; again++) EXPECT_EQ(ask_result(1), std::make_pair(int{GOAL_STATE_ABORTED}, 3));
  EXPECT_EQ(ask_result(9), std::make_pair(int{GOAL_STATE_UNKNOWN}, 0));
  EXPECT_EQ(counters().unknown, 1u);
}

// The result is too long for a node. A client gets an answer nevertheless, whether it requests the result before the
// end of the goal, after it, or when the goal's handle has been reused.
TEST_F(ActionServer, AResultThatCannotBeSentEndsTheGoalAsAborted) {
  using Request = test_msgs__action__Fibonacci_SendGoal_Request;
  rclc_action_server_t fibonacci{};
  Request goals[1]{};
  ASSERT_OK(rclc_action_server_init_default(&fibonacci, &node, &support,
                                            ROSIDL_GET_ACTION_TYPE_SUPPORT(test_msgs, Fibonacci), "fibonacci"));
  static_assert(sizeof(Request) == sizeof(GoalRequest), "on_goal reads it");
  ASSERT_OK(
      rclc_executor_add_action_server(&executor, &fibonacci, 1, goals, sizeof goals[0], on_goal, on_cancel, this));
  name = "/fibonacci/_action/";
  ASSERT_TRUE(send_goal(1, 5));
  ASSERT_TRUE(ask_part("get_result", bytes_of(goal_id(1), {})));
  spin_for_a_while();
  std::vector<int32_t> numbers(300);
  test_msgs__action__Fibonacci_GetResult_Response result{};
  result.result.sequence = {numbers.data(), numbers.size(), numbers.size()};
  EXPECT_REFUSED(rclc_action_send_result(running[0], GOAL_STATE_SUCCEEDED, &result), RCL_RET_ERROR,
                 TIDE_ERROR_TOO_LARGE);
  ASSERT_TRUE(spin_until([&] { return count_of("get_result") == 1; }));
  EXPECT_EQ(result_in(reply("get_result", 0)), std::make_pair(int{GOAL_STATE_ABORTED}, 0)) << "an empty sequence";
  ASSERT_TRUE(send_goal(2, 1));
  EXPECT_EQ(running[1], running[0]) << "the place is free";
  EXPECT_EQ(ask_result(1), std::make_pair(int{GOAL_STATE_ABORTED}, 0));
  EXPECT_EQ(ask_result(9), std::make_pair(int{GOAL_STATE_UNKNOWN}, 0));
  ASSERT_OK(rclc_action_server_fini(&fibonacci, &node));
}

TEST_F(ActionServer, AResultIsForgottenWhenItsTimeIsOver) {
  EXPECT_OK(tide_rclc_action_server_set_result_timeout(&action, 50 * static_cast<int64_t>(kMillisecond)));
  ASSERT_TRUE(send_goal(1, 5));
  EXPECT_OK(finish(running[0], GOAL_STATE_SUCCEEDED, 5));
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_SUCCEEDED);
  pass_time(60ms);
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_UNKNOWN);
  ASSERT_TRUE(send_goal(2, 5));
  EXPECT_TRUE(spin_until_states({{goal_id(2), GOAL_STATE_EXECUTING}})) << "the old one is out of the list";
}

TEST_F(ActionServer, SeveralAskersGetTheSameResult) {
  ASSERT_TRUE(send_goal(1, 5));
  for (uint8_t asker = 1; asker <= 3; asker++) ASSERT_TRUE(ask_part("get_result", bytes_of(goal_id(1), {}), asker));
  spin_for_a_while();
  EXPECT_EQ(counters().askers_gone, 1u);
  EXPECT_OK(finish(running[0], GOAL_STATE_SUCCEEDED, 5));
  ASSERT_TRUE(spin_until([&] { return count_of("get_result") == 2; }));
  std::set<uint8_t> answered;
  for (const auto &reply : server.replies("/count/_action/get_result")) answered.insert(reply.identity[0]);
  EXPECT_EQ(answered, (std::set<uint8_t>{2, 3}));
}

TEST_F(ActionServer, AGoalThatComesAgainRunsOnce) {
  ASSERT_TRUE(send_goal(1, 5));
  EXPECT_TRUE(send_goal(1, 5));
  EXPECT_OK(finish(running[0], GOAL_STATE_SUCCEEDED, 5));
  spin_for_a_while();
  EXPECT_TRUE(send_goal(1, 5));
  EXPECT_EQ(targets.size(), 1u);
  EXPECT_EQ(counters().repeated, 2u);
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_SUCCEEDED);
}

TEST_F(ActionServer, AGoalWaitsForAPlace) {
  for (uint8_t number = 0; number < kGoals; number++) ASSERT_TRUE(send_goal(number, number));
  ASSERT_TRUE(ask_part("send_goal", bytes_of(goal_id(7), {7})));
  spin_for_a_while();
  EXPECT_EQ(running.size(), kGoals);
  EXPECT_EQ(ask_result(9).first, GOAL_STATE_UNKNOWN) << "other requests do not wait for it";
  EXPECT_OK(finish(running[1], GOAL_STATE_SUCCEEDED, 1));
  ASSERT_TRUE(spin_until([&] { return running.size() == kGoals + 1; }));
  EXPECT_EQ(targets.back(), 7);
  EXPECT_EQ(running.back(), running[1]) << "its place";
  EXPECT_EQ(id_of(running[0]), goal_id(0)) << "the others keep theirs";
}

TEST_F(ActionServer, CancelsOneRefusesOneAndAll) {
  for (uint8_t number = 0; number < kGoals; number++) ASSERT_TRUE(send_goal(number, number));
  EXPECT_EQ(cancel(goal_id(1)), std::make_pair(CANCEL_STATE_OK, std::set<GoalId>{goal_id(1)}));
  EXPECT_TRUE(running[1]->goal_cancelled);
  EXPECT_FALSE(running[0]->goal_cancelled);
  EXPECT_TRUE(spin_until_states(
      {{goal_id(0), GOAL_STATE_EXECUTING}, {goal_id(1), GOAL_STATE_CANCELING}, {goal_id(2), GOAL_STATE_EXECUTING}}));
  agrees = false;
  EXPECT_EQ(cancel(goal_id(0)), std::make_pair(CANCEL_STATE_REJECTED, std::set<GoalId>{}));
  EXPECT_EQ(running[0]->status, GOAL_STATE_EXECUTING);
  EXPECT_EQ(cancel(goal_id(9)), std::make_pair(CANCEL_STATE_UNKNOWN_GOAL, std::set<GoalId>{}));
  agrees = true;
  EXPECT_OK(finish(running[1], GOAL_STATE_CANCELED, 0));
  spin_for_a_while();
  EXPECT_EQ(cancel(goal_id(1)), std::make_pair(CANCEL_STATE_TERMINATED, std::set<GoalId>{}));
  EXPECT_EQ(cancel(GoalId{}), std::make_pair(CANCEL_STATE_OK, std::set<GoalId>{goal_id(0), goal_id(2)}));
  EXPECT_EQ(asked_to_cancel, (std::vector<GoalId>{goal_id(1), goal_id(0), goal_id(0), goal_id(2)}));
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_CANCELED);
}

TEST_F(ActionServer, CancelsWhatWasAcceptedUntilATime) {
  ASSERT_TRUE(send_goal(1, 1));
  pass_time(2ms);
  ASSERT_TRUE(send_goal(2, 2));
  const Octets stamp = reply("send_goal", 0);
  EXPECT_EQ(cancel(GoalId{}, word_at(stamp, 4), word_at(stamp, 8)),
            std::make_pair(CANCEL_STATE_OK, std::set<GoalId>{goal_id(1)}));
  EXPECT_EQ(cancel(GoalId{}, 1), std::make_pair(CANCEL_STATE_OK, std::set<GoalId>{})) << "none is that old";
}

TEST_F(ActionServer, WithoutMemoryForAResultItWaitsForAnAsker) {
  for (uint8_t number = 0; number < kGoals; number++) ASSERT_TRUE(send_goal(number, number));
  for (size_t place = 0; place < 2; place++) EXPECT_OK(finish(running[place], GOAL_STATE_SUCCEEDED, 1));
  EXPECT_EQ(finish(running[2], GOAL_STATE_SUCCEEDED, 2), RCLC_RET_ACTION_WAIT_RESULT_REQUEST)
      << "the other handles are in use until the executor runs";
  EXPECT_EQ(counters().results_waited, 1u);
  EXPECT_EQ(running[2]->status, GOAL_STATE_EXECUTING);
  spin_for_a_while();
  EXPECT_OK(finish(running[2], GOAL_STATE_SUCCEEDED, 2));
  EXPECT_EQ(counters().results_gone, 1u) << "the oldest gave way";
  EXPECT_EQ(ask_result(0).first, GOAL_STATE_UNKNOWN);
  EXPECT_EQ(ask_result(1).second, 1);
  EXPECT_EQ(ask_result(2).second, 2);
}

TEST_F(ActionServer, AResultThatSomebodyHasGivesWayFirst) {
  for (uint8_t number = 0; number < kGoals; number++) ASSERT_TRUE(send_goal(number, number));
  for (size_t place = 0; place < 2; place++) EXPECT_OK(finish(running[place], GOAL_STATE_SUCCEEDED, 1));
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_SUCCEEDED);
  EXPECT_OK(finish(running[2], GOAL_STATE_SUCCEEDED, 2));
  EXPECT_EQ(ask_result(0).first, GOAL_STATE_SUCCEEDED);
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_UNKNOWN);
  EXPECT_EQ(counters().results_gone, 0u);
}

TEST_F(ActionServer, WrongCallsAreRefused) {
  ASSERT_TRUE(send_goal(1, 1));
  GoalResult result{};
  GoalFeedback feedback{};
  rclc_action_goal_handle_t foreign{};
  EXPECT_REFUSED(rclc_action_send_result(running[0], GOAL_STATE_EXECUTING, &result), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rclc_action_send_result(running[0], 7, &result), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rclc_action_send_result(&foreign, GOAL_STATE_ABORTED, &result), RCL_RET_INVALID_ARGUMENT,
                 TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(rclc_action_send_cancel_request(running[0]), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_OK(finish(running[0], GOAL_STATE_SUCCEEDED, 1));
  EXPECT_REFUSED(finish(running[0], GOAL_STATE_SUCCEEDED, 1), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  spin_for_a_while();
  EXPECT_REFUSED(rclc_action_publish_feedback(running[0], &feedback), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  EXPECT_REFUSED(
      rclc_executor_add_action_server(&executor, &action, 1, requests, sizeof requests[0], on_goal, on_cancel, this),
      RCL_RET_ALREADY_INIT, TIDE_ERROR_EXISTS);
}

TEST_F(ActionServer, PoolsAreNamedWhenTheyAreUsedUp) {
  rclc_action_server_t second{}, third{};
  EXPECT_REFUSED(rclc_action_server_init_default(&second, &node, &support, count_type(), "wrong name"),
                 RCL_RET_ACTION_NAME_INVALID, TIDE_ERROR_NAME);
  ASSERT_OK(rclc_action_server_init_default(&second, &node, &support, count_type(), "second"));
  EXPECT_REFUSED(rclc_action_server_init_default(&third, &node, &support, count_type(), "third"), RCL_RET_ERROR,
                 TIDE_ERROR_CAPACITY_SERVICES);
  EXPECT_REFUSED(
      rclc_executor_add_action_server(&executor, &second, 44, requests, sizeof requests[0], on_goal, on_cancel, this),
      RCL_RET_ERROR, TIDE_ERROR_CAPACITY_GOALS);
  ASSERT_OK(
      rclc_executor_add_action_server(&executor, &second, 3, requests, sizeof requests[0], on_goal, nullptr, this));
  EXPECT_OK(rclc_action_server_fini(&second, &node));
  EXPECT_OK(rclc_action_server_fini(&second, &node));
}

TEST_F(ActionServer, FinishedOnesGiveEverythingBack) {
  const size_t entities = server.entities();
  for (int again = 0; again < 30; again++) {
    ASSERT_TRUE(send_goal(static_cast<uint8_t>(again), 1));
    ASSERT_OK(rclc_action_server_fini(&action, &node));
    ASSERT_OK(rclc_action_server_init_default(&action, &node, &support, count_type(), "count"));
    ASSERT_OK(rclc_executor_add_action_server(&executor, &action, kGoals, requests, sizeof requests[0], on_goal,
                                              on_cancel, this));
    ASSERT_TRUE(eventually([&] { return server.entities() == entities; })) << again;
  }
  ASSERT_OK(rclc_executor_fini(&executor));
  ASSERT_OK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  ASSERT_OK(rclc_executor_add_action_server(&executor, &action, kGoals, requests, sizeof requests[0], on_goal,
                                            on_cancel, this));
  EXPECT_TRUE(send_goal(200, 1));
}

TEST_F(ActionServer, EverythingTravelsAtTheLevelOfItsChain) {
  tide_chain_t chain;
  ASSERT_EQ(tide_chain_init(&chain, "count", 3, TIDE_FOREVER, 0), TIDE_OK);
  ASSERT_OK(tide_rclc_chain_add_action_server(&chain, &action));
  ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
  server.forget_received();
  ASSERT_TRUE(send_goal(1, 1));
  GoalFeedback feedback{};
  EXPECT_OK(rclc_action_publish_feedback(running[0], &feedback));
  EXPECT_EQ(cancel(goal_id(1)).first, CANCEL_STATE_OK);
  EXPECT_OK(finish(running[0], GOAL_STATE_CANCELED, 1));
  EXPECT_EQ(ask_result(1).first, GOAL_STATE_CANCELED);
  const auto streams = server.streams_of(TIDE_XRCE_WRITE_DATA);
  EXPECT_GE(streams.size(), 6u);
  for (const uint8_t stream : streams) EXPECT_EQ(stream, TIDE_STREAM_RELIABLE(3));
}

TEST_F(ActionServer, RepliesWaitForANodeAndNothingIsLost) {
  rcl_publisher_t filling = publisher_of(int32_type(), "filling");
  ASSERT_OK(tide_rclc_publisher_set_wait_ms(&filling, 0));
  ASSERT_TRUE(send_goal(1, 1));
  bring("/count/_action/send_goal", bytes_of(goal_id(2), {5}), identity_of(7, 1));
  bring("/count/_action/get_result", bytes_of(goal_id(1), {}), identity_of(7, 2));
  bring("/count/_action/cancel_goal", bytes_of(goal_id(1), {0, 0}), identity_of(7, 3));
  server.mute(true);
  const std_msgs__msg__Int32 number = {7};
  while (rcl_publish(&filling, &number, nullptr) == RCL_RET_OK) {}
  ASSERT_EQ(tide_rclc_last_status(), TIDE_ERROR_FULL);
  spin_for_a_while();
  EXPECT_EQ(targets.size(), 2u);
  for (auto *goal : running) EXPECT_OK(finish(goal, GOAL_STATE_SUCCEEDED, 1));
  spin_for_a_while();
  server.mute(false);
  ASSERT_TRUE(spin_until(
      [&] { return count_of("send_goal") == 2 && count_of("cancel_goal") == 1 && count_of("get_result") == 1; }));
  EXPECT_EQ(counters().replies_lost, 0u);
  EXPECT_TRUE(spin_until_states({{goal_id(1), GOAL_STATE_SUCCEEDED}, {goal_id(2), GOAL_STATE_SUCCEEDED}}));
}

// A large node holds 41 entries of a reply to a cancellation, or 36 of a status message.
TEST_F(ActionServer, AReplyAndAStatusListTheGoalsThatFitANode) {
  constexpr size_t kMany = 43;
  std::vector<GoalRequest> many(kMany);
  ASSERT_OK(rclc_action_server_fini(&action, &node));
  ASSERT_OK(rclc_action_server_init_default(&action, &node, &support, count_type(), "count"));
  ASSERT_OK(rclc_executor_add_action_server(&executor, &action, kMany, many.data(), sizeof many[0], on_goal, on_cancel,
                                            this));
  for (uint8_t number = 1; number <= 36; number++) ASSERT_TRUE(send_goal(number, 1));
  ASSERT_EQ(counters().replies_lost, 0u);
  const auto spins = [&] {
    bool failed = false;
    for (int round = 0; round < 20; round++) failed |= rclc_executor_spin_some(&executor, kMillisecond) != RCL_RET_OK;
    return failed;
  };
  for (uint8_t number = 37; number <= kMany; number++) {
    ASSERT_TRUE(ask_part("send_goal", bytes_of(goal_id(number), {1})));
    EXPECT_TRUE(spins()) << "the status lacks a goal";
  }
  EXPECT_EQ(states().size(), 36u);
  const uint32_t before = counters().replies_lost;
  EXPECT_EQ(before, 7u);
  rcl_reset_error();
  ASSERT_TRUE(ask_part("cancel_goal", bytes_of(GoalId{}, {0, 0})));
  EXPECT_TRUE(spins());
  EXPECT_EQ(tide_rclc_last_status(), TIDE_ERROR_TOO_LARGE);
  ASSERT_EQ(count_of("cancel_goal"), 1u) << "the client is answered";
  const Octets answer = reply("cancel_goal", 0);
  EXPECT_EQ(answer.at(0), CANCEL_STATE_OK);
  EXPECT_EQ(word_at(answer, 4), 41);
  EXPECT_EQ(answer.size(), 8u + 41u * 24u);
  EXPECT_EQ(id_at(answer, 8 + 40 * 24), goal_id(41));
  EXPECT_EQ(asked_to_cancel.size(), kMany);
  for (const auto *goal : running) EXPECT_TRUE(goal->goal_cancelled);
  EXPECT_EQ(counters().replies_lost, before + 2u) << "the reply and the status";
}

// Each goal runs in a thread of its own, as in public programs. Some goals are cancelled, and some results are
// requested before the goal has ended.
TEST_F(ActionServer, GoalsEndInThreads) {
  const auto seed = static_cast<unsigned>(World::current().random.next());
  std::mt19937 random(seed);
  std::vector<Thread> threads;
  std::atomic<int> ended{0};
  size_t started = 0;
  for (uint8_t number = 0; number < 60; number++) {
    ASSERT_TRUE(send_goal(number, number)) << static_cast<int>(number);
    ASSERT_EQ(running.size(), started + 1);
    rclc_action_goal_handle_t *goal = running[started++];
    threads.emplace_back([this, goal, &ended] {
      GoalFeedback feedback{};
      EXPECT_OK(rclc_action_publish_feedback(goal, &feedback));
      const int32_t target = static_cast<const GoalRequest *>(goal->ros_goal_request)->goal.target;
      while (finish(goal, GOAL_STATE_SUCCEEDED, target) != RCL_RET_OK) pass_time(1ms);
      ended++;
    });
    if (random() % 2 == 0) (void)cancel(goal_id(number));
    EXPECT_EQ(ask_result(number), std::make_pair(int{GOAL_STATE_SUCCEEDED}, int32_t{number}));
  }
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(ended, 60);
  EXPECT_EQ(counters().goals, 60u);
  EXPECT_EQ(counters().replies_lost, 0u);
}

}  // namespace tide::compat::test::action_server_test
