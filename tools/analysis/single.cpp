// SPDX-License-Identifier: Apache-2.0
#include "analysis/single.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

namespace tide::analysis {
namespace {

// ---- busy windows ----
// Intervals in which an executor with one thread is never idle.

// Limit of the search, which would not end if demand and supply grow at the same rate.
constexpr int kMostWindowSteps = 100'000;
// Most instances of a chain that are examined in one busy window. The limit keeps the analysis of all chains below a
// second.
constexpr time_ns kMostInstances = 5'000;
time_ns longest_window_ns(const Executor &executor) {
  time_ns longest_ns = 0, sum_ns = 0;
  for (const Chain &chain : executor.chains()) {
    longest_ns = std::max(longest_ns, add(chain.deadline_ns, chain.jitter_ns));
    sum_ns = add(sum_ns, chain.execution_ns);
  }
  return add(sum_ns, 4 * longest_ns);
}

// Most instances of a chain that can be released in a window of this length.
time_ns arrivals(const Chain &chain, time_ns window_ns) {
  return window_ns <= 0 ? 0 : divide_up(add(window_ns, chain.jitter_ns), chain.period_ns);
}

// The least window, from `window_ns` on, whose guaranteed supply covers the demand in it; the demand must be
// non-decreasing.
template <class Demand>
std::optional<time_ns> supplied_window(const Supply &supply, time_ns most_ns, Demand demand, time_ns window_ns = 1) {
  for (int step = 0; step < kMostWindowSteps && window_ns <= most_ns; ++step) {
    const time_ns next_ns = supply.window_for_ns(demand(window_ns));
    if (next_ns <= window_ns) return window_ns;
    window_ns = next_ns;
  }
  return std::nullopt;
}

// ---- analyses as published ---- docs/analysis/single_thread.md names the sources.

// Demand of all chains except `but` in a window; every chain counts if `but` is no index.
time_ns requested_ns(const Executor &executor, time_ns window_ns, size_t but) {
  time_ns sum_ns = 0;
  for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
    const Chain &one = executor.chains()[chain];
    if (chain != but) sum_ns = add(sum_ns, multiply(arrivals(one, window_ns), one.execution_ns));
  }
  return sum_ns;
}

// A callback in the round-robin-aware analysis.
struct Polled {
  time_ns period_ns = 0, jitter_ns = 0;  // period and jitter of its activations
  time_ns execution_ns = 0;
  time_ns response_ns = 0;
  bool timer = false;

  time_ns activations(time_ns window_ns) const {
    return window_ns <= 0 ? 0 : divide_up(add(window_ns, jitter_ns), period_ns);
  }
};

class RoundRobin {
 public:
  explicit RoundRobin(const Executor &executor) : supply_(executor.lanes()), most_ns_(longest_window_ns(executor)) {
    for (const Chain &chain : executor.chains()) {
      first_.push_back(callbacks_.size());
      for (size_t place = 0; place < chain.callbacks.size(); ++place) {
        const time_ns execution_ns = chain.callbacks[place].execution_ns;
        callbacks_.push_back({chain.period_ns, chain.jitter_ns, execution_ns, execution_ns, chain.timer && place == 0});
      }
    }
    first_.push_back(callbacks_.size());
  }

  std::optional<time_ns> bound(size_t chain) {
    if (!settle()) return std::nullopt;
    return response(first_[chain], first_[chain + 1]);
  }

 private:
  // Finds the response of each single callback. The jitter of its activations is the response of the preceding
  // callback.
  bool settle() {
    for (int round = 0; round < kMostRounds; ++round) {
      carry_jitter();
      bool changed = false;
      for (size_t callback = 0; callback < callbacks_.size(); ++callback) {
        const auto found_ns = response(callback, callback + 1);
        if (!found_ns || *found_ns > most_ns_) return false;
        changed = changed || *found_ns > callbacks_[callback].response_ns;
        callbacks_[callback].response_ns = std::max(callbacks_[callback].response_ns, *found_ns);
      }
      if (!changed) return true;
    }
    return false;
  }

  void carry_jitter() {
    for (size_t chain = 0; chain + 1 < first_.size(); ++chain) {
      for (size_t callback = first_[chain] + 1; callback < first_[chain + 1]; ++callback) {
        const Polled &before = callbacks_[callback - 1];
        callbacks_[callback].jitter_ns = add(before.jitter_ns, before.response_ns);
      }
    }
  }

