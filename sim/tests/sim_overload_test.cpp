// SPDX-License-Identifier: Apache-2.0
// However overloaded a lane is, every other lane answers within its bound and gets its share.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/board/campaign.h"

namespace tide::sim {
namespace sim_overload_test {

#if defined(__SANITIZE_ADDRESS__)
constexpr unsigned kSystems = 400;  // fewer with a sanitizer, which checks the code, and the code is the same for all
                                    // systems
#else
constexpr unsigned kSystems = 2000;
#endif

// The bounds are also tight enough to detect a lane that takes more than its share.
TEST(SimOverload, EveryOtherLaneKeepsItsBoundAndSomeComeNearIt) {
  unsigned bounded = 0, overloaded = 0;
  double nearest = 0;
  for (uint64_t seed = 1; seed <= kSystems; seed++) {
    const Overload overload = draw_overload(seed);
    const Result result = simulate(overload.plan);
    const std::vector<std::string> broken = broken_promises(overload, result);
    ASSERT_TRUE(broken.empty()) << "tide-sim overload --seed " << seed << ": " << broken.front();
    for (size_t index = 0; index < overload.bounds.size(); index++) {
      (overload.bounds[index] >= 0 ? bounded : overloaded)++;
      if (overload.bounds[index] <= 0) continue;
      nearest = std::max(nearest, static_cast<double>(result.chains[index].worst_response) /
                                      static_cast<double>(overload.bounds[index]));
    }
  }
  EXPECT_GE(bounded, kSystems);
  EXPECT_GE(overloaded, kSystems);
  EXPECT_GT(nearest, 0.5);
}

}  // namespace sim_overload_test
}  // namespace tide::sim
