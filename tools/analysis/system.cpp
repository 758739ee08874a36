// SPDX-License-Identifier: Apache-2.0
#include "analysis/system.h"

#include <algorithm>
#include <memory>

#include "analysis/single.h"

namespace tide::analysis {

const char *name_of(Shortfall::Kind kind) {
  switch (kind) {
    case Shortfall::Kind::overload: return "overload";
    case Shortfall::Kind::too_long: return "too_long";
    case Shortfall::Kind::unsettled: return "unsettled";
    default: return "effort";
  }
}

namespace {

// ---- callbacks with priorities of their own ---- For executors whose callbacks have priorities that do not come from
// their chains (Callback::priority).
//
// Each chain is bounded in an order of its own (a view): callbacks of other chains that have at least the priority of
// the chain's least important callback may go first. All others delay the chain only if they have started before.
// Another chain that has both kinds of callbacks is therefore split in two. Each half has its own execution time and
// the whole chain's deadline, because it executes within the response of the whole chain.

constexpr int64_t kBeside = int64_t{1} << 40, kAbove = int64_t{1} << 41;

int64_t lowest(const Chain &chain) {
  int64_t least = chain.callbacks.front().priority;
  for (const Callback &callback : chain.callbacks) least = std::min(least, callback.priority);
  return least;
}

// An executor in the order of one of its chains, without the names of chains and callbacks.
struct View {
  Executor executor;
  std::vector<size_t> origin;  // index in the executor of each of these chains
  size_t subject = 0;          // index, in the view, of the chain under analysis
};

View view_of(const Executor &executor, size_t subject) {
  const int64_t least = lowest(executor.chains()[subject]);
  std::vector<Chain> chains;
  std::vector<size_t> origin;
  size_t place = 0;
  for (size_t index = 0; index < executor.chains().size(); ++index) {
    const Chain &chain = executor.chains()[index];
    for (const bool upper : {true, false}) {
      Chain part{{}, {}, chain.period_ns, chain.deadline_ns, chain.jitter_ns, 0, false};
      int64_t highest = 0;
      for (size_t number = 0; number < chain.callbacks.size(); ++number) {
        const Callback &callback = chain.callbacks[number];
        if ((index == subject || callback.priority >= least) != upper) continue;
        if (number == 0) part.timer = chain.timer;
        highest = std::max(highest, callback.priority);
        part.callbacks.push_back({{}, callback.execution_ns, callback.group, callback.priority});
      }
      if (part.callbacks.empty()) continue;
      part.priority = highest + (index == subject ? kBeside : upper ? kAbove : 0);
      if (index == subject) place = chains.size();
      chains.push_back(std::move(part));
      origin.push_back(index);
    }
  }
  return {Executor({}, executor.policy(), executor.lanes(), std::move(chains), executor.groups()), std::move(origin),
          place};
}

// The view of each chain.
std::vector<View> own_order_views(const Executor &executor) {
  std::vector<View> views;
  for (size_t chain = 0; chain < executor.chains().size(); ++chain) views.push_back(view_of(executor, chain));
  return views;
}

// Execution time of an instance of `other` that may go before `chain`.
time_ns before_ns(const Executor &executor, size_t other, size_t chain) {
  const Chain &entry = executor.chains()[other];
  if (other == chain || executor.policy() != Policy::priority) return entry.execution_ns;
  if (!executor.own_priorities()) return executor.above(other, chain) ? entry.execution_ns : 0;
  const int64_t least = lowest(executor.chains()[chain]);
  time_ns sum_ns = 0;
  for (const Callback &callback : entry.callbacks) sum_ns += callback.priority >= least ? callback.execution_ns : 0;
  return sum_ns;
}

// ---- one executor ---- Bounds of one executor that hold whether or not its deadlines are met, and the reasons why
// chains have no bound.
//
// A bound rests on an assumed greatest response of each other chain. Assumed responses, whether deadlines or other
// values, are valid if no resulting bound exceeds the chain's assumed response: then there is no first moment at which
// a response exceeds the assumed one. The deadlines are tried first. If bounds exceed them, the least valid values are
// searched from below.

constexpr int kMostRaises = 400;
constexpr int kExactPasses = 24;  // later passes raise values by a little more than needed, to limit the number of
                                  // passes

time_ns longest_response_ns(time_ns deadline_ns, time_ns period_ns) {
  return multiply(kMostTimesLate, std::max(deadline_ns, period_ns));
}

// The bounds of an executor. Jitters must not decrease from one find() to the next.
class Confirmed {
 public:
  // `number` is the index of the executor in its system. `work` is the remaining effort, which is counted down.
  // `preempted_by`: the chains of more urgent threads on the core of its only lane.
  Confirmed(const Executor &executor, size_t number, const Options &options, int64_t &work,
            std::vector<Preemption> preempted_by = {})
      : executor_(executor),
        number_(number),
        options_(options),
        work_(work),
        preempted_by_(std::move(preempted_by)),
        lost_(executor.chains().size(), 0),
        why_(executor.chains().size()) {
    options_.only_verdict = false;
    for (const Chain &chain : executor.chains()) {
      options_.search_ns = std::max(options_.search_ns, longest_response_ns(chain.deadline_ns, chain.period_ns));
      allowed_ns_.push_back(chain.execution_ns);
    }
    if (executor.policy() == Policy::priority && executor.own_priorities()) {
      views_ = own_order_views(executor);
      unordered_executor_ = std::make_unique<Executor>(executor.with_policy(Policy::any_order));
      unordered_ = std::make_unique<Confirmed>(*unordered_executor_, number, options, work, preempted_by_);
      from_below_ = true;
    }
    find_overload();
  }