  // Response of the successive callbacks from `first` to last - 1.
  std::optional<time_ns> response(size_t first, size_t last) const {
    time_ns points = 0;
    for (size_t callback = first; callback < last; ++callback)
      points = add(points, callbacks_[callback].activations(callbacks_[callback].response_ns));
    const Polled &end = callbacks_[last - 1];
    const auto demand = [&](time_ns window_ns) {
      time_ns sum_ns = 1;
      for (size_t other = 0; other < callbacks_.size(); ++other) {
        const Polled &one = callbacks_[other];
        const time_ns activations = one.activations(add(window_ns, one.response_ns) - 1);
        const time_ns runs = other == last - 1 ? activations - 1
                             : one.timer       ? activations
                                               : std::min(activations, points + 1);
        sum_ns = add(sum_ns, multiply(std::max<time_ns>(0, runs), one.execution_ns));
      }
      return sum_ns;
    };
    const auto started_ns = supplied_window(supply_, most_ns_, demand);
    if (!started_ns) return std::nullopt;
    return supply_.window_for_ns(add(supply_.least(*started_ns).value - 1, end.execution_ns));
  }

  static constexpr int kMostRounds = 1000;
  Supply supply_;
  time_ns most_ns_;
  std::vector<Polled> callbacks_;
  std::vector<size_t> first_;  // by chain: index of its first callback in callbacks_; then callbacks_.size()
};

// Casini, Blass, Luetkebohle, Brandenburg 2019, Lemma 8: a chain on one executor.
std::optional<time_ns> casini_lemma8(const Executor &executor, size_t index) {
  constexpr size_t kNobody = static_cast<size_t>(-1);
  const Chain &chain = executor.chains()[index];
  const Supply supply(executor.lanes());
  const time_ns most_ns = longest_window_ns(executor);
  const auto busy_ns =
      supplied_window(supply, most_ns, [&](time_ns window_ns) { return requested_ns(executor, window_ns, kNobody); });
  if (!busy_ns) return std::nullopt;
  const time_ns prefix_ns = chain.execution_ns - chain.last_ns;
  time_ns worst_ns = 0;
  time_ns offset_ns = 0;
  for (int step = 0; offset_ns <= *busy_ns; ++step) {
    if (step > kMostWindowSteps) return std::nullopt;
    const auto demand = [&](time_ns response_ns) {
      const time_ns before_ns = offset_ns + std::max<time_ns>(0, response_ns - chain.last_ns) + 1;
      return add(multiply(arrivals(chain, offset_ns + 1), chain.last_ns),
                 add(multiply(arrivals(chain, before_ns), prefix_ns), requested_ns(executor, before_ns, index)));
    };
    const auto found_ns = supplied_window(supply, add(most_ns, offset_ns), [&](time_ns window_ns) {
      return demand(std::max<time_ns>(1, window_ns - offset_ns));
    });
    if (!found_ns) return std::nullopt;
    worst_ns = std::max(worst_ns, *found_ns - offset_ns);
    offset_ns = arrivals(chain, offset_ns + 1) * chain.period_ns - chain.jitter_ns;  // offset of the chain's next
                                                                                     // release
  }
  return worst_ns;
}

// Blass, Casini, Bozhko, Brandenburg 2021, Theorem 2: after each polling point, each callback runs at most once. The
// theorem needs the response times of all callbacks; this function takes those of the theorem's own least fixed point.
std::optional<time_ns> blass_theorem2(const Executor &executor, size_t chain) {
  return RoundRobin(executor).bound(chain);
}

// Choi, Xiang, Kim 2021 (PiCAS), Theorem 1: a chain on one executor with its own processor and no jitter.
std::optional<time_ns> picas_theorem1(const Executor &executor, size_t index) {
  if (!executor.dedicated()) return std::nullopt;
  const Chain &chain = executor.chains()[index];
  time_ns blocking_ns = 0;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    const Chain &one = executor.chains()[other];
    if (one.jitter_ns != 0) return std::nullopt;
    if (other != index && !executor.above(other, index)) blocking_ns = std::max(blocking_ns, one.longest_ns);
  }
  const auto demand = [&](time_ns window_ns) {
    time_ns sum_ns = add(blocking_ns, chain.execution_ns);
    for (size_t other = 0; other < executor.chains().size(); ++other) {
      const Chain &one = executor.chains()[other];
      if (other == index || !executor.above(other, index)) continue;
      const time_ns apart_ns = std::max(one.period_ns, one.execution_ns);
      sum_ns = add(sum_ns, multiply(divide_up(window_ns, apart_ns), one.execution_ns));
    }
    return sum_ns;
  };
  const auto response_ns = supplied_window(Supply(executor.lanes()), longest_window_ns(executor), demand);
  if (!response_ns || *response_ns <= chain.period_ns) return response_ns;
  return add(*response_ns, chain.period_ns);
}

// Nothing is pending at the start of a busy window, so every activation of a callback in the window comes from a
// release of its chain in the window. The arrival curve of the chain therefore bounds the activations, and the response
// times of preceding callbacks are not needed (Definition 4 of Blass et al. 2021).
struct Activated {
  const Chain *chain = nullptr;
  time_ns execution_ns = 0;
  time_ns response_ns = 0;
  bool timer = false;

  time_ns activations(time_ns window_ns) const { return arrivals(*chain, window_ns); }
};

