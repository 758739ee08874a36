// SPDX-License-Identifier: Apache-2.0
// The campaign `host` detects the mutants of the executor (mutants.h).
#include <gtest/gtest.h>

#include <stdexcept>

#include "mutants.h"
#include "sim/board/campaign.h"

tide_mutant_t tide_mutant = MUTANT_NONE;
unsigned tide_mutant_looks = 0;

namespace sim_host_mutants {
namespace {

using namespace tide::sim;

constexpr uint64_t kSeeds = 300;

bool is_found(uint64_t seed) {
  tide_mutant_looks = 0;
  try {
    return !simulate(draw_host(seed)).violations.empty();
  } catch (const std::runtime_error &) {
    return false;  // the mutant makes the plan invalid, which does not count as detected
  }
}

TEST(SimHostMutants, EachIsFoundAndWithoutOneNothingIs) {
  for (const tide_mutant_t mutant : {MUTANT_EARLY, MUTANT_GROUPS, MUTANT_OVERLOOKS, MUTANT_LAST}) {
    tide_mutant = mutant;
    uint64_t seed = 1;
    while (seed <= kSeeds && !is_found(seed)) seed++;
    EXPECT_LE(seed, kSeeds) << "mutant " << mutant << " passed every seed";
  }
  tide_mutant = MUTANT_NONE;
  for (uint64_t seed = 1; seed <= 20; seed++) EXPECT_FALSE(is_found(seed)) << "seed " << seed;
}

}  // namespace
}  // namespace sim_host_mutants
