// SPDX-License-Identifier: Apache-2.0
// Small random executors and schedules for property tests: small, so that coincidences are frequent.
#pragma once

#include <random>

#include "analysis/analysis.h"
#include "analysis/schedule.h"

namespace tide::analysis {

class RandomSystem {
 public:
  explicit RandomSystem(std::uint64_t seed) : random_(seed) {}

  time_ns within(time_ns low, time_ns high) { return std::uniform_int_distribution<time_ns>(low, high)(random_); }
  bool chance(int percent) { return within(1, 100) <= percent; }

  Executor executor(Policy policy, Deadlines deadlines, bool groups, bool reservations, time_ns scale = 1) {
    std::vector<Lane> lanes(static_cast<std::size_t>(within(1, 3)));
    for (Lane &lane : lanes) {
      if (!reservations) continue;
      lane.period_ns = within(2, 8);
      lane.budget_ns = within((lane.period_ns + 1) / 2, lane.period_ns);
    }
    std::vector<Chain> chains;
    const time_ns count = within(2, 5);
    for (time_ns index = 0; index < count; ++index) {
      std::vector<time_ns> executions(static_cast<std::size_t>(within(1, 4)));
      for (time_ns &one : executions) one = within(1, chance(30) ? 9 : 3);
      const time_ns period = within(15, 90) * scale;
      const time_ns deadline =
          deadlines == Deadlines::constrained ? within(period / 2, period) : within(period, 3 * period);
      chains.push_back(make_chain(executions, period, deadline, index));
      Chain &chain = chains.back();
      if (chance(20)) chain.jitter_ns = within(0, period / 3);
      chain.timer = chance(40);
      for (Callback &callback : chain.callbacks) {
        if (groups && chance(40)) callback.group = static_cast<int>(within(0, 1));
      }
    }
    return {"random", policy, std::move(lanes), std::move(chains), {"one", "two"}};
  }

  // Two frequent chains, a long one of short callbacks and a less important one of long callbacks: what blocks again
  // and again.
  Executor blocking_family() {
    std::vector<Chain> chains;
    for (int index = 0; index < 2; ++index) {
      const time_ns period = within(8, 9);
      chains.push_back(make_chain({within(3, 4)}, period, period, 4 - index));
    }
    const std::vector<time_ns> middle(static_cast<std::size_t>(within(2, 8)), within(1, 2));
    const std::vector<time_ns> low(static_cast<std::size_t>(within(3, 9)), within(2, 6));
    chains.push_back(make_chain(middle, 400, 400, 2));
    chains.push_back(make_chain(low, 2000, 2000, 1));
    return {"family", Policy::priority, std::vector<Lane>(2), std::move(chains)};
  }

  // Releases that keep to period and jitter, executions within the worst case, budgets anywhere in their periods.
  Scenario scenario(const Executor &executor, time_ns end) {
    Scenario scenario;
    const bool heavy = chance(50);  // all as often and as long as they may
    for (const Chain &chain : executor.chains()) {
      scenario.releases.emplace_back();
      const bool dense = heavy || chance(60);
      time_ns previous = 0;
      for (time_ns nominal = within(0, 20); nominal < end; nominal += chain.period_ns + (dense ? 0 : within(0, 9))) {
        Release release;
        release.at_ns = std::max(previous, nominal + within(0, chain.jitter_ns));
        previous = release.at_ns;
        if (!heavy && chance(40)) {
          for (const Callback &callback : chain.callbacks)
            release.execution_ns.push_back(within(1, callback.execution_ns));
        }
        scenario.releases.back().push_back(std::move(release));
      }
    }
    for (const Lane &lane : executor.lanes()) scenario.lanes.push_back(slots(lane, 3 * end));
    for (std::size_t chain = 0; chain < executor.chains().size(); ++chain) scenario.registration.push_back(chain);
    std::shuffle(scenario.registration.begin(), scenario.registration.end(), random_);
    return scenario;
  }

 private:
  Slots slots(const Lane &lane, time_ns end) {
    Slots slots;
    if (lane.dedicated()) return slots;
    const time_ns offset = within(0, lane.period_ns);
    for (time_ns start = -offset; start < end; start += lane.period_ns) {
      const time_ns slack = lane.period_ns - lane.budget_ns;
      const time_ns at = start + (chance(40) ? 0 : chance(60) ? slack : within(0, slack));
      if (at + lane.budget_ns > 0) slots.emplace_back(std::max<time_ns>(at, 0), at + lane.budget_ns);
    }
    return slots;
  }

  std::mt19937_64 random_;
};

}  // namespace tide::analysis