class BusyWindowAware {
 public:
  explicit BusyWindowAware(const Executor &executor)
      : executor_(executor), supply_(executor.lanes()), most_ns_(longest_window_ns(executor)) {
    for (const Chain &chain : executor.chains()) {
      first_.push_back(callbacks_.size());
      for (size_t place = 0; place < chain.callbacks.size(); ++place) {
        const time_ns execution_ns = chain.callbacks[place].execution_ns;
        callbacks_.push_back({&chain, execution_ns, execution_ns, chain.timer && place == 0});
      }
    }
    first_.push_back(callbacks_.size());
  }

  std::optional<time_ns> bound(size_t chain) {
    if (!settle()) return std::nullopt;
    return response(first_[chain], first_[chain + 1]);
  }

 private:
  // Finds the response of each single callback, which determines how many polling points are counted.
  bool settle() {
    for (int round = 0; round < kMostRounds; ++round) {
      bool changed = false;
      for (size_t callback = 0; callback < callbacks_.size(); ++callback) {
        const auto found_ns = response(callback, callback + 1);
        if (!found_ns || *found_ns > most_ns_) return false;
        changed = changed || *found_ns > callbacks_[callback].response_ns;
        callbacks_[callback].response_ns = std::max(callbacks_[callback].response_ns, *found_ns);
      }
      if (!changed) return true;
    }
    return false;
  }

  // Response of the successive callbacks from `first` to last - 1, over all offsets at which the last of them may be
  // activated.
  std::optional<time_ns> response(size_t first, size_t last) const {
    time_ns points = 0;
    for (size_t callback = first; callback < last; ++callback)
      points = add(points, callbacks_[callback].activations(callbacks_[callback].response_ns));
    const Activated &end = callbacks_[last - 1];
    const auto longest_ns = supplied_window(supply_, most_ns_, [&](time_ns window_ns) {
      return add(multiply(end.activations(window_ns), end.execution_ns),
                 add(1, others_ns(last - 1, window_ns, window_ns, points)));
    });
    if (!longest_ns) return std::nullopt;
    time_ns worst_ns = 0;
    const std::vector<time_ns> tried_ns = offsets(*end.chain, *longest_ns);
    if (tried_ns.size() > kMostWindowSteps) return std::nullopt;
    for (const time_ns offset_ns : tried_ns) {
      const time_ns before_ns = multiply(end.activations(offset_ns + 1) - 1, end.execution_ns);
      const auto started_ns = supplied_window(supply_, add(most_ns_, offset_ns), [&](time_ns window_ns) {
        return add(1, add(before_ns, others_ns(last - 1, window_ns, offset_ns, points)));
      });
      if (!started_ns) return std::nullopt;
      const time_ns ended_ns = supply_.window_for_ns(add(supply_.least(*started_ns).value - 1, end.execution_ns));
      // Where a chain's own activation lies in the window is unknown; for a single callback it is the offset.
      worst_ns = std::max(worst_ns, last - first == 1 ? ended_ns - offset_ns : ended_ns);
    }
    return worst_ns;
  }

  // Definition 5: a callback other than a timer runs at most once for each of its activations before the offset, for
  // each polling point after the offset, and in the rest of the set; a timer runs for each activation in the window.
  time_ns others_ns(size_t but, time_ns window_ns, time_ns offset_ns, time_ns points) const {
    time_ns sum_ns = 0;
    for (size_t other = 0; other < callbacks_.size(); ++other) {
      if (other == but) continue;
      const Activated &one = callbacks_[other];
      const time_ns activations = one.activations(window_ns);
      const time_ns runs =
          one.timer ? activations : std::min(activations, add(add(one.activations(offset_ns), points), 1));
      sum_ns = add(sum_ns, multiply(runs, one.execution_ns));
    }
    return sum_ns;
  }