  // Marks a chain whose releases are no longer known. This takes effect with the next find().
  void lose(size_t chain, const Shortfall &why) {
    if (unordered_) unordered_->lose(chain, why);
    if (is_lost(chain)) return;
    lost_[chain] = 1;
    lose_from(chain,
              why);  // unlike a chain without a bound, one with unknown releases leaves no bound to the chains that it
                     // delays
  }

  // Sets the chains of more urgent threads for the next find(). Their slack must not decrease.
  void preempt(const std::vector<Preemption> &by) {
    if (unordered_) unordered_->preempt(by);
    preempted_by_ = by;
  }

  void find(const std::vector<time_ns> &jitter_ns) {
    Executor released = executor_.with_jitter(jitter_ns);
    if (!preempted_by_.empty()) released.preempt(preempted_by_);
    alone_.assign(why_.size(), {});
    if (unordered_) {
      unordered_->find(jitter_ns);
      alone_ = unordered_->result().chains;
    } else if (options_.sharpen) {
      alone_ = single_thread_results(released, work_);
    }
    if (!from_below_) {
      result_ = analysed(released, false);
      from_below_ = !all_sound();
    }
    for (int pass = 0; from_below_; ++pass) {
      const Executor presumed = released.with_deadlines(allowed_ns_);
      if (pass == kMostRaises) work_ = 0;  // the search does not converge
      result_ = views_.empty() ? analysed(presumed, true) : analysed_views(jitter_ns);
      if (raise(pass >= kExactPasses)) continue;
      if (options_.refine && views_.empty()) {
        Result refined = analysed(presumed, false);
        if (confirmed(refined)) result_ = std::move(refined);
      }
      break;
    }
    conclude();
  }

  bool is_lost(size_t chain) const { return lost_[chain] != 0; }

  // In the result, `sound` is true exactly if `response_ns` is set; `met` and `guaranteed` refer to the deadline.
  const Result &result() const { return result_; }
  const std::optional<Shortfall> &why(size_t chain) const { return why_[chain]; }  // reason why a chain has no bound

 private:
  // In the long run, a chain gets the time that more important chains leave; if they demand all supply, it has no
  // bound.
  void find_overload() {
    using Share = long double;
    Share given = 0;
    for (const Lane &lane : executor_.lanes())
      given += static_cast<Share>(lane.budget_ns) / static_cast<Share>(lane.period_ns);
    for (const Preemption &one : preempted_by_)
      given -= static_cast<Share>(one.execution_ns) / static_cast<Share>(one.period_ns);
    given = std::max<Share>(given, 0);
    constexpr Share kRounding = 1e-12L;
    for (const size_t chain : executor_.order()) {
      Share asked = 0;
      for (size_t other = 0; other < why_.size(); ++other)
        asked += static_cast<Share>(before_ns(executor_, other, chain)) /
                 static_cast<Share>(executor_.chains()[other].period_ns);
      if (why_[chain] || asked <= given * (1 + kRounding)) continue;
      Shortfall why{Shortfall::Kind::overload, number_, chain};
      why.asked_permille = static_cast<int64_t>(asked * 1000 + 0.999L);
      why.given_permille = static_cast<int64_t>(given * 1000);
      lose_from(chain, why);
    }
  }

