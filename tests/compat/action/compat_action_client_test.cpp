// SPDX-License-Identifier: Apache-2.0
// Clients of actions: they send goals, and get answers, feedback, cancellations and results.
#include <algorithm>
#include <set>

#include "actions.h"

namespace tide::compat::test::action_client_test {

constexpr size_t kGoals = 3;

class ActionClient : public Actions {
 protected:
  void SetUp() override {
    Actions::SetUp();
    ASSERT_OK(rclc_action_client_init_default(&action, &node, count_type(), "count"));
    ASSERT_OK(rclc_executor_add_action_client(&executor, &action, kGoals, &result, &feedback, on_goal, on_feedback,
                                              on_result, on_cancel, this));
  }
  static int target_of(const rclc_action_goal_handle_t *goal) {
    return static_cast<const GoalRequest *>(goal->ros_goal_request)->goal.target;
  }
  void note(const rclc_action_goal_handle_t *goal, const std::string &what, int value) {
    events.push_back(std::to_string(target_of(goal)) + " " + what + " " + std::to_string(value));
  }
  static void on_goal(rclc_action_goal_handle_t *goal, bool accepted, void *context) {
    static_cast<ActionClient *>(context)->note(goal, "accepted", accepted);
  }
  static void on_feedback(rclc_action_goal_handle_t *goal, void *message, void *context) {
    static_cast<ActionClient *>(context)->note(goal, "now", static_cast<const GoalFeedback *>(message)->feedback.now);
  }
  static void on_result(rclc_action_goal_handle_t *goal, void *message, void *context) {
    const auto *given = static_cast<const GoalResult *>(message);
    static_cast<ActionClient *>(context)->note(goal, "ended " + std::to_string(given->status), given->result.reached);
  }
  static void on_cancel(rclc_action_goal_handle_t *goal, bool agreed, void *context) {
    static_cast<ActionClient *>(context)->note(goal, "cancelled", agreed);
  }
  std::vector<agent::test::Written> asked(const std::string &part) { return server.requests("/count/_action/" + part); }
  bool answer(const std::string &part, const Octets &reply, size_t place) {
    return server.answer("/count/_action/" + part, reply, asked(part).at(place).number);
  }
  rclc_action_goal_handle_t *send(int32_t target) {
    static_assert(sizeof requests / sizeof requests[0] == 8);
    requests[next].goal.target = target;
    rclc_action_goal_handle_t *handle = nullptr;
    EXPECT_OK(rclc_action_send_goal_request(&action, &requests[next++], &handle));
    EXPECT_TRUE(eventually([&] { return asked("send_goal").size() >= next; }));
    return handle;
  }
  void accept(size_t place) {
    const size_t before = asked("get_result").size();
    ASSERT_TRUE(answer("send_goal", {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, place));
    ASSERT_TRUE(spin_until([&] { return asked("get_result").size() == before + 1; }));
  }
  bool spin_until_events(size_t count) {
    return spin_until([&] { return events.size() >= count; });
  }
  uint32_t connects() {
    return masked([](const tide_session_t &session) { return session.counters.connects; });
  }
  void restart_agent() {
    const uint32_t before = connects();
    ASSERT_TRUE(is_acknowledged());
    masked([](tide_session_t &session) { return session.agent_lost = true; });
    tide_port_wake_link(session());
    ASSERT_TRUE(eventually([&] { return connects() > before && state() == TIDE_SESSION_READY; }));
  }
  // Answers the next question for a result.
  void answer_question(size_t place, const Octets &reply) {
    ASSERT_TRUE(spin_until([&] { return asked("get_result").size() > place; }));
    ASSERT_TRUE(answer("get_result", reply, place));
  }
  static Octets result_bytes(uint8_t state, int32_t reached) {
    Octets bytes = {state, 0, 0, 0};
    append(&bytes, reached);
    return bytes;
  }
  tide_action_counters_t counters() {
    tide_action_counters_t counters{};
    EXPECT_OK(tide_rclc_action_client_get_counters(&action, &counters));
    return counters;
  }

  rclc_action_client_t action{};
  GoalRequest requests[8]{};
  size_t next = 0;
  GoalFeedback feedback{};
  GoalResult result{};
  std::vector<std::string> events;
};

TEST_F(ActionClient, AGoalRunsFromItsRequestToItsResult) {
  const auto *goal = send(42);
  EXPECT_EQ(asked("send_goal")[0].payload, bytes_of(id_of(goal), {42}));
  accept(0);
  EXPECT_EQ(asked("get_result")[0].payload, bytes_of(id_of(goal), {}));
  EXPECT_EQ(goal->status, GOAL_STATE_ACCEPTED);
  ASSERT_TRUE(server.offer("rt/count/_action/feedback", bytes_of(goal_id(9), {99})));
  ASSERT_TRUE(server.offer("rt/count/_action/feedback", bytes_of(id_of(goal), {7})));
  ASSERT_TRUE(spin_until_events(2));
  ASSERT_TRUE(answer("get_result", result_bytes(GOAL_STATE_SUCCEEDED, 41), 0));
  ASSERT_TRUE(spin_until_events(3));
  EXPECT_EQ(events, (std::vector<std::string>{"42 accepted 1", "42 now 7", "42 ended 4 41"}));
  EXPECT_EQ(counters().unknown, 1u) << "feedback of another client's goal";
  EXPECT_EQ(counters().results, 1u);
}

TEST_F(ActionClient, ARefusedGoalIsOver) {
  for (size_t number = 0; number < 5; number++) {
    send(static_cast<int32_t>(number));
    ASSERT_TRUE(answer("send_goal", Octets(12), number));
    ASSERT_TRUE(spin_until_events(number + 1));
  }
  EXPECT_EQ(events.back(), "4 accepted 0");
  EXPECT_TRUE(asked("get_result").empty());
  EXPECT_EQ(counters().refused, 5u);
}

TEST_F(ActionClient, SeveralGoalsAnsweredInAnyOrder) {
  std::set<GoalId> ids;
  for (int32_t number = 0; number < 3; number++) ids.insert(id_of(send(number)));
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_REFUSED(rclc_action_send_goal_request(&action, &requests[3], nullptr), RCL_RET_ERROR,
                 TIDE_ERROR_CAPACITY_GOALS);
  for (const size_t place : {2u, 0u, 1u}) accept(place);
  for (const size_t place : {1u, 2u, 0u})
    ASSERT_TRUE(answer("get_result", result_bytes(4, static_cast<int32_t>(place)), place));
  ASSERT_TRUE(spin_until_events(6));
  EXPECT_EQ(events, (std::vector<std::string>{"2 accepted 1", "0 accepted 1", "1 accepted 1", "0 ended 4 1",
                                              "1 ended 4 2", "2 ended 4 0"}));
  EXPECT_NE(send(9), nullptr);
}

TEST_F(ActionClient, CancelsAndHearsWhetherTheServerAgrees) {
  auto *goal = send(1);
  accept(0);
  for (const uint8_t agreed : {uint8_t{0}, uint8_t{1}}) {
    EXPECT_OK(rclc_action_send_cancel_request(goal));
    ASSERT_TRUE(eventually([&] { return asked("cancel_goal").size() == agreed + 1u; }));
    EXPECT_EQ(asked("cancel_goal")[agreed].payload, bytes_of(id_of(goal), {0, 0}));
    Octets reply = {
        static_cast<uint8_t>(agreed == 0 ? CANCEL_STATE_REJECTED : CANCEL_STATE_OK), 0, 0, 0, agreed, 0, 0, 0};
    const Octets own = bytes_of(id_of(goal), {0, 0});
    if (agreed != 0) reply.insert(reply.end(), own.begin(), own.end());
    ASSERT_TRUE(answer("cancel_goal", reply, agreed));
    ASSERT_TRUE(spin_until_events(agreed + 2u));
    EXPECT_EQ(goal->goal_cancelled, agreed != 0);
  }
  EXPECT_EQ(events, (std::vector<std::string>{"1 accepted 1", "1 cancelled 0", "1 cancelled 1"}));
}

TEST_F(ActionClient, WhatIsForgottenIsDroppedWhenItComes) {
  auto *first = send(1);
  EXPECT_OK(tide_rclc_action_client_forget(first));
  EXPECT_REFUSED(tide_rclc_action_client_forget(first), RCL_RET_INVALID_ARGUMENT, TIDE_ERROR_ARGUMENT);
  ASSERT_TRUE(answer("send_goal", {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0));
  send(2);
  accept(1);
  EXPECT_EQ(events, std::vector<std::string>{"2 accepted 1"});
  EXPECT_EQ(counters().unknown, 1u);
}

TEST_F(ActionClient, AsksAgainWhenItIsTold) {
  auto *goal = send(1);
  EXPECT_REFUSED(tide_rclc_action_client_ask_again(goal), RCL_RET_ERROR, TIDE_ERROR_STATE);
  accept(0);
  EXPECT_OK(tide_rclc_action_client_ask_again(goal));
  ASSERT_TRUE(spin_until([&] { return asked("get_result").size() == 2; }));
  ASSERT_TRUE(answer("get_result", result_bytes(4, 1), 0));
  ASSERT_TRUE(answer("get_result", result_bytes(4, 2), 1));
  ASSERT_TRUE(spin_until_events(2));
  spin_for_a_while();
  EXPECT_EQ(events, (std::vector<std::string>{"1 accepted 1", "1 ended 4 2"})) << "the answer to the latest question";
}

TEST_F(ActionClient, AsksAgainForResultsInANewSession) {
  const auto *goal = send(1);
  accept(0);
  ASSERT_TRUE(is_acknowledged());
  server.mute(true);
  ASSERT_TRUE(eventually([&] { return state() != TIDE_SESSION_READY; }, 20s));
  server.mute(false);
  ASSERT_TRUE(spin_until([&] { return asked("get_result").size() == 2; }));
  EXPECT_EQ(asked("get_result")[1].payload, bytes_of(id_of(goal), {}));
  ASSERT_TRUE(answer("get_result", result_bytes(4, 1), 0));
  ASSERT_TRUE(answer("get_result", result_bytes(4, 1), 1));
  ASSERT_TRUE(spin_until_events(2));
  spin_for_a_while();
  EXPECT_EQ(events, (std::vector<std::string>{"1 accepted 1", "1 ended 4 1"})) << "once";
  EXPECT_EQ(counters().repeated, 1u);
}

TEST_F(ActionClient, FeedbackTellsOfAnAcceptanceThatWasLost) {
  const auto *goal = send(1);
  ASSERT_TRUE(server.offer("rt/count/_action/feedback", bytes_of(id_of(goal), {7})));
  ASSERT_TRUE(spin_until_events(1));
  ASSERT_TRUE(is_acknowledged());
  server.mute(true);
  ASSERT_TRUE(eventually([&] { return state() != TIDE_SESSION_READY; }, 20s));
  server.mute(false);
  ASSERT_TRUE(spin_until([&] { return asked("get_result").size() == 1; }));
  ASSERT_TRUE(answer("send_goal", {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0));
  ASSERT_TRUE(answer("get_result", result_bytes(4, 1), 0));
  ASSERT_TRUE(spin_until([&] { return events.back() == "1 ended 4 1"; }));
  spin_for_a_while();
  // The feedback is repeated if its acknowledgment was lost with the session.
  events.erase(std::remove(events.begin() + 1, events.end(), "1 now 7"), events.end());
  EXPECT_EQ(events, (std::vector<std::string>{"1 now 7", "1 accepted 1", "1 ended 4 1"}));
}

// The agent ends while a goal request is unanswered. sim_actions_test draws such ends at random; these tests know how
// often the server is asked, and programs that use the goal's memory for other things.
TEST_F(ActionClient, AGoalWhoseAnswerDiedIsFoundByItsResult) {
  send(1);
  restart_agent();
  answer_question(0, result_bytes(GOAL_STATE_SUCCEEDED, 1));
  ASSERT_TRUE(spin_until_events(2));
  EXPECT_EQ(events, (std::vector<std::string>{"1 accepted 1", "1 ended 4 1"}));
  EXPECT_EQ(asked("send_goal").size(), 1u) << "no server is asked to take the same goal twice without need";
}

TEST_F(ActionClient, AGoalThatNeverCameIsSentAgain) {
  send(1);
  restart_agent();
  answer_question(0, result_bytes(GOAL_STATE_UNKNOWN, 0));
  ASSERT_TRUE(spin_until([&] { return asked("send_goal").size() == 2; }));
  EXPECT_EQ(asked("send_goal")[0].payload, asked("send_goal")[1].payload);
  accept(1);
}

// The request may still be in transfer, so the server is asked once more, a while later.
TEST_F(ActionClient, AGoalWhoseMemoryHasOtherThingsNowIsAskedForTwice) {
  for (const uint8_t state : {GOAL_STATE_UNKNOWN, GOAL_STATE_SUCCEEDED}) {
    const size_t before = asked("get_result").size();
    events.clear();
    send(1);
    requests[next - 1].goal.target = 77;
    restart_agent();
    answer_question(before, result_bytes(GOAL_STATE_UNKNOWN, 0));
    answer_question(before + 1, result_bytes(state, 0));
    ASSERT_TRUE(spin_until_events(1));
    EXPECT_EQ(events[0], state == GOAL_STATE_UNKNOWN ? "77 accepted 0" : "77 accepted 1");
    EXPECT_EQ(asked("send_goal").size(), next);
  }
}

TEST_F(ActionClient, EverythingTravelsAtTheLevelOfItsChain) {
  tide_chain_t chain;
  ASSERT_EQ(tide_chain_init(&chain, "count", 2, TIDE_FOREVER, 0), TIDE_OK);
  ASSERT_OK(tide_rclc_chain_add_action_client(&chain, &action));
  ASSERT_TRUE(eventually([&] { return tide_session_is_idle(session(), 0); }));
  server.forget_received();
  auto *goal = send(1);
  accept(0);
  EXPECT_OK(rclc_action_send_cancel_request(goal));
  ASSERT_TRUE(eventually([&] { return asked("cancel_goal").size() == 1; }));
  const auto streams = server.streams_of(TIDE_XRCE_WRITE_DATA);
  EXPECT_EQ(streams.size(), 3u);
  for (const uint8_t stream : streams) EXPECT_EQ(stream, TIDE_STREAM_RELIABLE(2));
}

TEST_F(ActionClient, FeedbackAndCancellationsMayGoUnheard) {
  ASSERT_OK(rclc_action_client_fini(&action, &node));
  ASSERT_OK(rclc_action_client_init_default(&action, &node, count_type(), "count"));
  ASSERT_OK(rclc_executor_add_action_client(&executor, &action, kGoals, &result, nullptr, on_goal, nullptr, on_result,
                                            nullptr, this));
  auto *goal = send(1);
  accept(0);
  for (int32_t number = 0; number < 20; number++) {
    ASSERT_TRUE(server.offer("rt/count/_action/feedback", bytes_of(id_of(goal), {number})));
  }
  ASSERT_TRUE(answer("get_result", result_bytes(4, 1), 0));
  ASSERT_TRUE(spin_until_events(2));
  EXPECT_EQ(events.back(), "1 ended 4 1");
}

}  // namespace tide::compat::test::action_client_test
