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

template <typename Value, size_t kCount> Value pick(Random &random, const Value (&values)[kCount]) {
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
  if (random.chance(0.1)) plan.slots = 2;  // the least possible: one slot is filled while the other one is used
  if (random.chance(0.5)) plan.agent_heartbeat_delay = random.chance(0.5) ? -1 : random.between(0, 80) * kMillisecond;
  if (random.chance(0.3)) {
    for (ChainPlan &chain : plan.chains) chain.jitter = random.between(0, chain.period / 4);
  }
  if (random.chance(0.25)) { /* one callback is overloaded; its backlog must not delay the others */
    ChainPlan &chain = plan.chains[random.below(plan.chains.size())];
    chain.act = 2 * chain.period;
  }
  plan.packs = random.chance(0.3);
  if (random.chance(0.2)) { /* all reliable answers are fragmented, with a reassembly buffer for each reader */
    plan.reassemblies = static_cast<uint32_t>(plan.chains.size() + random.below(2));
    for (ChainPlan &chain : plan.chains) {
      if (chain.is_reply_reliable()) chain.reply_bytes = static_cast<uint32_t>(random.between(plan.mtu, 3 * plan.mtu));
    }
  }
  return plan;
}

// ---- overloaded lanes ----

namespace {

constexpr Time kUnit = 100'000;                              // execution times are multiples of this
constexpr uint32_t kMtu = 512, kLargest = 900, kFrames = 2;  // sizes of an answer, and of its frames

// Execution time of a lane for one instance: until the message is sent, and after its answer has arrived.
struct Demand {
  Time sample, act;
  // Greatest demand of the lane in a window shorter than a period: a late answer and the next early answer may both
  // arrive in it.
  Time of_a_period() const { return sample + 2 * act; }
};

Demand demand_of(const Plan &plan, const ChainPlan &chain) {
  return {plan.dispatch + chain.sample + plan.submit, kFrames * plan.process + plan.dispatch + chain.act};
}

// The time until the lane has executed for `demand`, if all more urgent lanes begin to use their budgets at the same
// time. (A corrected sporadic server takes no more time than a periodic task with the same budget and period.) Returns
// -1 if this time exceeds `limit`.
Time finish(Time demand, const std::vector<ChainPlan> &above, Time limit) {
  Time time = demand;
  for (Time before = -1; time != before && time <= limit;) {
    before = time;
    time = demand;
    for (const ChainPlan &other : above) {
      time += (before + other.budget_period - 1) / other.budget_period * other.budget;
    }
  }
  return time <= limit ? time : -1;
}

void overload(Random &random, ChainPlan &chain) {
  const bool late_answers = random.chance(0.5);
  (late_answers ? chain.act : chain.sample) = chain.period * random.between(11, 30) / 10;
  if (random.chance(0.5)) chain.reply_bytes = static_cast<uint32_t>(random.between(8, 1200));
  chain.budget = random.between(1, chain.budget_period / kUnit / 3) * kUnit;
}

ChainPlan draw_budgeted_chain(Random &random, const Plan &plan, unsigned number) {
  ChainPlan chain;
  chain.name = "chain" + std::to_string(number);
  chain.level = number + 1;
  chain.reliable = random.chance(0.7);
  chain.reply_reliable = random.chance(0.7);
  chain.period = random.between(5, 60) * kMillisecond;
  chain.phase = random.chance(0.5) ? 0 : random.between(0, 20 * kMillisecond);
  chain.payload_bytes = static_cast<uint32_t>(random.between(8, 200));
  chain.reply_bytes = static_cast<uint32_t>(random.between(8, chain.reliable && chain.reply_reliable ? kLargest : 100));
  chain.sample = random.between(0, chain.period / kUnit / 12) * kUnit;
  chain.act = random.between(0, chain.period / kUnit / 24) * kUnit;
  chain.host = random.between(0, kMillisecond);
  chain.budget_period = chain.period - random.between(0, chain.period / kUnit / 2) * kUnit;
  chain.budget = demand_of(plan, chain).of_a_period() + kUnit;
  return chain;
}

// The bound of a chain's response. Returns -1 if the chain's demand exceeds its budget, if more urgent lanes leave too
// little time, or if the bound would exceed the period.
Time bound_of(const Plan &plan, size_t index) {
  const ChainPlan &chain = plan.chains[index];
  const std::vector<ChainPlan> above(plan.chains.begin() + static_cast<long>(index) + 1, plan.chains.end());
  const Demand demand = demand_of(plan, chain);
  if (demand.of_a_period() > chain.budget) return -1;
  const Time each = finish(demand.of_a_period(), above, chain.budget_period);
  const Time bound = 2 * each + chain.host + 2 * plan.agent_most;
  return each < 0 || bound > chain.period ? -1 : bound;
}

// True if the chain's lane must get its whole budget. For this it must always have work, which is certain only if its
// timer is always overdue: a lane that only falls behind with its answers still waits for each answer. The budgets of
// more urgent lanes must also leave enough time. Levels rise with the index of the chain, so later chains are more
// urgent.
bool has_share(const Plan &plan, size_t index) {
  if (plan.chains[index].sample <= plan.chains[index].period) return false;
  const std::vector<ChainPlan> above(plan.chains.begin() + static_cast<long>(index) + 1, plan.chains.end());
  return finish(plan.chains[index].budget, above, plan.chains[index].budget_period) >= 0;
}

Overload try_to_draw(Random &random, uint64_t seed) {
  Overload drawn;
  Plan &plan = drawn.plan;
  plan.system = "overload";
  plan.seed = seed;
  plan.lanes = 2;
  plan.baud = 0;
  plan.mtu = kMtu;
  plan.submit = random.between(0, 100'000);
  plan.process = random.between(0, 50'000);
  plan.dispatch = random.between(0, 20'000);
  plan.agent_most = random.between(0, 500'000);
  const auto chains = static_cast<unsigned>(random.between(2, 5));
  // Each reader has as many slots as its largest answer has frames; with fewer, frames of the answer would have to be
  // retransmitted.
  plan.slots = 2 + kFrames * chains + static_cast<unsigned>(random.below(12));
  plan.nodes = chains + 1 + static_cast<unsigned>(random.below(8));
  plan.reassemblies = chains + static_cast<unsigned>(random.below(3));
  for (unsigned number = 0; number < chains; number++) plan.chains.push_back(draw_budgeted_chain(random, plan, number));
  const auto first = random.below(chains);
  for (unsigned number = 0; number < chains; number++) {
    if (number == first || random.chance(0.4)) overload(random, plan.chains[number]);
  }
  plan.periods = static_cast<uint32_t>(random.between(5, 30));
  plan.settle = 600 * kSecond;
  for (size_t index = 0; index < plan.chains.size(); index++) drawn.bounds.push_back(bound_of(plan, index));
  return drawn;
}

// Returns true if at least one lane has a bound.
bool is_of_use(const Overload &drawn) {
  return std::any_of(drawn.bounds.begin(), drawn.bounds.end(), [](Time bound) { return bound >= 0; });
}

// Processor time that the chain's lane must get in the run: its budget in each whole budget period except two, the
// first and the last.
Time share_of(const ChainPlan &chain, uint32_t instances) {
  const Time windows = instances * chain.period / chain.budget_period - 2;
  return std::max<Time>(windows, 0) * chain.budget;
}

}  // namespace

Overload draw_overload(uint64_t seed) {
  Random random(seed * 0x9E3779B97F4A7C15u + 11);
  for (;;) {
    Overload drawn = try_to_draw(random, seed);
    if (is_of_use(drawn)) return drawn;
  }
}

std::vector<std::string> broken_promises(const Overload &overload, const Result &result) {
  std::vector<std::string> broken = result.violations;
  for (size_t index = 0; index < overload.bounds.size(); index++) {
    const ChainPlan &chain = overload.plan.chains[index];
    const ChainResult &seen = result.chains[index];
    const Time bound = overload.bounds[index];
    if (bound >= 0 && seen.worst_response > bound) {
      broken.push_back(chain.name + " answers after " + std::to_string(seen.worst_response) +
                       " ns, above its bound of " + std::to_string(bound) + " ns");
    }
    if (bound >= 0 && seen.lost > 0) broken.push_back(chain.name + " lost " + std::to_string(seen.lost) + " messages");
    if (bound >= 0 || !has_share(overload.plan, index)) continue;
    for (const LaneBudget &lane : result.budgets) {
      const Time share = share_of(chain, static_cast<uint32_t>(seen.latencies.size()) + seen.lost);
      if (lane.level != chain.level || static_cast<Time>(lane.used) >= share) continue;
      broken.push_back(chain.name + " had " + std::to_string(lane.used) + " ns of its share of " +
                       std::to_string(share) + " ns");
    }
  }
  return broken;
}

// ---- executors of the host ----

namespace {

CallbackPlan &add_callback(Plan &plan, Random &random, Time period, unsigned groups, bool timer) {
  CallbackPlan callback;
  callback.name = "callback" + std::to_string(plan.callbacks.size());
  const size_t executor = random.below(plan.executors.size());
  callback.on = plan.executors[executor].name;
  callback.priority = static_cast<unsigned>(random.between(1, 20));
  callback.execution = random.chance(0.1) ? 0 : random.between(1, period / 6);
  if (random.chance(0.5)) callback.least = random.between(0, callback.execution);
  if (random.chance(0.2)) callback.reentrant = true;
  const auto group = static_cast<unsigned>(random.below(3));
  if (!callback.reentrant && group < groups && random.chance(0.7)) callback.group = group + 1;
  if (timer) {
    callback.period = period;
    callback.phase = random.chance(0.3) ? 0 : random.between(0, random.chance(0.5) ? period : 20 * kMillisecond);
    if (random.chance(0.1)) callback.jitter = random.between(0, period / 2);
  }
  plan.callbacks.push_back(callback);
  return plan.callbacks.back();
}

// Makes `receiver` follow `sender` in a chain. A callback sends one message, to all callbacks that follow it in any
// chain.
void follow(Plan &plan, const std::string &sender, const std::string &receiver, uint32_t depth) {
  const auto same = [&sender](const MessagePlan &one) { return one.from == sender; };
  auto message = std::find_if(plan.messages.begin(), plan.messages.end(), same);
  if (message == plan.messages.end()) {
    MessagePlan added;
    added.name = added.from = sender;
    added.bytes = kMarkBytes;
    added.depth = depth;
    message = plan.messages.insert(plan.messages.end(), added);
  }
  message->to.push_back(receiver);
}

}  // namespace

Plan draw_host(uint64_t seed) {
  Random random(seed * 0xD1342543DE82EF95u + 11);
  Plan plan;
  plan.system = "host";
  plan.seed = seed;
  plan.horizon = random.between(20, 120) * kMillisecond;
  plan.settle = 600 * kSecond;
  plan.hesitate = true;
  plan.extremes = random.chance(0.3);
  const HostPolicy policy = random.chance(0.5) ? HostPolicy::kTide : HostPolicy::kReadyset;
  const Time dispatch = random.chance(0.5) ? 0 : random.between(0, 50 * kMicrosecond);
  const bool anywhere = random.chance(0.5);
  for (size_t executors = random.chance(0.8) ? 1 : 2; executors > 0; executors--) {
    ExecutorPlan executor;
    executor.name = "executor" + std::to_string(executors);
    executor.lanes = static_cast<unsigned>(random.between(1, random.chance(0.1) ? 16 : 5));
    executor.policy = policy;
    executor.dispatch = dispatch;
    executor.anywhere = anywhere;
    if (random.chance(0.2)) {
      executor.budget_period = random.between(1, 10) * kMillisecond;
      executor.budget = random.between(1, 10) * executor.budget_period / 10;
    }
    plan.executors.push_back(executor);
  }
  const auto depth = static_cast<uint32_t>(random.chance(0.2) ? 1 : random.between(1, 12));
  const auto groups = static_cast<unsigned>(random.below(4));
  for (int64_t chains = random.between(1, 8); chains > 0; chains--) {
    PathPlan path;
    path.name = "chain" + std::to_string(chains);
    Time period = random.between(500, 20'000) * kMicrosecond;
    if (!plan.paths.empty() && random.chance(0.25)) {  // the chain begins with callbacks of another chain
      const std::vector<std::string> &other = plan.paths[random.below(plan.paths.size())].callbacks;
      path.callbacks.assign(other.begin(), other.begin() + random.between(1, static_cast<int64_t>(other.size())));
      for (const CallbackPlan &callback : plan.callbacks)
        if (callback.name == path.callbacks.front()) period = callback.period;
    } else {
      path.callbacks.push_back(add_callback(plan, random, period, groups, true).name);
    }
    for (int64_t more = random.between(0, 4); more > 0; more--) {
      const std::string next = add_callback(plan, random, period, groups, false).name;
      follow(plan, path.callbacks.back(), next, depth);
      path.callbacks.push_back(next);
    }
    plan.paths.push_back(path);
  }
  return plan;
}

}  // namespace tide::sim
