// SPDX-License-Identifier: Apache-2.0
#include "analysis/threads.h"

#include <numeric>

namespace tide::analysis {

// ---- the terms of the demand ---- Each term is a function of the window. docs/analysis/multithreaded.md explains why
// their sum is an upper limit.

namespace {

// How long a chain can execute in a window.
using Workload = Linear (*)(const Chain &chain, time_ns slack_ns, time_ns window_ns);

void note_share(const Situation &situation, size_t chain, time_ns share_ns) {
  if (situation.shares_ns != nullptr) (*situation.shares_ns)[chain] = share_ns;
}

// Upper limit of a waiting time that lies in the window, multiplied by `copies`, the number of instances that can be
// active.
Linear room(const Situation &situation, time_ns copies, time_ns window_ns) {
  const Chain &self = situation.self();
  return scale({window_ns - (self.execution_ns - self.last_ns), 1, kNeverNs}, copies);
}

// Number of instances of a chain that can be active at the same time.
time_ns under_way(const Situation &situation, size_t chain) {
  const Chain &entry = situation.executor.chains()[chain];
  return std::max<time_ns>(1, divide_up(situation.slack_ns[chain] + entry.execution_ns, entry.period_ns));
}

Linear share_of(const Situation &situation, size_t chain, Workload workload, time_ns window_ns) {
  const Linear whole = workload(situation.executor.chains()[chain], situation.slack_ns[chain], window_ns);
  if (!situation.caps) return whole;
  return lesser(whole, room(situation, under_way(situation, chain), window_ns), window_ns);
}

// Supply of all lanes that the chain cannot use while a callback of this length holds its group.
time_ns holding_ns(const Situation &situation, time_ns execution_ns) {
  return situation.supply.passing_ns(execution_ns);
}

// The sum of the `size` longest blocking callbacks that can run at the same time. Each counts one unit less, because it
// must have started.
template <class Copies> Linear pool(const Situation &situation, time_ns size, time_ns window_ns, Copies copies) {
  Linear sum;
  time_ns left = size;
  for (const size_t blocker : situation.blockers) {
    if (left == 0) break;
    const Linear count = copies(blocker);
    const time_ns taken = std::min(count.value, left);
    if (taken == count.value) sum.until_ns = std::min(sum.until_ns, count.until_ns);
    Linear each = constant(situation.executor.chains()[blocker].longest_ns - 1);
    if (situation.caps) each = lesser(each, room(situation, 1, window_ns), window_ns);
    sum = sum + scale(each, taken);
    left -= taken;
  }
  return sum;
}

Linear safe_pool(const Situation &situation, Deadlines deadlines, time_ns size, time_ns window_ns) {
  return pool(situation, size, window_ns, [&](size_t blocker) {
    const Chain &chain = situation.executor.chains()[blocker];
    // A chain that may be late can have any number of active instances.
    if (situation.trusted[blocker] == 0) return constant(size);
    if (deadlines == Deadlines::constrained) return constant(1);
    // All callbacks that block a stage run at the same moment, each in a separate instance, so only active instances
    // count. (With whole_instances, as in the worked examples, all instances that touch the window count.)
    if (!situation.options.whole_instances) return constant(under_way(situation, blocker));
    return stair(window_ns, situation.slack_ns[blocker] + chain.execution_ns, chain.period_ns);
  });
}

// Number of other instances of the callback under analysis that go first: whatever the window, only those that were
// released earlier and are still active when the one under analysis is released. (With whole_instances, as in the
// worked examples: all instances in the window less one. In a window shorter than the callback, this would omit the
// earlier ones; therefore the maximum of both numbers counts.)
Linear itself_before(const Situation &situation, const Linear &in_window) {
  const Chain &self = situation.self();
  const time_ns before = divide_up(situation.slack_ns[situation.chain] + self.execution_ns, self.period_ns) - 1;
  if (!situation.options.whole_instances) return constant(before);
  if (in_window.value - 1 >= before) return in_window - constant(1);
  return {before, 0, in_window.until_ns};
}

// The sum of `count` numbers: the first is first_ns, and each next one is smaller by step_ns.
time_ns series_ns(time_ns first_ns, time_ns step_ns, time_ns count) {
  __extension__ using wide = __int128;
  const wide sum_ns =
      static_cast<wide>(count) * (2 * static_cast<wide>(first_ns) - (count - 1) * static_cast<wide>(step_ns)) / 2;
  return sum_ns > kNeverNs ? kNeverNs : static_cast<time_ns>(sum_ns);
}

// Execution that remains of earlier instances when the one under analysis is released. Each instance ends within its
// allowed response, so the one that was released k periods earlier has at most this response less k periods left.
time_ns left_of_earlier_ns(const Chain &chain, time_ns slack_ns) {
  const time_ns allowed_ns = slack_ns + chain.execution_ns;
  const time_ns earlier = divide_up(allowed_ns, chain.period_ns) - 1;
  const time_ns whole = std::min(slack_ns / chain.period_ns, earlier);
  return add(multiply(whole, chain.execution_ns),
             series_ns(allowed_ns - (whole + 1) * chain.period_ns, chain.period_ns, earlier - whole));
}

// Execution of later instances in the window. The first of them can be released one period after the instance under
// analysis, less that instance's jitter.
Linear later_workload(const Chain &chain, time_ns window_ns) {
  const time_ns from_ns = chain.period_ns - chain.jitter_ns;
  if (window_ns < from_ns) return {0, 0, from_ns};
  const time_ns length_ns = window_ns - from_ns;
  const time_ns begun = length_ns / chain.period_ns + 1;
  const time_ns over = length_ns < chain.execution_ns ? 0 : (length_ns - chain.execution_ns) / chain.period_ns + 1;
  const time_ns next_ns = std::min(over * chain.period_ns + chain.execution_ns, begun * chain.period_ns);
  return {add(multiply(over, chain.execution_ns),
              series_ns(length_ns - over * chain.period_ns, chain.period_ns, begun - over)),
          begun - over, window_ns + next_ns - length_ns};
}

// Number of earlier and later instances of the chain under analysis that may use its groups in a window.
Linear other_instances(const Situation &situation, time_ns window_ns) {
  const Chain &self = situation.self();
  const time_ns before = divide_up(situation.slack_ns[situation.chain] + self.execution_ns, self.period_ns) - 1;
  return stair(window_ns, self.jitter_ns, self.period_ns) + constant(before - 1);
}

bool first_and_timer(const Chain &chain, size_t callback) { return callback == 0 && chain.timer; }

// Lemmas 1 and 5 of Sobhani et al. 2023, for constrained deadlines.
Linear constrained_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns) {
  const time_ns length_ns = window_ns + slack_ns;
  const time_ns count = length_ns / chain.period_ns;
  const time_ns rest_ns = length_ns % chain.period_ns;
  const time_ns whole_ns = multiply(count, chain.execution_ns);
  if (rest_ns >= chain.execution_ns) {
    return {add(whole_ns, chain.execution_ns), 0, window_ns + chain.period_ns - rest_ns};
  }
  const time_ns corner_ns =
      chain.execution_ns <= chain.period_ns ? chain.execution_ns - rest_ns : chain.period_ns - 1 - rest_ns;
  return {add(whole_ns, rest_ns), 1, window_ns + corner_ns};
}

// Counts every instance that touches the window in full (Lemma 6 of Sobhani et al. 2023).
Linear whole_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns) {
  return scale(stair(window_ns, slack_ns, chain.period_ns), chain.execution_ns);
}

