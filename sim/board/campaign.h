// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

// A random system with its faults, by the seed alone.
Plan draw_plan(uint64_t seed);

// Boards on which some lanes are overloaded and the others are not. Each level of chains has a lane and a budget. A
// lane that keeps within its budget answers within a bound that counts the budgets of the more urgent lanes and nothing
// else of them; one that does not has its budget. Nothing is lost on the line, so what comes late came late by the
// others.
struct Overload {
  Plan plan;
  std::vector<Time> bounds;  // of the response of each chain; -1: its lane is overloaded
};

// The same seed, the same system.
Overload draw_overload(uint64_t seed);

// What is not as promised; empty: all is well.
std::vector<std::string> broken_promises(const Overload &overload, const Result &result);

}  // namespace tide::sim
