// SPDX-License-Identifier: Apache-2.0
#include "hunt/link_hunt.h"

#include <algorithm>
#include <utility>

#include "sim/board/bounds.h"
#include "sim/board/system.h"

namespace tide::analysis {
namespace {

using sim::kMicrosecond;

constexpr int64_t kEscapes = 12;    // more than in any frame of the simulator
constexpr int64_t kFewEscapes = 4;  // for short messages, see draw_chain

// A board as input of its analysis: with or without the known details.
LinkSystem seen(const sim::Plan &plan, const LinkFamily &family, uint64_t seed, bool fixed) {
  LinkSystem system = sim::system_of(plan);
  if (fixed) fix_executions(system);
  if (seed % 3 == 0) system.line.escaped_bytes = kEscapes;
  if (family.slow || family.spaced || family.few) system.line.escaped_bytes = kFewEscapes;
  return system;
}

class Board {
 public:
  Board(const LinkQuarry &quarry, uint64_t seed, Tally &tally)
      : seed_(seed),
        tally_(tally),
        random_(seed),
        plan_(draw_board(seed, quarry.family)),
        fixed_(quarry.family.slow || quarry.family.spaced || quarry.family.few || seed % 2 == 0) {
    LinkSystem system = seen(plan_, quarry.family, seed, fixed_);
    if (quarry.mistaken) quarry.mistaken(system);
    if (!check(system).empty()) return;
    for (const LinkResult &each : bound_link(system).chains) {
      std::optional<time_ns> bound_ns = each.response_ns;
      if (bound_ns && quarry.forgotten) *bound_ns = std::max<time_ns>(1, *bound_ns - quarry.forgotten(each.parts));
      bounds_.push_back(bound_ns);
    }
    worst_ns_.assign(bounds_.size(), 0);
  }

  bool has_bound() const {
    return std::any_of(bounds_.begin(), bounds_.end(), [](const auto &bound) { return bound.has_value(); });
  }

  sim::Plan schedule() {
    sim::Plan plan = plan_;
    plan.seed = random_.below(1'000'000);
    shift_releases(plan, random_);
    for (sim::ChainPlan &chain : plan.chains) shorten(chain);
    if (random_.chance(0.5)) plan.agent_least = plan.agent_most;
    return plan;
  }

  // Changes one value.
  sim::Plan changed(sim::Plan plan) {
    const size_t index = random_.below(plan.chains.size());
    sim::ChainPlan &chain = plan.chains[index];
    if (random_.chance(0.2)) {
      plan.seed = random_.below(1'000'000);
    } else if (!fixed_ && random_.chance(0.2)) {
      chain.sample = plan_.chains[index].sample;
      chain.act = plan_.chains[index].act;
      shorten(chain);
    } else {
      const sim::Time reach = sim::Time{1} << random_.between(4, 15);
      chain.phase = std::max<sim::Time>(0, chain.phase + random_.between(-reach, reach) * kMicrosecond);
    }
    return plan;
  }

  // Smallest distance of a chain to its bound.
  double play(const sim::Plan &plan) {
    const sim::Result result = sim::simulate(plan);
    const int number = number_++;
    if (result.publish_failures > 0 || result.transmitter.evicted > 0 || result.receiver.overflow_dropped > 0) return 0;
    double nearest = 0;
    for (size_t chain = 0; chain < bounds_.size(); chain++) {
      if (!bounds_[chain]) continue;
      const sim::ChainResult &of = result.chains[chain];
      const time_ns observed_ns = of.lost > 0 ? kNeverNs : of.worst_response;
      worst_ns_[chain] = std::max(worst_ns_[chain], observed_ns);
      tally_.observations++;
      nearest = std::max(nearest, static_cast<double>(observed_ns) / static_cast<double>(*bounds_[chain]));
      if (observed_ns <= *bounds_[chain]) continue;
      tally_.exceeded++;
      if (!tally_.first)
        tally_.first = Failure{seed_, number, chain, "link", *bounds_[chain], observed_ns, sim::write_plan(plan)};
    }
    return nearest;
  }

  void count_ratios() {
    for (size_t chain = 0; chain < bounds_.size(); chain++) {
      if (bounds_[chain] && worst_ns_[chain] > 0)
        tally_.ratios.add(static_cast<double>(*bounds_[chain]) / static_cast<double>(worst_ns_[chain]));
    }
  }

 private:
  void shorten(sim::ChainPlan &chain) {
    if (fixed_) return;
    if (random_.chance(0.3)) chain.sample = random_.between(0, chain.sample / kMicrosecond) * kMicrosecond;
    if (random_.chance(0.3)) chain.act = random_.between(0, chain.act / kMicrosecond) * kMicrosecond;
  }

