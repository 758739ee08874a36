// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "analysis/threads/analysis.h"
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace {

// A system that moves the solver ahead so slowly gets no bound, which is always safe.
constexpr int kMostSteps = 2'000'000;

// The bound is the least window whose supply exceeds its demand. Below a solution both are straight up to the nearer
// corner, so the next candidate is where they cross or the first window behind that corner. Where the demand never
// falls, the window that supplies the present demand is another lower bound of the solution.
// work: counts down; none is left: no bound. last_ns: the window that was looked at last; next_ns: the
// one that it asks for.
std::optional<time_ns> least_window(const Supply &supply, const Situation &situation, const Analysis &analysis,
                                    time_ns limit_ns, int64_t &work, time_ns &last_ns, time_ns &next_ns) {
  const Chain &self = situation.self();
  const auto shares = static_cast<int64_t>(situation.executor.chains().size());
  time_ns window_ns = self.execution_ns - self.last_ns + 1;
  for (int step = 0; step < kMostSteps && window_ns <= limit_ns && work > 0; ++step) {
    work -= shares;
    last_ns = window_ns;
    const Linear demand = analysis.demand(situation, window_ns).total();
    const Linear given = supply.least(window_ns);
    if (demand.value >= kNeverNs) return std::nullopt;
    if (demand.value < given.value) return window_ns;
    const time_ns gap_ns = demand.value - given.value;
    next_ns = std::min(demand.until_ns, given.until_ns) + 1;
    if (given.slope > demand.slope) {
      next_ns = std::min(next_ns, window_ns + gap_ns / (given.slope - demand.slope) + 1);
    }
    // Here alone may the demand fall: of whole instances the part of the one under analysis is subtracted, which grows
    // up to its execution time. The plain iteration is kept there, as published figures come from it; it may pass over
    // windows that would do.
    const bool may_fall = situation.options.whole_instances && analysis.variant == Variant::safe &&
                          analysis.deadlines == Deadlines::arbitrary && window_ns < self.execution_ns;
    if (may_fall) next_ns = 0;
    next_ns = std::max(next_ns, supply.window_for_ns(demand.value + 1));
    window_ns = next_ns;
  }
  return std::nullopt;
}

class Run {
 public:
  Run(const Analysis &analysis, const Executor &executor, const Options &options, const std::vector<char> *late)
      : analysis_(analysis),
        executor_(executor),
        options_(options),
        late_(late),
        work_(options.most_work),
        supply_(executor.lanes()),
        situation_{executor, supply_, options, {}, {}, 0, 0, {}, false, nullptr} {}

  Result run() {
    Result result;
    result.analysis = &analysis_;
    result.error = objection();
    if (!result.error.empty()) return result;
    const size_t count = executor_.chains().size();
    assume(options_.refine && safe() && analysis_.deadlines == Deadlines::arbitrary);
    prepare(count);
    settle_trust();
    if (assumes_periods_ && !all_met_) {
      assume(false);
      stopped_ = false;
      prepare(count);
      settle_trust();
    }
    if (options_.refine && !stopped_) refine();
    if (!options_.only_verdict) explain();
    result.met = !stopped_;
    for (const ChainResult &chain : chains_) result.met = result.met && chain.met;
    result.chains = std::move(chains_);
    result.work = options_.most_work - work_;
    return result;
  }

 private:
  bool by_priority() const { return analysis_.policy == Policy::priority; }
  bool safe() const { return analysis_.variant == Variant::safe; }

  std::string objection() const {
    if (!holds_for(analysis_.policy, executor_.policy())) {
      return std::string(analysis_.name) + " needs an executor that always takes the most important callback";
    }
    if (executor_.has_groups() && !analysis_.groups) {
      return std::string(analysis_.name) + " does not know mutually exclusive groups";
    }
    if (analysis_.deadlines == Deadlines::arbitrary) return "";
    for (const Chain &chain : executor_.chains()) {
      if (chain.deadline_ns <= chain.period_ns) continue;
      return std::string(analysis_.name) + " needs deadlines within periods, but that of chain '" + chain.name +
             "' exceeds its period";
    }
    return "";
  }

  time_ns slack_ns(size_t index, time_ns response_ns) const {
    const Chain &chain = executor_.chains()[index];
    // The publication counts no jitter.
    return std::max<time_ns>(0, (safe() ? chain.jitter_ns : 0) + response_ns - chain.execution_ns);
  }

  // What the bounds take for granted of the chains until it is confirmed: that they meet their deadlines; or more, that
  // they are over before the next release, which is worth a try, as bounds are far lower where it comes true.
  void assume(bool within_periods) {
    assumes_periods_ = within_periods;
    assumed_ns_.clear();
    for (const Chain &chain : executor_.chains()) {
      const time_ns period_ns = std::max<time_ns>(chain.period_ns - chain.jitter_ns, 1);
      assumed_ns_.push_back(within_periods ? std::min(chain.deadline_ns, period_ns) : chain.deadline_ns);
    }
  }

  void prepare(size_t count) {
    chains_.assign(count, {});
    situation_.trusted.assign(count, 1);
    deadline_slack_ns_.resize(count);
    time_ns longest_ns = 0;
    limit_ns_ = 0;
    for (size_t index = 0; index < count; ++index) {
      const Chain &chain = executor_.chains()[index];
      deadline_slack_ns_[index] = slack_ns(index, assumed_ns_[index]);
      longest_ns = std::max(longest_ns, add(chain.deadline_ns, chain.jitter_ns));
      limit_ns_ = add(limit_ns_, chain.execution_ns);
    }
    limit_ns_ = std::max(add(limit_ns_, 4 * longest_ns), options_.search_ns);
    situation_.slack_ns = deadline_slack_ns_;
  }

  time_ns precedence_ns(const Chain &chain) const {
    if (!safe() || supply_.dedicated()) return multiply(supply_.lanes(), chain.execution_ns - chain.last_ns);
    time_ns sum_ns = 0;
    for (size_t number = 0; number + 1 < chain.callbacks.size(); ++number) {
      sum_ns = add(sum_ns, supply_.passing_ns(chain.callbacks[number].execution_ns));
    }
    return sum_ns;
  }

  void look_at(size_t index) {
    situation_.chain = index;
    situation_.precedence_ns = precedence_ns(executor_.chains()[index]);
    situation_.caps = options_.cap_running && safe() && supply_.dedicated() && waits_for_lanes_only(index);
    situation_.blockers.clear();
    if (!by_priority()) return;
    const auto &order = executor_.order();
    situation_.blockers.assign(order.begin() + static_cast<ptrdiff_t>(executor_.rank(index)) + 1, order.end());
    std::stable_sort(situation_.blockers.begin(), situation_.blockers.end(), [this](size_t left, size_t right) {
      return executor_.chains()[left].longest_ns > executor_.chains()[right].longest_ns;
    });
  }

  // Whenever it waits all lanes are busy: no group, and no earlier instance of its own that excludes it, keeps it from
  // a lane that is free.
  bool waits_for_lanes_only(size_t index) const {
    const Chain &chain = executor_.chains()[index];
    bool excludes_itself = chain.timer;
    for (const Callback &callback : chain.callbacks) {
      if (callback.group == kReentrant) continue;
      if (executor_.members()[static_cast<size_t>(callback.group)].size() > 1) return false;
      excludes_itself = true;
    }
    return !excludes_itself || situation_.slack_ns[index] + chain.execution_ns <= chain.period_ns;
  }

  void bound(size_t index) {
    look_at(index);
    const Chain &chain = executor_.chains()[index];
    const time_ns finish_ns = supply_.worst_window_for_ns(chain.last_ns - 1);
    const time_ns limit_ns = options_.only_verdict ? assumed_ns_[index] - finish_ns : limit_ns_;
    time_ns last_ns = 0, next_ns = 0;
    const auto window_ns = least_window(supply_, situation_, analysis_, limit_ns, work_, last_ns, next_ns);
    ChainResult &result = chains_[index];
    result.analysis = analysis_.name;
    result.proved_for = analysis_.policy;
    result.response_ns.reset();
    if (window_ns) {
      result.breakdown.window_ns = *window_ns;
      result.breakdown.finish_ns = finish_ns;
      result.response_ns = add(*window_ns, finish_ns);
      if (!options_.only_verdict) break_down(result.breakdown);
    } else if (!options_.only_verdict && last_ns > 0) {
      result.reached_ns = add(next_ns, finish_ns);
      result.breakdown.window_ns = last_ns;
      result.breakdown.finish_ns = finish_ns;
      break_down(result.breakdown);
    }
    result.met = window_ns && *result.response_ns <= assumed_ns_[index];
    // The constrained theorems need each instance to be over before the next one can be released.
    if (safe() && analysis_.deadlines == Deadlines::constrained && result.met) {
      result.met = add(*result.response_ns, chain.jitter_ns) <= chain.period_ns;
    }
    if (late_ != nullptr && (*late_)[index] != 0) result.met = false;
  }

  // With what is known at this moment, as that is what the window was found with.
  void break_down(Breakdown &breakdown) {
    breakdown.interference_ns.assign(chains_.size(), 0);
    situation_.shares_ns = &breakdown.interference_ns;
    const Terms terms = analysis_.demand(situation_, breakdown.window_ns);
    situation_.shares_ns = nullptr;
    breakdown.precedence_ns = terms.precedence.value;
    breakdown.own_ns = terms.own.value;
    breakdown.blocking_ns = terms.blocking.value;
    breakdown.groups_ns = terms.groups.value;
    breakdown.demand_ns = terms.total().value;
  }

  // Bounds all chains, the most important first, and says whether all are met.
  bool pass() {
    bool all_met = true;
    bool more_important_met = true;
    if (options_.only < chains_.size()) {
      bound(options_.only);
      return chains_[options_.only].met;
    }
    for (const size_t index : executor_.order()) {
      bound(index);
      all_met = all_met && chains_[index].met;
      if (!all_met && options_.only_verdict) {
        stopped_ = true;
        return false;
      }
      more_important_met = more_important_met && chains_[index].met;
      // What is below a chain depends on it, so its bound may serve at once.
      if (options_.refine && by_priority() && more_important_met) {
        situation_.slack_ns[index] = slack_ns(index, *chains_[index].response_ns);
      }
    }
    return all_met;
  }

  // Chains that turn out late, and those below them, lose the trust that the others had put into them.
  void settle_trust() {
    if (options_.presume) {
      for (size_t index = 0; late_ != nullptr && index < chains_.size(); ++index)
        situation_.trusted[index] = (*late_)[index] != 0 ? 0 : 1;
      all_met_ = pass();
      return;
    }
    for (size_t round = 0; round <= chains_.size(); ++round) {
      situation_.slack_ns = deadline_slack_ns_;
      all_met_ = pass();
      if (all_met_ || assumes_periods_ || stopped_ || !safe() || !by_priority()) break;
      bool changed = false;
      bool more_important = true;
      for (const size_t index : executor_.order()) {
        more_important = more_important && chains_[index].met;
        if (situation_.trusted[index] != 0 && !more_important) {
          situation_.trusted[index] = 0;
          changed = true;
        }
      }
      if (!changed) break;
    }
    if (!by_priority() && !all_met_) std::fill(situation_.trusted.begin(), situation_.trusted.end(), char{0});
  }

  void refine() {
    if (!by_priority() && !all_met_) return;
    for (int round = 0; round < options_.refine_passes; ++round) {
      std::vector<time_ns> slack_now_ns = deadline_slack_ns_;
      for (size_t index = 0; index < chains_.size(); ++index) {
        if (situation_.trusted[index] == 0 || !chains_[index].met) continue;
        slack_now_ns[index] = slack_ns(index, *chains_[index].response_ns);
      }
      if (slack_now_ns == refined_slack_ns_) break;
      refined_slack_ns_ = slack_now_ns;
      situation_.slack_ns = slack_now_ns;
      pass();
    }
  }

  void explain() {
    bool more_important_met = true;
    if (options_.only < chains_.size()) {
      for (size_t other = 0; other < chains_.size(); ++other) depend(chains_[options_.only], options_.only, other);
      return;
    }
    for (const size_t index : executor_.order()) {
      ChainResult &result = chains_[index];
      more_important_met = more_important_met && result.met;
      result.guaranteed = result.sound = safe() && (by_priority() ? more_important_met : all_met_);
      for (size_t other = 0; other < chains_.size(); ++other) depend(result, index, other);
    }
  }

  void depend(ChainResult &result, size_t index, size_t other) const {
    if (other == index) return;
    if (!by_priority() || executor_.above(other, index)) {
      result.depends_on.push_back({other, Reason::interference});
    } else if (situation_.trusted[other] != 0) {
      result.depends_on.push_back({other, Reason::blocking});
    }
  }

  const Analysis &analysis_;
  const Executor &executor_;
  const Options &options_;
  const std::vector<char> *late_;
  int64_t work_;  // that is left
  Supply supply_;
  Situation situation_;
  std::vector<ChainResult> chains_;
  std::vector<time_ns> assumed_ns_;
  bool assumes_periods_ = false;
  std::vector<time_ns> deadline_slack_ns_;
  std::vector<time_ns> refined_slack_ns_;
  time_ns limit_ns_ = 0;
  bool all_met_ = false;
  bool stopped_ = false;  // a verdict was asked for and is known
};

}  // namespace

Result analyse(const Analysis &analysis, const Executor &executor, const Options &options,
               const std::vector<char> *late) {
  return Run(analysis, executor, options, late).run();
}

}  // namespace tide::analysis