// Never more than constrained_workload or whole_workload: instances that overlap cannot both fill the same part of the
// window.
Linear sharp_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns) {
  const time_ns length_ns = window_ns + slack_ns;
  const time_ns count = length_ns / chain.period_ns;
  const time_ns rest_ns = length_ns % chain.period_ns;
  const time_ns always = chain.execution_ns / chain.period_ns;  // number of instances that always overlap
  const time_ns part_ns = chain.execution_ns % chain.period_ns;
  const time_ns value_ns = add(multiply(count, chain.execution_ns), multiply(always, rest_ns));
  if (part_ns == 0) return {value_ns, always, kNeverNs};
  if (rest_ns < part_ns) return {add(value_ns, rest_ns), always + 1, window_ns + part_ns - rest_ns};
  return {add(value_ns, part_ns), always, window_ns + chain.period_ns - rest_ns};
}

Linear interference_of_all(const Situation &situation, Workload workload, time_ns window_ns) {
  Linear sum;
  for (size_t other = 0; other < situation.executor.chains().size(); ++other) {
    if (other == situation.chain) continue;
    const Linear share = share_of(situation, other, workload, window_ns);
    note_share(situation, other, share.value);
    sum = sum + share;
  }
  return sum;
}

Linear interference_of_more_important(const Situation &situation, Workload workload, time_ns window_ns) {
  Linear sum;
  for (size_t place = 0; place < situation.executor.rank(situation.chain); ++place) {
    const size_t other = situation.executor.order()[place];
    const Linear share = share_of(situation, other, workload, window_ns);
    note_share(situation, other, share.value);
    sum = sum + share;
  }
  return sum;
}

