// SPDX-License-Identifier: Apache-2.0
// Means to test bounds: random chain sets for schedulability studies, and the exact schedule of an executor.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/model.h"

namespace tide::analysis {

// ---- shares ----
// Random divisions of a sum into parts; every possible division is equally likely.

// The random numbers of all generators: 64 bits from a counter (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double unit();  // at least 0, below 1

 private:
  uint64_t state_;
};

// Bini and Buttazzo 2005: any part may be as large as the whole sum.
std::vector<double> uunifast(Random &random, size_t parts, double sum);

// Griffin, Bate and Davis 2020 (Dirichlet-Rescale): no part exceeds its own limit. A point is drawn from the simplex of
// all divisions. If it violates some limits, it lies in the smaller simplex beyond them; it is mapped from there to the
// whole simplex, by scaling.
//
// The first published version scales a point repeatedly. Its points are not uniform, because points from a truncated
// simplex fill only a part of the whole one after scaling; the authors have withdrawn that version for this reason.
// This function tracks the box in which the current point is uniform and draws a new point when that box no longer
// covers the limits, so its result is uniform. If new draws keep failing (dozens of parts near half of their limits),
// points are scaled regardless and are not exactly uniform. The limits must add up to at least the sum; a part with a
// limit of 0 is 0.
std::vector<double> dirichlet_rescale(Random &random, double sum, const std::vector<double> &limits);

// ---- chain sets ----
// Random chain sets for studies of schedulability. A seed gives the same set on every machine that has the same C
// library.

enum class PeriodLaw { uniform, log_uniform };
enum class PriorityLaw { rate_monotonic, random };
// How the utilisation of a set is divided among its chains. A chain's share is always divided among its callbacks by
// UUniFast.
enum class ShareLaw { uunifast, dirichlet_rescale };

struct Recipe {
  size_t chains = 5;
  size_t callbacks = 10;  // number of callbacks of each chain
  size_t lanes = 4;
  double utilisation = 1.0;  // utilisation of the whole set; one core is 1
  ShareLaw shares = ShareLaw::uunifast;
  double most_utilisation = 1.0;  // limit of one chain's utilisation, with dirichlet_rescale; raised if `utilisation`
                                  // exceeds the sum of the limits
  time_ns shortest_period_ns = 50'000'000;
  time_ns longest_period_ns = 1'000'000'000;
  PeriodLaw periods = PeriodLaw::uniform;
  PriorityLaw priorities = PriorityLaw::rate_monotonic;
  time_ns deadline_periods = 1;  // ratio of a deadline to its period
};

Executor generate(const Recipe &recipe, uint64_t seed);

// ---- schedules ----
// The exact schedule of an executor, event by event: no bound may be below it.
//
// The schedule is computed independently of the analyses. For an executor with an unknown order (any_order), callbacks
// are taken from cached sets. All completions and releases of an instant are processed before a lane takes a callback.

struct Release {
  time_ns at_ns = 0;
  std::vector<time_ns> execution_ns;  // execution time of each callback; empty: the worst case
};

// When a lane is supplied: [from, to), in order. Empty: it is always supplied.
using Slots = std::vector<std::pair<time_ns, time_ns>>;

struct Scenario {
  std::vector<std::vector<Release>> releases;  // releases of each chain, in order of time
  std::vector<Slots> lanes;                    // may have fewer entries than the executor has lanes: the remaining
                                               // lanes are always supplied
  // The order of the default executor's ready set: the chains in this order, each with its callbacks in order, but
  // timers before all others. Empty: the order of the executor.
  std::vector<size_t> registration;
  bool publishes_first = false;  // with Policy::fifo: a callback makes the next one ready when it starts, not when it
                                 // ends
};

struct Schedule {
  // Times by chain and instance, from the release to the end of the last callback; kNeverNs if that end was not
  // reached.
  std::vector<std::vector<time_ns>> response_ns;
  time_ns worst_ns(size_t chain) const;
};

// Runs until all released instances have ended, or until the supply of the lanes ends.
Schedule run_schedule(const Executor &executor, const Scenario &scenario);

}  // namespace tide::analysis
