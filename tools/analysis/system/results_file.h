// SPDX-License-Identifier: Apache-2.0
// Bounds of a system as JSON.
#pragma once

#include <string>

#include "analysis/system/end_to_end.h"

namespace tide::analysis {

// Bounds of every chain and path: what they are made of and what they depend on.
std::string write_results(const System &system, const SystemResult &result);

// The bounds of every analysis that applies to each executor, published ones included.
std::string write_comparison(const System &system, const Options &options);

}  // namespace tide::analysis
