// SPDX-License-Identifier: Apache-2.0
// The budget paper's experiment on the shipped path, in virtual time: agent, line, receiver, executor and the lanes'
// sporadic servers. Pings come each 10 ms for each of two lanes and cost 10 ms, so both are overloaded together. What
// the most urgent one answers is its budget, and nothing of what it leaves is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/board/system.h"
#include "sim/engine/random.h"

namespace tide::sim {
namespace sim_pong_test {

constexpr Time kWork = 10 * kMillisecond, kPeriod = 100 * kMillisecond, kPlayed = 5 * kSecond;
constexpr unsigned kPings = kPlayed / kWork;

ChainPlan lane(unsigned level, bool reliable, Time budget, Time period = kPeriod) {
  ChainPlan chain;
  chain.name = "lane" + std::to_string(level);
  chain.level = level;
  chain.shape = Shape::kTold;
  chain.period = kWork;
  chain.act = kWork;
  chain.reply_bytes = 8;
  chain.reliable = chain.reply_reliable = reliable;
  chain.budget = budget;
  chain.budget_period = budget == 0 ? 0 : period;
  return chain;
}

// From the least urgent lane, which has none, to the most urgent one.
Plan pong(bool reliable, const std::vector<Time> &budgets) {
  Plan plan;
  plan.system = "pong";
  plan.lanes = 2;
  plan.record = true;
  plan.periods = kPings;
  plan.settle = 60 * kSecond;
  for (const Time budget : budgets)
    plan.chains.push_back(lane(static_cast<unsigned>(plan.chains.size()) + 1, reliable, budget));
  return plan;
}

// Callbacks of each lane that ended while pings came.
std::vector<Time> answered(const Plan &plan) {
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  std::vector<Time> counts;
  Time begin = kForever;
  for (const ChainResult &chain : result.chains) begin = std::min(begin, chain.recorded.front().release);
  for (const ChainResult &chain : result.chains) {
    counts.push_back(std::count_if(chain.recorded.begin(), chain.recorded.end(), [begin](const Recorded &instance) {
      return instance.act_end >= 0 && instance.act_end <= begin + kPlayed;
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

// A Ping that other work keeps from sending for a part of each period, and then sends all at once. What the queue holds
// is enough for 40 ms, by the slots of a program that names no sizes; what is reliable waits at the agent.
TEST_P(SimPong, BurstsThatTheQueueHoldsCostNoShare) {
  for (const Time stall : GetParam() ? std::vector<Time>{20, 40, 80} : std::vector<Time>{20, 40}) {
    Plan plan = pong(GetParam(), {0, 90 * kMillisecond});
    plan.hosts = {1};
    for (ChainPlan &chain : plan.chains) chain.node = 1;
    ChainPlan other = lane(3, false, 0);
    other.shape = Shape::kHosted;
    other.period = kPeriod;
    other.host = stall * kMillisecond;
    other.node = 1;
    plan.chains.push_back(other);
    const std::vector<Time> counts = answered(plan);
    const Time share = kPings * 90 / 100;
    EXPECT_GE(counts[1], share * 97 / 100) << stall << " ms";
    EXPECT_GE(counts[0], kPings - share - 1) << stall << " ms";
  }
}

// When a lane whose budget is there together with those of all more urgent ones has executed it. Later than its period,
// and a part of it is lost: what a sporadic server was kept from for a whole period does not add up.
Time spent_after(const Plan &plan, size_t index) {
  const ChainPlan &chain = plan.chains[index];
  Time time = chain.budget;
  for (Time before = 0; time != before && time <= chain.budget_period;) {
    before = time;
    time = chain.budget;
    for (size_t above = index + 1; above < plan.chains.size(); above++) {
      const ChainPlan &other = plan.chains[above];
      time += (before + other.budget_period - 1) / other.budget_period * other.budget;
    }
  }
  return time;
}

// Lanes of any budget and period, callbacks of any length, the cost of the middleware in them. Each has its share, and
// no more as long as somebody is there to take the rest.
TEST(SimPongDrawn, EachHasItsShareAndNoMore) {
  unsigned held = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    Random random(seed);
    Plan plan = pong(random.chance(0.5), {0});
    plan.process = random.between(0, 200'000);
    plan.dispatch = random.between(0, 50'000);
    plan.agent_most = random.between(0, 3 * kMillisecond);
    Time left = 95;  // percent
    for (unsigned level = 2; level <= 4 && left > 5; level++) {
      const Time percent = random.between(3, left);
      const Time period = random.between(20, 150) * kMillisecond;
      plan.chains.push_back(lane(level, random.chance(0.5), period * percent / 100, period));
      plan.chains.back().act = random.between(10, 30) * kMillisecond;
      left -= percent;
    }
    const std::vector<Time> counts = answered(plan);
    for (size_t index = 1; index < counts.size(); index++) {
      const ChainPlan &chain = plan.chains[index];
      const Time each = chain.act + plan.process + plan.dispatch, executed = counts[index] * each;
      const Time periods = kPlayed / chain.budget_period;
      EXPECT_LE(executed, (periods + 1) * chain.budget + each) << "seed " << seed << ", lane " << index;
      if (spent_after(plan, index) > chain.budget_period) continue;
      EXPECT_GE(executed, (periods - 1) * chain.budget - each) << "seed " << seed << ", lane " << index;
      held++;
    }
  }
  EXPECT_GE(held, 25u);
}

}  // namespace sim_pong_test
}  // namespace tide::sim
