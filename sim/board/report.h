// SPDX-License-Identifier: Apache-2.0
// Results as text: results.json of the project, and lines for a campaign.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

struct Summary {
  size_t samples = 0;
  Time minimum = 0, p50 = 0, p99 = 0, maximum = 0, mean = 0, deviation = 0;
  size_t deadline_misses = 0;
};
Summary summarise(const ChainResult &chain);

struct Run {
  std::string executor;  // tide, batch, tide-preemptive, limit
  Plan plan;
  Result result;
  std::vector<std::optional<Time>> bounds;  // by chain, or empty
};
std::string results_json(const Plan &plan, const std::vector<Run> &runs);

}  // namespace tide::sim
