// SPDX-License-Identifier: Apache-2.0
#include "analysis/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tide::analysis {
namespace {

TEST(Generate, UUniFastSplitsEvenly) {
  Random random(3);
  std::vector<double> means(4, 0.0);
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    const auto shares = uunifast(random, 4, 2.0);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 2.0, 1e-12);
    for (std::size_t part = 0; part < 4; ++part) {
      EXPECT_GE(shares[part], 0.0);
      means[part] += shares[part] / rounds;
    }
  }
  for (const double mean : means) EXPECT_NEAR(mean, 0.5, 0.02);  // no place is favoured
}

TEST(Generate, ASetIsWhatTheRecipeSays) {
  Recipe recipe;
  recipe.utilisation = 2.4;
  recipe.deadline_periods = 2;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Executor executor = generate(recipe, seed);
    ASSERT_EQ(executor.chains().size(), 5U);
    EXPECT_EQ(executor.lanes().size(), 4U);
    double utilisation = 0;
    for (std::size_t index = 0; index < 5; ++index) {
      const Chain &chain = executor.chains()[index];
      EXPECT_EQ(chain.callbacks.size(), 10U);
      EXPECT_GE(chain.period_ns, recipe.shortest_period_ns);
      EXPECT_LE(chain.period_ns, recipe.longest_period_ns);
      EXPECT_EQ(chain.deadline_ns, 2 * chain.period_ns);
      utilisation += static_cast<double>(chain.execution_ns) / static_cast<double>(chain.period_ns);
      if (index == 0) continue;
      const Chain &more = executor.chains()[executor.order()[index - 1]];
      const Chain &less = executor.chains()[executor.order()[index]];
      EXPECT_LE(more.period_ns, less.period_ns);
      EXPECT_GT(more.priority, less.priority);
    }
    EXPECT_NEAR(utilisation, 2.4, 1e-5);
  }
}

TEST(Generate, ASeedGivesTheSameSetAndOtherSeedsOthers) {
  const Recipe recipe;
  EXPECT_EQ(generate(recipe, 5).chains()[3].execution_ns, generate(recipe, 5).chains()[3].execution_ns);
  EXPECT_NE(generate(recipe, 5).chains()[3].execution_ns, generate(recipe, 6).chains()[3].execution_ns);
}

TEST(Generate, LawsOfPeriodsAndPriorities) {
  Recipe recipe;
  recipe.shortest_period_ns = 10'000'000;
  recipe.longest_period_ns = 1'000'000'000;
  recipe.periods = PeriodLaw::log_uniform;
  recipe.priorities = PriorityLaw::random;
  int short_ones = 0;
  int inverted = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Executor executor = generate(recipe, seed);
    for (const Chain &chain : executor.chains()) short_ones += chain.period_ns < 100'000'000 ? 1 : 0;
    const auto &order = executor.order();
    inverted += executor.chains()[order[0]].period_ns > executor.chains()[order[1]].period_ns ? 1 : 0;
  }
  EXPECT_NEAR(short_ones, 1000, 120);  // half of them: one decade of two
  EXPECT_NEAR(inverted, 200, 50);
}

}  // namespace
}  // namespace tide::analysis
