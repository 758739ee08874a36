// SPDX-License-Identifier: Apache-2.0
// The three chains of the published evaluation: how near the bounds are to the worst that the simulator can be made to
// show by moving the releases.
#include <gtest/gtest.h>

#include "tests/analysis/link_plan.h"

namespace tide::analysis {
namespace {

constexpr std::size_t chains = 3;

// examples/pods/pods-chains.plan with three chains.
sim::Plan three_chains(bool lanes) {
  sim::Plan plan;
  plan.submit = plan.process = 268'000;
  plan.agent_least = 820'000;
  plan.agent_most = 1'480'000;
  plan.lanes = lanes ? 2 : 1;
  plan.periods = 10;
  for (unsigned index = 0; index < chains; index++) {
    sim::ChainPlan chain;
    chain.name = "chain" + std::to_string(index);
    chain.level = chains - index;
    chain.payload_bytes = 96;
    chain.reply_bytes = 6;
    chain.sample = chain.act = 10 * sim::kMillisecond;
    chain.reliable = false;
    plan.chains.push_back(chain);
  }
  return plan;
}

LinkSystem analysed(const sim::Plan &plan) {
  LinkSystem system = system_of(plan);
  fix_executions(system);
  system.line.escapes = 3;
  return system;
}

// Moves one release at a time and keeps what made the victim slower.
time_ns search(sim::Plan plan, std::size_t victim, std::uint64_t seed) {
  sim::Random random(seed);
  shift(plan, random);
  time_ns worst_ns = observe(plan)[victim];
  for (int step = 0; step < 120; step++) {
    sim::Plan moved = plan;
    moved.seed = random.below(1000);
    sim::ChainPlan &chain = moved.chains[random.below(chains)];
    const sim::Time reach = sim::Time{1} << random.between(14, 25);
    chain.phase = std::max<sim::Time>(0, chain.phase + random.between(-reach, reach));
    const time_ns seen_ns = observe(moved)[victim];
    if (seen_ns < worst_ns) continue;
    worst_ns = seen_ns;
    plan = moved;
  }
  return worst_ns;
}

void expect_tight(bool lanes, double limit) {
  const sim::Plan plan = three_chains(lanes);
  const LinkResults results = bound_link(analysed(plan));
  for (std::size_t chain = 0; chain < chains; chain++) {
    ASSERT_TRUE(results.chains[chain].response_ns);
    time_ns worst_ns = 0;
    for (std::uint64_t seed = 1; seed <= 8; seed++) worst_ns = std::max(worst_ns, search(plan, chain, seed));
    const auto bound_ns = static_cast<double>(*results.chains[chain].response_ns);
    std::printf("  chain %zu: bound %.3f ms, observed %.3f ms, %.3f\n", chain, bound_ns / 1e6,
                static_cast<double>(worst_ns) / 1e6, bound_ns / static_cast<double>(worst_ns));
    EXPECT_LE(static_cast<double>(worst_ns), bound_ns) << chain;
    EXPECT_LE(bound_ns, limit * static_cast<double>(worst_ns)) << chain;
    // A bound that forgets the line, or what has started before, would be exceeded.
    const LinkParts &parts = results.chains[chain].parts;
    const time_ns safe_ns = *results.chains[chain].response_ns;
    if (chain == 0) {
      EXPECT_LT(safe_ns - parts.line_ns, worst_ns);
      if (!lanes) {
        EXPECT_LT(safe_ns - parts.client_blocking_ns, worst_ns);
      }
    }
  }
}

TEST(LinkTight, ThreeChains) { expect_tight(false, 1.1); }
TEST(LinkTight, ThreeChainsWithLanes) { expect_tight(true, 1.4); }

}  // namespace
}  // namespace tide::analysis
