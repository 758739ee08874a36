// SPDX-License-Identifier: Apache-2.0
// A plan as input of the link analysis, its bounds, and the check of a run against them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/link.h"
#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

// Every execution and every message may be shorter than in the plan, and any byte may need an escape.
analysis::LinkSystem system_of(const Plan &plan);

// Bounds by chain, from the release to the end of the last callback; unset if the chain has none, or if the plan has
// faults that the analysis does not cover.
std::vector<std::optional<Time>> bounds_of(const Plan &plan);

// The chains that were slower than their bound, one line for each. Also empty if messages were refused or dropped in
// the run, because the bounds do not cover this.
std::vector<std::string> above_bounds(const std::vector<std::optional<Time>> &bounds, const Result &result);

}  // namespace tide::sim
