// SPDX-License-Identifier: Apache-2.0
// Overloaded lanes beside bounded ones, on a runtime that is broken on purpose.
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/board/overload.h"

namespace tide::sim {
namespace {

constexpr uint64_t kSeeds = 1000;

bool is_caught(uint64_t seed) {
  Overload overload = draw_overload(seed);
  overload.plan.settle = 20 * kSecond;
  try {
    return !broken_promises(overload, simulate(overload.plan)).empty();
  } catch (const std::runtime_error &) {
    return true;
  }
}

TEST(SimOverloadCanary, IsCaught) {
  uint64_t seed = 1;
  while (seed <= kSeeds && !is_caught(seed)) seed++;
  EXPECT_LE(seed, kSeeds) << "the broken runtime passed every seed";
  RecordProperty("seed", static_cast<int>(seed));
}

}  // namespace
}  // namespace tide::sim