  // Removes the bound of this chain, and of every chain before which it may run. `alone`: bounds of other chains in
  // alone_ remain.
  void lose_from(size_t chain, const Shortfall &why, bool alone = false) {
    for (size_t other = 0; other < why_.size(); ++other) {
      if (why_[other] || before_ns(executor_, chain, other) <= 0) continue;
      if (alone && other != chain && alone_[other].sound) continue;
      why_[other] = why;
    }
  }

  std::vector<char> late() const {
    std::vector<char> late;
    for (const auto &why : why_) late.push_back(why ? 1 : 0);
    return late;
  }

  // presume: takes deadlines as met; the caller confirms them later (Options::presume).
  Result analysed(const Executor &executor, bool presume) {
    // On a core that is shared, the theorems are seldom lower than the bounds for one thread, and slow: the supply of
    // the lane has a corner wherever a more urgent chain begins or ends.
    if (!preempted_by_.empty() && options_.sharpen) {
      Result result;
      result.analysis = &fitting_analysis(executor);
      result.chains = alone_;
      return result;
    }
    Options options = options_;
    options.most_work = std::max<int64_t>(work_, 0);
    options.presume = presume;
    options.refine = options_.refine && !presume;
    const std::vector<char> nothing_known = late();
    Result result = analyse(fitting_analysis(executor), executor, options, &nothing_known);
    work_ -= result.work;
    return sharpened(alone_, std::move(result));
  }

  // Analyses each chain in its own order, with the assumed responses of the others.
  Result analysed_views(const std::vector<time_ns> &jitter_ns) {
    Result result;
    result.analysis = &fitting_analysis(executor_);
    result.chains.resize(why_.size());
    bool keeps = true;
    for (size_t chain = 0; chain < why_.size(); ++chain) {
      if (why_[chain]) continue;
      ChainResult &one = result.chains[chain];
      one = seen_by(chain, jitter_ns, result.analysis);
      const ChainResult &any = alone_[chain];
      if (any.sound && (!one.response_ns || *any.response_ns <= *one.response_ns)) one = any;
      keeps = keeps && one.response_ns && *one.response_ns <= allowed_ns_[chain];
    }
    for (ChainResult &one : result.chains) one.sound = one.sound || (keeps && one.response_ns);
    return result;
  }

  ChainResult seen_by(size_t chain, const std::vector<time_ns> &jitter_ns, const Analysis *&analysis) {
    View &view = views_[chain];
    std::vector<time_ns> late_ns, allowed_ns;
    std::vector<char> nothing_known;
    for (size_t part = 0; part < view.origin.size(); ++part) {
      const size_t origin = view.origin[part];
      late_ns.push_back(jitter_ns[origin]);
      allowed_ns.push_back(allowed_ns_[origin]);
      nothing_known.push_back(why_[origin] ? 1 : 0);
      if (why_[origin] && view.executor.above(part, view.subject)) return {};
    }
    view.executor.retime(late_ns, allowed_ns);
    if (!preempted_by_.empty()) view.executor.preempt(preempted_by_);
    Options options = options_;
    options.most_work = std::max<int64_t>(work_, 0);
    options.presume = true;
    options.refine = false;
    options.only = view.subject;
    Result seen = analyse(fitting_analysis(view.executor), view.executor, options, &nothing_known);
    work_ -= seen.work;
    analysis = seen.analysis;
    ChainResult one = std::move(seen.chains[view.subject]);
    std::vector<time_ns> shares_ns(why_.size(), 0);
    for (size_t part = 0; part < one.breakdown.interference_ns.size(); ++part)
      shares_ns[view.origin[part]] += one.breakdown.interference_ns[part];
    one.breakdown.interference_ns = std::move(shares_ns);
    for (Dependence &dependence : one.depends_on) dependence.chain = view.origin[dependence.chain];
    return one;
  }

