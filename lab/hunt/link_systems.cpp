// SPDX-License-Identifier: Apache-2.0
#include "hunt/link_systems.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tide::analysis {
namespace {

using sim::kMicrosecond;
using sim::kMillisecond;
using sim::Time;

constexpr int64_t kHeaders = 20;        // headers and padding of a message
constexpr int64_t kMostFragments = 13;  // a window holds 15

template <typename Value, size_t count>
Value one_of(sim::Random &random, const std::array<Value, count> &values) {
  return values[random.below(count)];
}

Time microseconds(sim::Random &random, int64_t least, int64_t most) {
  return random.between(least, most) * kMicrosecond;
}

void draw_line(sim::Plan &plan, sim::Random &random, const LinkFamily &family) {
  plan.baud = one_of<uint64_t>(random, std::array<uint64_t, 3>{115200, 460800, 921600});
  if (family.slow || family.spaced) plan.baud = 115200;
  if (family.dense) plan.baud = 921600;
  if (family.large) plan.mtu = one_of<uint32_t>(random, std::array<uint32_t, 4>{128, 256, 512, 4096});
  plan.agent_least = microseconds(random, 0, family.few ? 5000 : 1000);
  plan.agent_most = plan.agent_least + microseconds(random, 0, 1000);
  plan.heartbeat_delay = random.chance(0.5) ? -1 : random.between(family.losses ? 0 : 1, 60) * kMillisecond;
  if (random.chance(0.6))
    plan.agent_heartbeat_delay = random.chance(0.5) ? -1 : random.between(0, family.few ? 5 : 120) * kMillisecond;
  plan.hold_until_acknowledged = family.hold && random.chance(0.5);
  if (family.reliable && !family.losses && random.chance(0.25)) {
    plan.agent_acknowledges = sim::Acknowledges::kAsked;
    plan.heartbeat_delay = random.between(0, 3) * kMillisecond;
  }
  if (!family.losses) return;
  // The possible measured delay is longer than a period.
  plan.heartbeat_delay = std::max<Time>(plan.heartbeat_delay, 0);
  plan.agent_heartbeat_delay = std::max<Time>(plan.agent_heartbeat_delay, 0);
  if (family.policy == sim::Policy::kBatch || random.chance(0.3)) {
    plan.success_percent = static_cast<double>(random.between(0, 90));
    plan.draw = random.chance(0.5) ? sim::Draw::kTogether : sim::Draw::kIndependent;
  } else {
    plan.instance_losses = static_cast<uint32_t>(random.between(1, 2));
    plan.instance_loss = static_cast<double>(random.between(2, 9)) / 10;
  }
}

sim::ChainPlan draw_chain(const sim::Plan &plan, sim::Random &random, const LinkFamily &family, bool asked) {
  sim::ChainPlan chain;
  chain.period = random.between(family.losses || family.large ? 70 : 20, family.large ? 240 : 120) * 10 * kMillisecond;
  chain.reliable = family.reliable && random.chance(0.8);
  chain.reply_reliable = random.chance(0.6) && !asked;
  const int64_t whole = plan.mtu - kHeaders;
  const int64_t most = std::min<int64_t>(3000, kMostFragments * (plan.mtu - kHeaders));
  const auto bytes = [&](bool reliable, int64_t usual) {
    const bool large = family.large && random.chance(0.4);
    return static_cast<uint32_t>(random.between(8, std::min(large ? most : usual, reliable ? most : whole)));
  };
  chain.hold = family.hold && random.chance(0.5);
  chain.payload_bytes = bytes(chain.reliable && plan.success_percent >= 100, 250);
  chain.reply_bytes = bytes(chain.is_reply_reliable(), 120);
  chain.sample = microseconds(random, 0, 15'000);
  chain.act = microseconds(random, 0, 15'000);
  chain.host = random.chance(0.5) ? 0 : microseconds(random, 0, 5000);
  if (family.few) chain.sample = chain.act = microseconds(random, 0, 1000);
  if (family.few) chain.host = microseconds(random, 0, 8000);
  if (family.few) chain.payload_bytes = static_cast<uint32_t>(random.between(8, 200));
  if (family.few) chain.reply_bytes = static_cast<uint32_t>(random.between(8, 20));
  if (family.dense) {
    const bool long_one = plan.chains.empty();
    chain.period = long_one ? 500 * kMillisecond : random.between(8, 40) * kMillisecond;
    chain.sample = microseconds(random, 0, long_one ? 30'000 : 2000);
    chain.act = microseconds(random, 0, long_one ? 30'000 : 2000);
    chain.host = 0;
    chain.payload_bytes = chain.reply_bytes = static_cast<uint32_t>(random.between(8, 40));
  }
  if (!family.slow && !family.spaced) return chain;
  chain.period = random.between(45, 60) * 10 * kMillisecond;
  chain.payload_bytes = static_cast<uint32_t>(family.spaced ? random.between(20, 60) : random.between(60, 110));
  chain.reply_bytes = 6;
  chain.host = 0;
  chain.sample = microseconds(random, 8000, 12'000);
  chain.act = microseconds(random, 5000, 11'000);
  return chain;
}

}  // namespace

sim::Plan draw_board(uint64_t seed, const LinkFamily &family) {
  sim::Random random(seed * 7919 + 17);
  sim::Plan plan;
  plan.system = "board";
  plan.seed = seed;
  plan.periods = 6;
  plan.policy = family.policy;
  plan.lanes = family.lanes ? 2 : 1;
  if (family.policy == sim::Policy::kBatch && random.chance(0.66))
    plan.send = family.reliable || random.chance(0.3) ? sim::Send::kStock : sim::Send::kBlocking;
  plan.batch_waits_for_new_data = random.chance(0.5);
  plan.submit = microseconds(random, 0, 400);
  plan.process = microseconds(random, 0, 300);
  plan.dispatch = microseconds(random, 0, 30);
  if (random.chance(0.5)) {
    plan.interrupt_receive = microseconds(random, 0, family.few ? 500 : 60);
    plan.interrupt_complete = microseconds(random, 0, family.few ? 500 : 40);
  }
  plan.nodes = plan.slots = 64;
  draw_line(plan, random, family);
  const bool few = family.slow || family.spaced || family.losses || family.large;
  const auto count = family.few ? static_cast<unsigned>(random.between(1, 2))
                     : family.dense
                         ? static_cast<unsigned>(random.between(2, 4))
                         : static_cast<unsigned>(random.between(family.slow || family.spaced ? 3 : 1, few ? 5 : 10));
  std::vector<unsigned> levels;
  for (unsigned level = 1; level <= count; level++) levels.push_back(level);
  for (unsigned index = 0; index < count; index++) {
    sim::ChainPlan chain = draw_chain(plan, random, family, plan.agent_acknowledges == sim::Acknowledges::kAsked);
    chain.name = "chain" + std::to_string(index);
    const size_t place = family.dense && index == 0 ? 0 : random.below(levels.size());
    chain.level = levels[place];
    levels.erase(levels.begin() + static_cast<ptrdiff_t>(place));
    plan.chains.push_back(chain);
  }
  return plan;
}

void shift_releases(sim::Plan &plan, sim::Random &random) {
  std::vector<Time> marks = {0};
  for (const sim::ChainPlan &chain : plan.chains) {
    const Time from = marks[random.below(marks.size())];
    marks.push_back(from + chain.sample + plan.submit + plan.dispatch);
    marks.push_back(from + chain.sample + plan.submit + chain.act + plan.process);
    marks.push_back(from + random.between(0, 60) * kMillisecond);
  }
  for (sim::ChainPlan &chain : plan.chains) {
    chain.phase = marks[random.below(marks.size())] + microseconds(random, 0, 4);
    if (random.chance(0.3)) chain.phase = microseconds(random, 0, chain.period / kMicrosecond);
  }
}

void fix_executions(LinkSystem &system) {
  for (LinkChain &chain : system.chains) {
    for (LinkCallback &callback : chain.callbacks) callback.least_ns = callback.execution_ns;
  }
  system.line.exact_sizes = true;
}

}  // namespace tide::analysis
