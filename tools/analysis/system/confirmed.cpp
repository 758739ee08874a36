// SPDX-License-Identifier: Apache-2.0
#include "analysis/system/confirmed.h"

#include "analysis/single/single_thread.h"

namespace tide::analysis {
namespace {

constexpr int kMostRaises = 400;
constexpr int kExactPasses = 24;  // after them values are raised a little further, which keeps the passes few

}  // namespace

time_ns longest_response_ns(time_ns deadline_ns, time_ns period_ns) {
  return multiply(kMostTimesLate, std::max(deadline_ns, period_ns));
}

const char *name_of(Shortfall::Kind kind) {
  switch (kind) {
    case Shortfall::Kind::overload:
      return "overload";
    case Shortfall::Kind::too_long:
      return "too_long";
    case Shortfall::Kind::unsettled:
      return "unsettled";
    default:
      return "effort";
  }
}

Confirmed::Confirmed(const Executor &executor, size_t number, const Options &options, int64_t &work)
    : executor_(executor),
      number_(number),
      options_(options),
      work_(work),
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
    unordered_ = std::make_unique<Confirmed>(*unordered_executor_, number, options, work);
    from_below_ = true;
  }
  find_overload();
}

// In the long run only what goes before a chain takes time from it.
void Confirmed::find_overload() {
  using Share = long double;
  Share given = 0;
  for (const Lane &lane : executor_.lanes())
    given += static_cast<Share>(lane.budget_ns) / static_cast<Share>(lane.period_ns);
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

void Confirmed::lose(size_t chain, const Shortfall &why) {
  if (unordered_) unordered_->lose(chain, why);
  if (is_lost(chain)) return;
  lost_[chain] = 1;
  lose_from(chain,
            why);  // others may have bounds beside one that has none, but not beside one of which nothing is known
}

// What goes after a chain of which nothing is known has no bound either.
void Confirmed::lose_from(size_t chain, const Shortfall &why, bool alone) {
  for (size_t other = 0; other < why_.size(); ++other) {
    if (why_[other] || !goes_before(executor_, chain, other)) continue;
    if (alone && other != chain && alone_[other].sound) continue;
    why_[other] = why;
  }
}

std::vector<char> Confirmed::late() const {
  std::vector<char> late;
  for (const auto &why : why_) late.push_back(why ? 1 : 0);
  return late;
}

// presume: what deadlines say of the others is going to be confirmed.
Result Confirmed::analysed(const Executor &executor, bool presume) {
  Options options = options_;
  options.most_work = std::max<int64_t>(work_, 0);
  options.presume = presume;
  options.refine = options_.refine && !presume;
  const std::vector<char> nothing_known = late();
  Result result = analyse(fitting_analysis(executor), executor, options, &nothing_known);
  work_ -= result.work;
  return sharpened(alone_, std::move(result));
}

// Each chain in its own order, with what the others are taken to do.
Result Confirmed::analysed_views(const std::vector<time_ns> &jitter_ns) {
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

ChainResult Confirmed::seen_by(size_t chain, const std::vector<time_ns> &jitter_ns, const Analysis *&analysis) {
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

bool Confirmed::all_sound() const {
  for (size_t chain = 0; chain < why_.size(); ++chain) {
    const ChainResult &one = result_.chains[chain];
    const Chain &entry = executor_.chains()[chain];
    if (why_[chain]) continue;
    if (!one.sound || *one.response_ns > longest_response_ns(entry.deadline_ns, entry.period_ns)) return false;
  }
  return true;
}

Shortfall Confirmed::too_long(size_t chain) const {
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
  // As a share of the window.
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

// True: values were raised, or a chain was lost, and bounds have to be found anew.
bool Confirmed::raise(bool further) {
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

// Each alive chain keeps to what it is taken to do.
bool Confirmed::confirmed(const Result &result) const {
  for (size_t chain = 0; chain < why_.size(); ++chain) {
    if (!why_[chain] && !result.chains[chain].sound) return false;
  }
  return true;
}

void Confirmed::find(const std::vector<time_ns> &jitter_ns) {
  const Executor released = executor_.with_jitter(jitter_ns);
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
    if (pass == kMostRaises) work_ = 0;  // there is no end to it
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

// Deadlines are those of the description again.
void Confirmed::conclude() {
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

}  // namespace tide::analysis
