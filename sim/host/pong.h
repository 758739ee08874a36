// SPDX-License-Identifier: Apache-2.0
// The experiment of sim/workloads/budgets/plan.h in virtual time, on one core. Nothing but the lanes takes time.
#pragma once

#include <vector>

#include "sim/workloads/budgets/plan.h"

namespace tide::sim {

// One result a lane.
std::vector<lane_result_t> play_pong(const pong_plan_t &plan);

}  // namespace tide::sim
