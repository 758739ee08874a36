// SPDX-License-Identifier: Apache-2.0
// A short campaign over all quarries; tide lab hunt runs long ones. No observed response may exceed a safe bound on
// exact schedules, and every defective bound must be detected.
#include <gtest/gtest.h>

#include "hunt/directed.h"
#include "hunt/hunt.h"
#include "hunt/twins.h"

namespace tide::analysis {
namespace analysis_hunt_test {

std::string replay(const Quarry &quarry, const Tally &tally) {
  if (!tally.first) return "";
  return "tide-hunt " + quarry.name + " count=1 first=" + std::to_string(tally.first->seed) + "\n" +
         tally.first->system;
}

TEST(Hunt, NothingExceedsASafeBound) {
  for (const Quarry &quarry : quarries()) {
    const Tally tally = hunt(quarry, {.first = 1, .count = 300, .schedules = 6, .climbs = 8});
    EXPECT_EQ(tally.exceeded, 0U) << replay(quarry, tally);
    EXPECT_GT(tally.observations, 1000U) << quarry.name;
    EXPECT_GE(tally.ratios.least(), 1.0) << quarry.name;
  }
}

TEST(Hunt, CatchesABoundThatLacksATerm) {
  const Campaign campaign{.first = 1, .count = 10'000, .schedules = 8, .climbs = 8, .stop_at_first = true};
  size_t count = 0;
  for (const Twin &twin : twins()) {
    const Tally tally = hunt(twin.quarry, campaign);
    EXPECT_GT(tally.exceeded, 0U) << twin.name;
    ++count;
  }
  EXPECT_EQ(count, 38U);  // a new analysis needs a quarry
}

// Systems in which a chain is blocked repeatedly refute the published bound of theorem 2.
TEST(Hunt, ThePublishedBoundIsCaught) {
  const Analysis &published = *find_analysis("theorem2-published");
  Options refine;
  refine.refine = true;
  const auto bounds = [&](const Executor &executor) {
    Bounds each;
    const Result result = analyse(published, executor, refine);
    if (!result.met) return each;
    for (const ChainResult &chain : result.chains) each.push_back(chain.response_ns);
    return each;
  };
  const auto draw = [](RandomSystem &random, uint64_t) { return random.blocking_family(); };
  const Quarry quarry{"theorem2-published", draw, {{"refined", bounds}}};
  const Campaign campaign{.first = 1, .count = 1000, .schedules = 8, .stop_at_first = true};
  EXPECT_GT(hunt(quarry, campaign).exceeded, 0U);
}

// On chain sets of the published size, a search for bad releases finds responses that are close to the bounds.
TEST(Hunt, BoundsAreTightOnPublishedChainSets) {
  struct Case {
    const char *analysis;
    double utilisation, mean;
  };
  for (const Case &one : {Case{"theorem2-safe", 0.8, 1.3},
                          {"theorem2-safe", 1.6, 1.3},
                          {"theorem1-safe", 0.8, 1.3},
                          {"theorem4-safe", 1.6, 1.3}}) {
    Recipe recipe;
    recipe.utilisation = one.utilisation;
    const Tightness found = tightness(*find_analysis(one.analysis), recipe, 1, 6, 80);
    EXPECT_EQ(found.exceeded, 0U) << one.analysis << ", " << one.utilisation;
    ASSERT_GT(found.ratios.count(), 10U);
    EXPECT_LE(found.ratios.sum() / static_cast<double>(found.ratios.count()), one.mean)
        << one.analysis << ", " << one.utilisation;
  }
}

TEST(Hunt, ASeedIsTheSameHuntAgain) {
  const Quarry quarry = quarries()[1];
  const Campaign campaign{.first = 7, .count = 40, .schedules = 4, .climbs = 4};
  const Tally once = hunt(quarry, campaign);
  Tally parts;
  for (uint64_t seed = 7; seed < 47; ++seed) {
    parts.add(hunt(quarry, {.first = seed, .count = 1, .schedules = 4, .climbs = 4}));
  }
  EXPECT_EQ(parts.observations, once.observations);
  EXPECT_EQ(parts.ratios.count(), once.ratios.count());
  EXPECT_EQ(parts.ratios.histogram(), once.ratios.histogram());
}

}  // namespace analysis_hunt_test
}  // namespace tide::analysis
