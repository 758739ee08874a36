// SPDX-License-Identifier: Apache-2.0
// Fig. 4 of the paper on the budget-based executor (docs/papers.md) in virtual time, with the shipped agent core,
// receiver, executor and sporadic servers. Each of two lanes gets a ping every 10 ms and works on it for 10 ms, so
// together they overload the core. The most urgent lane answers as many pings as its budget permits, and the other lane
// gets all the remaining time.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/board/system.h"

namespace tide::sim {
namespace sim_pong_test {

constexpr Time kWork = 10 * kMillisecond, kPeriod = 100 * kMillisecond, kPlayed = 5 * kSecond;
constexpr unsigned kPings = kPlayed / kWork;

// A ping of the host, and the lane of the board that answers it.
void add_lane(Plan &plan, unsigned level, bool reliable, Time budget) {
  const std::string name = "lane" + std::to_string(level);
  CallbackPlan ping, pong;
  ping.name = name + "_ping";
  ping.period = kWork;
  pong.name = name;
  pong.on = plan.system;
  pong.level = level;
  pong.execution = kWork;
  pong.budget = budget;
  pong.budget_period = budget == 0 ? 0 : kPeriod;
  MessagePlan message;
  message.name = name;
  message.from = ping.name;
  message.to = {pong.name};
  message.bytes = 8;
  message.reliable = reliable;
  plan.callbacks.push_back(ping);
  plan.callbacks.push_back(pong);
  plan.messages.push_back(message);
  PathPlan path;
  path.name = name;
  path.callbacks = {ping.name, pong.name};
  plan.paths.push_back(path);
}

// `budgets` are listed from the least urgent lane, which has none, to the most urgent one.
Plan pong(bool reliable, const std::vector<Time> &budgets) {
  Plan plan;
  plan.system = "pong";
  plan.lanes = 2;
  plan.record = true;
  plan.periods = kPings;
  plan.settle = 60 * kSecond;
  for (const Time budget : budgets) add_lane(plan, static_cast<unsigned>(plan.paths.size()) + 1, reliable, budget);
  return plan;
}

// Number of callbacks of each lane that ended during the pings.
std::vector<Time> answered(const Plan &plan) {
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  std::vector<Time> counts;
  Time begin = kForever;
  for (const ChainResult &chain : result.chains) begin = std::min(begin, chain.recorded.front().release);
  for (const ChainResult &chain : result.chains) {
    counts.push_back(std::count_if(chain.recorded.begin(), chain.recorded.end(), [begin](const Recorded &instance) {
      return instance.end >= 0 && instance.end <= begin + kPlayed;
    }));
  }
  return counts;
}

class SimPong : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BestEffortAndReliable, SimPong, testing::Bool());

TEST_P(SimPong, EachAnswersItsBudgetAndTheOtherAllTheRest) {
  for (Time budget = 10; budget <= 90; budget += 10) {
    const std::vector<Time> counts = answered(pong(GetParam(), {0, budget * kMillisecond}));
    const Time share = kPlayed / kPeriod * budget * kMillisecond / kWork;
    EXPECT_GE(counts[1], share - 1) << budget << " %";
    EXPECT_LE(counts[1], share) << budget << " %";
    EXPECT_GE(counts[0], kPings - share - 1) << budget << " %";
  }
}

TEST_P(SimPong, TwoBudgetsAtOnce) {
  for (Time budget = 10; budget <= 60; budget += 10) {
    const std::vector<Time> counts = answered(pong(GetParam(), {0, 30 * kMillisecond, budget * kMillisecond}));
    const Time share = kPlayed / kPeriod * budget * kMillisecond / kWork, other = kPings * 30 / 100;
    EXPECT_NEAR(counts[2], share, 1) << budget << " %";
    EXPECT_NEAR(counts[1], other, 1) << budget << " %";
    EXPECT_GE(counts[0], kPings - share - other - 1) << budget << " %";
  }
}

// Other work delays the sender for a part of each period; then it sends all delayed pings at once. With the default
// number of slots, the board can store the pings of 40 ms; further reliable pings wait at the agent.
TEST_P(SimPong, BurstsThatTheQueueHoldsCostNoShare) {
  for (const Time stall : GetParam() ? std::vector<Time>{20, 40, 80} : std::vector<Time>{20, 40}) {
    Plan plan = pong(GetParam(), {0, 90 * kMillisecond});
    plan.executors.emplace_back().name = "host1";
    for (CallbackPlan &callback : plan.callbacks)
      if (callback.on == "host") callback.on = "host1";
    CallbackPlan other;
    other.name = "other";
    other.on = "host1";
    other.period = kPeriod;
    other.execution = stall * kMillisecond;
    plan.callbacks.push_back(other);
    const std::vector<Time> counts = answered(plan);
    const Time share = kPings * 90 / 100;
    EXPECT_GE(counts[1], share * 97 / 100) << stall << " ms";
    EXPECT_GE(counts[0], kPings - share - 1) << stall << " ms";
  }
}

}  // namespace sim_pong_test
}  // namespace tide::sim
