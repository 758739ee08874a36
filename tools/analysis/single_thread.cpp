// SPDX-License-Identifier: Apache-2.0
#include "analysis/single_thread.h"

#include <algorithm>
#include <array>
#include <map>

#include "analysis/busy_window.h"
#include "analysis/single_thread_published.h"

namespace tide::analysis {
namespace {

// The least window whose supply exceeds the demand.
template <class Demand>
std::optional<time_ns> least_window(const Executor &executor, time_ns most_ns, Demand demand) {
  return supplied_window(Supply(executor.lanes()), most_ns,
                         [&](time_ns window_ns) { return add(demand(window_ns), 1); });
}

// Once the last callback has started nothing else runs, so the lane needs to give what went before and the callback.
time_ns end_ns(const Executor &executor, const Chain &chain, time_ns before_ns) {
  return Supply(executor.lanes()).window_for_ns(add(before_ns, chain.last_ns));
}

// The worst instance of a busy window. goes_first: what others may execute in it; own: what the chain itself executes
// in a window until the last callback of instance `number` starts.
template <class GoesFirst, class Own>
std::optional<time_ns> worst_instance(const Executor &executor, std::size_t index, GoesFirst goes_first, Own own) {
  const Chain &chain = executor.chains()[index];
  const time_ns most_ns = longest_window_ns(executor);
  const auto busy = [&](time_ns window_ns) {
    // Less one unit, as the window ends when the supply reaches the demand.
    return add(goes_first(window_ns), multiply(arrivals(chain, window_ns), chain.execution_ns)) - 1;
  };
  const auto length_ns = least_window(executor, most_ns, busy);
  if (!length_ns) return std::nullopt;
  time_ns worst_ns = 0;
  for (time_ns number = 0; number < arrivals(chain, *length_ns); ++number) {
    if (number > most_window_steps) return std::nullopt;
    const auto before = [&](time_ns window_ns) {
      return add(goes_first(window_ns), own(number, window_ns) - chain.last_ns);
    };
    const auto started_ns = least_window(executor, add(most_ns, *length_ns), before);
    if (!started_ns) return std::nullopt;
    const time_ns late_ns = std::max<time_ns>(0, number * chain.period_ns - chain.jitter_ns);
    worst_ns = std::max(worst_ns, end_ns(executor, chain, before(*started_ns)) - late_ns);
  }
  return worst_ns;
}

time_ns all_others(const Executor &executor, std::size_t index, time_ns window_ns) {
  time_ns sum_ns = 0;
  for (std::size_t other = 0; other < executor.chains().size(); ++other) {
    const Chain &chain = executor.chains()[other];
    if (other != index) sum_ns = add(sum_ns, multiply(arrivals(chain, window_ns), chain.execution_ns));
  }
  return sum_ns;
}

// Whatever the order: everything that is released in the busy window may go first, of later own instances all but the
// last callback, which takes the instances in order.
std::optional<time_ns> any_order(const Executor &executor, std::size_t index) {
  const Chain &chain = executor.chains()[index];
  return worst_instance(
      executor, index, [&](time_ns window_ns) { return all_others(executor, index, window_ns); },
      [&](time_ns number, time_ns window_ns) {
        return add(multiply(number + 1, chain.last_ns),
                   multiply(std::max(number + 1, arrivals(chain, window_ns)), chain.execution_ns - chain.last_ns));
      });
}

// More important chains, and one less important callback that has begun.
std::optional<time_ns> by_priority(const Executor &executor, std::size_t index) {
  time_ns blocking_ns = 0;
  for (std::size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != index && !executor.above(other, index))
      blocking_ns = std::max(blocking_ns, executor.chains()[other].longest_ns - 1);
  }
  const auto goes_first = [&](time_ns window_ns) {
    time_ns sum_ns = blocking_ns;
    for (std::size_t other = 0; other < executor.chains().size(); ++other) {
      const Chain &chain = executor.chains()[other];
      if (other != index && executor.above(other, index))
        sum_ns = add(sum_ns, multiply(arrivals(chain, window_ns), chain.execution_ns));
    }
    return sum_ns;
  };
  return worst_instance(executor, index, goes_first, [&](time_ns number, time_ns) {
    return multiply(number + 1, executor.chains()[index].execution_ns);
  });
}

// A ready set runs each callback once. What becomes ready is in the next set, so that a chain of n callbacks is over
// after the rest of one set and n more, and an instance of another comes no further than a callback in each of them.
class ReadySets {
 public:
  explicit ReadySets(const Executor &executor) : executor_(executor), most_ns_(longest_window_ns(executor)) {
    const std::size_t nobody = executor.chains().size();
    const auto length_ns = least_window(executor, most_ns_,
                                        [&](time_ns window_ns) { return all_others(executor, nobody, window_ns) - 1; });
    for (const Chain &chain : executor.chains())
      instances_.push_back(length_ns ? arrivals(chain, *length_ns) : never_ns);
  }

