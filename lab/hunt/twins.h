// SPDX-License-Identifier: Apache-2.0
// Analyses that are broken on purpose: what a hunt must catch, so that catching nothing means something.
#pragma once

#include <string>
#include <vector>

#include "hunt/hunt.h"

namespace tide::analysis {

struct Twin {
  std::string name;  // of the analysis and of what its bound forgets
  Quarry quarry;
};

// For every quarry, one for each term that its bound cannot do without.
std::vector<Twin> twins();

}  // namespace tide::analysis
