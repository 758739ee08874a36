// SPDX-License-Identifier: Apache-2.0
#include "analysis/threads/terms.h"

namespace tide::analysis {
namespace {

void note_share(const Situation &situation, size_t chain, time_ns share_ns) {
  if (situation.shares_ns != nullptr) (*situation.shares_ns)[chain] = share_ns;
}

// As long as the window leaves for waiting, once for each instance that can be under way.
Linear room(const Situation &situation, time_ns copies, time_ns window_ns) {
  const Chain &self = situation.self();
  return scale({window_ns - (self.execution_ns - self.last_ns), 1, kNeverNs}, copies);
}

// Instances of a chain that can be under way at a time.
time_ns under_way(const Situation &situation, size_t chain) {
  const Chain &entry = situation.executor.chains()[chain];
  return std::max<time_ns>(1, divide_up(situation.slack_ns[chain] + entry.execution_ns, entry.period_ns));
}

Linear share_of(const Situation &situation, size_t chain, Workload workload, time_ns window_ns) {
  const Linear whole = workload(situation.executor.chains()[chain], situation.slack_ns[chain], window_ns);
  if (!situation.caps) return whole;
  return lesser(whole, room(situation, under_way(situation, chain), window_ns), window_ns);
}

// What the executor can supply without use for the chain while a callback of this length holds a group.
time_ns holding_ns(const Situation &situation, time_ns execution_ns) {
  return situation.supply.passing_ns(execution_ns);
}

// The sum of the `size` longest callbacks that can block at the same time, each less the unit it must have begun with.
template <class Copies>
Linear pool(const Situation &situation, time_ns size, time_ns window_ns, Copies copies) {
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
    // A chain that may be late can have any number of instances under way.
    if (situation.trusted[blocker] == 0) return constant(size);
    if (deadlines == Deadlines::constrained) return constant(1);
    // What blocks at one stage runs at one moment, each copy in an instance of its own. (Worked examples count all that
    // touch the window.)
    if (!situation.options.whole_instances) return constant(under_way(situation, blocker));
    return stair(window_ns, situation.slack_ns[blocker] + chain.execution_ns, chain.period_ns);
  });
}

// Of the callback under analysis only those instances go first that were released before and are still under way at the
// release of this one: as many however short the window. (The window's count less one misses them where the window is
// shorter than the callback; where it is longer it counts more, and worked examples count whole instances so.)
Linear itself_before(const Situation &situation, const Linear &in_window) {
  const Chain &self = situation.self();
  const time_ns before = divide_up(situation.slack_ns[situation.chain] + self.execution_ns, self.period_ns) - 1;
  if (!situation.options.whole_instances) return constant(before);
  if (in_window.value - 1 >= before) return in_window - constant(1);
  return {before, 0, in_window.until_ns};
}

// The sum of `count` numbers, the first one and each less than the one before it by `step_ns`.
time_ns series_ns(time_ns first_ns, time_ns step_ns, time_ns count) {
  __extension__ using wide = __int128;
  const wide sum_ns =
      static_cast<wide>(count) * (2 * static_cast<wide>(first_ns) - (count - 1) * static_cast<wide>(step_ns)) / 2;
  return sum_ns > kNeverNs ? kNeverNs : static_cast<time_ns>(sum_ns);
}

// What the instances before the one under analysis may still have to execute at its release: each is over within its
// allowed response, so that the one k periods earlier has that much time less k periods.
time_ns left_of_earlier_ns(const Chain &chain, time_ns slack_ns) {
  const time_ns allowed_ns = slack_ns + chain.execution_ns;
  const time_ns earlier = divide_up(allowed_ns, chain.period_ns) - 1;
  const time_ns whole = std::min(slack_ns / chain.period_ns, earlier);
  return add(multiply(whole, chain.execution_ns),
             series_ns(allowed_ns - (whole + 1) * chain.period_ns, chain.period_ns, earlier - whole));
}

// What the instances after it execute: the first can be released a period later, or as much sooner as it was late.
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

// Instances of the chain under analysis before and after the one under analysis that may use its groups in a window.
Linear other_instances(const Situation &situation, time_ns window_ns) {
  const Chain &self = situation.self();
  const time_ns before = divide_up(situation.slack_ns[situation.chain] + self.execution_ns, self.period_ns) - 1;
  return stair(window_ns, self.jitter_ns, self.period_ns) + constant(before - 1);
}

bool first_and_timer(const Chain &chain, size_t callback) { return callback == 0 && chain.timer; }

}  // namespace

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

Linear whole_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns) {
  return scale(stair(window_ns, slack_ns, chain.period_ns), chain.execution_ns);
}

Linear sharp_workload(const Chain &chain, time_ns slack_ns, time_ns window_ns) {
  const time_ns length_ns = window_ns + slack_ns;
  const time_ns count = length_ns / chain.period_ns;
  const time_ns rest_ns = length_ns % chain.period_ns;
  const time_ns always = chain.execution_ns / chain.period_ns;  // instances that overlap at any time
  const time_ns part_ns = chain.execution_ns % chain.period_ns;
  const time_ns value_ns = add(multiply(count, chain.execution_ns), multiply(always, rest_ns));
  if (part_ns == 0) return {value_ns, always, kNeverNs};
  if (rest_ns < part_ns) return {add(value_ns, rest_ns), always + 1, window_ns + part_ns - rest_ns};
  return {add(value_ns, part_ns), always, window_ns + chain.period_ns - rest_ns};
}

Workload safe_workload(const Options &options) { return options.whole_instances ? whole_workload : sharp_workload; }

Linear precedence(const Situation &situation) { return constant(situation.precedence_ns); }

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

GroupTerms groups_published(const Situation &situation, Policy policy, Deadlines deadlines, time_ns window_ns) {
  GroupTerms terms;
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
      terms.demand = terms.demand + scale(count, multiply(situation.supply.lanes(), execution_ns));
    }
  }
  return terms;
}

GroupTerms groups_safe(const Situation &situation, Policy policy, Deadlines deadlines, time_ns window_ns) {
  GroupTerms terms;
  const Executor &executor = situation.executor;
  const auto charge = [&](const Member &member, bool itself) {
    const Chain &chain = executor.chains()[member.chain];
    const time_ns execution_ns = chain.callbacks[member.callback].execution_ns;
    // The other callbacks of an instance may take next to no time, so it may reach this one that much earlier.
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
    // What took the group before took it a unit ago at least, and on a core of its own has executed that.
    if (less_important_ns <= (situation.supply.dedicated() ? 1 : 0)) continue;
    // One of them may hold the group already, even while other lanes are idle.
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

Linear blocking_safe(const Situation &situation, Deadlines deadlines, const Linear &more_important,
                     const Linear &group_stages, time_ns window_ns) {
  const time_ns lanes = situation.supply.lanes();
  const Linear first = safe_pool(situation, deadlines, lanes, window_ns);
  const Linear each = safe_pool(situation, deadlines, lanes - 1, window_ns);
  const time_ns more_stages = static_cast<time_ns>(situation.self().callbacks.size()) - 1 + group_stages.value;
  Linear again = scale(each, more_stages);  // a stair
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

}  // namespace tide::analysis
