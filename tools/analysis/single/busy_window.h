// SPDX-License-Identifier: Apache-2.0
// Windows of an executor with one thread in which it always has something to do.
#pragma once

#include <optional>

#include "analysis/model/model.h"
#include "analysis/model/supply.h"

namespace tide::analysis {

// How far bounds are looked for: where demand and supply grow alike there is none.
inline constexpr int kMostWindowSteps = 100'000;
// Of a chain in one busy window, so that all chains are bounded in a second.
inline constexpr time_ns kMostInstances = 5'000;
time_ns longest_window_ns(const Executor &executor);

// Instances of a chain that are released in a window which begins when none of them is pending.
inline time_ns arrivals(const Chain &chain, time_ns window_ns) {
  return window_ns <= 0 ? 0 : divide_up(add(window_ns, chain.jitter_ns), chain.period_ns);
}

// The least window from `window_ns` on that is certain to supply the demand in it; the demand never falls.
template <class Demand>
std::optional<time_ns> supplied_window(const Supply &supply, time_ns most_ns, Demand demand, time_ns window_ns = 1) {
  for (int step = 0; step < kMostWindowSteps && window_ns <= most_ns; ++step) {
    const time_ns next_ns = supply.window_for_ns(demand(window_ns));
    if (next_ns <= window_ns) return window_ns;
    window_ns = next_ns;
  }
  return std::nullopt;
}

}  // namespace tide::analysis
