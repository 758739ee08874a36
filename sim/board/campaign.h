// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

// Draws a random system with its faults; the seed determines it.
Plan draw_plan(uint64_t seed);

// Boards on which some lanes are overloaded and the others are not. Each level of chains has a lane and a budget. A
// lane that stays within its budget answers within a bound, which depends on more urgent lanes only through their
// budgets; an overloaded lane still gets its budget. The line loses nothing, so that all delays are caused by other
// lanes.
struct Overload {
  Plan plan;
  std::vector<Time> bounds;  // bounds of the response of each chain; -1: its lane is overloaded
};

// The same seed gives the same system.
Overload draw_overload(uint64_t seed);

// The promises that the run has broken; empty if there are none.
std::vector<std::string> broken_promises(const Overload &overload, const Result &result);

// Chains on shipped executors of the host, whose lanes pause between two critical sections.
Plan draw_host(uint64_t seed);

}  // namespace tide::sim
