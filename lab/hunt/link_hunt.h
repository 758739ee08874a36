// SPDX-License-Identifier: Apache-2.0
// Random boards with a serial line against the bounds of the link; the shipped runtime and the agent's core in the
// simulator are the observer. Everything follows from the seed of the board.
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
  // Of a broken bound: what it believes of the system, which terms it forgets. Empty: nothing.
  std::function<void(LinkSystem &system)> mistaken;
  std::function<time_ns(const LinkParts &parts)> forgotten;
};

std::vector<LinkQuarry> link_quarries();
// Broken on purpose; each must be caught.
std::vector<LinkQuarry> link_twins();

// schedules: runs of each board with releases drawn at random. climbs: changes of the run that came nearest to a bound.
// A run in which a pool was full is not counted; an instance that never ends is above every bound.
Tally hunt_link(const LinkQuarry &quarry, const Campaign &campaign);

}  // namespace tide::analysis
