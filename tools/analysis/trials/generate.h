// SPDX-License-Identifier: Apache-2.0
// Random chain sets for studies of schedulability; a seed gives the same set on every machine of one C library.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/model/model.h"
#include "analysis/trials/shares.h"

namespace tide::analysis {

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

}  // namespace tide::analysis
