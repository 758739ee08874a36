// SPDX-License-Identifier: Apache-2.0
// The campaign of hosts, on an executor that is broken on purpose: it finds what is there.
#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/host/host_system.h"

namespace tide::sim {
namespace {

constexpr uint64_t kSeeds = 300;

bool is_caught(uint64_t seed) {
  const plan_t plan = draw_host_plan(seed);
  try {
    return !simulate_host(plan, {.hesitate = true}).violations.empty();
  } catch (const std::runtime_error &) {
    return false;  // it is so broken that it does not run: that is not what is asked here
  }
}

TEST(HostCanary, IsCaught) {
  uint64_t seed = 1;
  while (seed <= kSeeds && !is_caught(seed)) seed++;
  EXPECT_LE(seed, kSeeds) << "the broken executor passed every seed";
  RecordProperty("seed", static_cast<int>(seed));
}

}  // namespace
}  // namespace tide::sim