Linear own_published(const Situation &situation, time_ns window_ns) {
  return whole_workload(situation.self(), situation.slack_ns[situation.chain], window_ns) -
         constant(situation.self().execution_ns);
}

Linear own_safe(const Situation &situation, time_ns window_ns) {
  const Chain &self = situation.self();
  const time_ns slack_ns = situation.slack_ns[situation.chain];
  if (situation.options.whole_instances) {
    const Linear analysed =
        window_ns < self.execution_ns ? Linear{window_ns, 1, self.execution_ns} : constant(self.execution_ns);
    return whole_workload(self, slack_ns, window_ns) - analysed;
  }
  const Linear others = constant(left_of_earlier_ns(self, slack_ns)) + later_workload(self, window_ns);
  if (!situation.caps) return others;
  return lesser(others, room(situation, under_way(situation, situation.chain) - 1, window_ns), window_ns);
}

Linear groups_published(const Situation &situation, Policy policy, Deadlines deadlines, time_ns window_ns) {
  Linear waits;
  const Executor &executor = situation.executor;
  for (size_t number = 0; number < situation.self().callbacks.size(); ++number) {
    const int group = situation.self().callbacks[number].group;
    if (group == kReentrant) continue;
    for (const Member &member : executor.members()[static_cast<size_t>(group)]) {
      const bool own = member.chain == situation.chain;
      if (own && (deadlines == Deadlines::constrained || member.callback == number)) continue;
      const bool above = own ? member.callback > number : executor.above(member.chain, situation.chain);
      if (policy == Policy::priority && !above) continue;
      const Chain &chain = executor.chains()[member.chain];
      const Linear count = stair(window_ns, situation.slack_ns[member.chain], chain.period_ns);
      const time_ns execution_ns = chain.callbacks[member.callback].execution_ns;
      waits = waits + scale(count, multiply(situation.supply.lanes(), execution_ns));
    }
  }
  return waits;
}

struct GroupTerms {
  Linear demand;
  Linear stages;  // number of additional stages at which the chain may wait
};

// The terms of the chain's groups. The timer of a chain counts as a group even if it is in none, because its instances
// exclude each other.
GroupTerms groups_safe(const Situation &situation, Policy policy, Deadlines deadlines, time_ns window_ns) {
  GroupTerms terms;
  const Executor &executor = situation.executor;
  const auto charge = [&](const Member &member, bool itself) {
    const Chain &chain = executor.chains()[member.chain];
    const time_ns execution_ns = chain.callbacks[member.callback].execution_ns;
    // The instance's other callbacks may take almost no time, and then this callback begins earlier by their execution
    // times.
    const time_ns offset_ns = situation.slack_ns[member.chain] + chain.execution_ns - execution_ns;
    Linear count = stair(window_ns, offset_ns, chain.period_ns);
    if (itself) {
      count = itself_before(situation, count);
    } else if (member.chain == situation.chain && !situation.options.whole_instances) {
      count = lesser(count, other_instances(situation, window_ns), window_ns);
    }
    terms.demand = terms.demand + scale(count, holding_ns(situation, execution_ns));
    terms.stages = terms.stages + count;
  };
  for (size_t number = 0; number < situation.self().callbacks.size(); ++number) {
    const int group = situation.self().callbacks[number].group;
    if (group == kReentrant) {
      if (deadlines == Deadlines::arbitrary && first_and_timer(situation.self(), number)) {
        charge({situation.chain, number}, true);
      }
      continue;
    }
    time_ns less_important_ns = 0;
    for (const Member &member : executor.members()[static_cast<size_t>(group)]) {
      const bool own = member.chain == situation.chain;
      if (own && deadlines == Deadlines::constrained) continue;
      if (!own && policy == Policy::priority && !executor.above(member.chain, situation.chain)) {
        const time_ns execution_ns = executor.chains()[member.chain].callbacks[member.callback].execution_ns;
        less_important_ns = std::max(less_important_ns, execution_ns);
        continue;
      }
      charge(member, own && member.callback == number);
    }
    // A less important callback that holds the group at the release has held it for at least one unit and, on a
    // dedicated core, has executed this unit.
    if (less_important_ns <= (situation.supply.dedicated() ? 1 : 0)) continue;
    // One less important member may hold the group when the chain is released, even if other lanes are idle.
    const time_ns held_ns = situation.supply.dedicated() ? multiply(situation.supply.lanes(), less_important_ns - 1)
                                                         : holding_ns(situation, less_important_ns);
    terms.demand = terms.demand + constant(held_ns);
    terms.stages = terms.stages + constant(1);
  }
  return terms;
}

