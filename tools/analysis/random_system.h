// SPDX-License-Identifier: Apache-2.0
// Random executors and schedules. They are small and have short times, so that events often coincide.
#pragma once

#include <algorithm>
#include <random>

#include "analysis/threads.h"
#include "analysis/trials.h"

namespace tide::analysis {

class RandomSystem {
 public:
  explicit RandomSystem(uint64_t seed) : random_(seed) {}

  time_ns within(time_ns low, time_ns high) { return std::uniform_int_distribution<time_ns>(low, high)(random_); }
  bool chance(int percent) { return within(1, 100) <= percent; }

  Executor executor(Policy policy, Deadlines deadlines, bool groups, bool reservations, time_ns scale = 1) {
    std::vector<Lane> lanes(static_cast<size_t>(within(1, 3)));
    for (Lane &lane : lanes) {
      if (!reservations) continue;
      lane.period_ns = within(2, 8);
      lane.budget_ns = within((lane.period_ns + 1) / 2, lane.period_ns);
    }
    std::vector<Chain> chains;
    const time_ns count = within(2, 5);
    for (time_ns index = 0; index < count; ++index) {
      std::vector<time_ns> executions(static_cast<size_t>(within(1, 4)));
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

  // Few chains that execute for about as long as their periods, so that instances of one chain compete with each other.
  Executor crowded(Policy policy, bool groups) {
    std::vector<Lane> lanes(static_cast<size_t>(within(1, 3)));
    std::vector<Chain> chains;
    const time_ns count = within(1, 2);
    for (time_ns index = 0; index < count; ++index) {
      std::vector<time_ns> executions(static_cast<size_t>(within(1, 4)));
      time_ns sum = 0;
      for (time_ns &one : executions) sum += one = within(1, 9);
      const time_ns share = std::max<time_ns>(1, static_cast<time_ns>(lanes.size()) * 10 / count);  // tenths of a lane
      const time_ns period = std::max<time_ns>(2, sum * 10 / share + within(0, sum));
      chains.push_back(make_chain(executions, period, within(period, 5 * period), index));
      Chain &chain = chains.back();
      if (chance(20)) chain.jitter_ns = within(0, period);
      chain.timer = chance(30);
      for (Callback &callback : chain.callbacks) {
        if (groups && chance(40)) callback.group = static_cast<int>(within(0, 1));
      }
    }
    return {"crowded", policy, std::move(lanes), std::move(chains), {"one", "two"}};
  }

  // Two frequent chains, a long chain of short callbacks, and a less important chain whose long callbacks block
  // repeatedly.
  Executor blocking_family() {
    std::vector<Chain> chains;
    for (int index = 0; index < 2; ++index) {
      const time_ns period = within(8, 9);
      chains.push_back(make_chain({within(3, 4)}, period, period, 4 - index));
    }
    // Each statement draws once, so that a seed gives the same system whatever order of evaluation a compiler chooses.
    const time_ns middle_ns = within(1, 2);
    const auto middle_count = static_cast<size_t>(within(2, 8));
    const time_ns low_ns = within(2, 6);
    const auto low_count = static_cast<size_t>(within(3, 9));
    chains.push_back(make_chain(std::vector<time_ns>(middle_count, middle_ns), 400, 400, 2));
    chains.push_back(make_chain(std::vector<time_ns>(low_count, low_ns), 2000, 2000, 1));
    return {"family", Policy::priority, std::vector<Lane>(2), std::move(chains)};
  }

  // A random scenario: releases that keep to period and jitter, execution times up to the worst case, and budgets
  // anywhere in their periods.
  Scenario scenario(const Executor &executor, time_ns end) {
    Scenario scenario;
    const bool heavy = chance(50);  // if true, all releases are as frequent and all executions as long as allowed
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
    for (const Lane &lane : executor.lanes()) scenario.lanes.push_back(slots(lane, 4 * end));
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) scenario.registration.push_back(chain);
    std::shuffle(scenario.registration.begin(), scenario.registration.end(), random_);
    if (executor.policy() == Policy::fifo) scenario.publishes_first = chance(50);
    return scenario;
  }

  // Makes one change within the limits of the executor's chains.
  void change(Scenario &scenario, const Executor &executor) {
    const auto chain = static_cast<size_t>(within(0, static_cast<time_ns>(scenario.releases.size()) - 1));
    std::vector<Release> &releases = scenario.releases[chain];
    if (releases.empty()) return;
    const auto index = static_cast<size_t>(within(0, static_cast<time_ns>(releases.size()) - 1));
    if (chance(40)) {
      delay(releases, 0, chance(50) ? within(1, 3) : within(1, 30));
    } else if (chance(30)) {  // all releases of the chain earlier, as far as the limits allow
      delay(releases, 0, -within(0, std::min<time_ns>(releases[0].at_ns, 12)));
    } else if (chance(40)) {
      delay(releases, index, within(1, 6));
    } else if (chance(50)) {
      releases[index].execution_ns.clear();
    } else {
      releases[index].execution_ns.clear();
      for (const Callback &callback : executor.chains()[chain].callbacks)
        releases[index].execution_ns.push_back(chance(60) ? callback.execution_ns : within(1, callback.execution_ns));
    }
    if (chance(20)) {
      std::swap(scenario.registration[chain], scenario.registration[static_cast<size_t>(
                                                  within(0, static_cast<time_ns>(scenario.registration.size()) - 1))]);
    }
  }

 private:
  // Delays release `first` and all later ones by `by`, so the distances among them stay. A negative `by` is allowed
  // only if `first` is 0; it makes all releases earlier.
  static void delay(std::vector<Release> &releases, size_t first, time_ns by) {
    for (size_t index = first; index < releases.size(); ++index) releases[index].at_ns += by;
  }

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
