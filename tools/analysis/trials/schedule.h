// SPDX-License-Identifier: Apache-2.0
// The exact schedule of an executor, from event to event: what a bound must never be below.
//
// It knows nothing of the analyses. An executor of which no order is known takes callbacks from cached sets, too. All
// completions and releases of an instant are seen before a lane takes a callback.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/model/model.h"

namespace tide::analysis {

struct Release {
  time_ns at_ns = 0;
  std::vector<time_ns> execution_ns;  // of each callback; empty: all take their worst case
};

// When a lane is supplied: [from, to), in order. Empty: always.
using Slots = std::vector<std::pair<time_ns, time_ns>>;

struct Scenario {
  std::vector<std::vector<Release>> releases;  // of each chain, in order of time
  std::vector<Slots> lanes;                    // fewer than the lanes of the executor: the others always run
  // The order in which the default executor looks at the callbacks of its ready set: chains in this order, each with
  // its callbacks in order, timers before all others. Empty: as in the executor.
  std::vector<size_t> registration;
};

struct Schedule {
  // By chain and instance, from the release to the end of the last callback; kNeverNs if it did not get that far.
  std::vector<std::vector<time_ns>> response_ns;
  time_ns worst_ns(size_t chain) const;
};

// Runs until everything that was released is over, or the lanes are supplied no more.
Schedule run_schedule(const Executor &executor, const Scenario &scenario);

}  // namespace tide::analysis
