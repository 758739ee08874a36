// SPDX-License-Identifier: Apache-2.0
// Under any overload of a lane, every other lane answers within its bound, and each gets its share.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/board/campaign.h"

namespace tide::sim {
namespace sim_overload_test {

#if defined(__SANITIZE_ADDRESS__)
constexpr unsigned kSystems = 400;  // a sanitizer checks the code, which is the same for all systems
#else
constexpr unsigned kSystems = 2000;
#endif

TEST(SimOverload, EveryOtherLaneKeepsItsBound) {
  unsigned bounded = 0, overloaded = 0;
  for (uint64_t seed = 1; seed <= kSystems; seed++) {
    const Overload overload = draw_overload(seed);
    const Result result = simulate(overload.plan);
    const std::vector<std::string> broken = broken_promises(overload, result);
    ASSERT_TRUE(broken.empty()) << "tide-sim overload --seed " << seed << ": " << broken.front();
    for (const Time bound : overload.bounds) (bound >= 0 ? bounded : overloaded)++;
  }
  EXPECT_GE(bounded, kSystems);
  EXPECT_GE(overloaded, kSystems);
}

// The bounds are tight enough to detect a lane that takes more than its share.
TEST(SimOverload, SomeAnswersComeNearTheirBound) {
  double nearest = 0;
  for (uint64_t seed = 1; seed <= 500; seed++) {
    const Overload overload = draw_overload(seed);
    const Result result = simulate(overload.plan);
    for (size_t index = 0; index < overload.bounds.size(); index++) {
      if (overload.bounds[index] <= 0) continue;
      nearest = std::max(nearest, static_cast<double>(result.chains[index].worst_response) /
                                      static_cast<double>(overload.bounds[index]));
    }
  }
  EXPECT_GT(nearest, 0.5);
  EXPECT_LE(nearest, 1.0);
}

TEST(SimOverload, ABrokenPromiseIsTold) {
  const Overload overload = draw_overload(1);
  Result result = simulate(overload.plan);
  Overload strict = overload;
  for (Time &bound : strict.bounds) bound = std::min<Time>(bound, 1);
  EXPECT_FALSE(broken_promises(strict, result).empty());
  for (ChainResult &chain : result.chains) chain.lost++;
  EXPECT_FALSE(broken_promises(overload, result).empty());
}

TEST(SimOverload, TheSameSeedIsTheSameSystem) {
  EXPECT_EQ(write_plan(draw_overload(7).plan), write_plan(draw_overload(7).plan));
  EXPECT_NE(write_plan(draw_overload(7).plan), write_plan(draw_overload(8).plan));
}

}  // namespace sim_overload_test
}  // namespace tide::sim
