// SPDX-License-Identifier: Apache-2.0
// A campaign that finds nothing proves nothing, unless it finds what is there.
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/board/campaign.h"
#include "sim/board/system.h"

namespace tide::sim {
namespace {

constexpr uint64_t kSeeds = 300;

bool is_caught(uint64_t seed) {
  Plan plan = draw_plan(seed);
  plan.settle = 5 * kSecond;
  try {
    return !simulate(plan).violations.empty();
  } catch (const std::runtime_error &) {
    return true;
  }
}

TEST(SimCanary, IsCaught) {
  uint64_t seed = 1;
  while (seed <= kSeeds && !is_caught(seed)) seed++;
  EXPECT_LE(seed, kSeeds) << "the broken daemon passed every seed";
  RecordProperty("seed", static_cast<int>(seed));
}

}  // namespace
}  // namespace tide::sim
