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

// Every execution and every message may be shorter than in the plan; any byte may be escaped.
analysis::LinkSystem system_of(const Plan &plan);

// By chain, from the release to the end of the last callback; none if the chain has none, or the plan has faults that
// the analysis does not cover.
std::vector<std::optional<Time>> bounds_of(const Plan &plan);

// Chains slower than their bound, a line for each. Also empty for a run in which messages were refused or dropped, as
// the bounds do not cover it.
std::vector<std::string> above_bounds(const std::vector<std::optional<Time>> &bounds, const Result &result);

}  // namespace tide::sim
