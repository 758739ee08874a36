// SPDX-License-Identifier: Apache-2.0
#include "analysis/trials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tide::analysis {
namespace analysis_generate_test {

TEST(Generate, UUniFastSplitsEvenly) {
  Random random(3);
  std::vector<double> means(4, 0.0);
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    const auto shares = uunifast(random, 4, 2.0);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 2.0, 1e-12);
    for (size_t part = 0; part < 4; ++part) {
      EXPECT_GE(shares[part], 0.0);
      means[part] += shares[part] / kRounds;
    }
  }
  for (const double mean : means) EXPECT_NEAR(mean, 0.5, 0.02);  // all positions have the same mean
}

// An earlier version rounded each of ten callbacks; a quarter of a thousand chains then executed for longer than their
// periods.
TEST(Generate, AChainThatFillsItsPeriodFitsIntoIt) {
  Recipe recipe;
  recipe.chains = 1;
  recipe.callbacks = 10;
  recipe.utilisation = 1;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Executor executor = generate(recipe, seed);
    EXPECT_EQ(executor.chains()[0].execution_ns, executor.chains()[0].period_ns) << seed;
    for (const Callback &callback : executor.chains()[0].callbacks) EXPECT_GE(callback.execution_ns, 1);
  }
  recipe.utilisation = 1e-12;  // each callback gets at least 1 ns nevertheless
  EXPECT_EQ(generate(recipe, 1).chains()[0].execution_ns, 10);
}

double sum_of(const std::vector<double> &shares) { return std::accumulate(shares.begin(), shares.end(), 0.0); }

// The parts keep to sum and limits for any limits, even if these leave almost no freedom.
TEST(Generate, DirichletRescaleKeepsSumsAndLimits) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const size_t parts = 1 + random.bits() % 12;
    std::vector<double> limits;
    for (size_t part = 0; part < parts; ++part) limits.push_back(random.unit() < 0.1 ? 0 : random.unit());
    const double room = sum_of(limits);
    const double place = random.unit();
    const double sum = room * (seed % 3 == 0 ? 1 - 1e-6 * place : place);
    const std::vector<double> shares = dirichlet_rescale(random, sum, limits);
    ASSERT_EQ(shares.size(), parts);
    EXPECT_NEAR(sum_of(shares), sum, 1e-9) << "seed " << seed;
    for (size_t part = 0; part < parts; ++part) {
      EXPECT_GE(shares[part], 0.0) << "seed " << seed;
      EXPECT_LE(shares[part], limits[part]) << "seed " << seed;
    }
  }
}

// The drawn points are compared with points that are drawn from the whole simplex and rejected if they violate a limit.
// By Pearson's chi-squared test, each cell of a grid must contain the same share of the points of both kinds.
TEST(Generate, DirichletRescaleIsUniform) {
  struct Case {
    double sum;
    std::vector<double> limits;
  };
  const std::vector<Case> cases{{1.0, {0.7, 0.4, 0.5}},
                                {1.0, {0.9, 0.2, 0.3}},
                                {2.4, {1, 1, 1}},
                                {1.5, {0.5, 1.2, 0.9, 0.3}},
                                {1.0, {0.35, 0.4, 0.45}}};
  constexpr int kWanted = 20'000;
  constexpr size_t kCells = 6;
  for (const Case &one : cases) {
    const auto cell = [&](const std::vector<double> &shares) {
      size_t place = 0;
      for (size_t part = 0; part < 2; ++part) {
        const auto step = static_cast<size_t>(shares[part] / one.limits[part] * kCells);
        place = place * kCells + std::min(step, kCells - 1);
      }
      return place;
    };
    std::vector<double> kept(kCells * kCells), drawn(kCells * kCells);
    Random random(11);
    for (int count = 0; count < kWanted;) {
      const auto shares = uunifast(random, one.limits.size(), one.sum);
      bool within = true;
      for (size_t part = 0; part < shares.size(); ++part) within = within && shares[part] <= one.limits[part];
      if (!within) continue;
      kept[cell(shares)] += 1;
      ++count;
    }
    for (int count = 0; count < kWanted; ++count) drawn[cell(dirichlet_rescale(random, one.sum, one.limits))] += 1;
    double squared = 0;
    int freedom = -1;
    for (size_t place = 0; place < kept.size(); ++place) {
      const double both = kept[place] + drawn[place];
      if (both < 20) continue;
      squared += (kept[place] - drawn[place]) * (kept[place] - drawn[place]) / both;
      ++freedom;
    }
    ASSERT_GT(freedom, 3);
    EXPECT_LT(squared, freedom + 4.0 * std::sqrt(2.0 * freedom)) << "sum " << one.sum << ", freedom " << freedom;
  }
}

TEST(Generate, ChainsOfASetKeepToOneCoreByDirichletRescale) {
  Recipe recipe;
  recipe.utilisation = 4.0;
  recipe.shares = ShareLaw::dirichlet_rescale;
  int above = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Executor kept = generate(recipe, seed);
    for (const Chain &chain : kept.chains()) EXPECT_LE(chain.execution_ns, chain.period_ns + 10);
    Recipe other = recipe;
    other.shares = ShareLaw::uunifast;
    const Executor free = generate(other, seed);
    for (const Chain &chain : free.chains()) above += chain.execution_ns > chain.period_ns ? 1 : 0;
  }
  EXPECT_GT(above, 20);  // UUniFast ignores the limit
}

TEST(Generate, ASetIsWhatTheRecipeSays) {
  Recipe recipe;
  recipe.utilisation = 2.4;
  recipe.deadline_periods = 2;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Executor executor = generate(recipe, seed);
    ASSERT_EQ(executor.chains().size(), 5U);
    EXPECT_EQ(executor.lanes().size(), 4U);
    double utilisation = 0;
    for (size_t index = 0; index < 5; ++index) {
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
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Executor executor = generate(recipe, seed);
    for (const Chain &chain : executor.chains()) short_ones += chain.period_ns < 100'000'000 ? 1 : 0;
    const auto &order = executor.order();
    inverted += executor.chains()[order[0]].period_ns > executor.chains()[order[1]].period_ns ? 1 : 0;
  }
  EXPECT_NEAR(short_ones, 1000, 120);  // half of the periods, because the range has two decades and the short periods
                                       // are one
  EXPECT_NEAR(inverted, 200, 50);
}

}  // namespace analysis_generate_test
}  // namespace tide::analysis