  uint64_t seed_;
  Tally &tally_;
  sim::Random random_;
  sim::Plan plan_;
  bool fixed_;
  Bounds bounds_;
  std::vector<time_ns> worst_ns_;
  int number_ = 0;
};

template <time_ns LinkParts::*forgotten>
time_ns part(const LinkParts &parts) {
  return parts.*forgotten;
}

template <std::vector<time_ns> LinkParts::*forgotten>
time_ns parts_of_all(const LinkParts &parts) {
  time_ns sum = 0;
  for (const time_ns share : parts.*forgotten) sum += share;
  return sum;
}

}  // namespace

std::vector<LinkQuarry> link_quarries() {
  constexpr sim::Policy kBatch = sim::Policy::kBatch;
  return {
      {"link-tide", {}, {}, {}},
      {"link-tide-reliable", {.reliable = true}, {}, {}},
      {"link-tide-hold", {.reliable = true, .hold = true}, {}, {}},
      {"link-tide-losses", {.reliable = true, .losses = true}, {}, {}},
      {"link-tide-large", {.reliable = true, .large = true}, {}, {}},
      {"link-tide-slow", {.slow = true}, {}, {}},
      {"link-tide-spaced", {.reliable = true, .spaced = true}, {}, {}},
      {"link-tide-few", {.reliable = true, .few = true}, {}, {}},
      {"link-tide-dense", {.reliable = true, .dense = true}, {}, {}},
      {"link-lanes", {.lanes = true}, {}, {}},
      {"link-lanes-reliable", {.lanes = true, .reliable = true}, {}, {}},
      {"link-lanes-hold", {.lanes = true, .reliable = true, .hold = true}, {}, {}},
      {"link-lanes-losses", {.lanes = true, .reliable = true, .losses = true}, {}, {}},
      {"link-lanes-large", {.lanes = true, .reliable = true, .large = true}, {}, {}},
      {"link-lanes-slow", {.lanes = true, .slow = true}, {}, {}},
      {"link-lanes-spaced", {.lanes = true, .reliable = true, .spaced = true}, {}, {}},
      {"link-lanes-few", {.lanes = true, .reliable = true, .few = true}, {}, {}},
      {"link-lanes-dense", {.lanes = true, .reliable = true, .dense = true}, {}, {}},
      {"link-batch", {.policy = kBatch}, {}, {}},
      {"link-batch-reliable", {.policy = kBatch, .reliable = true}, {}, {}},
  };
}

std::vector<LinkQuarry> link_twins() {
  constexpr sim::Policy kBatch = sim::Policy::kBatch;
  const auto short_answers = [](LinkSystem &system) {
    for (LinkChain &chain : system.chains) chain.callbacks[1].payload_bytes = 1;
  };
  const auto once_a_second = [](LinkSystem &system) {
    for (LinkChain &chain : system.chains) chain.period_ns = chain.deadline_ns = 1'000'000'000;
  };
  return {
      {"link-tide without execution", {}, {}, part<&LinkParts::execution_ns>},
      {"link-tide without interference", {}, {}, parts_of_all<&LinkParts::client_interference_ns>},
      {"link-tide-slow without blocking", {.slow = true}, {}, part<&LinkParts::client_blocking_ns>},
      {"link-tide without costs", {}, [](LinkSystem &system) { system.client = {system.client.policy}; }, {}},
      {"link-tide-few without the agent",
       {.few = true},
       [](LinkSystem &system) { system.line.agent_least_ns = system.line.agent_ns = 0; },
       {}},
      {"link-tide-losses without retransmission",
       {.reliable = true, .losses = true},
       [](LinkSystem &system) { system.protocol.losses = 0; },
       {}},
      {"link-tide-losses without repair", {.reliable = true, .losses = true}, {}, part<&LinkParts::losses_ns>},
      {"link-lanes without interference", {.lanes = true}, {}, parts_of_all<&LinkParts::client_interference_ns>},
      {"link-lanes without its frames", {.lanes = true}, {}, part<&LinkParts::line_ns>},
      {"link-lanes without frames of others", {.lanes = true}, {}, parts_of_all<&LinkParts::line_interference_ns>},
      {"link-lanes without the host", {.lanes = true}, {}, part<&LinkParts::host_ns>},
      {"link-tide-few without the jitter of the agent",
       {.few = true},
       [](LinkSystem &system) { system.line.agent_ns = system.line.agent_least_ns; },
       {}},
      {"link-lanes-dense without repetition", {.lanes = true, .dense = true}, once_a_second, {}},
      {"link-tide-few without interrupts",
       {.few = true},
       [](LinkSystem &system) { system.client.interrupt_receive_ns = system.client.interrupt_complete_ns = 0; },
       {}},
      {"link-lanes-large without the downlink", {.lanes = true, .reliable = true, .large = true}, short_answers, {}},
      {"link-lanes-large without the quantum",
       {.lanes = true, .reliable = true, .large = true},
       {},
       part<&LinkParts::line_blocking_ns>},
      {"link-tide-few without acknowledgments", {.reliable = true, .few = true}, {}, part<&LinkParts::control_ns>},
      {"link-tide-few without hold",
       {.reliable = true, .hold = true, .few = true},
       [](LinkSystem &system) {
         for (LinkChain &chain : system.chains) chain.hold = false;
       },
       {}},
      {"link-batch without interference", {.policy = kBatch}, {}, parts_of_all<&LinkParts::client_interference_ns>},
      {"link-batch without execution", {.policy = kBatch}, {}, part<&LinkParts::execution_ns>},
      {"link-batch-reliable without waiting",
       {.policy = kBatch, .reliable = true},
       [](LinkSystem &system) { system.client.send = Send::asynchronous; },
       {}},
  };
}

Tally hunt_link(const LinkQuarry &quarry, const Campaign &campaign) {
  Tally tally;
  for (uint64_t seed = campaign.first; seed < campaign.first + campaign.count; ++seed) {
    if (campaign.stop_at_first && tally.first) break;
    ++tally.systems;
    Board board(quarry, seed, tally);
    if (!board.has_bound()) continue;
    ++tally.accepted;
    sim::Plan best;
    double nearest = -1;
    for (int round = 0; round < campaign.schedules; ++round) {
      sim::Plan plan = board.schedule();
      const double near = board.play(plan);
      if (near <= nearest) continue;
      nearest = near;
      best = std::move(plan);
    }
    for (int climb = 0; climb < campaign.climbs; ++climb) {
      sim::Plan plan = board.changed(best);
      const double near = board.play(plan);
      if (near < nearest) continue;  // an equally near run may lead further
      nearest = near;
      best = std::move(plan);
    }
    board.count_ratios();
  }
  return tally;
}

}  // namespace tide::analysis
