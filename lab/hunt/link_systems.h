// SPDX-License-Identifier: Apache-2.0
// Random boards with a serial line, as plans of the simulator.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/link.h"
#include "sim/board/plan.h"
#include "sim/engine/random.h"

namespace tide::analysis {

// Common properties of the boards of one hunt.
struct LinkFamily {
  sim::Policy policy = sim::Policy::kTide;
  bool lanes = false;     // preemptive
  bool reliable = false;  // for most chains, requests and most answers
  bool hold = false;      // less urgent frames wait for acknowledgments, of all chains or of some
  bool losses = false;    // one or two lost frames of each instance
  bool large = false;     // messages of up to 3,000 bytes in fragments, and short ones
  bool slow = false;      // few similar chains with long callbacks as in the published evaluation, which overlap the
                          // transfer over the line
  bool spaced = false;    // like slow, with messages shorter than callbacks
  bool few = false;       // one or two chains that mainly send: bounds are tight, so that small terms matter
  bool dense = false;     // many instances of an urgent chain during another one
};

sim::Plan draw_board(uint64_t seed, const LinkFamily &family);

// Releases likely to cause delays: together, just before or after one another, or one execution apart.
void shift_releases(sim::Plan &plan, sim::Random &random);

// The system of the plan, with the plan's execution times and message sizes as exact values.
void fix_executions(LinkSystem &system);

}  // namespace tide::analysis
