// SPDX-License-Identifier: Apache-2.0
// Mutants: analyses whose bounds are defective on purpose. A hunt must detect each of them; only then does a hunt
// without failures mean anything.
#pragma once

#include <string>
#include <vector>

#include "hunt/hunt.h"

namespace tide::analysis {

struct Twin {
  std::string name;  // names of the analysis and of the term that its bound omits
  Quarry quarry;
};

// All mutants: for every quarry, one for each necessary term of its bound.
std::vector<Twin> twins();

}  // namespace tide::analysis
