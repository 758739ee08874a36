// SPDX-License-Identifier: Apache-2.0
// Goals and requests of a board on rclc, with lost frames, cut lines and agents that end.
#include <gtest/gtest.h>

#include "sim/actions/actions.h"

namespace tide::sim {
namespace sim_actions_test {

TEST(SimActions, NoGoalIsLostOrDoubledAndEachRequestHasOneEnd) {
  ActionSummary sum;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    const ActionSummary one = simulate_apart(seed);
    ASSERT_EQ(one.violation, "") << "tide-sim actions --seed " << seed;
    sum.restarts += one.restarts;
    sum.accepted += one.accepted;
    sum.requests += one.requests;
    sum.given_up += one.given_up;
  }
  EXPECT_GE(sum.accepted, 1000u);
  EXPECT_GE(sum.requests, 500u);
  EXPECT_GE(sum.given_up, 10u) << "the faults are too mild to lose anything";
  EXPECT_GE(sum.restarts, 100u);
}

// A query about a goal overtakes the request for it: the server reports the goal as unknown and then accepts it.
TEST(SimActions, AQuestionOvertakesItsGoal) {
  for (const uint64_t seed : {1103u, 17190u}) EXPECT_EQ(simulate_apart(seed).violation, "") << seed;
}

// Three cases: a request for a result that cannot be sent before the next session; a goal that is too old to be
// repeated and arrives after the query about it; and a goal that is sent between two sessions, and again in the second
// one.
TEST(SimActions, SessionsBeginAtTheWorstMoment) {
  for (const uint64_t seed : {66590u, 106563u, 252u}) EXPECT_EQ(simulate_apart(seed).violation, "") << seed;
}

TEST(SimActions, TheSameSeedIsTheSameRun) {
  for (const uint64_t seed : {3u, 17u, 40u}) {
    const ActionSummary first = simulate_apart(seed), second = simulate_apart(seed);
    EXPECT_EQ(first.events, second.events) << seed;
    EXPECT_EQ(first.frames, second.frames) << seed;
    EXPECT_GT(first.events, 100u) << seed;
  }
}

}  // namespace sim_actions_test
}  // namespace tide::sim
