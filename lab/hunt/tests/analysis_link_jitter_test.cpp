// SPDX-License-Identifier: Apache-2.0
// Timers that release late: the bound counts from the nominal expiry and covers the jitter of every chain, on the
// shipped runtime in the simulator; a bound that omits the jitter must be detected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "hunt/link_hunt.h"
#include "hunt/link_systems.h"
#include "sim/board/bounds.h"
#include "sim/board/system.h"

namespace tide::analysis {
namespace analysis_link_jitter_test {

constexpr int kSchedules = 6;

sim::Plan late_board(uint64_t seed, const LinkFamily &family) {
  sim::Plan plan = draw_board(seed, family);
  sim::Random random(seed + 77);
  for (sim::ChainPlan &chain : plan.chains) {
    chain.phase = 0;
    if (random.chance(0.7)) chain.jitter = random.between(0, chain.period / (random.chance(0.5) ? 4 : 40));
  }
  return plan;
}

struct Found {
  unsigned observations = 0, above = 0;
  std::string first;
};

// forget: the analysis does not get the jitter.
void look(uint64_t seed, const LinkQuarry &quarry, bool forget, Found &found) {
  const sim::Plan board = late_board(seed, quarry.family);
  LinkSystem system = sim::system_of(board);
  for (LinkChain &chain : system.chains) chain.jitter_ns = forget ? 0 : chain.jitter_ns;
  if (!check(system).empty()) return;
  const LinkResults bounds = bound_link(system);
  sim::Random random(seed);
  for (int schedule = 0; schedule < kSchedules; schedule++) {
    sim::Plan plan = board;
    plan.seed = seed * kSchedules + static_cast<unsigned>(schedule);
    shift_releases(plan, random);
    const sim::Result result = sim::simulate(plan);
    if (result.publish_failures > 0 || result.transmitter.evicted > 0 || result.receiver.overflow_dropped > 0) continue;
    for (size_t chain = 0; chain < bounds.chains.size(); chain++) {
      if (!bounds.chains[chain].response_ns || result.chains[chain].worst_response < 0) continue;
      found.observations++;
      if (result.chains[chain].worst_response <= *bounds.chains[chain].response_ns) continue;
      found.above++;
      if (found.first.empty()) found.first = quarry.name + ", " + plan.chains[chain].name + ":\n" + write_plan(plan);
    }
  }
}

uint64_t boards() {
  const char *named = std::getenv("TIDE_SEEDS");
  return named == nullptr ? 15 : std::strtoull(named, nullptr, 10);
}

TEST(LinkJitter, NoLateReleaseExceedsItsBound) {
  Found found;
  for (const LinkQuarry &quarry : link_quarries()) {
    for (uint64_t seed = 1; seed <= boards(); seed++) look(seed, quarry, false, found);
  }
  EXPECT_EQ(found.above, 0U) << found.first;
  EXPECT_GT(found.observations, 1000U);
  std::printf("  %u observations\n", found.observations);
}

TEST(LinkJitter, ABoundThatForgetsItIsCaught) {
  Found found;
  for (const LinkQuarry &quarry : link_quarries()) {
    for (uint64_t seed = 1; seed <= 3; seed++) look(seed, quarry, true, found);
  }
  EXPECT_GT(found.above, 0U);
  std::printf("  %u of %u observations\n", found.above, found.observations);
}

// A bound of the TIDE executor assumes that it never waits for its messages.
TEST(LinkPlans, OnlyABatchHasBoundsWithPublishesThatWait) {
  sim::Plan plan;
  plan.chains.resize(1);
  EXPECT_TRUE(sim::bounds_of(plan)[0]);
  for (const sim::Send send : {sim::Send::kStock, sim::Send::kBlocking, sim::Send::kAnswered}) {
    plan.send = send;
    EXPECT_FALSE(sim::bounds_of(plan)[0]) << sim::text_of(send);
  }
}

TEST(LinkJitter, IsAPartOfTheBound) {
  LinkSystem system;
  const LinkCallback sample{"sample", kOnClient, 10'000'000, 0, 0};
  system.chains.push_back({"alone", 1, 100'000'000, 100'000'000, false, false, {sample}, 3'000'000});
  const LinkResults results = bound_link(system);
  EXPECT_EQ(results.chains[0].response_ns, 13'000'000);
  EXPECT_EQ(results.chains[0].parts.jitter_ns, 3'000'000);
  EXPECT_EQ(results.chains[0].parts.total_ns(), 13'000'000);
  system.chains[0].jitter_ns = 95'000'000;  // ends before the next release only without jitter
  EXPECT_FALSE(bound_link(system).chains[0].response_ns);
}

}  // namespace analysis_link_jitter_test
}  // namespace tide::analysis
