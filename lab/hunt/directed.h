// SPDX-License-Identifier: Apache-2.0
// A search for releases that delay one chain. It is for chain sets of the size used in studies, in which random
// releases hardly ever delay a chain much. It starts from releases like those in the analysis's worst case and changes
// one value at a time.
#pragma once

#include <cstdint>

#include "analysis/trials.h"
#include "hunt/hunt.h"

namespace tide::analysis {

// The longest response of the chain that a search with `tries` schedules finds. The same seed gives the same result.
time_ns worst_found_ns(const Executor &executor, size_t chain, int tries, uint64_t seed);

struct Tightness {
  uint64_t sets = 0;
  uint64_t met = 0;       // number of sets whose deadlines the analysis guarantees
  uint64_t exceeded = 0;  // number of chains whose response exceeded the bound
  Ratios ratios;          // of bounds to responses, for the chains of the sets counted in `met`
};

// Searches on `count` random chain sets of the recipe, with seeds from `first` on.
Tightness tightness(const Analysis &analysis, const Recipe &recipe, uint64_t first, uint64_t count, int tries);

}  // namespace tide::analysis
