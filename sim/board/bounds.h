// SPDX-License-Identifier: Apache-2.0
// A plan as the analysis of the link reads it, its bounds, and whether what a run showed keeps to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/link.h"
#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

// Every execution and every message may be shorter than the plan says; any byte may be escaped.
analysis::LinkSystem system_of(const Plan &plan);

// By chain, from the release to the end of the last callback; none where there is none, or the plan has faults that the
// analysis does not know.
std::vector<std::optional<Time>> bounds_of(const Plan &plan);

// What was slower than its bound, a line each that names the chain. Empty, too, for a run in which messages were
// refused or dropped, of which the bounds say nothing.
std::vector<std::string> above_bounds(const std::vector<std::optional<Time>> &bounds, const Result &result);

}  // namespace tide::sim