  // The offsets at which the number of activations of some callback changes.
  std::vector<time_ns> offsets(const Chain &own, time_ns until_ns) const {
    std::vector<time_ns> all{0};
    if (until_ns > 1)
      all.push_back(1);  // from this offset on, activations at the start of the window are earlier than
                         // the offset
    for (const Chain &chain : executor_.chains()) {
      for (time_ns at_ns = chain.period_ns - chain.jitter_ns; at_ns < until_ns; at_ns += chain.period_ns) {
        if (at_ns < 0) continue;
        if (&chain == &own) all.push_back(at_ns);
        if (at_ns + 1 < until_ns) all.push_back(at_ns + 1);
        if (all.size() > 3 * kMostWindowSteps) return all;
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  static constexpr int kMostRounds = 1000;
  const Executor &executor_;
  Supply supply_;
  time_ns most_ns_;
  std::vector<Activated> callbacks_;
  std::vector<size_t> first_;  // by chain: index of its first callback in callbacks_; then callbacks_.size()
};

// Theorem 3 of Blass et al. 2021 counts activations from the start of a busy window, when nothing is pending.
std::optional<time_ns> blass_theorem3(const Executor &executor, size_t chain) {
  return BusyWindowAware(executor).bound(chain);
}

// ---- safe bounds ----

// A bound with its parts. finish_ns is the execution time of the last callback, window_ns the rest of the bound.
struct Found {
  time_ns bound_ns = 0;
  Breakdown parts;
};

// Remaining effort of the search. Each step costs as much as there are chains, and more on a shared core; when the
// effort is used up, there is no bound.
struct Effort {
  static constexpr size_t kSupply = 8;
  int64_t left = std::numeric_limits<int64_t>::max();
  bool spend(const Executor &executor) {
    left -= static_cast<int64_t>(executor.chains().size() + kSupply * executor.lanes().front().preempted_by.size());
    return left > 0;
  }
};

// The least window, of from_ns or longer, whose supply exceeds the demand. The caller guarantees that no window shorter
// than from_ns suffices.
template <class Demand>
std::optional<time_ns> least_window(const Executor &executor, Effort &effort, time_ns most_ns, Demand demand,
                                    time_ns from_ns = 1) {
  const auto more = [&](time_ns window_ns) { return effort.spend(executor) ? add(demand(window_ns), 1) : kNeverNs; };
  return supplied_window(Supply(executor.lanes()), most_ns, more, from_ns);
}

// Response whose last callback starts after `before_ns` of work: nothing else runs after that start, so the lane must
// supply this work and the last callback.
time_ns end_ns(const Executor &executor, const Chain &chain, time_ns before_ns) {
  return Supply(executor.lanes()).window_for_ns(add(before_ns, chain.last_ns));
}

// Completes the parts of a bound.
Found found(const Executor &executor, size_t index, time_ns bound_ns, Breakdown parts) {
  const Chain &chain = executor.chains()[index];
  parts.finish_ns = std::min(chain.last_ns, bound_ns);
  parts.window_ns = bound_ns - parts.finish_ns;
  parts.demand_ns = parts.precedence_ns + parts.own_ns + parts.blocking_ns + parts.groups_ns;
  for (const time_ns share_ns : parts.interference_ns) parts.demand_ns = add(parts.demand_ns, share_ns);
  return {bound_ns, std::move(parts)};
}

// The bound of the worst instance in a busy window. `goes_first` is the demand of other chains in the window; it also
// stores their shares if asked to. `own` is the chain's own demand in a window that ends when the last callback of
// instance `number` starts, including that callback.
template <class GoesFirst, class Own>
std::optional<Found> worst_instance(const Executor &executor, size_t index, Effort &effort, GoesFirst goes_first,
                                    Own own, time_ns blocking_ns = 0) {
  const Chain &chain = executor.chains()[index];
  const time_ns most_ns = longest_window_ns(executor);
  const auto busy = [&](time_ns window_ns) {
    // one unit less, because the window ends when the supply reaches the demand
    return add(add(goes_first(window_ns, nullptr), blocking_ns),
               multiply(arrivals(chain, window_ns), chain.execution_ns)) -
           1;
  };
  const auto length_ns = least_window(executor, effort, most_ns, busy);
  if (!length_ns) return std::nullopt;
  time_ns worst_ns = -1, worst_number = 0, worst_started_ns = 0, from_ns = 1;
  for (time_ns number = 0; number < arrivals(chain, *length_ns); ++number) {
    if (number > kMostInstances) return std::nullopt;
    const auto before = [&](time_ns window_ns) {
      return add(add(goes_first(window_ns, nullptr), blocking_ns), own(number, window_ns) - chain.last_ns);
    };
    const auto started_ns = least_window(executor, effort, add(most_ns, *length_ns), before, from_ns);
    if (!started_ns) return std::nullopt;
    from_ns = *started_ns;  // the next instance does not start earlier
    const time_ns late_ns = std::max<time_ns>(0, number * chain.period_ns - chain.jitter_ns);
    const time_ns response_ns = end_ns(executor, chain, before(*started_ns)) - late_ns;
    if (response_ns <= worst_ns) continue;
    worst_ns = response_ns;
    worst_number = number;
    worst_started_ns = *started_ns;
  }
  Breakdown parts;
  parts.interference_ns.assign(executor.chains().size(), 0);
  goes_first(worst_started_ns, &parts.interference_ns);
  parts.precedence_ns = chain.execution_ns - chain.last_ns;
  parts.own_ns = own(worst_number, worst_started_ns) - chain.execution_ns;
  parts.blocking_ns = blocking_ns;
  return found(executor, index, worst_ns, std::move(parts));
}

// Execution of all instances released in a window, of those chains that `counts` selects.
template <class Counts>
time_ns released_ns(const Executor &executor, time_ns window_ns, std::vector<time_ns> *shares_ns, Counts counts) {
  time_ns sum_ns = 0;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    if (!counts(other)) continue;
    const Chain &chain = executor.chains()[other];
    const time_ns share_ns = multiply(arrivals(chain, window_ns), chain.execution_ns);
    if (shares_ns != nullptr) (*shares_ns)[other] = share_ns;
    sum_ns = add(sum_ns, share_ns);
  }
  return sum_ns;
}

// Holds for any order. Everything released in the busy window may go first, even later instances of the chain itself,
// but without their last callback: instances pass each callback in order.
std::optional<Found> any_order_found(const Executor &executor, size_t index, Effort &effort) {
  const Chain &chain = executor.chains()[index];
  return worst_instance(
      executor, index, effort,
      [&](time_ns window_ns, std::vector<time_ns> *shares_ns) {
        return released_ns(executor, window_ns, shares_ns, [index](size_t other) { return other != index; });
      },
      [&](time_ns number, time_ns window_ns) {
        return add(multiply(number + 1, chain.last_ns),
                   multiply(std::max(number + 1, arrivals(chain, window_ns)), chain.execution_ns - chain.last_ns));
      });
}

// For priorities: counts more important chains, and one less important callback that has started.
std::optional<Found> by_priority_found(const Executor &executor, size_t index, Effort &effort) {
  time_ns blocking_ns = 0;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != index && !executor.above(other, index))
      blocking_ns = std::max(blocking_ns, executor.chains()[other].longest_ns - 1);
  }
  const auto goes_first = [&](time_ns window_ns, std::vector<time_ns> *shares_ns) {
    return released_ns(executor, window_ns, shares_ns,
                       [&executor, index](size_t other) { return other != index && executor.above(other, index); });
  };
  return worst_instance(
      executor, index, effort, goes_first,
      [&](time_ns number, time_ns) { return multiply(number + 1, executor.chains()[index].execution_ns); },
      blocking_ns);
}

