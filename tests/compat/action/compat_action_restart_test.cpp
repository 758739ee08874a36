// SPDX-License-Identifier: Apache-2.0
// Goals of a client whose agent ends, losing messages in transfer; sim_actions_test draws such losses at random. The
// server of ROS 2 is a model that checks the rules: each goal is executed at most once, its request is answered once,
// and an accepted goal has one result.
#include <map>

#include "actions.h"

namespace tide::compat::test::action_restart_test {

constexpr size_t kGoals = 3;
constexpr uint8_t kSucceeded = 4, kUnknown = 0;

struct Known {
  int executed = 0;
  bool ended = false;
  std::vector<uint64_t> askers;  // numbers of requests for its result
};

struct Heard {
  int answers = 0, results = 0;
  bool accepted = false, succeeded = false;
};

class Restarts : public Actions {
 protected:
  void SetUp() override {
    Actions::SetUp();
    ASSERT_OK(rclc_action_client_init_default(&action, &node, count_type(), "count"));
    ASSERT_OK(rclc_executor_add_action_client(&executor, &action, kGoals, &result, &feedback, on_goal, nullptr,
                                              on_result, nullptr, this));
  }
  static void on_goal(rclc_action_goal_handle_t *goal, bool accepted, void *context) {
    Heard &heard = static_cast<Restarts *>(context)->heard[id_of(goal)];
    heard.answers++;
    heard.accepted = accepted;
  }
  static void on_result(rclc_action_goal_handle_t *goal, void *message, void *context) {
    Heard &heard = static_cast<Restarts *>(context)->heard[id_of(goal)];
    heard.results++;
    heard.succeeded = static_cast<const GoalResult *>(message)->status == kSucceeded;
  }

  // ---- the program ----

  bool send(size_t place) {
    rclc_action_goal_handle_t *handle = nullptr;
    requests[place].goal.target = static_cast<int32_t>(place) + 1;
    if (rclc_action_send_goal_request(&action, &requests[place], &handle) != RCL_RET_OK) return false;
    heard[id_of(handle)];
    return true;
  }

  // ---- ROS 2 ----

  std::vector<agent::test::Written> asked(const std::string &part) { return server.requests("/count/_action/" + part); }
  void reply(const std::string &part, const Octets &bytes, uint64_t number) {
    if (!answers_die) server.answer("/count/_action/" + part, bytes, number);
  }
  void reply_result(uint8_t status, uint64_t number) {
    Octets bytes = {status, 0, 0, 0};
    append(&bytes, 0);
    reply("get_result", bytes, number);
  }
  void decide(const agent::test::Written &request) {
    const GoalId id = id_at(request.payload, 0);
    const bool repeated = known.contains(id), accepted = !repeated || !strict;
    if (accepted && !repeated) known[id].executed++;
    Octets bytes(12);
    bytes[0] = accepted;
    reply("send_goal", bytes, request.number);
  }
  void tell(const agent::test::Written &request) {
    const auto place = known.find(id_at(request.payload, 0));
    if (place == known.end()) {
      reply_result(kUnknown, request.number);
    } else if (place->second.ended) {
      reply_result(kSucceeded, request.number);
    } else {
      place->second.askers.push_back(request.number);
    }
  }
  void serve() {
    const auto goals = asked("send_goal");
    for (; goals_seen < goals.size(); goals_seen++) {
      if (!requests_die) decide(goals[goals_seen]);
    }
    const auto questions = asked("get_result");
    for (; questions_seen < questions.size(); questions_seen++) {
      if (!requests_die) tell(questions[questions_seen]);
    }
  }
  void end_goals() {
    for (auto &[id, goal] : known) {
      goal.ended = true;
      for (const uint64_t number : goal.askers) reply_result(kSucceeded, number);
      goal.askers.clear();
    }
  }

  // ---- the agent ----

  uint32_t connects() {
    return masked([](const tide_session_t &session) { return session.counters.connects; });
  }
  void restart_agent() {
    const uint32_t before = connects();
    masked([](tide_session_t &session) { return session.agent_lost = true; });
    tide_port_wake_link(session());
    ASSERT_TRUE(eventually([&] { return connects() > before && state() == TIDE_SESSION_READY; }));
  }

  void turn() {
    EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
    serve();
  }

  // True once this many requests of the part have arrived; no server processes them.
  bool is_asked(const char *part, size_t count) {
    return eventually([&] {
      EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
      return asked(part).size() == count;
    });
  }

  // ---- the checker ----

