// SPDX-License-Identifier: Apache-2.0
#include "hunt/hunt.h"

#include <cmath>
#include <sstream>

namespace tide::analysis {
namespace {

constexpr time_ns kHorizon = 400;  // no releases from this time on

struct Guarantee {
  const Form *form = nullptr;
  Bounds bounds;
};

std::string described(const Executor &executor, const Scenario &scenario) {
  std::ostringstream text;
  text << (executor.policy() == Policy::priority ? "priority-driven" : "default") << ", lanes";
  for (const Lane &lane : executor.lanes()) text << ' ' << lane.budget_ns << '/' << lane.period_ns;
  text << '\n';
  for (size_t index = 0; index < executor.chains().size(); ++index) {
    const Chain &chain = executor.chains()[index];
    text << "chain " << index << ": period " << chain.period_ns << ", deadline " << chain.deadline_ns << ", jitter "
         << chain.jitter_ns << ", priority " << chain.priority << (chain.timer ? ", timer" : "") << "; executions";
    for (const Callback &callback : chain.callbacks) {
      text << ' ' << callback.execution_ns;
      if (callback.group != kReentrant) text << " (" << executor.groups()[static_cast<size_t>(callback.group)] << ')';
    }
    text << "\n  released at";
    for (const Release &release : scenario.releases[index]) {
      text << ' ' << release.at_ns;
      for (size_t number = 0; number < release.execution_ns.size(); ++number)
        text << (number == 0 ? " (" : " ") << release.execution_ns[number];
      text << (release.execution_ns.empty() ? "" : ")");
    }
    text << '\n';
  }
  for (size_t lane = 0; lane < scenario.lanes.size(); ++lane) {
    if (scenario.lanes[lane].empty()) continue;
    text << "lane " << lane << " supplied from";
    for (const auto &[from_ns, to_ns] : scenario.lanes[lane]) text << ' ' << from_ns << '-' << to_ns;
    text << '\n';
  }
  return text.str();
}

class Trial {
 public:
  Trial(uint64_t seed, const Executor &executor, std::vector<Guarantee> guarantees, Tally &tally)
      : seed_(seed),
        executor_(executor),
        guarantees_(std::move(guarantees)),
        tally_(tally),
        worst_ns_(executor.chains().size(), 0) {}

  // Runs the scenario. Returns the largest ratio of a response to its bound.
  double play(const Scenario &scenario) {
    const Schedule schedule = run_schedule(executor_, scenario);
    double nearest = 0;
    for (size_t chain = 0; chain < worst_ns_.size(); ++chain) {
      const time_ns observed_ns = schedule.worst_ns(chain);
      worst_ns_[chain] = std::max(worst_ns_[chain], observed_ns);
      for (const Guarantee &guarantee : guarantees_) {
        const auto &bound_ns = guarantee.bounds[chain];
        if (!bound_ns) continue;
        ++tally_.observations;
        nearest = std::max(nearest, static_cast<double>(observed_ns) / static_cast<double>(*bound_ns));
        if (observed_ns <= *bound_ns) continue;
        ++tally_.exceeded;
        if (tally_.first) continue;
        tally_.first = Failure{
            seed_, number_, chain, guarantee.form->name, *bound_ns, observed_ns, described(executor_, scenario)};
      }
    }
    ++number_;
    return nearest;
  }

  // Adds the ratios of bounds to longest responses. The bounds are those of the last form that guarantees any, which is
  // the tightest.
  void count_ratios() {
    for (size_t chain = 0; chain < worst_ns_.size(); ++chain) {
      const auto &bound_ns = guarantees_.back().bounds[chain];
      if (bound_ns && worst_ns_[chain] > 0)
        tally_.ratios.add(static_cast<double>(*bound_ns) / static_cast<double>(worst_ns_[chain]));
    }
  }

 private:
  uint64_t seed_;
  const Executor &executor_;
  std::vector<Guarantee> guarantees_;
  Tally &tally_;
  std::vector<time_ns> worst_ns_;
  int number_ = 0;
};

}  // namespace

Tally hunt(const Quarry &quarry, const Campaign &campaign) {
  Tally tally;
  for (uint64_t seed = campaign.first; seed < campaign.first + campaign.count; ++seed) {
    if (campaign.stop_at_first && tally.first) break;
    ++tally.systems;
    RandomSystem random(seed);
    const Executor executor = quarry.draw(random, seed);
    std::vector<Guarantee> guarantees;
    for (const Form &form : quarry.forms) {
      Bounds bounds = form.bounds(executor);
      if (!bounds.empty()) guarantees.push_back({&form, std::move(bounds)});
    }
    if (guarantees.empty()) continue;
    ++tally.accepted;
    Trial trial(seed, executor, std::move(guarantees), tally);
    Scenario best;
    double nearest = -1;
    for (int round = 0; round < campaign.schedules; ++round) {
      Scenario scenario = random.scenario(executor, kHorizon);
      const double near = trial.play(scenario);
      if (near <= nearest) continue;
      nearest = near;
      best = std::move(scenario);
    }
    for (int climb = 0; climb < campaign.climbs; ++climb) {
      Scenario scenario = best;
      random.change(scenario, executor);
      const double near = trial.play(scenario);
      if (near < nearest) continue;  // one that is equally near may lead further
      nearest = near;
      best = std::move(scenario);
    }
    trial.count_ratios();
  }
  return tally;
}

void Tally::add(const Tally &other) {
  systems += other.systems;
  accepted += other.accepted;
  observations += other.observations;
  exceeded += other.exceeded;
  ratios.add(other.ratios);
  if (!first) first = other.first;
}

void Ratios::add(double ratio) {
  least_ = count_ == 0 ? ratio : std::min(least_, ratio);
  ++count_;
  sum_ += ratio;
  const auto place = static_cast<size_t>(std::max(0.0, std::ceil(ratio / kStep - 1e-9) - 1));
  ++histogram_[std::min(place, kSteps - 1)];
}

void Ratios::add(const Ratios &other) {
  if (other.count_ == 0) return;
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  count_ += other.count_;
  sum_ += other.sum_;
  for (size_t place = 0; place < kSteps; ++place) histogram_[place] += other.histogram_[place];
}

}  // namespace tide::analysis