// Greatest execution of any `count` successive callbacks from index `first` on.
time_ns longest_row_ns(const Chain &chain, time_ns count, size_t first) {
  const std::vector<Callback> &callbacks = chain.callbacks;
  time_ns row_ns = 0, longest_ns = 0;
  for (size_t place = first; place < callbacks.size(); ++place) {
    row_ns += callbacks[place].execution_ns;
    const auto left = static_cast<time_ns>(place) - count;
    if (left >= static_cast<time_ns>(first)) row_ns -= callbacks[static_cast<size_t>(left)].execution_ns;
    longest_ns = std::max(longest_ns, row_ns);
  }
  return longest_ns;
}

// The longest busy window.
std::optional<time_ns> busy_window_ns(const Executor &executor, Effort &effort) {
  return least_window(executor, effort, longest_window_ns(executor), [&executor](time_ns window_ns) {
    return released_ns(executor, window_ns, nullptr, [](size_t) { return true; }) - 1;
  });
}

// For ready sets. Each callback runs at most once in a set; only live timers run as often as they are released. A
// callback that becomes ready while a set is executed joins the next set. A chain of n callbacks therefore ends at the
// latest after the rest of one set and n more sets, and an instance of another chain advances by at most one callback
// in each set.
class ReadySets {
 public:
  ReadySets(const Executor &executor, Effort &effort, bool live_timers)
      : executor_(executor), effort_(effort), live_timers_(live_timers), most_ns_(longest_window_ns(executor)) {
    const auto length_ns = busy_window_ns(executor, effort);
    for (const Chain &chain : executor.chains())
      instances_.push_back(length_ns ? arrivals(chain, *length_ns) : kNeverNs);
  }

  std::optional<Found> bound(size_t index) {
    const Chain &chain = executor_.chains()[index];
    std::vector<std::optional<time_ns>> plain_ns;
    for (size_t other = 0; other < executor_.chains().size(); ++other) plain_ns.push_back(plain(other));
    const Rows &rows = rows_of(sets(chain));
    const auto others = [&](time_ns window_ns, std::vector<time_ns> *shares_ns) {
      time_ns sum_ns = 0;
      for (size_t other = 0; other < executor_.chains().size(); ++other) {
        if (other == index) continue;
        time_ns instances = instances_[other];
        // An instance that is pending at the start of the window was released earlier by at most its bound.
        if (plain_ns[other])
          instances = std::min(instances, arrivals(executor_.chains()[other], add(window_ns, *plain_ns[other])));
        const time_ns share_ns = in_sets_ns(other, sets(chain), instances, rows);
        if (shares_ns != nullptr) (*shares_ns)[other] = share_ns;
        sum_ns = add(sum_ns, share_ns);
      }
      return sum_ns;
    };
    const time_ns own_ns = chain.execution_ns - chain.last_ns;
    const auto before = [&](time_ns window_ns) { return add(others(window_ns, nullptr), own_ns); };
    const auto started_ns = least_window(executor_, effort_, most_ns_, before);
    if (!started_ns) return std::nullopt;
    const auto bound_ns = within_period(chain, end_ns(executor_, chain, before(*started_ns)));
    if (!bound_ns) return std::nullopt;
    Breakdown parts;
    parts.interference_ns.assign(executor_.chains().size(), 0);
    others(*started_ns, &parts.interference_ns);
    parts.precedence_ns = own_ns;
    return found(executor_, index, *bound_ns, std::move(parts));
  }