  bool all_sound() const {
    for (size_t chain = 0; chain < why_.size(); ++chain) {
      const ChainResult &one = result_.chains[chain];
      const Chain &entry = executor_.chains()[chain];
      if (why_[chain]) continue;
      if (!one.sound || *one.response_ns > longest_response_ns(entry.deadline_ns, entry.period_ns)) return false;
    }
    return true;
  }

  Shortfall too_long(size_t chain) const {
    const ChainResult &one = result_.chains[chain];
    const Chain &entry = executor_.chains()[chain];
    Shortfall why{Shortfall::Kind::too_long, number_, chain};
    why.limit_ns = longest_response_ns(entry.deadline_ns, entry.period_ns);
    why.reached_ns = one.response_ns.value_or(one.reached_ns);
    if (work_ <= 0) {
      why.kind = Shortfall::Kind::effort;
    } else {
      why.reached_ns = std::max(why.reached_ns, why.limit_ns);
    }
    // Scales a part of the demand so that the parts add up to the window.
    const auto scaled = [&one](time_ns value_ns) {
      __extension__ typedef __int128 Wide;
      if (one.breakdown.demand_ns == 0) return value_ns;
      return static_cast<time_ns>(Wide{value_ns} * one.breakdown.window_ns / one.breakdown.demand_ns);
    };
    const auto look = [&why](std::string_view name, time_ns value_ns, std::optional<size_t> whose = {}) {
      if (value_ns <= why.part_ns) return;
      why.part = name;
      why.part_ns = value_ns;
      why.part_chain = whose;
    };
    look("last_callback", entry.last_ns);
    look("precedence", scaled(one.breakdown.precedence_ns));
    look("own", scaled(one.breakdown.own_ns));
    look("blocking", scaled(one.breakdown.blocking_ns));
    look("groups", scaled(one.breakdown.groups_ns));
    for (size_t other = 0; other < one.breakdown.interference_ns.size(); ++other)
      look("interference", scaled(one.breakdown.interference_ns[other]), other);
    return why;
  }

  // Returns true if values were raised or a chain was lost, so that bounds must be computed again.
  bool raise(bool further) {
    bool changed = false;
    for (const size_t chain : executor_.order()) {
      if (why_[chain]) continue;
      const ChainResult &one = result_.chains[chain];
      const Chain &entry = executor_.chains()[chain];
      const time_ns limit_ns = longest_response_ns(entry.deadline_ns, entry.period_ns);
      if (work_ <= 0 || !one.response_ns || *one.response_ns > limit_ns) {
        lose_from(chain, too_long(chain), true);
        return true;
      }
      if (*one.response_ns <= allowed_ns_[chain]) continue;
      allowed_ns_[chain] = add(*one.response_ns, further ? *one.response_ns / 16 : 0);
      changed = true;
    }
    return changed;
  }

  // True if the bound of each chain that still has one is at most the chain's assumed response.
  bool confirmed(const Result &result) const {
    for (size_t chain = 0; chain < why_.size(); ++chain) {
      if (!why_[chain] && !result.chains[chain].sound) return false;
    }
    return true;
  }

  // Judges the results by the described deadlines, which assumed responses had replaced.
  void conclude() {
    std::optional<Shortfall> first;
    for (const size_t chain : executor_.order()) {
      if (!first) first = why_[chain];
    }
    result_.met = true;
    for (const size_t chain : executor_.order()) {
      ChainResult &one = result_.chains[chain];
      if (!why_[chain] && !one.sound) why_[chain] = first ? *first : too_long(chain);
      if (why_[chain]) {
        one.sound = false;
        one.response_ns.reset();
      }
      one.met = one.guaranteed = one.sound && *one.response_ns <= executor_.chains()[chain].deadline_ns;
      result_.met = result_.met && one.met;
    }
  }

