// SPDX-License-Identifier: Apache-2.0
// Random boards with a serial line against the bounds of the link; the observer is the simulator with the shipped
// runtime and the agent's core. The seed of the board determines everything.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/link.h"
#include "hunt/hunt.h"
#include "hunt/link_systems.h"

namespace tide::analysis {

struct LinkQuarry {
  std::string name;
  LinkFamily family;
  // Defect of a bound: its wrong view of the system, the terms it omits. Empty: none.
  std::function<void(LinkSystem &system)> mistaken;
  std::function<time_ns(const LinkParts &parts)> forgotten;
};

std::vector<LinkQuarry> link_quarries();
// Bounds that are deliberately wrong; the hunt must detect each.
std::vector<LinkQuarry> link_twins();

// schedules: runs of each board with releases drawn at random. climbs: changes of the run that came nearest to a bound.
// A run with a full pool is not counted; an instance that never ends exceeds every bound.
Tally hunt_link(const LinkQuarry &quarry, const Campaign &campaign);

}  // namespace tide::analysis
