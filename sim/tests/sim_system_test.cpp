// SPDX-License-Identifier: Apache-2.0
// Whole systems in virtual time: runs are repeatable, keep the rules under faults, and are fast; plans are read
// correctly.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "sim/board/campaign.h"
#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {
namespace sim_system_test {

Plan three_chains() {
  Plan plan;
  plan.agent_least = kMillisecond;
  plan.agent_most = 2 * kMillisecond;
  for (unsigned level = 3; level > 0; level--) {
    ChainPlan chain;
    chain.name = "level" + std::to_string(level);
    chain.level = level;
    chain.sample = chain.act = 10 * kMillisecond;
    plan.chains.push_back(chain);
  }
  return plan;
}

TEST(SimSystem, EveryInstanceEnds) {
  const Plan plan = three_chains();
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  ASSERT_EQ(result.chains.size(), 3u);
  for (const ChainResult &chain : result.chains) {
    EXPECT_EQ(chain.latencies.size(), plan.periods);
    EXPECT_EQ(chain.lost, 0u);
  }
  EXPECT_EQ(result.publish_failures, 0u);
}

TEST(SimSystem, SameSeedSameTrace) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    Plan plan = draw_plan(seed);
    plan.trace = true;
    const Result first = simulate(plan), second = simulate(plan);
    ASSERT_FALSE(first.trace.empty());
    EXPECT_EQ(first.trace, second.trace) << "seed " << seed;
    plan.trace = false;
    EXPECT_EQ(simulate(plan).trace_hash, first.trace_hash) << "seed " << seed;
  }
}

TEST(SimSystem, OtherSeedOtherTrace) {
  Plan plan = three_chains();
  plan.up.loss = 0.2;
  std::set<uint64_t> hashes;
  for (plan.seed = 1; plan.seed <= 20; plan.seed++) hashes.insert(simulate(plan).trace_hash);
  EXPECT_EQ(hashes.size(), 20u);
}

TEST(SimSystem, LossesAreRepaired) {
  Plan plan = three_chains();
  plan.up.loss = plan.down.loss = 0.2;
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  EXPECT_GT(result.transmitter.retransmissions, 10u);
  for (const ChainResult &chain : result.chains) EXPECT_EQ(chain.latencies.size(), plan.periods);
}

TEST(SimSystem, ARestartedAgentIsFoundAgain) {
  Plan plan = three_chains();
  plan.restarts = 1;
  plan.outage_maximum = 300 * kMillisecond;
  plan.settle = 20 * kSecond;
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  EXPECT_EQ(result.agent_restarts, 1u);
  EXPECT_GE(result.session.reconnects, 1u);
}

TEST(SimSystem, CutsHealWithAndWithoutNotice) {
  for (const bool unplugs : {false, true}) {
    Plan plan = three_chains();
    plan.cuts = 3;
    plan.cut_maximum = 400 * kMillisecond;
    plan.cut_unplugs = unplugs;
    plan.settle = 20 * kSecond;
    const Result result = simulate(plan);
    EXPECT_TRUE(result.violations.empty()) << result.violations.front();
    EXPECT_GT(result.up.cut + result.down.cut, 0u);
  }
}

/* Two levels compete for the only reassembly, and there are few more slots than messages in transfer. */
TEST(SimSystem, AStreamThatWaitsForMemoryLeavesRoomForTheOneThatHasIt) {
  Plan plan;
  read_plan(plan, R"(
mtu = 128
slots = 3
reassemblies = 1
window = 4
periods = 4
settle_us = 20000000
baud = 921600
chain = name=a level=3 period_us=26000 payload_bytes=69 reply_bytes=793 sample_us=1000 act_us=1500
chain = name=b level=5 phase_us=5000 period_us=26000 payload_bytes=69 reply_bytes=231 sample_us=1000 act_us=1500
)");
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  for (const ChainResult &chain : result.chains) EXPECT_EQ(chain.latencies.size(), plan.periods) << chain.name;
}

/* The line needs 10 s for the messages of one second. */
TEST(SimSystem, AnOverloadedLineIsAwaited) {
  Plan plan;
  read_plan(plan, R"(
baud = 9600
mtu = 512
periods = 20
settle_us = 1500000
chain = name=a level=3 period_us=50000 payload_bytes=400 reply_bytes=8 sample_us=100 act_us=100
)");
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
}

/* Seeds that once found a defect, which has been corrected. */
TEST(SimSystem, SeedsOfThePastHold) {
  for (const uint64_t seed :
       {9195u, 17824u, 18114u, 26924u, 26928u, 38491u, 60022u, 61054u, 68343u, 69935u, 72827u, 263334831u}) {
    const Result result = simulate(draw_plan(seed));
    ASSERT_TRUE(result.violations.empty()) << result.violations.front() << "; replay: tide-sim --seed " << seed;
  }
}

TEST(SimSystem, CampaignHolds) {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    const Result result = simulate(draw_plan(seed));
    ASSERT_TRUE(result.violations.empty()) << result.violations.front() << "; replay: tide-sim --seed " << seed;
  }
}

