// SPDX-License-Identifier: Apache-2.0
// The campaign of actions, on a runtime that is broken on purpose.
#include <gtest/gtest.h>

#include "sim/actions/apart.h"

namespace tide::sim {
namespace {

constexpr uint64_t kSeeds = 300;

TEST(SimActionsCanary, IsCaught) {
  uint64_t seed = 1;
  while (seed <= kSeeds && simulate_apart(seed).violation.empty()) seed++;
  EXPECT_LE(seed, kSeeds) << "the broken runtime passed every seed";
  RecordProperty("seed", static_cast<int>(seed));
}

}  // namespace
}  // namespace tide::sim