  const Executor &executor_;
  size_t number_;
  Options options_;
  int64_t &work_;
  std::vector<Preemption> preempted_by_;
  Result result_;
  std::vector<char> lost_;
  std::vector<ChainResult> alone_;  // results that do not depend on whether other chains are on time
  std::vector<View> views_;         // used if callbacks have priorities of their own
  std::unique_ptr<Executor> unordered_executor_;
  std::unique_ptr<Confirmed> unordered_;  // the same executor with Policy::any_order; null without views_
  std::vector<std::optional<Shortfall>> why_;
  std::vector<time_ns> allowed_ns_;  // assumed response of each chain, while values are searched from below
  bool from_below_ = false;
};

// ---- all executors, and paths ----

constexpr int kMostRounds = 400;
constexpr int64_t kMostWork = 40'000'000;

class Composition {
 public:
  Composition(const System &system, const Options &options) : system_(system), work_(kMostWork) {
    executors_.reserve(system.executors().size());
    for (size_t number = 0; number < system.executors().size(); ++number) {
      const Executor &executor = system.executors()[number];
      std::vector<Preemption> preempted_by;
      for (const size_t other : more_urgent(number))
        for (const Chain &chain : system.executors()[other].chains())
          preempted_by.push_back({chain.execution_ns, chain.period_ns});
      executors_.emplace_back(executor, number, options, work_, std::move(preempted_by));
      jitter_ns_.emplace_back();
      for (const Chain &chain : executor.chains()) jitter_ns_.back().push_back(chain.jitter_ns);
      order_.push_back(number);
    }
    std::stable_sort(order_.begin(), order_.end(), [&system](size_t left, size_t right) {
      return system.executors()[left].thread_priority > system.executors()[right].thread_priority;
    });
  }

  SystemResult run() {
    for (int round = 0;; ++round) {
      for (const size_t number : order_) {
        share_core(number);
        executors_[number].find(jitter_ns_[number]);
      }
      if (round == kMostRounds || work_ <= 0) give_up();
      if (!carry_jitter(round >= kExactPasses)) break;
    }
    return conclude();
  }

 private:
  const ChainResult &at(const Place &place) const { return executors_[place.executor].result().chains[place.chain]; }
  const std::optional<Shortfall> &why(const Place &place) const { return executors_[place.executor].why(place.chain); }
  time_ns &jitter_ns(const Place &place) { return jitter_ns_[place.executor][place.chain]; }

  // The executors whose threads preempt that of executor `number`.
  std::vector<size_t> more_urgent(size_t number) const {
    const Executor &self = system_.executors()[number];
    std::vector<size_t> found;
    for (size_t other = 0; other < system_.executors().size(); ++other) {
      const Executor &one = system_.executors()[other];
      if (self.core >= 0 && one.core == self.core && one.thread_priority > self.thread_priority) found.push_back(other);
    }
    return found;
  }

  // Carries the present bounds of more urgent threads to an executor on their core. Without one of these bounds,
  // nothing limits how much of the core that thread takes in a window.
  void share_core(size_t number) {
    std::vector<Preemption> by;
    for (const size_t other : more_urgent(number)) {
      const std::vector<Chain> &chains = system_.executors()[other].chains();
      for (size_t chain = 0; chain < chains.size(); ++chain) {
        if (const std::optional<Shortfall> &why = executors_[other].why(chain)) {
          for (size_t own = 0; own < jitter_ns_[number].size(); ++own) executors_[number].lose(own, *why);
          continue;
        }
        const time_ns ended_ns = add(jitter_ns_[other][chain], *executors_[other].result().chains[chain].response_ns);
        by.push_back({chains[chain].execution_ns, chains[chain].period_ns, ended_ns - chains[chain].execution_ns});
      }
    }
    executors_[number].preempt(by);
  }

  // Raises the jitters of segments to what the preceding segments cause. Returns true if a jitter was raised, or if it
  // became unknown because the preceding segment has no bound. The jitter of a segment is the distance between its
  // latest and its earliest release; the earliest release follows if all preceding callbacks take their shortest time.
  bool carry_jitter(bool further) {
    bool changed = false;
    for (const Path &path : system_.paths()) {
      time_ns late_ns = jitter_ns(path.segments.front()), early_ns = 0;
      for (size_t segment = 1; segment < path.segments.size(); ++segment) {
        const Place &before = path.segments[segment - 1], &place = path.segments[segment];
        const Chain &chain = system_.executors()[before.executor].chains()[before.chain];
        early_ns += chain.least_ns;
        if (executors_[place.executor].is_lost(place.chain)) continue;
        if (why(before)) {
          lose(place, *why(before));
          changed = true;
          continue;
        }
        // This also sets the jitter of a segment that has no bound itself, because its releases affect the bounds of
        // other chains.
        late_ns = add(late_ns, add(*at(before).response_ns, path.delays_ns[segment - 1]));
        time_ns &known_ns = jitter_ns(place);
        if (late_ns - early_ns <= known_ns) {
          late_ns = early_ns + known_ns;
          continue;
        }
        changed = true;
        const time_ns limit_ns = longest_response_ns(path.deadline_ns, chain.period_ns);
        if (late_ns > limit_ns)
          lose(place, {Shortfall::Kind::unsettled, before.executor, before.chain, late_ns, limit_ns});
        const time_ns spread_ns = late_ns - early_ns;
        known_ns = add(spread_ns, further ? spread_ns / 16 : 0);
        late_ns = add(early_ns, known_ns);
      }
    }
    return changed;
  }

