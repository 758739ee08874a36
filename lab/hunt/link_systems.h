// SPDX-License-Identifier: Apache-2.0
// Random boards with a serial line, as plans of the simulator.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/link.h"
#include "sim/board/plan.h"
#include "sim/engine/random.h"

namespace tide::analysis {

// What the boards of one hunt have in common.
struct LinkFamily {
  sim::Policy policy = sim::Policy::kTide;
  bool lanes = false;     // preemptive
  bool reliable = false;  // most chains, requests and most answers
  bool hold = false;      // less urgent frames wait for acknowledgments
  bool losses = false;    // one or two frames of each instance
  bool large = false;     // messages of up to 3,000 bytes in fragments, and short ones
  bool slow = false;      // few chains, alike, of long callbacks as in the published evaluation: here the way over the
                          // line hides behind callbacks
  bool spaced = false;    // the same with messages that are shorter than callbacks
  bool few = false;       // one or two chains that do little but send: bounds are near, so that small terms tell
  bool dense = false;     // many instances of an urgent chain while another runs
};

sim::Plan draw_board(uint64_t seed, const LinkFamily &family);

// Releases that could hurt: together, just before or after one another, one execution apart.
void shift_releases(sim::Plan &plan, sim::Random &random);

// The system of the plan, if every execution and every message is as long as the plan says.
void fix_executions(LinkSystem &system);

}  // namespace tide::analysis
