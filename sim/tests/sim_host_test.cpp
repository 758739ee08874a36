// SPDX-License-Identifier: Apache-2.0
// Chains on executors with several lanes: random systems obey the rules, and a defective program is detected. The tests
// of published chain sets are in lab/tests/test_reproduce_mt.py.
#include <cstdlib>

#include "dice.h"
#include "gtest/gtest.h"
#include "sim/board/campaign.h"
#include "sim/board/system.h"

namespace tide::sim {
namespace sim_host_test {

using tide::test::environment;

TEST(SimHost, RandomSystemsKeepTheRules) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 800 : 1);
  uint64_t ran = 0, exclusive = 0, dropped = 0, readyset = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    Plan plan = draw_host(seed);
    plan.record = true;
    const Result result = simulate(plan);
    ASSERT_TRUE(result.violations.empty()) << result.violations.front() << "; replay with TIDE_SEED=" << seed;
    readyset += plan.executors.front().policy == HostPolicy::kReadyset ? 1 : 0;
    for (const ExecutorResult &executor : result.executors) ran += executor.runs;
    for (size_t number = 0; number < plan.callbacks.size(); number++) {
      dropped += result.dropped[number];
      exclusive += plan.callbacks[number].group > 0 ? result.records.runs[number].size() : 0;
    }
  }
  if (std::getenv("TIDE_SEED") != nullptr) return;
  EXPECT_GT(ran, 60'000u) << "the systems do not do enough to prove anything";
  EXPECT_GT(exclusive, 12'000u);
  EXPECT_GT(dropped, 500u);
  EXPECT_GT(readyset, 300u);
}

// A notification and two expiries coincide. The rule that no lane may sleep is checked only at the end of this instant.
TEST(SimHost, RulesAreHeldWhenAnInstantIsOver) {
  Plan plan;
  read_plan(plan, R"(horizon_us = 1000000
executor = name=e0 policy=readyset
executor = name=e1 policy=readyset lanes=3
callback = name=feed.b0 on=e0 period_us=100000 priority=6400 execution_us=40000
callback = name=feed.b1 on=e1 priority=6401 execution_us=5000
callback = name=a.b0 on=e1 period_us=20000 priority=28928 execution_us=15000
callback = name=b.b0 on=e1 period_us=20000 priority=20480 execution_us=15000
message = name=feed from=feed.b0 to=feed.b1 bytes=8
path = name=feed callbacks=feed.b0,feed.b1
path = name=a callbacks=a.b0
path = name=b callbacks=b.b0
)");
  const Result result = simulate(plan);
  EXPECT_GT(result.chains[0].latencies.size(), 0u);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
}

TEST(SimHost, SameSeedSameTraceAndAPlanIsWrittenAsItIsRead) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    Plan plan = draw_host(seed), again;
    plan.trace = true;
    const std::string text = write_plan(plan);
    read_plan(again, text);
    EXPECT_EQ(write_plan(again), text);
    const std::string trace = simulate(plan).trace;
    EXPECT_FALSE(trace.empty());
    EXPECT_EQ(simulate(plan).trace, trace);
    EXPECT_EQ(simulate(again).trace, trace);
  }
}

}  // namespace sim_host_test
}  // namespace tide::sim