  std::optional<time_ns> bound(std::size_t index) {
    const Chain &chain = executor_.chains()[index];
    std::vector<std::optional<time_ns>> plain_ns;
    for (std::size_t other = 0; other < executor_.chains().size(); ++other) plain_ns.push_back(plain(other));
    const Rows &rows = rows_of(sets(chain));
    const auto before = [&](time_ns window_ns) {
      time_ns sum_ns = chain.execution_ns - chain.last_ns;
      for (std::size_t other = 0; other < executor_.chains().size(); ++other) {
        if (other == index) continue;
        time_ns instances = instances_[other];
        // Those that are pending at the begin came in no earlier than their own bound before it.
        if (plain_ns[other])
          instances = std::min(instances, arrivals(executor_.chains()[other], add(window_ns, *plain_ns[other])));
        sum_ns = add(sum_ns, once_a_set_ns(other, sets(chain), instances, rows));
      }
      return sum_ns;
    };
    const auto started_ns = least_window(executor_, most_ns_, before);
    if (!started_ns) return std::nullopt;
    return within_period(chain, end_ns(executor_, chain, before(*started_ns)));
  }

 private:
  static time_ns sets(const Chain &chain) { return static_cast<time_ns>(chain.callbacks.size()) + 1; }

  // For a number of sets: the most that so many callbacks in a row of each chain execute, and what all chains execute.
  struct Rows {
    std::vector<time_ns> longest_ns;
    time_ns all_ns = 0;
  };

  const Rows &rows_of(time_ns sets) {
    const auto [found, added] = rows_.try_emplace(sets);
    Rows &rows = found->second;
    if (!added) return rows;
    for (const Chain &chain : executor_.chains()) rows.longest_ns.push_back(longest_row_ns(chain, sets));
    for (std::size_t chain = 0; chain < instances_.size(); ++chain)
      rows.all_ns = add(rows.all_ns, once_a_set_ns(chain, sets, instances_[chain], rows));
    return rows;
  }

  // With all instances of a busy window.
  std::optional<time_ns> plain(std::size_t index) {
    const Chain &chain = executor_.chains()[index];
    const Rows &rows = rows_of(sets(chain));
    const time_ns others_ns = rows.all_ns - once_a_set_ns(index, sets(chain), instances_[index], rows);
    return within_period(chain, end_ns(executor_, chain, add(others_ns, chain.execution_ns - chain.last_ns)));
  }

  time_ns once_a_set_ns(std::size_t index, time_ns sets, time_ns instances, const Rows &rows) const {
    return std::min(multiply(std::min(sets, instances), executor_.chains()[index].execution_ns),
                    multiply(instances, rows.longest_ns[index]));
  }

  // Each instance must find none of its own before it.
  static std::optional<time_ns> within_period(const Chain &chain, time_ns response_ns) {
    return add(response_ns, chain.jitter_ns) > chain.period_ns ? std::nullopt : std::optional(response_ns);
  }

  // The most that so many callbacks of a chain in a row execute.
  static time_ns longest_row_ns(const Chain &chain, time_ns count) {
    const std::vector<Callback> &callbacks = chain.callbacks;
    if (static_cast<time_ns>(callbacks.size()) <= count) return chain.execution_ns;
    time_ns row_ns = 0, longest_ns = 0;
    for (std::size_t place = 0; place < callbacks.size(); ++place) {
      row_ns += callbacks[place].execution_ns;
      const auto left = static_cast<time_ns>(place) - count;
      if (left >= 0) row_ns -= callbacks[static_cast<std::size_t>(left)].execution_ns;
      longest_ns = std::max(longest_ns, row_ns);
    }
    return longest_ns;
  }

