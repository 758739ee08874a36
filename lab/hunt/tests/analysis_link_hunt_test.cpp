// SPDX-License-Identifier: Apache-2.0
// A short campaign over the boards with a line (tide lab hunt link-... is the long one): no response of the shipped
// runtime in the simulator may exceed its bound, and every defective bound must be detected.
#include <gtest/gtest.h>

#include "hunt/link_hunt.h"

namespace tide::analysis {
namespace analysis_link_hunt_test {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t systems = 8;  // a sanitizer checks the code, which is the same for all systems
#else
constexpr uint64_t systems = 30;
#endif

std::string replay(const LinkQuarry &quarry, const Campaign &campaign, const Tally &tally) {
  if (!tally.first) return "";
  return "tide-hunt " + quarry.name + " observer=shipped count=1 first=" + std::to_string(tally.first->seed) +
         " schedules=" + std::to_string(campaign.schedules) + " climbs=" + std::to_string(campaign.climbs) +
         "\nchain " + std::to_string(tally.first->chain) + ": " + std::to_string(tally.first->observed_ns) +
         " is above " + std::to_string(tally.first->bound_ns) + "\n" + tally.first->system;
}

TEST(LinkHunt, NothingExceedsItsBound) {
  const Campaign campaign{.first = 1, .count = systems, .schedules = 4, .climbs = 4};
  for (const LinkQuarry &quarry : link_quarries()) {
    const Tally tally = hunt_link(quarry, campaign);
    EXPECT_EQ(tally.exceeded, 0U) << replay(quarry, campaign, tally);
    EXPECT_GT(tally.observations, systems) << quarry.name;
    std::printf("  %s: %llu observations, bound over worst observed %.2f on average, %.3f at least\n",
                quarry.name.c_str(), static_cast<unsigned long long>(tally.observations),
                tally.ratios.sum() / static_cast<double>(tally.ratios.count()), tally.ratios.least());
  }
}

TEST(LinkHunt, CatchesABoundThatLacksATerm) {
  const Campaign campaign{.first = 1, .count = 200, .schedules = 4, .climbs = 8, .stop_at_first = true};
  for (const LinkQuarry &twin : link_twins()) {
    const Tally tally = hunt_link(twin, campaign);
    EXPECT_GT(tally.exceeded, 0U) << twin.name;
    std::printf("  %s: after %llu boards\n", twin.name.c_str(), static_cast<unsigned long long>(tally.systems));
  }
}

TEST(LinkHunt, TheSameSeedIsTheSameHunt) {
  const LinkQuarry quarry = link_quarries()[9];
  const Campaign campaign{.first = 7, .count = 3, .schedules = 2, .climbs = 2};
  const Tally once = hunt_link(quarry, campaign), again = hunt_link(quarry, campaign);
  EXPECT_EQ(once.ratios.histogram(), again.ratios.histogram());
  EXPECT_EQ(once.observations, again.observations);
}

}  // namespace analysis_link_hunt_test
}  // namespace tide::analysis
