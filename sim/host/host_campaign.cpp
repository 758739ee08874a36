// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <sstream>

#include "sim/engine/random.h"
#include "sim/host/host_system.h"

namespace tide::sim {
namespace {

void name(char (&place)[PLAN_NAME_BYTES], const char *kind, size_t number) {
  std::snprintf(place, sizeof place, "%s%zu", kind, number);
}

size_t count(Random &random, int64_t least, int64_t most) { return static_cast<size_t>(random.between(least, most)); }

size_t add_callback(plan_t &plan, Random &random, Time period, bool timer) {
  callback_plan_t &callback = plan.callbacks[plan.callback_count];
  name(callback.name, "callback", plan.callback_count);
  callback.executor = count(random, 0, static_cast<int64_t>(plan.executor_count) - 1);
  callback.period_ns = timer ? period : 0;
  callback.priority = static_cast<tide_priority_t>(random.between(1, 20));
  callback.most_ns = random.chance(0.1) ? 0 : random.between(1, period / 6);
  callback.least_ns = random.chance(0.5) ? callback.most_ns : random.between(0, callback.most_ns);
  // The groups of an executor are those whose number has the same remainder.
  const size_t group = callback.executor + plan.executor_count * static_cast<size_t>(random.below(3));
  callback.placed = timer && random.chance(0.5);
  if (timer && random.chance(0.2)) callback.jitter_ns = random.between(0, period / 2);
  if (callback.placed) callback.offset_ns = random.between(0, period);
  callback.grouped = group < plan.group_count && random.chance(0.7);
  callback.group = callback.grouped ? group : 0;
  return plan.callback_count++;
}

void add_chain(plan_t &plan, Random &random) {
  chain_plan_t &chain = plan.chains[plan.chain_count];
  name(chain.name, "chain", plan.chain_count);
  Time period = random.between(500, 20'000) * kMicrosecond;
  if (plan.chain_count > 0 && random.chance(0.25)) {  // it begins as another one does
    const chain_plan_t &other = plan.chains[random.below(plan.chain_count)];
    period = plan.callbacks[other.callbacks[0]].period_ns;
    chain.length = count(random, 1, static_cast<int64_t>(other.length));
    for (size_t place = 0; place < chain.length; place++) chain.callbacks[place] = other.callbacks[place];
  } else {
    chain.callbacks[chain.length++] = add_callback(plan, random, period, true);
  }
  for (size_t more = count(random, 0, 4); more > 0 && chain.length < PLAN_LENGTH; more--) {
    chain.callbacks[chain.length++] = add_callback(plan, random, period, false);
  }
  plan.chain_count++;
}

}  // namespace

plan_t draw_host_plan(uint64_t seed) {
  Random random(seed * 0xD1342543DE82EF95u + 11);
  plan_t plan{};
  plan.seed = seed;
  plan.policy = random.chance(0.5) ? TIDE_POLICY_TIDE : TIDE_POLICY_READYSET;
  plan.duration_ns = random.between(20, 120) * kMillisecond;
  plan.dispatch_ns = random.chance(0.5) ? 0 : random.between(0, 50 * kMicrosecond);
  plan.spread_ns = random.chance(0.3) ? 0 : random.between(0, 20 * kMillisecond);
  plan.depth = random.chance(0.2) ? 1 : count(random, 1, 12);
  plan.executions = random.chance(0.3) ? PLAN_EXECUTIONS_EXTREMES : PLAN_EXECUTIONS_UNIFORM;
  plan.supply = random.chance(0.5) ? PLAN_SUPPLY_SERVER : PLAN_SUPPLY_ANYWHERE;
  plan.executor_count = random.chance(0.8) ? 1 : 2;
  for (size_t index = 0; index < plan.executor_count; index++) {
    name(plan.executors[index].name, "executor", index);
    plan.executors[index].lanes = count(random, 1, random.chance(0.1) ? 16 : 5);
    if (!random.chance(0.2)) continue;
    plan.executors[index].budget_period_ns = random.between(1, 10) * kMillisecond;
    plan.executors[index].budget_ns = random.between(1, 10) * plan.executors[index].budget_period_ns / 10;
  }
  plan.group_count = count(random, 0, 6);
  for (size_t index = 0; index < plan.group_count; index++) {
    name(plan.groups[index].name, "group", index);
    plan.groups[index].kind = random.chance(0.6) ? TIDE_GROUP_EXCLUSIVE : TIDE_GROUP_REENTRANT;
  }
  for (size_t chains = count(random, 1, 8); chains > 0; chains--) add_chain(plan, random);
  return plan;
}

std::string write_host_plan(const plan_t &plan) {
  std::ostringstream out;
  out.precision(15);
  const auto microseconds = [](Time time) { return static_cast<double>(time) / 1000; };
  out << "policy=" << plan_policy(plan.policy) << "\nseconds=" << static_cast<double>(plan.duration_ns) / 1e9
      << "\nseed=" << plan.seed << "\nspread_us=" << microseconds(plan.spread_ns)
      << "\ndispatch_us=" << microseconds(plan.dispatch_ns) << "\ndepth=" << plan.depth
      << "\nexecutions=" << (plan.executions == PLAN_EXECUTIONS_UNIFORM ? "uniform" : "extremes")
      << "\nsupply=" << (plan.supply == PLAN_SUPPLY_SERVER ? "server" : "anywhere") << '\n';
  for (size_t index = 0; index < plan.executor_count; index++) {
    const executor_plan_t &executor = plan.executors[index];
    out << "executor=" << executor.name << ',' << executor.lanes;
    if (executor.budget_ns > 0)
      out << ',' << microseconds(executor.budget_ns) << ',' << microseconds(executor.budget_period_ns);
    out << '\n';
  }
  for (size_t index = 0; index < plan.group_count; index++) {
    out << "group=" << plan.groups[index].name << ','
        << (plan.groups[index].kind == TIDE_GROUP_EXCLUSIVE ? "exclusive" : "reentrant") << '\n';
  }
  for (size_t index = 0; index < plan.callback_count; index++) {
    const callback_plan_t &callback = plan.callbacks[index];
    out << "callback=" << callback.name << ',' << plan.executors[callback.executor].name << ','
        << microseconds(callback.period_ns) << ',' << callback.priority << ',' << microseconds(callback.least_ns) << ','
        << microseconds(callback.most_ns);
    if (callback.grouped) out << ',' << plan.groups[callback.group].name;
    out << '\n';
    if (callback.jitter_ns > 0) out << "jitter=" << callback.name << ',' << microseconds(callback.jitter_ns) << '\n';
    if (callback.placed) out << "offset=" << callback.name << ',' << microseconds(callback.offset_ns) << '\n';
  }
  for (size_t index = 0; index < plan.chain_count; index++) {
    out << "chain=" << plan.chains[index].name;
    for (size_t place = 0; place < plan.chains[index].length; place++) {
      out << ',' << plan.callbacks[plan.chains[index].callbacks[place]].name;
    }
    out << '\n';
  }
  return out.str();
}

}  // namespace tide::sim
