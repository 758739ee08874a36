// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/board/plan.h"
#include "sim/board/system.h"

namespace tide::sim {

// Draws a random system and its faults. The same seed gives the same plan.
Plan draw_plan(uint64_t seed);

// A board on which some lanes are overloaded. Each level of chains has a lane with a budget. A lane whose demand stays
// within its budget answers within a bound that depends on more urgent lanes only through their budgets; an overloaded
// lane still gets its budget. The line loses nothing, so that only other lanes cause delays.
struct Overload {
  Plan plan;
  std::vector<Time> bounds;  // by chain: bound of its response; -1: no bound (see bound_of in campaign.cpp)
};

// The same seed gives the same system. At least one chain has a bound.
Overload draw_overload(uint64_t seed);

// Chains that exceeded their bound, and lanes that got less than their budget; empty if there are none.
std::vector<std::string> broken_promises(const Overload &overload, const Result &result);

// Chains on shipped executors of the host, whose lanes sometimes pause between two critical sections. The same seed
// gives the same system.
Plan draw_host(uint64_t seed);

}  // namespace tide::sim