 private:
  static time_ns sets(const Chain &chain) { return static_cast<time_ns>(chain.callbacks.size()) + 1; }
  time_ns live_ns(const Chain &chain) const {
    return live_timers_ && chain.timer ? chain.callbacks.front().execution_ns : 0;
  }

  // By number of sets. longest_ns: for each chain, greatest execution of that many successive callbacks (without a live
  // timer). all_ns: execution of all chains together.
  struct Rows {
    std::vector<time_ns> longest_ns;
    time_ns all_ns = 0;
  };

  const Rows &rows_of(time_ns sets) {
    const auto [place, added] = rows_.try_emplace(sets);
    Rows &rows = place->second;
    if (!added) return rows;
    for (const Chain &chain : executor_.chains())
      rows.longest_ns.push_back(longest_row_ns(chain, sets, live_ns(chain) > 0 ? 1 : 0));
    for (size_t chain = 0; chain < instances_.size(); ++chain)
      rows.all_ns = add(rows.all_ns, in_sets_ns(chain, sets, instances_[chain], rows));
    return rows;
  }

  // The bound that counts all instances in a busy window.
  std::optional<time_ns> plain(size_t index) {
    const Chain &chain = executor_.chains()[index];
    const Rows &rows = rows_of(sets(chain));
    if (rows.all_ns >= kNeverNs) return std::nullopt;
    const time_ns others_ns = rows.all_ns - in_sets_ns(index, sets(chain), instances_[index], rows);
    return within_period(chain, end_ns(executor_, chain, add(others_ns, chain.execution_ns - chain.last_ns)));
  }

  time_ns in_sets_ns(size_t index, time_ns sets, time_ns instances, const Rows &rows) const {
    const Chain &chain = executor_.chains()[index];
    const time_ns live = live_ns(chain);
    return add(multiply(instances, live), std::min(multiply(std::min(sets, instances), chain.execution_ns - live),
                                                   multiply(instances, rows.longest_ns[index])));
  }

  // The bound is proved only if no earlier instance of the chain is pending at the release, so it must not exceed the
  // period.
  static std::optional<time_ns> within_period(const Chain &chain, time_ns response_ns) {
    return add(response_ns, chain.jitter_ns) > chain.period_ns ? std::nullopt : std::optional(response_ns);
  }

  const Executor &executor_;
  Effort &effort_;
  bool live_timers_;
  time_ns most_ns_;
  std::vector<time_ns> instances_;  // number of instances of each chain in a busy window
  std::map<time_ns, Rows> rows_;
};

std::optional<Found> ready_sets_found(const Executor &executor, size_t index, Effort &effort) {
  return ReadySets(executor, effort, true).bound(index);
}

std::optional<Found> wait_sets_found(const Executor &executor, size_t index, Effort &effort) {
  return ReadySets(executor, effort, false).bound(index);
}

// For a queue in order of arrival. An instance waits once for each of its callbacks: a turn is the time from the moment
// at which this callback enters the queue to its end. In the first turn the lane runs the callback that has started
// before the release, and what is in the queue; in each further turn, what has entered the queue in the preceding turn.
// In each turn at most one callback of any other instance runs: its successor enters the queue behind the callback of
// this turn. So in n turns, an instance that was pending at the release runs at most n + 1 successive callbacks: the
// one that had started, and one in each turn. An instance that is released in turn m runs at most its first n - m
// callbacks. No turn is longer than longest_turn_ns.
class ArrivalOrder {
 public:
  ArrivalOrder(const Executor &executor, Effort &effort) : executor_(executor), supply_(executor.lanes()) {
    const auto busy_ns = busy_window_ns(executor, effort);
    if (!busy_ns) return;
    busy_ns_ = *busy_ns;
    turn_ns_ = longest_turn_ns(effort);
    // An instance is pending for at most its response. So each bound that is found from these responses lowers the next
    // bounds.
    for (const Chain &chain : executor.chains())
      responses_ns_.push_back(std::min(busy_ns_, multiply(turn_ns_, static_cast<time_ns>(chain.callbacks.size()))));
    bool lower = true;
    for (int round = 0; lower && round < kMostRounds; ++round) {
      lower = false;
      for (size_t index = 0; index < responses_ns_.size(); ++index) {
        const time_ns turns = static_cast<time_ns>(executor.chains()[index].callbacks.size());
        effort.left -= turns * turns * static_cast<time_ns>(responses_ns_.size());
        if (effort.left <= 0) return;
        const time_ns response_ns = response(index, nullptr);
        lower = lower || response_ns < responses_ns_[index];
        responses_ns_[index] = std::min(responses_ns_[index], response_ns);
      }
    }
  }

  std::optional<Found> bound(size_t index) {
    if (responses_ns_.empty()) return std::nullopt;
    const Chain &chain = executor_.chains()[index];
    Breakdown parts;
    parts.interference_ns.assign(executor_.chains().size(), 0);
    const time_ns bound_ns = response(index, &parts.interference_ns);
    parts.precedence_ns = chain.execution_ns - chain.last_ns;
    std::swap(parts.own_ns, parts.interference_ns[index]);
    return found(executor_, index, bound_ns, std::move(parts));
  }

