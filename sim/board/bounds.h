// SPDX-License-Identifier: Apache-2.0
// Converts a plan into input of the link analysis, computes its bounds, and compares a run with the bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/link.h"
#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

// The input allows every execution and every message to be shorter than in the plan, and any byte to be escaped.
analysis::LinkSystem system_of(const Plan &plan);

// Bounds by chain, from the release to the end of the last callback; unset if the chain has none, or if the plan has
// faults that the analysis does not cover.
std::vector<std::optional<Time>> bounds_of(const Plan &plan);

// One line of text for each chain that exceeded its bound. If messages were refused or dropped in the run, the result
// is empty, because the bounds do not cover this.
std::vector<std::string> above_bounds(const std::vector<std::optional<Time>> &bounds, const Result &result);

}  // namespace tide::sim
