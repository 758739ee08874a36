// SPDX-License-Identifier: Apache-2.0
#include "analysis/confirmed.h"

#include "analysis/single_thread.h"

namespace tide::analysis {
namespace {

constexpr int most_passes = 400;
constexpr int exact_passes = 24;  // after them values are raised a little further, which keeps the passes few

}  // namespace

time_ns longest_response_ns(time_ns deadline_ns, time_ns period_ns) {
  return multiply(most_times_late, std::max(deadline_ns, period_ns));
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

Confirmed::Confirmed(const Executor &executor, std::size_t number, const Options &options, std::int64_t &work)
    : executor_(executor), number_(number), options_(options), work_(work), why_(executor.chains().size()) {
  options_.only_verdict = false;
  for (const Chain &chain : executor.chains()) {
    options_.search_ns = std::max(options_.search_ns, longest_response_ns(chain.deadline_ns, chain.period_ns));
    allowed_ns_.push_back(chain.execution_ns);
  }
  find_overload();
}

// By priority only what is as important takes the time of a chain in the long run.
void Confirmed::find_overload() {
  using Share = long double;
  Share given = 0, asked = 0;
  for (const Lane &lane : executor_.lanes())
    given += static_cast<Share>(lane.budget_ns) / static_cast<Share>(lane.period_ns);
  constexpr Share rounding = 1e-12L;
  const bool by_priority = executor_.policy() == Policy::priority;
  std::optional<std::size_t> least;
  for (const std::size_t index : executor_.order()) {
    const Chain &chain = executor_.chains()[index];
    asked += static_cast<Share>(chain.execution_ns) / static_cast<Share>(chain.period_ns);
    if (!by_priority || asked > given * (1 + rounding)) least = index;
    if (by_priority && least) break;
  }
  if (!least || asked <= given * (1 + rounding)) return;
  Shortfall why{Shortfall::Kind::overload, number_, *least};
  why.asked_permille = static_cast<std::int64_t>(asked * 1000) + 1;
  why.given_permille = static_cast<std::int64_t>(given * 1000);
  lose_from(*least, why);
}

void Confirmed::lose(std::size_t chain, const Shortfall &why) {
  if (!why_[chain]) lose_from(chain, why);
}

// What goes after a chain of which nothing is known has no bound either.
void Confirmed::lose_from(std::size_t chain, const Shortfall &why) {
  const bool by_priority = executor_.policy() == Policy::priority;
  for (std::size_t other = 0; other < why_.size(); ++other) {
    if (why_[other] || (by_priority && executor_.above(other, chain))) continue;
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
  options.most_work = std::max<std::int64_t>(work_, 0);
  options.presume = presume;
  options.refine = options_.refine && !presume;
  const std::vector<char> nothing_known = late();
  Result result = analyse(fitting_analysis(executor), executor, options, &nothing_known);
  work_ -= result.work;
  return sharpened(alone_, std::move(result));
}

bool Confirmed::all_sound() const {
  for (std::size_t chain = 0; chain < why_.size(); ++chain) {
    const ChainResult &one = result_.chains[chain];
    const Chain &entry = executor_.chains()[chain];
    if (why_[chain]) continue;
    if (!one.sound || *one.response_ns > longest_response_ns(entry.deadline_ns, entry.period_ns)) return false;
  }
  return true;
}

Shortfall Confirmed::too_long(std::size_t chain) const {
  const ChainResult &one = result_.chains[chain];
  const Chain &entry = executor_.chains()[chain];
  Shortfall why{Shortfall::Kind::too_long, number_, chain};
  why.limit_ns = longest_response_ns(entry.deadline_ns, entry.period_ns);
  why.reached_ns = one.response_ns.value_or(add(one.breakdown.window_ns, one.breakdown.finish_ns));
  if (work_ <= 0) why.kind = Shortfall::Kind::effort;
  // As a share of the window.
  const auto scaled = [&one](time_ns value_ns) {
    __extension__ typedef __int128 Wide;
    if (one.breakdown.demand_ns == 0) return value_ns;
    return static_cast<time_ns>(Wide{value_ns} * one.breakdown.window_ns / one.breakdown.demand_ns);
  };
  const auto look = [&why](std::string_view name, time_ns value_ns, std::optional<std::size_t> whose = {}) {
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
  for (std::size_t other = 0; other < one.breakdown.interference_ns.size(); ++other)
    look("interference", scaled(one.breakdown.interference_ns[other]), other);
  return why;
}

// True: values were raised, or a chain was lost, and bounds have to be found anew.
bool Confirmed::raise(const Executor &executor, bool further) {
  bool changed = false;
  for (const std::size_t chain : executor_.order()) {
    if (why_[chain]) continue;
    const ChainResult &one = result_.chains[chain];
    const Chain &entry = executor_.chains()[chain];
    const time_ns limit_ns = longest_response_ns(entry.deadline_ns, entry.period_ns);
    if (work_ <= 0 || !one.response_ns || *one.response_ns > limit_ns) {
      if (is_single_thread(executor)) {
        why_[chain] = too_long(chain);  // those of the others do not need it
      } else {
        lose_from(chain, too_long(chain));
      }
      return true;
    }
    if (*one.response_ns <= executor.chains()[chain].deadline_ns) continue;
    allowed_ns_[chain] = add(*one.response_ns, further ? *one.response_ns / 16 : 0);
    changed = true;
  }
  return changed;
}

// Each alive chain keeps to what it is taken to do.
bool Confirmed::confirmed(const Result &result) const {
  for (std::size_t chain = 0; chain < why_.size(); ++chain) {
    if (!why_[chain] && !result.chains[chain].sound) return false;
  }
  return true;
}

void Confirmed::find(const std::vector<time_ns> &jitter_ns) {
  const Executor released = executor_.with_jitter(jitter_ns);
  alone_.assign(why_.size(), {});
  if (options_.sharpen) alone_ = single_thread_results(released, work_);
  if (!from_below_) {
    result_ = analysed(released, false);
    from_below_ = !all_sound();
  }
  for (int pass = 0; from_below_; ++pass) {
    const Executor presumed = released.with_deadlines(allowed_ns_);
    if (pass == most_passes) work_ = 0;  // there is no end to it
    result_ = analysed(presumed, true);
    if (raise(presumed, pass >= exact_passes)) continue;
    if (options_.refine) {
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
  for (const std::size_t chain : executor_.order()) {
    if (!first) first = why_[chain];
  }
  result_.met = true;
  for (const std::size_t chain : executor_.order()) {
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
