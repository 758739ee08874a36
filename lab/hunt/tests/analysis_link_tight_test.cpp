// SPDX-License-Identifier: Apache-2.0
// Compares the bounds of the three chains of the published evaluation with the longest responses that the simulator
// shows when the releases are moved.
#include <gtest/gtest.h>

#include <array>

#include "analysis/link.h"
#include "sim/board/bounds.h"
#include "sim/board/system.h"
#include "sim/engine/random.h"

namespace tide::analysis {
namespace analysis_link_tight_test {

constexpr size_t chains = 3;
// With a sanitizer, the test checks the code and not the figures, so a fraction of the search is enough.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_searched_whole = false;
#else
constexpr bool is_searched_whole = true;
#endif

// examples/published/pods/pods-chains.plan with three chains.
enum class Kind { best_effort, reliable_requests, reliable };

sim::Plan three_chains(bool lanes, Kind kind) {
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
    chain.reliable = kind != Kind::best_effort;
    chain.reply_reliable = kind == Kind::reliable;
    plan.chains.push_back(chain);
  }
  return plan;
}

// The system of the plan. Its execution times and message sizes are exactly those of the plan.
LinkSystem analysed(const sim::Plan &plan) {
  LinkSystem system = sim::system_of(plan);
  for (LinkChain &chain : system.chains) {
    for (LinkCallback &callback : chain.callbacks) callback.least_ns = callback.execution_ns;
  }
  system.line.exact_sizes = true;
  system.line.escaped_bytes = 3;
  return system;
}

// Moves the releases to where they are likely to delay the victim: to the same time as others, just before or after
// them, or one execution apart.
void shift_releases(sim::Plan &plan, sim::Random &random) {
  std::vector<sim::Time> marks = {0};
  for (const sim::ChainPlan &chain : plan.chains) {
    const sim::Time from = marks[random.below(marks.size())];
    marks.push_back(from + chain.sample + plan.submit + plan.dispatch);
    marks.push_back(from + chain.sample + plan.submit + chain.act + plan.process);
    marks.push_back(from + random.between(0, 60) * sim::kMillisecond);
  }
  for (sim::ChainPlan &chain : plan.chains) {
    chain.phase = marks[random.below(marks.size())] + random.between(0, 4) * sim::kMicrosecond;
    if (random.chance(0.3)) chain.phase = random.between(0, chain.period / sim::kMicrosecond) * sim::kMicrosecond;
  }
}

std::vector<time_ns> observe(const sim::Plan &plan) {
  std::vector<time_ns> worst_ns;
  for (const sim::ChainResult &chain : sim::simulate(plan).chains)
    worst_ns.push_back(chain.lost > 0 ? kNeverNs : chain.worst_response);
  return worst_ns;
}

struct Worst {
  time_ns response_ns = 0;
  sim::Plan plan;
};

// Moves one or two releases at a time, and keeps moves that delay the victim more.
Worst search(sim::Plan plan, size_t victim, uint64_t seed) {
  sim::Random random(seed);
  if (seed % 2 == 1) plan.agent_least = plan.agent_most;
  shift_releases(plan, random);
  if (plan.lanes > 1 && seed % 4 == 1) {  // chains preempt each other near their ends, so messages queue
    for (size_t index = 0; index < chains; index++)
      plan.chains[index].phase =
          static_cast<sim::Time>(chains - 1 - index) * 10'268'000 + random.between(0, 100) * 1000;
  }
  Worst worst{observe(plan)[victim], plan};
  for (int step = 0; step < (is_searched_whole ? 200 : 20); step++) {
    sim::Plan moved = worst.plan;
    moved.seed = random.below(1000);
    for (int count = random.chance(0.3) ? 2 : 1; count > 0; count--) {
      sim::ChainPlan &chain = moved.chains[random.below(chains)];
      const sim::Time reach = sim::Time{1} << random.between(3, 15);
      chain.phase = std::max<sim::Time>(0, chain.phase + random.between(-reach, reach) * 1000);
    }
    const time_ns seen_ns = observe(moved)[victim];
    if (seen_ns >= worst.response_ns) worst = {seen_ns, moved};
  }
  return worst;
}

Worst search(const sim::Plan &plan, size_t victim) {
  Worst worst;
  for (const uint64_t seed : {1, 2, 3, 7, 13, 22, 26}) {  // those of forty seeds that find the longest responses
    Worst found = search(plan, victim, seed);
    if (found.response_ns > worst.response_ns) worst = std::move(found);
    if (!is_searched_whole) break;
  }
  return worst;
}

void expect_tight(bool lanes, Kind kind, std::vector<double> limits) {
  const sim::Plan plan = three_chains(lanes, kind);
  const LinkResults results = bound_link(analysed(plan));
  for (size_t chain = 0; chain < chains; chain++) {
    ASSERT_TRUE(results.chains[chain].response_ns);
    const time_ns bound_ns = *results.chains[chain].response_ns;
    const Worst worst = search(plan, chain);
    const double ratio = static_cast<double>(bound_ns) / static_cast<double>(worst.response_ns);
    std::printf("  chain %zu: bound %.3f ms, observed %.3f ms, %.3f\n", chain, static_cast<double>(bound_ns) / 1e6,
                static_cast<double>(worst.response_ns) / 1e6, ratio);
    EXPECT_LE(worst.response_ns, bound_ns) << chain << "\n" << sim::write_plan(worst.plan);
    if (!is_searched_whole) continue;
    EXPECT_LE(ratio, limits[chain]) << chain;
    // A response exceeds the bound if the part for the line, its acknowledgments or earlier transmissions is left out.
    const LinkParts &parts = results.chains[chain].parts;
    if (chain == 0) {
      EXPECT_LT(bound_ns - parts.line_ns, worst.response_ns);
    }
    if (chain == 0 && kind == Kind::reliable && !lanes) {
      EXPECT_LT(bound_ns - parts.control_ns, worst.response_ns);
    }
    if (chain < 2 && !lanes) {
      EXPECT_LT(bound_ns - parts.client_blocking_ns, worst.response_ns);
    }
  }
}

TEST(LinkTight, ThreeChains) { expect_tight(false, Kind::best_effort, {1.1, 1.1, 1.1}); }
TEST(LinkTight, ThreeChainsWithReliableRequests) { expect_tight(false, Kind::reliable_requests, {1.1, 1.1, 1.1}); }
TEST(LinkTight, ThreeReliableChains) { expect_tight(false, Kind::reliable, {1.1, 1.1, 1.1}); }
TEST(LinkTight, ThreeChainsWithLanes) { expect_tight(true, Kind::best_effort, {1.1, 1.4, 1.3}); }
TEST(LinkTight, ThreeChainsWithReliableRequestsAndLanes) {
  expect_tight(true, Kind::reliable_requests, {1.1, 1.4, 1.3});
}
TEST(LinkTight, ThreeReliableChainsWithLanes) { expect_tight(true, Kind::reliable, {1.1, 1.5, 1.4}); }

// An agent whose HEARTBEAT delay is the measured round-trip time sends a HEARTBEAT for each message that waits for a
// callback of the board. The releases here were found by search. A response exceeds the bound for an agent without
// HEARTBEATs, but not the bound for this agent.
TEST(LinkTight, QuestionsThatComeTooEarlyCount) {
  sim::Plan plan = three_chains(true, Kind::reliable);
  plan.seed = 238;
  plan.agent_heartbeat_delay = -1;
  constexpr std::array<sim::Time, chains> phases = {48'836'000, 38'555'000, 28'299'000};
  for (size_t chain = 0; chain < chains; chain++) plan.chains[chain].phase = phases[chain];
  LinkSystem system = analysed(plan);
  const time_ns bound_ns = bound_link(system).chains[0].response_ns.value_or(0);
  system.protocol.agent.delay_ns = 1'000'000'000;
  const time_ns silent_ns = bound_link(system).chains[0].response_ns.value_or(kNeverNs);
  const time_ns asked_ns = observe(plan)[0];
  plan.agent_heartbeat_delay = sim::Plan{}.agent_heartbeat_delay;  // the agent's default on a line
  const time_ns patient_ns = observe(plan)[0];
  const time_ns patient_bound_ns = bound_link(analysed(plan)).chains[0].response_ns.value_or(0);
  std::printf("  asked early: %.3f ms of %.3f, of a silent agent %.3f; patient: %.3f of %.3f\n",
              static_cast<double>(asked_ns) / 1e6, static_cast<double>(bound_ns) / 1e6,
              static_cast<double>(silent_ns) / 1e6, static_cast<double>(patient_ns) / 1e6,
              static_cast<double>(patient_bound_ns) / 1e6);
  EXPECT_GT(asked_ns, silent_ns);
  EXPECT_LE(asked_ns, bound_ns);
  EXPECT_LE(patient_ns, patient_bound_ns);
  EXPECT_LT(patient_bound_ns, asked_ns + 2 * sim::kMillisecond);
}

// There are 126 chains, one for each level. In each period, 378 frames of reliable messages and as many acknowledgments
// cross the line.
TEST(LinkCrowd, HundredsOfReliableCrossingsKeepToTheirBounds) {
  sim::Plan plan;
  plan.baud = 921'600;
  plan.mtu = 128;
  plan.submit = plan.process = 50'000;
  plan.periods = 3;
  plan.nodes = plan.slots = 512;
  for (unsigned level = 1; level <= 126; level++) {
    sim::ChainPlan chain;
    chain.name = "chain" + std::to_string(level);
    chain.level = level;
    chain.period = 4 * sim::kSecond;
    chain.payload_bytes = 150;
    chain.reply_bytes = 20;
    chain.sample = chain.act = 200'000;
    plan.chains.push_back(chain);
  }
  LinkSystem system = analysed(plan);
  system.line.escaped_bytes = 12;
  const LinkResults results = bound_link(system);
  for (const bool together : {true, false}) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
      plan.seed = seed;
      sim::Random random(seed);
      for (sim::ChainPlan &chain : plan.chains)
        chain.phase = together ? random.between(0, 3) * 100'000 : random.between(0, 400) * sim::kMillisecond;
      const sim::Result result = sim::simulate(plan);
      EXPECT_EQ(result.publish_failures + result.transmitter.evicted + result.receiver.overflow_dropped, 0u);
      double nearest = 0;
      for (size_t chain = 0; chain < plan.chains.size(); chain++) {
        ASSERT_TRUE(results.chains[chain].response_ns) << results.chains[chain].reason;
        const sim::ChainResult &seen = result.chains[chain];
        EXPECT_EQ(seen.lost, 0u);
        EXPECT_LE(seen.worst_response, *results.chains[chain].response_ns) << sim::write_plan(plan);
        nearest = std::max(nearest, static_cast<double>(seen.worst_response) /
                                        static_cast<double>(*results.chains[chain].response_ns));
      }
      std::printf("  seed %llu: %u HEARTBEATs, at most %.2f of a bound\n", static_cast<unsigned long long>(seed),
                  result.transmitter.heartbeats, nearest);
      EXPECT_GT(nearest, together ? 0.2 : 0);
    }
  }
}