// The same runs with both values of latency_from. A latency from the expiry includes the time from the expiry to the
// start of the callback.
TEST(SimSystem, LatencyFromTheExpiryIsNeverBelowThatFromTheStart) {
  size_t compared = 0, longer = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    Plan plan = draw_plan(seed);
    for (ChainPlan &chain : plan.chains) chain.jitter = seed % 2 == 0 ? 0 : chain.period / 5;
    const Result expiry = simulate(plan);
    plan.latency_from = LatencyFrom::kStart;
    const Result start = simulate(plan);
    ASSERT_EQ(expiry.trace_hash, start.trace_hash) << "seed " << seed;
    for (size_t chain = 0; chain < plan.chains.size(); chain++) {
      const std::vector<Time> &whole = expiry.chains[chain].latencies, &part = start.chains[chain].latencies;
      ASSERT_EQ(whole.size(), part.size()) << "seed " << seed;
      for (size_t sample = 0; sample < whole.size(); sample++) {
        EXPECT_GE(whole[sample], part[sample]) << "seed " << seed;
        EXPECT_LE(whole[sample], expiry.chains[chain].worst_response) << "seed " << seed;
        longer += whole[sample] > part[sample] ? 1 : 0;
        compared++;
      }
    }
  }
  EXPECT_GT(longer, compared / 10);
}

// Every instance of a chain that runs alone begins exactly by its drawn release delay after the expiry.
TEST(SimSystem, ReleasesAreLateByTheirJitter) {
  Plan plan = three_chains();
  plan.chains.resize(1);
  plan.periods = 200;
  const Time punctual = simulate(plan).chains[0].worst_response;
  plan.chains[0].jitter = 7 * kMillisecond;
  const Result late = simulate(plan);
  EXPECT_EQ(late.chains[0].latencies.size(), plan.periods);
  EXPECT_GT(late.chains[0].worst_response, punctual + 6 * kMillisecond);
  EXPECT_LE(late.chains[0].worst_response, punctual + 7 * kMillisecond);
}

// Events may come while the executor prepares the run for the previous event. Each event has at most one run, which
// does not begin before the event.
TEST(SimSystem, AnEventThatComesBetweenChoiceAndBeginHasOneRun) {
  Plan plan;
  set(plan, "dispatch_us", "600");
  set(plan, "horizon_us", "40000");
  set(plan, "callback", "name=a on=system level=1 period_us=1000 burst=1 execution_us=500");
  set(plan, "path", "name=a callbacks=a");
  for (plan.seed = 1; plan.seed <= 5; plan.seed++) {
    const Result result = simulate(plan);
    ASSERT_EQ(result.chains.size(), 1u);
    const std::vector<Time> &latencies = result.chains[0].latencies;
    ASSERT_GT(latencies.size(), 5u) << plan.seed;
    EXPECT_EQ(result.chains[0].lost, 0u) << plan.seed;
    EXPECT_GE(*std::min_element(latencies.begin(), latencies.end()), 1100 * kMicrosecond) << plan.seed;
  }
}

// A sample is one datagram to each reader, the interface never holds more datagrams than it may, and runs are
// repeatable.
TEST(SimSystem, ABoardWithoutAnAgent) {
  for (const bool reliable : {false, true}) {
    for (const unsigned more : {0u, 2u}) {
      Plan plan = three_chains();
      plan.rtps_mbit = 1;
      plan.rtps_queued = 1 + more;
      plan.rtps_readers = more;
      plan.interrupt_receive = plan.interrupt_complete = 50 * kMicrosecond;
      for (ChainPlan &chain : plan.chains) chain.reliable = reliable;
      plan.trace = true;
      const Result result = simulate(plan);
      EXPECT_TRUE(result.violations.empty()) << result.violations.front();
      for (const ChainResult &chain : result.chains) {
        EXPECT_EQ(chain.latencies.size(), plan.periods);
        EXPECT_EQ(chain.lost, 0u);
      }
      // 76 bytes of RTPS and encapsulation, and 96 of payload. HEARTBEATs have separate datagrams.
      const std::string sample = " datagram_up " + std::to_string(76 + 96) + "\n";
      size_t samples = 0;
      for (size_t at = 0; (at = result.trace.find(sample, at)) != std::string::npos; at++) samples++;
      EXPECT_EQ(samples, 3u * plan.periods * (1 + more));
      EXPECT_EQ(simulate(plan).trace, result.trace);
    }
  }
}

TEST(SimPlan, WhatIsWrittenIsRead) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    Plan again;
    const std::string text = write_plan(draw_plan(seed));
    read_plan(again, text);
    EXPECT_EQ(write_plan(again), text);
  }
}

TEST(SimPlan, MistakesAreNamed) {
  for (const char *line :
       {"bauds = 1", "baud = fast", "baud = -1", "policy = best", "chain = level", "chain = level=300", "up_loss = 1.5",
        "up_loss = nan", "seed", "chains = 2", "periods = 0"}) {
    Plan plan;
    EXPECT_THROW(read_plan(plan, line), std::invalid_argument) << line;
  }
  EXPECT_THROW(simulate(Plan{}), std::invalid_argument);
}

TEST(SimPlan, SettingsOfAllChains) {
  Plan plan = three_chains();
  set(plan, "chains.sample_us", "5000");
  set(plan, "chains", "2");
  ASSERT_EQ(plan.chains.size(), 2u);
  for (const ChainPlan &chain : plan.chains) EXPECT_EQ(chain.sample, 5 * kMillisecond);
}

}  // namespace sim_system_test
}  // namespace tide::sim
