// SPDX-License-Identifier: Apache-2.0
// Plans of the simulator as systems of the analysis, and what the simulator observes of each chain.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/link_bound.h"
#include "sim/bounds.h"
#include "sim/plan.h"
#include "sim/random.h"
#include "sim/system.h"
#include "tide/xrce.h"

namespace tide::analysis {

using sim::system_of;

// Executions take their worst case in every instance.
inline void fix_executions(LinkSystem &system) {
  for (LinkChain &chain : system.chains) {
    for (LinkCallback &callback : chain.callbacks) callback.least_ns = callback.execution_ns;
  }
  system.line.fixed_sizes = true;
}

// The longest time from a release to the end of the last callback, by chain; -1 where none completed.
struct Observed {
  std::vector<time_ns> worst_ns;
  bool asked_early = false;  // an adaptive delay was so short that a HEARTBEAT asked although nothing was lost
};

inline Observed observe_all(sim::Plan plan) {
  plan.trace = true;
  const sim::Result result = sim::simulate(plan);
  Observed observed;
  observed.worst_ns.assign(plan.chains.size(), -1);
  std::vector<std::vector<bool>> seen(plan.chains.size(), std::vector<bool>(plan.periods));
  std::istringstream lines(result.trace);
  time_ns first_ns = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    time_ns now_ns = 0;
    std::string what;
    std::size_t chain = 0, index = 0;
    words >> now_ns >> what;
    if (line.ends_with(" set up")) first_ns = now_ns + 50 * sim::kMillisecond;
    if (!(words >> chain >> index)) continue;
    const bool adapts = what == "agent_output" || (what == "agent_input" && plan.heartbeat_delay < 0);
    observed.asked_early = observed.asked_early || (adapts && first_ns > 0 && chain == TIDE_XRCE_HEARTBEAT);
    if (what != "acted" || seen.at(chain).at(index)) continue;
    seen[chain][index] = true;
    const sim::ChainPlan &of = plan.chains[chain];
    const time_ns release_ns = first_ns + of.phase + static_cast<time_ns>(index) * of.period;
    observed.worst_ns[chain] = std::max(observed.worst_ns[chain], now_ns - release_ns);
  }
  return observed;
}

inline std::vector<time_ns> observe(const sim::Plan &plan) { return observe_all(plan).worst_ns; }

struct Recipe {
  bool batch = false, lanes = false, reliable = false, losses = false;
  bool alike =
      false;  // few chains, alike and slow, as in the published evaluation: here the line hides behind callbacks
  bool spaced = false;  // the same with messages that are shorter than callbacks
};

// Three to ten chains that a line and a processor can carry.
inline sim::Plan draw(std::uint64_t seed, const Recipe &recipe) {
  sim::Random random(seed * 7919 + 17);
  sim::Plan plan;
  plan.seed = seed;
  plan.policy = recipe.batch ? sim::Policy::kBatch : sim::Policy::kTide;
  plan.lanes = recipe.lanes ? 2 : 1;
  plan.send = !recipe.batch                           ? sim::Send::kAsynchronous
              : random.chance(0.34)                   ? sim::Send::kAsynchronous
              : recipe.reliable || random.chance(0.3) ? sim::Send::kStock
                                                      : sim::Send::kBlocking;
  plan.batch_waits_for_new_data = random.chance(0.5);
  const std::uint64_t bauds[] = {115200, 460800, 921600};
  plan.baud = bauds[random.below(3)];
  plan.submit = random.between(0, 400'000);
  plan.process = random.between(0, 300'000);
  plan.dispatch = random.between(0, 30'000);
  if (random.chance(0.5)) {
    plan.interrupt_receive = random.between(0, 60'000);
    plan.interrupt_complete = random.between(0, 40'000);
  }
  plan.agent_least = random.between(0, 1'000'000);
  plan.agent_most = plan.agent_least + random.between(0, 1'000'000);
  plan.nodes = plan.slots = 64;
  plan.heartbeat_delay = random.chance(0.5) ? -1 : random.between(1, 8) * sim::kMillisecond;
  plan.hold_until_acknowledged = recipe.reliable && !recipe.batch && random.chance(0.5);
  if (recipe.reliable && random.chance(0.3)) {
    plan.agent_acknowledges = sim::Acknowledges::kAsked;
    plan.heartbeat_delay = random.between(0, 3) * sim::kMillisecond;
  }
  if (recipe.losses) {
    plan.success_percent = static_cast<double>(random.between(0, 90));
    plan.heartbeat_delay = random.between(0, 60) * sim::kMillisecond;
    plan.draw = random.chance(0.5) ? sim::Draw::kTogether : sim::Draw::kIndependent;
  }
  const auto count = static_cast<unsigned>(random.between(3, recipe.alike || recipe.spaced || recipe.losses ? 5 : 10));
  if (recipe.alike || recipe.spaced) plan.baud = 115200;
  std::vector<unsigned> levels;
  for (unsigned level = 1; level <= count; level++) levels.push_back(level);
  const bool unasked = recipe.spaced && random.chance(0.5);  // nobody sends a HEARTBEAT
  if (unasked) {
    plan.heartbeat_delay = 400 * sim::kMillisecond;
    plan.agent_acknowledges = sim::Acknowledges::kAlways;
  }
  const bool large = recipe.reliable && !recipe.losses && random.chance(0.3);
  for (unsigned index = 0; index < count; index++) {
    sim::ChainPlan chain;
    chain.name = "chain" + std::to_string(index);
    const std::size_t place = random.below(levels.size());
    chain.level = levels[place];
    levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(place));
    chain.period = random.between(recipe.losses ? 70 : 20, 120) * 10 * sim::kMillisecond;
    chain.reliable = recipe.reliable && random.chance(0.8);
    chain.reply_reliable = random.chance(0.6) && !unasked;
    const bool long_reply = large && chain.is_reply_reliable();
    chain.payload_bytes = static_cast<uint32_t>(random.between(8, large && chain.reliable ? 1500 : 250));
    chain.reply_bytes = static_cast<uint32_t>(random.between(8, long_reply ? 700 : 120));
    chain.sample = random.between(0, 15'000) * 1000;
    chain.act = random.between(0, 15'000) * 1000;
    chain.host = random.chance(0.5) ? 0 : random.between(0, 5000) * 1000;
    if (recipe.alike || recipe.spaced) {
      chain.period = random.between(45, 60) * 10 * sim::kMillisecond;
      chain.payload_bytes = static_cast<uint32_t>(recipe.spaced ? random.between(20, 60) : random.between(60, 110));
      chain.reply_bytes = 6;
      chain.host = 0;
      chain.sample = random.between(8000, 12'000) * 1000;
      chain.act = random.between(5000, 11'000) * 1000;
    }
    plan.chains.push_back(chain);
  }
  return plan;
}

// Releases that could hurt: together, just before or after one another, one execution apart.
inline void shift(sim::Plan &plan, sim::Random &random) {
  std::vector<sim::Time> marks = {0};
  for (const sim::ChainPlan &chain : plan.chains) {
    const sim::Time from = marks[random.below(marks.size())];
    marks.push_back(from + chain.sample + plan.submit + plan.dispatch);
    marks.push_back(from + chain.sample + plan.submit + chain.act + plan.process);
    marks.push_back(from + random.between(0, 60) * sim::kMillisecond);
  }
  for (sim::ChainPlan &chain : plan.chains) {
    chain.phase = marks[random.below(marks.size())] + random.between(0, 4) * 1000;
    if (random.chance(0.3)) chain.phase = random.between(0, chain.period);
  }
}

}  // namespace tide::analysis
