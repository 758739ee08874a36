// SPDX-License-Identifier: Apache-2.0
#include "analysis/single_thread.h"

#include <algorithm>
#include <array>

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
// after the rest of one set and n more.
std::optional<time_ns> ready_sets(const Executor &executor, std::size_t index) {
  const Chain &chain = executor.chains()[index];
  const time_ns most_ns = longest_window_ns(executor);
  const auto length_ns = least_window(executor, most_ns, [&](time_ns window_ns) {
    return add(all_others(executor, index, window_ns), multiply(arrivals(chain, window_ns), chain.execution_ns)) - 1;
  });
  const auto sets = static_cast<time_ns>(chain.callbacks.size()) + 1;
  time_ns sum_ns = chain.execution_ns - chain.last_ns;
  for (std::size_t other = 0; other < executor.chains().size(); ++other) {
    if (other == index) continue;
    const Chain &each = executor.chains()[other];
    const time_ns runs = length_ns ? std::min(sets, arrivals(each, *length_ns)) : sets;
    sum_ns = add(sum_ns, multiply(runs, each.execution_ns));
  }
  const time_ns response_ns = end_ns(executor, chain, sum_ns);
  // Each instance must find none of its own before it.
  if (add(response_ns, chain.jitter_ns) > chain.period_ns) return std::nullopt;
  return response_ns;
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
