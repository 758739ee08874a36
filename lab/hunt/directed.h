// SPDX-License-Identifier: Apache-2.0
// A search for releases that delay one chain, on sets of the size used in studies, where random releases find nothing:
// it starts from the releases of the analysis's worst case and changes one value at a time.
#pragma once

#include <cstdint>

#include "analysis/trials.h"
#include "hunt/hunt.h"

namespace tide::analysis {

// The longest response of the chain that was found; the same seed gives the same result. `tries` is the number of
// schedules run.
time_ns worst_found_ns(const Executor &executor, size_t chain, int tries, uint64_t seed);

struct Tightness {
  uint64_t sets = 0;
  uint64_t met = 0;       // number of sets whose deadlines the analysis guarantees
  uint64_t exceeded = 0;  // number of chains whose response exceeded the bound
  Ratios ratios;          // ratios for the chains of those sets
};

// Random chain sets of the recipe, with seeds from `first` on.
Tightness tightness(const Analysis &analysis, const Recipe &recipe, uint64_t first, uint64_t count, int tries);

}  // namespace tide::analysis