  const Executor &executor_;
  time_ns most_ns_;
  std::vector<time_ns> instances_;  // of each chain in a busy window
  std::map<time_ns, Rows> rows_;
};

std::optional<time_ns> ready_sets(const Executor &executor, std::size_t index) {
  return ReadySets(executor).bound(index);
}

// No bound of one thread depends on another chain being in time.
ChainResult chain_result(const Executor &executor, std::size_t index, std::optional<time_ns> bound_ns,
                         Variant variant) {
  ChainResult chain;
  chain.response_ns = bound_ns;
  chain.met = bound_ns && *bound_ns <= executor.chains()[index].deadline_ns;
  chain.guaranteed = chain.met && variant == Variant::safe;
  chain.breakdown.interference_ns.assign(executor.chains().size(), 0);
  chain.breakdown.finish_ns = bound_ns.value_or(0);
  return chain;
}

using enum Policy;
using enum Variant;
constexpr std::array entries{
    SingleThreadAnalysis{"single-any-order", "one thread, any order: busy window", ready_set, safe, any_order},
    SingleThreadAnalysis{"single-ready-sets", "one thread, default executor: each callback once a ready set", ready_set,
                         safe, ready_sets},
    SingleThreadAnalysis{"single-priority", "one thread, most important first: busy window", priority, safe,
                         by_priority},
    SingleThreadAnalysis{"casini2019-published", "one thread, any order: Casini et al. 2019, Lemma 8", ready_set,
                         published, casini_lemma8},
    SingleThreadAnalysis{"blass2021-published", "one thread, default executor: Blass et al. 2021, Theorem 2", ready_set,
                         published, blass_theorem2},
    SingleThreadAnalysis{"blass2021-busy-published", "one thread, default executor: Blass et al. 2021, Theorem 3",
                         ready_set, published, blass_theorem3},
    SingleThreadAnalysis{"picas2021-published", "one thread, most important first: Choi et al. 2021, Theorem 1",
                         priority, published, picas_theorem1, true},
};

}  // namespace

std::span<const SingleThreadAnalysis> single_thread_analyses() { return entries; }

const SingleThreadAnalysis *find_single_thread_analysis(std::string_view name) {
  for (const SingleThreadAnalysis &one : entries) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

bool is_single_thread(const Executor &executor) { return executor.lanes().size() == 1 && !executor.has_groups(); }

std::optional<time_ns> single_thread_bound(const Executor &executor, std::size_t chain) {
  std::optional<time_ns> least_ns;
  for (const SingleThreadAnalysis &one : entries) {
    if (one.policy != executor.policy() || one.variant != Variant::safe) continue;
    const auto bound_ns = one.bound(executor, chain);
    if (bound_ns && (!least_ns || *bound_ns < *least_ns)) least_ns = bound_ns;
  }
  return least_ns;
}

Result single_thread_result(const SingleThreadAnalysis &analysis, const Executor &executor) {
  Result result;
  result.met = true;
  for (std::size_t index = 0; index < executor.chains().size(); ++index) {
    result.chains.push_back(chain_result(executor, index, analysis.bound(executor, index), analysis.variant));
    result.met = result.met && result.chains.back().met;
  }
  return result;
}

Result sharpened(const Executor &executor, Result result) {
  if (!is_single_thread(executor) || !result.error.empty()) return result;
  result.met = true;
  for (std::size_t index = 0; index < result.chains.size(); ++index) {
    ChainResult &chain = result.chains[index];
    const auto bound_ns = single_thread_bound(executor, index);
    const bool lower = bound_ns && (!chain.response_ns || *bound_ns < *chain.response_ns || !chain.guaranteed);
    if (lower) chain = chain_result(executor, index, bound_ns, safe);
    result.met = result.met && chain.met;
  }
  return result;
}

}  // namespace tide::analysis