  void lose(const Place &place, const Shortfall &why) { executors_[place.executor].lose(place.chain, why); }

  // Called if the jitters have not settled: every segment except the first may be released later than computed, and so
  // loses its bound.
  void give_up() {
    for (const Path &path : system_.paths()) {
      const Place &first = path.segments.front();
      const time_ns period_ns = system_.executors()[first.executor].chains()[first.chain].period_ns;
      for (size_t segment = 1; segment < path.segments.size(); ++segment) {
        const Place &place = path.segments[segment];
        if (!executors_[place.executor].is_lost(place.chain))
          lose(place, {Shortfall::Kind::effort, first.executor, first.chain, jitter_ns(place),
                       longest_response_ns(path.deadline_ns, period_ns)});
      }
    }
    work_ = std::max<int64_t>(work_, kMostWork / 10);  // effort for the rounds that may follow
  }

  SystemResult conclude() {
    SystemResult result;
    result.guaranteed = true;
    for (size_t number = 0; number < executors_.size(); ++number) {
      result.executors.push_back(executors_[number].result());
      result.why.emplace_back();
      for (size_t chain = 0; chain < result.executors.back().chains.size(); ++chain) {
        result.why.back().push_back(executors_[number].why(chain));
        result.guaranteed = result.guaranteed && result.executors.back().chains[chain].guaranteed;
      }
    }
    for (const Path &path : system_.paths()) {
      PathResult answer;
      time_ns sum_ns = 0;
      for (const Place &place : path.segments) {
        answer.segments_ns.push_back(at(place).response_ns);
        answer.jitter_ns.push_back(jitter_ns(place));
        if (!answer.why) answer.why = why(place);
        sum_ns = add(sum_ns, at(place).response_ns.value_or(0));
      }
      for (const time_ns delay_ns : path.delays_ns) sum_ns = add(sum_ns, delay_ns);
      result.settled = result.settled && !answer.why;
      if (!answer.why) answer.response_ns = sum_ns;
      answer.met = answer.guaranteed = !answer.why && sum_ns <= path.deadline_ns;
      result.guaranteed = result.guaranteed && answer.guaranteed;
      result.paths.push_back(std::move(answer));
    }
    return result;
  }

  const System &system_;
  int64_t work_;
  std::vector<Confirmed> executors_;
  std::vector<size_t> order_;  // the executors, of each core the more urgent ones first
  std::vector<std::vector<time_ns>> jitter_ns_;
};

}  // namespace

SystemResult analyse_system(const System &system, const Options &options) { return Composition(system, options).run(); }

Result analyse_executor(const Executor &executor, const Options &options, int64_t work) {
  Confirmed confirmed(executor, 0, options, work);
  std::vector<time_ns> jitter_ns;
  for (const Chain &chain : executor.chains()) jitter_ns.push_back(chain.jitter_ns);
  confirmed.find(jitter_ns);
  return confirmed.result();
}

// ---- every analysis side by side ----

std::vector<Compared> compare(const Executor &executor, const Options &options) {
  std::vector<Compared> all;
  for (const Analysis &analysis : analyses()) {
    Result result = analyse(analysis, executor, options);
    if (result.error.empty()) all.push_back({analysis.name, std::move(result)});
  }
  if (!is_single_thread(executor)) return all;
  for (const SingleThreadAnalysis &analysis : single_thread_analyses()) {
    if (holds_for(analysis.policy, executor.policy()))
      all.push_back({analysis.name, single_thread_result(analysis, executor)});
  }
  return all;
}

}  // namespace tide::analysis
