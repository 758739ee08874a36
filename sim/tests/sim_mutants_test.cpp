// SPDX-License-Identifier: Apache-2.0
// The campaigns detect the mutants of mutants.h; otherwise a campaign without failures would prove nothing. The tests
// of the executor's mutants are in sim_host_mutants_test.cpp.
#include <gtest/gtest.h>

#include <stdexcept>

#include "mutants.h"
#include "sim/board/campaign.h"
#include "sim/board/system.h"
#ifdef TIDE_SIM_ACTIONS
#include "sim/actions/actions.h"
#endif

tide_mutant_t tide_mutant = MUTANT_NONE;
unsigned tide_mutant_looks = 0;

namespace sim_mutants {
namespace {

using namespace tide::sim;

bool board_breaks_a_rule(uint64_t seed) {
  Plan plan = draw_plan(seed);
  plan.settle = 5 * kSecond;
  try {
    return !simulate(plan).violations.empty();
  } catch (const std::runtime_error &) {
    return true;
  }
}

// True if a lane of this seed takes more than its budget, and so another lane misses its bound or share.
bool overload_breaks_a_promise(uint64_t seed) {
  Overload overload = draw_overload(seed);
  overload.plan.settle = 20 * kSecond;
  try {
    return !broken_promises(overload, simulate(overload.plan)).empty();
  } catch (const std::runtime_error &) {
    return true;
  }
}

struct Campaign {
  const char *name;
  bool (*finds)(uint64_t seed);
  uint64_t seeds;
  std::vector<tide_mutant_t> mutants;
};
const Campaign kCampaigns[] = {
    {"board",
     board_breaks_a_rule,
     300,
     {MUTANT_DOUBLES, MUTANT_LOSES, MUTANT_ORDER, MUTANT_IDLE, MUTANT_GREEDY, MUTANT_HOARDING, MUTANT_GRABBING}},
    {"overload", overload_breaks_a_promise, 1000, {MUTANT_GREEDY, MUTANT_GENEROUS}},
#ifdef TIDE_SIM_ACTIONS
    {"actions",
     [](uint64_t seed) { return !simulate_apart(seed).violation.empty(); },
     300,
     {MUTANT_DOUBLES, MUTANT_LOSES, MUTANT_FORGETS, MUTANT_TRUSTS, MUTANT_BELIEVES}},
#endif
};

// The first seed that detects the mutant; seeds + 1 if no seed detects it.
uint64_t first_seed(const Campaign &campaign, tide_mutant_t mutant, uint64_t seeds) {
  tide_mutant = mutant;
  uint64_t seed = 1;
  for (; seed <= seeds; seed++) {
    tide_mutant_looks = 0;
    if (campaign.finds(seed)) break;
  }
  tide_mutant = MUTANT_NONE;
  return seed;
}

TEST(SimMutants, EachIsFoundAndWithoutOneNothingIs) {
  for (const Campaign &campaign : kCampaigns) {
    uint64_t most = 1;
    for (const tide_mutant_t mutant : campaign.mutants) {
      const uint64_t seed = first_seed(campaign, mutant, campaign.seeds);
      EXPECT_LE(seed, campaign.seeds) << campaign.name << ": mutant " << mutant << " passed every seed";
      most = std::max(most, seed);
    }
    EXPECT_EQ(first_seed(campaign, MUTANT_NONE, std::min<uint64_t>(most, 20)), std::min<uint64_t>(most, 20) + 1)
        << campaign.name << ": a rule is broken without a mutant";
  }
}

}  // namespace
}  // namespace sim_mutants
