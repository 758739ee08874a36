// SPDX-License-Identifier: Apache-2.0
// Mutants: analyses whose bounds are defective on purpose. A hunt must detect each of them; only then does a hunt
// without failures mean anything.
#pragma once

#include <string>
#include <vector>

#include "hunt/hunt.h"

namespace tide::analysis {

struct Twin {
  std::string name;  // names the analysis and the term that its bound omits
  Quarry quarry;
};

// All mutants: one for each necessary term of the bound of a multi-threaded analysis, and some for bounds of one
// thread.
std::vector<Twin> twins();

}  // namespace tide::analysis