Linear blocking_published(const Situation &situation, Deadlines deadlines, time_ns window_ns) {
  return pool(situation, situation.supply.lanes(), window_ns, [&](size_t blocker) {
    if (deadlines == Deadlines::constrained) return constant(1);
    return stair(window_ns, situation.slack_ns[blocker], situation.executor.chains()[blocker].period_ns);
  });
}

// more_important: execution of more important chains, which can take the lane that a callback of the chain has just
// freed.
Linear blocking_safe(const Situation &situation, Deadlines deadlines, const Linear &more_important,
                     const Linear &group_stages, time_ns window_ns) {
  const time_ns lanes = situation.supply.lanes();
  const Linear first = safe_pool(situation, deadlines, lanes, window_ns);
  const Linear each = safe_pool(situation, deadlines, lanes - 1, window_ns);
  const time_ns more_stages = static_cast<time_ns>(situation.self().callbacks.size()) - 1 + group_stages.value;
  Linear again = scale(each, more_stages);  // more_stages is constant until group_stages.until_ns
  again.until_ns = std::min(again.until_ns, group_stages.until_ns);
  if (situation.supply.dedicated()) again = lesser(again, scale(more_important, lanes - 1), window_ns);
  Linear blocking = first + again;
  if (!situation.options.joint) return blocking;
  Linear everything;
  for (const size_t blocker : situation.blockers) {
    if (situation.trusted[blocker] == 0) return blocking;
    everything = everything + share_of(situation, blocker, sharp_workload, window_ns);
  }
  return lesser(blocking, everything, window_ns);
}

}  // namespace

// ---- the theorems ---- Theorems of Sobhani, Choi and Kim 2023. Odd numbers are for the default multi-threaded
// executor, even numbers for the priority-driven one. 1 and 2: constrained deadlines, reentrant callbacks. 3 and 4:
// arbitrary deadlines, reentrant callbacks. 5 and 6: mutually exclusive groups. The terms of a bound depend on the
// policy, on the deadlines, and on whether the theorem covers groups.

namespace {

Linear interference(const Situation &situation, Policy policy, Workload workload, time_ns window_ns) {
  return policy == Policy::priority ? interference_of_more_important(situation, workload, window_ns)
                                    : interference_of_all(situation, workload, window_ns);
}

template <Policy policy, Deadlines deadlines, bool groups>
Terms published(const Situation &situation, time_ns window_ns) {
  constexpr bool kArbitrary = deadlines == Deadlines::arbitrary;
  Terms terms;
  terms.precedence = constant(situation.precedence_ns);
  terms.interference = interference(situation, policy, kArbitrary ? whole_workload : constrained_workload, window_ns);
  if (kArbitrary) terms.own = own_published(situation, window_ns);
  if (groups) terms.groups = groups_published(situation, policy, deadlines, window_ns);
  if (policy == Policy::priority) terms.blocking = blocking_published(situation, deadlines, window_ns);
  return terms;
}

template <Policy policy, Deadlines deadlines, bool groups> Terms safe(const Situation &situation, time_ns window_ns) {
  constexpr bool kArbitrary = deadlines == Deadlines::arbitrary;
  const bool is_sharp = !kArbitrary || !situation.options.whole_instances;
  Terms terms;
  terms.precedence = constant(situation.precedence_ns);
  terms.interference = interference(situation, policy, is_sharp ? sharp_workload : whole_workload, window_ns);
  if (kArbitrary) terms.own = own_safe(situation, window_ns);
  GroupTerms waits;
  if (groups || kArbitrary) waits = groups_safe(situation, policy, deadlines, window_ns);
  terms.groups = waits.demand;
  if (policy == Policy::priority) {
    terms.blocking = blocking_safe(situation, deadlines, terms.interference + terms.own, waits.stages, window_ns);
  }
  return terms;
}

// The published and the safe bound of a theorem.
#define THEOREM(number, title, policy, deadlines, groups)                                                      \
  {"theorem" number "-published",       title ", as published", policy, deadlines, Variant::published, groups, \
   published<policy, deadlines, groups>},                                                                      \
  {                                                                                                            \
    "theorem" number "-safe", title, policy, deadlines, Variant::safe, groups, safe<policy, deadlines, groups> \
  }

constexpr auto kAny = Policy::any_order, kPriority = Policy::priority;
constexpr auto kConstrained = Deadlines::constrained, kArbitrary = Deadlines::arbitrary;
constexpr Analysis kAnalyses[] = {
    THEOREM("1", "PWA_CD: default executor, constrained deadlines", kAny, kConstrained, false),
    THEOREM("2", "PPWA_CD: priority-driven executor, constrained deadlines", kPriority, kConstrained, false),
    THEOREM("3", "PWA_AD: default executor, arbitrary deadlines", kAny, kArbitrary, false),
    THEOREM("4", "PPWA_AD: priority-driven executor, arbitrary deadlines", kPriority, kArbitrary, false),
    THEOREM("5-constrained", "default executor with groups, constrained deadlines", kAny, kConstrained, true),
    THEOREM("5-arbitrary", "default executor with groups, arbitrary deadlines", kAny, kArbitrary, true),
    THEOREM("6-constrained", "priority-driven executor with groups, constrained deadlines", kPriority, kConstrained,
            true),
    THEOREM("6-arbitrary", "priority-driven executor with groups, arbitrary deadlines", kPriority, kArbitrary, true),
};
#undef THEOREM

}  // namespace