  std::vector<std::string> violations() {
    std::vector<std::string> found;
    const auto note = [&](bool wrong, const char *what) {
      if (wrong) found.emplace_back(what);
    };
    for (const auto &[id, goal] : known) note(goal.executed > 1, "a goal was executed twice");
    for (const auto &[id, goal] : heard) {
      note(goal.answers == 0, "a goal request has no answer");
      note(goal.answers > 1, "a goal request has two answers");
      note(goal.results > 1, "a goal has two results");
      note(goal.accepted && (goal.results == 0 || !goal.succeeded), "an accepted goal has no result");
      note(!goal.accepted && goal.results > 0, "a refused goal has a result");
      note(goal.accepted != known.contains(id), "the program and the server disagree on whether a goal was accepted");
    }
    return found;
  }
  bool all_settled() {
    for (const auto &[id, goal] : heard) {
      if (goal.answers == 0 || (goal.accepted && goal.results == 0)) return false;
    }
    return true;
  }
  void settle() {
    requests_die = answers_die = false;
    restart_agent();
    (void)eventually([&] {
      turn();
      end_goals();
      return all_settled();
    });
    for (int rest = 0; rest < 10; rest++) turn();
  }

  rclc_action_client_t action{};
  std::array<GoalRequest, 40> requests{};
  GoalFeedback feedback{};
  GoalResult result{};
  std::map<GoalId, Known> known;
  std::map<GoalId, Heard> heard;
  size_t goals_seen = 0, questions_seen = 0;
  bool requests_die = false, answers_die = false;
  bool strict = false;  // refuses a repeated id, as servers of rclcpp and rclpy do
};

TEST_F(Restarts, AnAcceptedGoalWhoseAnswerDiedIsFoundByItsResult) {
  answers_die = true;
  ASSERT_TRUE(send(0));
  ASSERT_TRUE(eventually([&] { return turn(), known.size() == 1; }));
  ASSERT_TRUE(is_acknowledged());
  settle();
  EXPECT_EQ(violations(), std::vector<std::string>{});
  EXPECT_EQ(asked("send_goal").size(), 1u) << "no server is asked to take the same goal twice without need";
}

TEST_F(Restarts, AGoalThatNeverCameIsSentAgain) {
  requests_die = true;
  ASSERT_TRUE(send(0));
  ASSERT_TRUE(eventually([&] { return turn(), goals_seen == 1; }));
  ASSERT_TRUE(is_acknowledged());
  settle();
  EXPECT_EQ(violations(), std::vector<std::string>{});
  ASSERT_EQ(asked("send_goal").size(), 2u);
  EXPECT_EQ(asked("send_goal")[0].payload, asked("send_goal")[1].payload);
  EXPECT_EQ(known.size(), 1u);
}

TEST_F(Restarts, AGoalWhoseMemoryHasOtherThingsNowIsRefused) {
  requests_die = true;
  ASSERT_TRUE(send(0));
  ASSERT_TRUE(eventually([&] { return turn(), goals_seen == 1; }));
  ASSERT_TRUE(is_acknowledged());
  requests[0].goal.target = 77;
  settle();
  EXPECT_EQ(violations(), std::vector<std::string>{});
  EXPECT_EQ(asked("send_goal").size(), 1u);
  EXPECT_TRUE(known.empty());
}

// The server is slow, so the query about the goal overtakes its request, which is then sent a second time.
TEST_F(Restarts, ARefusalOfTheSecondRequestIsNotBelieved) {
  strict = true;
  ASSERT_TRUE(send(0));
  ASSERT_TRUE(is_asked("send_goal", 1));
  ASSERT_TRUE(is_acknowledged());
  restart_agent();
  ASSERT_TRUE(is_asked("get_result", 1));
  tell(asked("get_result")[questions_seen++]);
  ASSERT_TRUE(is_asked("send_goal", 2));
  serve();  // it takes the first request and refuses the second
  ASSERT_EQ(known.size(), 1u);
  ASSERT_TRUE(eventually([&] { return turn(), end_goals(), all_settled(); }));
  EXPECT_EQ(violations(), std::vector<std::string>{});
  EXPECT_TRUE(heard.begin()->second.accepted);
}

// The goal request is still in transfer and cannot be sent again, because the program has reused its memory.
TEST_F(Restarts, AnUnknownGoalIsAskedForOnceMoreBeforeItCountsAsRefused) {
  ASSERT_TRUE(send(0));
  ASSERT_TRUE(is_asked("send_goal", 1));
  ASSERT_TRUE(is_acknowledged());
  requests[0].goal.target = 77;
  restart_agent();
  ASSERT_TRUE(is_asked("get_result", 1));
  tell(asked("get_result")[questions_seen++]);
  ASSERT_TRUE(is_asked("get_result", 2)) << "a while later";
  serve();  // takes the goal
  ASSERT_TRUE(eventually([&] { return turn(), end_goals(), all_settled(); }));
  EXPECT_EQ(violations(), std::vector<std::string>{});
  EXPECT_EQ(asked("send_goal").size(), 1u);
}

}  // namespace tide::compat::test::action_restart_test
