// SPDX-License-Identifier: Apache-2.0
// The three chains of the published evaluation: how near the bounds are to the worst that the simulator can be made to
// show by moving the releases.
#include <gtest/gtest.h>

#include "tests/analysis/link_plan.h"

namespace tide::analysis {
namespace {

constexpr std::size_t chains = 3;

// examples/pods/pods-chains.plan with three chains.
enum class Kind { best_effort, reliable_requests, reliable };

sim::Plan three_chains(bool lanes, Kind kind) {
  sim::Plan plan;
  plan.submit = plan.process = 268'000;
  plan.agent_least = 820'000;
  plan.agent_most = 1'480'000;
  plan.lanes = lanes ? 2 : 1;
  if (kind == Kind::reliable_requests) plan.heartbeat_delay = 400 * sim::kMillisecond;  // longer than anything here
  plan.periods = 10;
  for (unsigned index = 0; index < chains; index++) {
    sim::ChainPlan chain;
    chain.name = "chain" + std::to_string(index);
    chain.level = chains - index;
    chain.payload_bytes = 96;
    chain.reply_bytes = 6;
    chain.sample = chain.act = 10 * sim::kMillisecond;
    chain.reliable = kind != Kind::best_effort;
    chain.reply_reliable = kind == Kind::reliable;
    plan.chains.push_back(chain);
  }
  return plan;
}

LinkSystem analysed(const sim::Plan &plan, Kind kind) {
  LinkSystem system = system_of(plan);
  fix_executions(system);
  system.line.escapes = 3;
  system.protocol.heartbeats_for_losses = kind == Kind::reliable;
  return system;
}

struct Worst {
  time_ns all_ns = 0;
  time_ns unasked_ns = 0;  // of the runs without HEARTBEATs, as the bound assumes
};

// Moves one release at a time and keeps what made the victim slower.
Worst search(sim::Plan plan, std::size_t victim, std::uint64_t seed) {
  sim::Random random(seed);
  if (seed % 2 == 1) plan.agent_least = plan.agent_most;
  shift(plan, random);
  if (plan.lanes > 1 && seed % 4 == 1) {  // each preempts the one below near its end, so that their messages queue
    for (std::size_t index = 0; index < chains; index++)
      plan.chains[index].phase =
          static_cast<sim::Time>(chains - 1 - index) * 10'268'000 + random.between(0, 100) * 1000;
  }
  Worst worst{observe(plan)[victim]};
  for (int step = 0; step < 120; step++) {
    sim::Plan moved = plan;
    moved.seed = random.below(1000);
    sim::ChainPlan &chain = moved.chains[random.below(chains)];
    const sim::Time reach = sim::Time{1} << random.between(14, 25);
    chain.phase = std::max<sim::Time>(0, chain.phase + random.between(-reach, reach));
    const auto [seen_ns, asked_early] = observe_all(moved);
    if (!asked_early) worst.unasked_ns = std::max(worst.unasked_ns, seen_ns[victim]);
    if (seen_ns[victim] < worst.all_ns) continue;
    worst.all_ns = seen_ns[victim];
    plan = moved;
  }
  return worst;
}

// Where answers are reliable the agent asks early whenever one waits for a callback, so the worst runs break what the
// bound takes for granted, and only the others must keep to it.
void expect_tight(bool lanes, Kind kind, std::vector<double> limits) {
  const sim::Plan plan = three_chains(lanes, kind);
  const LinkResults results = bound_link(analysed(plan, kind));
  for (std::size_t chain = 0; chain < chains; chain++) {
    ASSERT_TRUE(results.chains[chain].response_ns);
    const time_ns bound_ns = *results.chains[chain].response_ns;
    Worst worst;
    for (std::uint64_t seed = 1; seed <= 8; seed++) {
      const Worst found = search(plan, chain, seed);
      worst = {std::max(worst.all_ns, found.all_ns), std::max(worst.unasked_ns, found.unasked_ns)};
    }
    const double ratio = static_cast<double>(bound_ns) / static_cast<double>(worst.all_ns);
    std::printf("  chain %zu: bound %.3f ms, observed %.3f ms, %.3f\n", chain, static_cast<double>(bound_ns) / 1e6,
                static_cast<double>(worst.all_ns) / 1e6, ratio);
    EXPECT_LE(kind == Kind::reliable ? worst.unasked_ns : worst.all_ns, bound_ns) << chain;
    EXPECT_LE(ratio, limits[chain]) << chain;
    // A bound that forgets the line, its acknowledgments, or what has started before, would be exceeded.
    const LinkParts &parts = results.chains[chain].parts;
    if (chain == 0) {
      EXPECT_LT(bound_ns - parts.line_ns, worst.all_ns);
    }
    if (chain == 0 && kind == Kind::reliable) {
      EXPECT_LT(bound_ns - parts.control_ns, worst.all_ns);
    }
    if (chain < 2 && !lanes) {
      EXPECT_LT(bound_ns - parts.client_blocking_ns, worst.all_ns);
    }
  }
}

TEST(LinkTight, ThreeChains) { expect_tight(false, Kind::best_effort, {1.1, 1.1, 1.1}); }
TEST(LinkTight, ThreeChainsWithReliableRequests) { expect_tight(false, Kind::reliable_requests, {1.1, 1.1, 1.1}); }
TEST(LinkTight, ThreeReliableChains) { expect_tight(false, Kind::reliable, {1.1, 1.1, 1.1}); }
TEST(LinkTight, ThreeChainsWithLanes) { expect_tight(true, Kind::best_effort, {1.1, 1.4, 1.3}); }

// What tide-sim says of a run beside its bounds.
TEST(LinkObserved, ARunAboveItsBoundNamesTheChain) {
  const sim::Plan plan = three_chains(false, Kind::best_effort);
  const sim::Result result = sim::simulate(plan);
  std::vector<std::optional<sim::Time>> bounds = sim::bounds_of(plan);
  ASSERT_TRUE(bounds[1]);
  EXPECT_TRUE(sim::above_bounds(bounds, result).empty());
  bounds[1] = 30 * sim::kMillisecond;
  const std::vector<std::string> lines = sim::above_bounds(bounds, result);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("chain chain1: ")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" is above its bound of 30.000000 ms")) << lines[0];
  // What the analysis does not know has no bound.
  const std::vector<std::optional<sim::Time>> none(chains);
  sim::Plan other = plan;
  other.up.loss = 0.1;
  EXPECT_EQ(sim::bounds_of(other), none);
  other = plan;
  other.policy = sim::Policy::kReadyset;
  EXPECT_EQ(sim::bounds_of(other), none);
  other = plan;
  other.chains[1].group = 1;
  EXPECT_EQ(sim::bounds_of(other), none);
}

}  // namespace
}  // namespace tide::analysis