 private:
  static constexpr int kMostRounds = 20;

  // A callback that enters the queue at an offset in a busy window ends when the lane has executed all instances
  // released up to this offset. The longest such time occurs at an offset at which a release adds work.
  time_ns longest_turn_ns(Effort &effort) const {
    time_ns longest_ns = turn_ns(0);
    for (const Chain &chain : executor_.chains()) {
      for (time_ns at_ns = chain.period_ns - chain.jitter_ns; at_ns < busy_ns_; at_ns += chain.period_ns) {
        if (!effort.spend(executor_)) return busy_ns_;
        if (at_ns > 0) longest_ns = std::max(longest_ns, turn_ns(at_ns));
      }
    }
    return longest_ns;
  }

  time_ns turn_ns(time_ns at_ns) const {
    const time_ns work_ns = released_ns(executor_, at_ns + 1, nullptr, [](size_t) { return true; });
    return supply_.window_for_ns(work_ns) - at_ns;
  }

  // The end of the last turn, counted from the release. shares_ns: executions by chain before the last callback.
  time_ns response(size_t index, std::vector<time_ns> *shares_ns) const {
    std::vector<time_ns> entered_ns{0};
    time_ns own_ns = 0;
    for (const Callback &callback : executor_.chains()[index].callbacks) {
      time_ns work_ns = own_ns;
      for (size_t other = 0; other < executor_.chains().size(); ++other) {
        const time_ns share_ns = in_turns_ns(other, other == index ? 1 : 0, entered_ns);
        if (shares_ns != nullptr) (*shares_ns)[other] = share_ns;
        work_ns = add(work_ns, share_ns);
      }
      own_ns = add(own_ns, callback.execution_ns);
      const time_ns end_ns = supply_.window_for_ns(add(work_ns, callback.execution_ns));
      entered_ns.push_back(std::min(end_ns, add(entered_ns.back(), turn_ns_)));
    }
    return entered_ns.back();
  }

  // Execution of a chain's instances, except for `but` of them, in the turns that begin at these times.
  time_ns in_turns_ns(size_t index, time_ns but, const std::vector<time_ns> &entered_ns) const {
    const Chain &chain = executor_.chains()[index];
    const auto released = [&](time_ns until_ns) {
      return arrivals(chain, std::min(add(responses_ns_[index], until_ns), busy_ns_)) - but;
    };
    const size_t turns = entered_ns.size();
    time_ns counted = released(0);
    time_ns sum_ns = multiply(counted, longest_row_ns(chain, static_cast<time_ns>(turns) + 1, 0));
    time_ns first_ns = 0;  // execution of the first callbacks of an instance; fewer of them, the later it is released
    std::vector<time_ns> firsts_ns{0};
    for (size_t place = 0; place < chain.callbacks.size() && place + 1 < turns; ++place)
      firsts_ns.push_back(first_ns += chain.callbacks[place].execution_ns);
    for (size_t turn = 1; turn < turns; ++turn) {
      const time_ns more = released(entered_ns[turn]) - counted;
      sum_ns = add(sum_ns, multiply(more, firsts_ns[std::min(turns - turn, firsts_ns.size() - 1)]));
      counted += more;
    }
    return sum_ns;
  }

  const Executor &executor_;
  Supply supply_;
  time_ns busy_ns_ = 0;                // the longest busy window
  time_ns turn_ns_ = 0;                // the longest turn
  std::vector<time_ns> responses_ns_;  // of each chain, a response that none exceeds; empty: there is no bound
};

std::optional<Found> arrival_order_found(const Executor &executor, size_t index, Effort &effort) {
  return ArrivalOrder(executor, effort).bound(index);
}

template <auto find> std::optional<time_ns> bound_of(const Executor &executor, size_t index) {
  Effort effort;
  const auto found = find(executor, index, effort);
  return found ? std::optional(found->bound_ns) : std::nullopt;
}

// Bounds for one thread hold whether or not other chains meet their deadlines.
ChainResult chain_result(const Executor &executor, size_t index, const std::optional<Found> &found,
                         const SingleThreadAnalysis &analysis) {
  ChainResult chain;
  chain.analysis = analysis.name;
  chain.proved_for = analysis.policy;
  chain.breakdown.interference_ns.assign(executor.chains().size(), 0);
  if (!found) return chain;
  chain.response_ns = found->bound_ns;
  chain.met = found->bound_ns <= executor.chains()[index].deadline_ns;
  chain.sound = analysis.variant == Variant::safe;
  chain.guaranteed = chain.met && chain.sound;
  chain.breakdown = found->parts;
  return chain;
}

using enum Policy;
using enum Variant;
// A safe bound and the function that finds its parts.
struct Safe {
  std::string_view name;
  std::optional<Found> (*find)(const Executor &executor, size_t chain, Effort &effort);
};