// Output of tide-sim for a run with bounds.
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
  // A system that the analysis does not support has no bounds.
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

// The bounds of the tide executor assume that it never waits until its messages are sent.
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
  system.chains[0].jitter_ns = 95'000'000;  // so that an instance may end after the next release
  EXPECT_FALSE(bound_link(system).chains[0].response_ns);
}

// In a run that loses three frames of an instance, bounds for one lost frame are exceeded, and bounds for three are
// not.
TEST(LinkObserved, MoreLossesThanTheBoundsTake) {
  sim::Plan plan = three_chains(false, Kind::reliable);
  plan.heartbeat_delay = plan.agent_heartbeat_delay = 100 * sim::kMillisecond;
  plan.instance_losses = 3;
  plan.instance_loss = 0.9;
  plan.periods = 40;
  for (sim::ChainPlan &chain : plan.chains) chain.period = 4 * sim::kSecond;
  LinkSystem stated = analysed(plan);
  stated.protocol.losses = 1;
  const LinkResults of_one = bound_link(stated);
  const auto says = [&of_one](const std::string &assumption) {
    return std::any_of(of_one.assumptions.begin(), of_one.assumptions.end(),
                       [&](const Assumption &one) { return one.text == assumption; });
  };
  EXPECT_TRUE(says("at most 1 frames of an instance are lost"));
  const std::vector<std::optional<sim::Time>> of_all = sim::bounds_of(plan);
  bool exceeded = false;
  for (plan.seed = 1; plan.seed <= 5; plan.seed++) {
    const sim::Result result = sim::simulate(plan);
    for (size_t chain = 0; chain < chains; chain++) {
      ASSERT_TRUE(of_one.chains[chain].response_ns && of_all[chain]) << of_one.chains[chain].reason;
      exceeded = exceeded || result.chains[chain].worst_response > *of_one.chains[chain].response_ns;
    }
    EXPECT_TRUE(sim::above_bounds(of_all, result).empty());
  }
  EXPECT_TRUE(exceeded);
}

}  // namespace analysis_link_tight_test
}  // namespace tide::analysis
