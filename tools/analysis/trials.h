// SPDX-License-Identifier: Apache-2.0
// What the bounds are tried on: random chain sets for studies of schedulability, and the exact schedule of an executor.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/model.h"

namespace tide::analysis {

// ---- shares ----
// Ways to divide a sum at random, uniformly among all ways to do so.

// The numbers of all generators: 64 random bits from a counter (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double unit();  // at least 0, below 1

 private:
  uint64_t state_;
};

// Bini and Buttazzo 2005: any part may be as large as the sum.
std::vector<double> uunifast(Random &random, size_t parts, double sum);

// Griffin, Bate and Davis 2020 (Dirichlet-Rescale): no part above its own limit. A point of the simplex that violates
// limits lies in a smaller simplex, the one of what exceeds them, and is scaled up from there to the whole one.
//
// Scaled again and again without care, as first published, the points are not uniform: what came from a cut-off simplex
// fills only a part of the whole one (its authors have withdrawn it for that). Here the box that the present point is
// uniform in is carried along, and when it no longer covers the limits a new point is drawn; so what is returned is
// uniform. Where that keeps failing (dozens of parts near half of their limits), points are scaled regardless.
// The limits must have at least the sum; a limit of 0 gives 0.
std::vector<double> dirichlet_rescale(Random &random, double sum, const std::vector<double> &limits);

// ---- chain sets ----
// Random chain sets for studies of schedulability; a seed gives the same set on every machine of one C library.

enum class PeriodLaw { uniform, log_uniform };
enum class PriorityLaw { rate_monotonic, random };
// How the utilisation of a set is divided among its chains; that of a chain among its callbacks is by UUniFast.
enum class ShareLaw { uunifast, dirichlet_rescale };

struct Recipe {
  size_t chains = 5;
  size_t callbacks = 10;  // of each chain
  size_t lanes = 4;
  double utilisation = 1.0;  // of the whole set; one core is 1
  ShareLaw shares = ShareLaw::uunifast;
  double most_utilisation = 1.0;  // of one chain, with dirichlet_rescale; raised where the set needs more
  time_ns shortest_period_ns = 50'000'000;
  time_ns longest_period_ns = 1'000'000'000;
  PeriodLaw periods = PeriodLaw::uniform;
  PriorityLaw priorities = PriorityLaw::rate_monotonic;
  time_ns deadline_periods = 1;  // a deadline in periods
};

Executor generate(const Recipe &recipe, uint64_t seed);

// ---- schedules ----
// The exact schedule of an executor, from event to event: what a bound must never be below.
//
// It knows nothing of the analyses. An executor of which no order is known takes callbacks from cached sets, too. All
// completions and releases of an instant are seen before a lane takes a callback.

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