constexpr std::array kSafeOnes{Safe{"single-any-order", any_order_found}, Safe{"single-ready-sets", ready_sets_found},
                               Safe{"single-wait-sets", wait_sets_found}, Safe{"single-fifo", arrival_order_found},
                               Safe{"single-priority", by_priority_found}};

constexpr std::array kEntries{
    SingleThreadAnalysis{"single-any-order", "one thread, any order: busy window", Policy::any_order, safe,
                         bound_of<any_order_found>},
    SingleThreadAnalysis{"single-ready-sets", "one thread: each callback once a ready set, timers as they expire",
                         ready_set, safe, bound_of<ready_sets_found>},
    SingleThreadAnalysis{"single-wait-sets", "one thread: each callback once a wait set, timers too", wait_set, safe,
                         bound_of<wait_sets_found>},
    SingleThreadAnalysis{"single-fifo", "one thread, in order of arrival: turns", fifo, safe,
                         bound_of<arrival_order_found>},
    SingleThreadAnalysis{"single-priority", "one thread, most important first: busy window", priority, safe,
                         bound_of<by_priority_found>},
    SingleThreadAnalysis{"casini2019-published", "one thread, any order: Casini et al. 2019, Lemma 8",
                         Policy::any_order, published, casini_lemma8},
    SingleThreadAnalysis{"blass2021-published", "one thread, default executor: Blass et al. 2021, Theorem 2", ready_set,
                         published, blass_theorem2},
    SingleThreadAnalysis{"blass2021-busy-published", "one thread, default executor: Blass et al. 2021, Theorem 3",
                         ready_set, published, blass_theorem3},
    SingleThreadAnalysis{"picas2021-published", "one thread, most important first: Choi et al. 2021, Theorem 1",
                         priority, published, picas_theorem1, true},
};

std::optional<Found> find_bound(const SingleThreadAnalysis &analysis, const Executor &executor, size_t index,
                                Effort &effort) {
  for (const Safe &one : kSafeOnes) {
    if (one.name == analysis.name) return one.find(executor, index, effort);
  }
  const auto bound_ns = analysis.bound(executor, index);
  if (!bound_ns) return std::nullopt;
  Breakdown parts;
  parts.interference_ns.assign(executor.chains().size(), 0);
  parts.finish_ns = *bound_ns;  // published bounds have no parts
  return Found{*bound_ns, std::move(parts)};
}

// The least of all safe bounds that hold for the executor's policy.
ChainResult least_result(const Executor &executor, size_t index, Effort &effort) {
  ChainResult least;
  for (const SingleThreadAnalysis &one : kEntries) {
    if (!holds_for(one.policy, executor.policy()) || one.variant != Variant::safe) continue;
    ChainResult result = chain_result(executor, index, find_bound(one, executor, index, effort), one);
    if (!least.response_ns || (result.response_ns && *result.response_ns < *least.response_ns))
      least = std::move(result);
  }
  return least;
}

}  // namespace

std::span<const SingleThreadAnalysis> single_thread_analyses() { return kEntries; }

const SingleThreadAnalysis *find_single_thread_analysis(std::string_view name) {
  for (const SingleThreadAnalysis &one : kEntries) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

bool is_single_thread(const Executor &executor) { return executor.lanes().size() == 1 && !executor.has_groups(); }

std::optional<time_ns> single_thread_bound(const Executor &executor, size_t chain) {
  Effort effort;
  return least_result(executor, chain, effort).response_ns;
}

Result single_thread_result(const SingleThreadAnalysis &analysis, const Executor &executor) {
  Result result;
  result.met = true;
  Effort effort;
  for (size_t index = 0; index < executor.chains().size(); ++index) {
    result.chains.push_back(chain_result(executor, index, find_bound(analysis, executor, index, effort), analysis));
    result.met = result.met && result.chains.back().met;
  }
  return result;
}

std::vector<ChainResult> single_thread_results(const Executor &executor, int64_t &work) {
  std::vector<ChainResult> results(executor.chains().size());
  if (!is_single_thread(executor)) return results;
  Effort effort{work};
  for (size_t index = 0; index < results.size(); ++index) results[index] = least_result(executor, index, effort);
  work = effort.left;
  return results;
}

Result sharpened(const std::vector<ChainResult> &alone, Result result) {
  if (!result.error.empty()) return result;
  result.met = true;
  for (size_t index = 0; index < result.chains.size(); ++index) {
    ChainResult &chain = result.chains[index];
    const ChainResult &other = alone[index];
    const bool lower =
        other.response_ns && (!chain.response_ns || *other.response_ns < *chain.response_ns || !chain.sound);
    if (lower) chain = other;
    result.met = result.met && chain.met;
  }
  return result;
}

Result sharpened(const Executor &executor, Result result) {
  int64_t work = std::numeric_limits<int64_t>::max();
  return sharpened(single_thread_results(executor, work), std::move(result));
}

}  // namespace tide::analysis
