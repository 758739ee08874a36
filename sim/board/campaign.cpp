// SPDX-License-Identifier: Apache-2.0
#include "sim/board/campaign.h"

#include <algorithm>

#include "sim/engine/random.h"

namespace tide::sim {
namespace {

constexpr uint64_t kBauds[] = {115200, 460800, 921600, 3000000, 0};
constexpr uint32_t kMtus[] = {128, 192, 256, 512};
constexpr uint32_t kNodes[] = {4, 6, 8, 16};
constexpr uint32_t kSlots[] = {3, 4, 6, 16};
constexpr uint32_t kWindows[] = {1, 2, 4, 16};

template <typename Value, size_t kCount>
Value pick(Random &random, const Value (&values)[kCount]) {
  return values[random.below(kCount)];
}

ChainPlan draw_chain(Random &random, const Plan &plan, unsigned number) {
  ChainPlan chain;
  chain.name = "chain" + std::to_string(number);
  chain.level = 1 + static_cast<unsigned>(random.below(6));
  chain.reliable = random.chance(0.8);
  chain.reply_reliable = random.chance(0.9);
  chain.period = random.between(10, 200) * kMillisecond;
  chain.phase = random.chance(0.5) ? 0 : random.between(0, 20 * kMillisecond);
  const bool large = chain.reliable && random.chance(0.25);
  const int64_t largest = chain.reliable ? 200 : plan.mtu - 32;
  chain.payload_bytes = static_cast<uint32_t>(random.between(8, large ? 3000 : largest));
  chain.reply_bytes =
      static_cast<uint32_t>(random.between(8, large && chain.reply_reliable && random.chance(0.3) ? 1000 : 80));
  chain.sample = random.between(0, chain.period / 8);
  chain.act = random.between(0, chain.period / 8);
  chain.host = random.between(0, 3 * kMillisecond);
  if (plan.policy != Policy::kBatch && random.chance(0.3)) chain.group = 1 + static_cast<unsigned>(random.below(2));
  if (random.chance(0.3)) chain.local_depth = static_cast<uint32_t>(random.between(1, 4));
  return chain;
}

Faults draw_faults(Random &random) {
  Faults faults;
  if (random.chance(0.6)) faults.loss = static_cast<double>(random.between(1, 30)) / 100;
  if (random.chance(0.4)) faults.duplication = static_cast<double>(random.between(1, 30)) / 100;
  if (random.chance(0.4)) faults.corruption = static_cast<double>(random.between(1, 20)) / 100;
  if (random.chance(0.4)) faults.delay = static_cast<double>(random.between(1, 30)) / 100;
  faults.delay_maximum = random.between(1, 30) * kMillisecond;
  return faults;
}

}  // namespace

Plan draw_plan(uint64_t seed) {
  Random random(seed * 0xD1342543DE82EF95u + 7);
  Plan plan;
  plan.system = "campaign";
  plan.seed = seed;
  plan.policy = random.chance(0.85) ? Policy::kTide : Policy::kBatch;
  if (plan.policy == Policy::kBatch) plan.send = random.chance(0.5) ? Send::kStock : Send::kAsynchronous;
  if (plan.policy == Policy::kTide && random.chance(0.15)) plan.policy = Policy::kReadyset;
  if (plan.policy != Policy::kBatch && random.chance(0.4)) plan.lanes = static_cast<unsigned>(random.between(2, 3));
  if (plan.lanes > 1 && random.chance(0.5)) plan.lanes_a_band = static_cast<unsigned>(random.between(2, 3));
  plan.batch_waits_for_new_data = random.chance(0.5);
  plan.baud = pick(random, kBauds);
  plan.mtu = pick(random, kMtus);
  plan.nodes = pick(random, kNodes);
  plan.slots = pick(random, kSlots);
  plan.window = pick(random, kWindows);
  plan.reassemblies = static_cast<uint32_t>(random.between(1, 4));
  plan.hold_until_acknowledged = random.chance(0.4);
  plan.heartbeat_delay = random.chance(0.5) ? -1 : random.between(0, 5) * kMillisecond;
  plan.agent_most = random.between(0, 2 * kMillisecond);
  plan.submit = random.between(0, 400'000);
  plan.process = random.between(0, 100'000);
  plan.dispatch = random.between(0, 20'000);
  plan.interrupt_receive = random.between(0, 50'000);
  plan.interrupt_complete = random.between(0, 20'000);
  const auto chains = static_cast<unsigned>(random.between(1, 5));
  for (unsigned number = 0; number < chains; number++) plan.chains.push_back(draw_chain(random, plan, number));
  plan.periods = static_cast<uint32_t>(random.between(3, 25));
  if (random.chance(0.8)) plan.up = draw_faults(random);
  if (random.chance(0.8)) plan.down = draw_faults(random);
  if (random.chance(0.2)) {
    plan.cuts = static_cast<unsigned>(random.between(1, 3));
    plan.cut_maximum = random.between(1, 600) * kMillisecond;
    plan.cut_unplugs = random.chance(0.5);
  }
  if (random.chance(0.15)) {
    plan.restarts = static_cast<unsigned>(random.between(1, 2));
    plan.outage_maximum = random.between(0, 500) * kMillisecond;
  }
  plan.settle = 120 * kSecond;
  if (random.chance(0.1)) plan.slots = 2;  // one to fill, one to use
  if (random.chance(0.5)) plan.agent_heartbeat_delay = random.chance(0.5) ? -1 : random.between(0, 80) * kMillisecond;
  if (random.chance(0.3)) {
    for (ChainPlan &chain : plan.chains) chain.jitter = random.between(0, chain.period / 4);
  }
  if (random.chance(0.25)) { /* one callback is behind for ever: the backlog is its own */
    ChainPlan &chain = plan.chains[random.below(plan.chains.size())];
    chain.act = 2 * chain.period;
  }
  plan.packs = random.chance(0.3);
  if (random.chance(0.2)) { /* all answers come in fragments, and there is memory for each reader */
    plan.reassemblies = static_cast<uint32_t>(plan.chains.size() + random.below(2));
    for (ChainPlan &chain : plan.chains) {
      if (chain.is_reply_reliable()) chain.reply_bytes = static_cast<uint32_t>(random.between(plan.mtu, 3 * plan.mtu));
    }
  }
  return plan;
}

}  // namespace tide::sim
