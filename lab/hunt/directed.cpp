// SPDX-License-Identifier: Apache-2.0
#include "hunt/directed.h"

#include <algorithm>
#include <cmath>

namespace tide::analysis {
namespace {

// Determines when a chain is released relative to the victim (the chain under attack): its callback `key` starts
// offset_ns after the victim's release if each callback gets a lane at once. If `swift`, the callbacks before `key`
// take the shortest time in this instance of the chain.
struct Meeting {
  size_t key = 0;
  time_ns offset_ns = 0;
  bool swift = false;
};

class Search {
 public:
  Search(const Executor &executor, size_t victim, uint64_t seed)
      : executor_(executor), victim_(victim), random_(seed), origin_ns_(0) {
    for (const Chain &chain : executor.chains()) origin_ns_ = std::max(origin_ns_, 2 * chain.period_ns);
  }

  time_ns run(int tries) {
    time_ns worst_ns = 0;
    for (int left = tries; left > 0;) {
      std::vector<Meeting> at = start();
      time_ns at_ns = play(at);
      --left;
      for (int stuck = 0; stuck < kPatience && left > 0; --left) {
        std::vector<Meeting> other = at;
        change(other);
        const time_ns other_ns = play(other);
        stuck = other_ns > at_ns ? 0 : stuck + 1;
        if (other_ns < at_ns) continue;
        at = std::move(other);
        at_ns = other_ns;
      }
      worst_ns = std::max(worst_ns, at_ns);
    }
    return worst_ns;
  }

 private:
  static constexpr int kPatience = 40;

  size_t below(size_t count) { return static_cast<size_t>(random_.bits() % count); }
  bool chance(double share) { return random_.unit() < share; }
  const Chain &chain(size_t index) const { return executor_.chains()[index]; }

  size_t longest_of(size_t index) const {
    const auto &callbacks = chain(index).callbacks;
    const auto longest = std::max_element(callbacks.begin(), callbacks.end(), [](const Callback &a, const Callback &b) {
      return a.execution_ns < b.execution_ns;
    });
    return static_cast<size_t>(longest - callbacks.begin());
  }

  // More important chains meet the victim at its release; less important ones start their longest callback just before
  // it. Some chains meet it with a random callback instead.
  std::vector<Meeting> start() {
    std::vector<Meeting> meetings(executor_.chains().size());
    for (size_t index = 0; index < meetings.size(); ++index) {
      if (index == victim_) continue;
      const bool ahead = executor_.policy() != Policy::priority || executor_.above(index, victim_);
      if (!ahead) meetings[index] = {longest_of(index), -1, chance(0.5)};
      if (chance(0.3)) meetings[index].key = below(chain(index).callbacks.size());
    }
    return meetings;
  }

  void change(std::vector<Meeting> &meetings) {
    size_t index = below(meetings.size());
    if (index == victim_) index = (index + 1) % meetings.size();
    if (index == victim_) return;  // there is no other chain
    Meeting &meeting = meetings[index];
    const double span_ns = static_cast<double>(chain(victim_).execution_ns);
    switch (below(6)) {
      case 0: meeting.key = below(chain(index).callbacks.size()); break;
      case 1: meeting.offset_ns = chance(0.5) ? 0 : -1; break;
      case 2: meeting.swift = !meeting.swift; break;
      case 3: meeting.offset_ns = victims_moment() - (chance(0.5) ? 1 : 0); break;
      case 4:
        meeting.offset_ns += std::llround((random_.unit() - 0.5) * span_ns * std::pow(10.0, -4 * random_.unit()));
        break;
      default: meeting.offset_ns = std::llround((2 * random_.unit() - 1) * static_cast<double>(chain(index).period_ns));
    }
  }

  // A time at which a callback of the victim starts if it does not wait, or if it waits for a random part of the
  // waiting in the last schedule.
  time_ns victims_moment() {
    const auto &callbacks = chain(victim_).callbacks;
    time_ns moment_ns = 0;
    const size_t number = below(callbacks.size());
    for (size_t before = 0; before < number; ++before) moment_ns += callbacks[before].execution_ns;
    const time_ns waited_ns = last_ns_ - chain(victim_).execution_ns;
    if (waited_ns > 0 && chance(0.5))
      moment_ns += static_cast<time_ns>(random_.unit() * static_cast<double>(waited_ns));
    return moment_ns;
  }

  time_ns play(const std::vector<Meeting> &meetings) {
    Scenario scenario;
    const time_ns end_ns = origin_ns_ + 2 * chain(victim_).deadline_ns;
    for (size_t index = 0; index < meetings.size(); ++index) {
      scenario.releases.push_back(releases(index, meetings[index], end_ns));
      if (index != victim_) scenario.registration.push_back(index);
    }
    scenario.registration.push_back(victim_);
    last_ns_ = run_schedule(executor_, scenario).worst_ns(victim_);
    return last_ns_;
  }

  std::vector<Release> releases(size_t index, const Meeting &meeting, time_ns end_ns) const {
    const Chain &entry = chain(index);
    Release meets{origin_ns_ + meeting.offset_ns, {}};
    for (size_t before = 0; before < meeting.key; ++before)
      meets.at_ns -= meeting.swift ? 1 : entry.callbacks[before].execution_ns;
    if (meeting.swift) {
      for (size_t number = 0; number < entry.callbacks.size(); ++number)
        meets.execution_ns.push_back(number < meeting.key ? 1 : entry.callbacks[number].execution_ns);
    }
    // The chain has at most two instances before the one that meets the victim, and later ones up to end_ns.
    std::vector<Release> all;
    const time_ns count = (meets.at_ns - 1) / entry.period_ns;
    const time_ns history = std::min<time_ns>(count, 2);
    for (time_ns place = history; place > 0; --place) all.push_back({meets.at_ns - place * entry.period_ns, {}});
    all.push_back(std::move(meets));
    for (time_ns at_ns = all.back().at_ns + entry.period_ns; at_ns < end_ns; at_ns += entry.period_ns)
      all.push_back({at_ns, {}});
    return all;
  }

  const Executor &executor_;
  size_t victim_;
  Random random_;
  time_ns origin_ns_;
  time_ns last_ns_ = 0;
};

}  // namespace

time_ns worst_found_ns(const Executor &executor, size_t chain, int tries, uint64_t seed) {
  return Search(executor, chain, seed).run(tries);
}

Tightness tightness(const Analysis &analysis, const Recipe &recipe, uint64_t first, uint64_t count, int tries) {
  Tightness result;
  Recipe drawn = recipe;
  drawn.deadline_periods = analysis.deadlines == Deadlines::constrained ? 1 : 2;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ++result.sets;
    const Executor generated = generate(drawn, seed);
    const Executor executor(generated.name(), analysis.policy, generated.lanes(), generated.chains());
    const Result bounds = analyse(analysis, executor, tight_options());
    if (!bounds.met) continue;
    ++result.met;
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
      const time_ns found_ns = worst_found_ns(executor, chain, tries, seed * 64 + chain);
      const time_ns bound_ns = *bounds.chains[chain].response_ns;
      result.exceeded += found_ns > bound_ns ? 1U : 0U;
      result.ratios.add(static_cast<double>(bound_ns) / static_cast<double>(found_ns));
    }
  }
  return result;
}

}  // namespace tide::analysis
