// SPDX-License-Identifier: Apache-2.0
// The shipped runtime in the simulator against the bounds of the link: random systems, releases that hurt; and bounds
// that lack a term, which must be caught.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/analysis/link_plan.h"

namespace tide::analysis {
namespace {

struct Catch {
  int bounded = 0, exceeded = 0;
  double closest = 0;  // of observation over bound
  std::string first;   // what replays it
};

std::uint64_t seeds_of(std::uint64_t usual) {
  const char *wanted = std::getenv("TIDE_HUNT_SEEDS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

using Weaken = time_ns (*)(const LinkParts &parts);
time_ns nothing(const LinkParts &) { return 0; }

// weaken: what a broken bound forgets.
Catch hunt(const Recipe &recipe, std::uint64_t seeds, int rounds, Weaken weaken = nothing) {
  Catch found;
  const char *only = std::getenv("TIDE_HUNT_SEED");
  for (std::uint64_t seed = 1; seed <= seeds; seed++) {
    if (weaken != nothing && found.exceeded > 0) break;
    if (only != nullptr && std::strtoull(only, nullptr, 10) != seed) continue;
    const sim::Plan drawn = draw(seed, recipe);
    LinkSystem system = system_of(drawn);
    const bool slow = recipe.alike || recipe.spaced;
    const bool fixed = slow || seed % 2 == 0;
    if (fixed) fix_executions(system);
    if (slow || seed % 3 == 0) system.line.escapes = slow ? 4 : 12;
    system.protocol.heartbeats_for_losses = recipe.spaced;
    EXPECT_TRUE(check(system).empty()) << seed << ": " << check(system)[0];
    const LinkResults results = bound_link(system);
    sim::Random random(seed);
    for (int round = 0; round < rounds; round++) {
      sim::Plan plan = drawn;
      plan.periods = 6;
      shift(plan, random);
      for (sim::ChainPlan &chain : plan.chains) {
        if (!fixed && random.chance(0.3)) chain.sample = random.between(0, chain.sample / 1000) * 1000;
        if (!fixed && random.chance(0.3)) chain.act = random.between(0, chain.act / 1000) * 1000;
      }
      if (random.chance(0.5)) plan.agent_least = plan.agent_most;
      const auto [worst, asked_early] = observe_all(plan);
      if (recipe.spaced && asked_early) continue;  // assumed not to happen
      for (std::size_t chain = 0; chain < worst.size(); chain++) {
        if (!results.chains[chain].response_ns) continue;
        const time_ns bound_ns = *results.chains[chain].response_ns - weaken(results.chains[chain].parts);
        found.bounded++;
        if (bound_ns > 0)
          found.closest = std::max(found.closest, static_cast<double>(worst[chain]) / static_cast<double>(bound_ns));
        if (worst[chain] <= bound_ns) continue;
        found.exceeded++;
        if (found.first.empty())
          found.first = "TIDE_HUNT_SEED=" + std::to_string(seed) + ", round " + std::to_string(round) + ", chain " +
                        plan.chains[chain].name + ": " + std::to_string(worst[chain]) + " > " +
                        std::to_string(bound_ns) + "\n" + sim::write_plan(plan);
      }
    }
  }
  std::printf("  %d bounds, closest observation %.3f of its bound\n", found.bounded, found.closest);
  return found;
}

void expect_safe(const Recipe &recipe) {
  const Catch found = hunt(recipe, seeds_of(40), 6);
  EXPECT_EQ(found.exceeded, 0) << found.first;
  EXPECT_GT(found.bounded, std::getenv("TIDE_HUNT_SEED") != nullptr ? 0 : 100);
}

TEST(LinkHunt, CooperativeBestEffort) { expect_safe({}); }
TEST(LinkHunt, CooperativeReliable) { expect_safe({.reliable = true}); }
TEST(LinkHunt, CooperativeReliableWithLosses) { expect_safe({.reliable = true, .losses = true}); }
TEST(LinkHunt, CooperativeAlike) { expect_safe({.alike = true}); }
TEST(LinkHunt, CooperativeSpaced) { expect_safe({.reliable = true, .spaced = true}); }
TEST(LinkHunt, LanesSpaced) { expect_safe({.lanes = true, .reliable = true, .spaced = true}); }
TEST(LinkHunt, LanesBestEffort) { expect_safe({.lanes = true}); }
TEST(LinkHunt, LanesReliable) { expect_safe({.lanes = true, .reliable = true}); }
TEST(LinkHunt, LanesAlike) { expect_safe({.lanes = true, .alike = true}); }
TEST(LinkHunt, BatchBestEffort) { expect_safe({.batch = true}); }
TEST(LinkHunt, BatchReliable) { expect_safe({.batch = true, .reliable = true}); }

template <time_ns LinkParts::*forgotten>
time_ns without(const LinkParts &parts) {
  return parts.*forgotten;
}

time_ns interference(const LinkParts &parts) {
  time_ns sum = 0;
  for (const time_ns share : parts.client_interference_ns) sum += share;
  return sum;
}

TEST(LinkHunt, CatchesABoundThatLacksATerm) {
  struct Twin {
    const char *name;
    Recipe recipe;
    Weaken weaken;
  };
  const std::vector<Twin> twins = {
      {"execution", {}, without<&LinkParts::execution_ns>},
      {"interference", {}, interference},
      {"blocking of the client", {.alike = true}, without<&LinkParts::client_blocking_ns>},
      {"interference, lanes", {.lanes = true}, interference},
      {"line, lanes", {.lanes = true}, without<&LinkParts::line_ns>},
      {"blocking of the client, reliable", {.reliable = true, .spaced = true}, without<&LinkParts::client_blocking_ns>},
      {"losses", {.reliable = true, .losses = true}, without<&LinkParts::losses_ns>},
      {"interference, batch", {.batch = true}, interference},
      {"execution, batch", {.batch = true}, without<&LinkParts::execution_ns>},
  };
  for (const Twin &twin : twins) EXPECT_GT(hunt(twin.recipe, 60, 12, twin.weaken).exceeded, 0) << twin.name;
}

}  // namespace
}  // namespace tide::analysis