std::span<const Analysis> analyses() { return kAnalyses; }

const Analysis *find_analysis(std::string_view name) {
  for (const Analysis &analysis : analyses()) {
    if (analysis.name == name) return &analysis;
  }
  return nullptr;
}

const Analysis &fitting_analysis(const Executor &executor) {
  Deadlines deadlines = Deadlines::constrained;
  for (const Chain &chain : executor.chains()) {
    if (add(chain.deadline_ns, chain.jitter_ns) > chain.period_ns) deadlines = Deadlines::arbitrary;
  }
  const Policy policy = executor.policy() == Policy::priority ? Policy::priority : Policy::any_order;
  const Analysis *fitting = nullptr;
  for (const Analysis &analysis : analyses()) {
    if (analysis.variant == Variant::safe && analysis.policy == policy && analysis.deadlines == deadlines &&
        analysis.groups == executor.has_groups()) {
      fitting = &analysis;
    }
  }
  return *fitting;  // every combination exists
}

// ---- the least window, and a pass over all chains ----

namespace {

// If the solver needs more steps than this, there is no bound, which is always safe.
constexpr int kMostSteps = 2'000'000;

// The least window whose supply exceeds its demand. From each candidate below the solution, demand and supply are
// linear up to the nearer of their corners, so the next candidate is their intersection or the first window past that
// corner. If the demand never falls, the window that supplies the present demand is another lower limit of the
// solution. `work` is counted down; at 0 there is no bound. `last_ns` receives the last window tried, and `next_ns` the
// next one to try.
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
    // The demand may fall only if whole instances are counted: the share of the instance under analysis is then
    // subtracted, and this share grows with the window up to the execution time. This case uses the plain iteration,
    // which may skip windows that suffice, as the published figures do.
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
    // The published analysis ignores jitter.
    return std::max<time_ns>(0, (safe() ? chain.jitter_ns : 0) + response_ns - chain.execution_ns);
  }

  // Sets the assumptions of a pass, to be confirmed by its results: chains meet their deadlines or, with
  // within_periods, even end before their next release. The stronger assumption is tried because bounds are far lower
  // if it is true.
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

  // True if the chain waits only while all lanes are busy, and never for a group or for an earlier instance of its own.
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
    // The theorems for constrained deadlines require that each instance ends before the next one can be released.
    if (safe() && analysis_.deadlines == Deadlines::constrained && result.met) {
      result.met = add(*result.response_ns, chain.jitter_ns) <= chain.period_ns;
    }
    if (late_ != nullptr && (*late_)[index] != 0) result.met = false;
  }

  // Call this before slack_ns changes, because the window was found with its present values.
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

  // Bounds all chains, the most important first; returns true if all deadlines are met.
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
      // This bound depends only on more important chains, and they all meet their deadlines, so this pass may already
      // use it.
      if (options_.refine && by_priority() && more_important_met) {
        situation_.slack_ns[index] = slack_ns(index, *chains_[index].response_ns);
      }
    }
    return all_met;
  }

  // From now on, chains that turned out to be late, and all less important ones, are not assumed to meet their
  // deadlines.
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
  int64_t work_;  // remaining
  Supply supply_;
  Situation situation_;
  std::vector<ChainResult> chains_;
  std::vector<time_ns> assumed_ns_;
  bool assumes_periods_ = false;
  std::vector<time_ns> deadline_slack_ns_;
  std::vector<time_ns> refined_slack_ns_;
  time_ns limit_ns_ = 0;
  bool all_met_ = false;
  bool stopped_ = false;  // true if only a verdict was requested and it is known
};

}  // namespace

Result analyse(const Analysis &analysis, const Executor &executor, const Options &options,
               const std::vector<char> *late) {
  return Run(analysis, executor, options, late).run();
}

}  // namespace tide::analysis
