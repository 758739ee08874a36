// SPDX-License-Identifier: Apache-2.0
// A run in a process of its own. The runtime keeps numbers of its own from one board to the next (ids of goals), so
// only a run that is the first of its process can be replayed by its seed alone. A crash is a violation, too.
#pragma once

#include <cstdint>
#include <string>

namespace tide::sim {

struct Summary {
  uint64_t goals = 0, accepted = 0, requests = 0, given_up = 0, restarts = 0, frames = 0, events = 0;
  std::string violation;  // the first; empty: all is well
};

// Throws std::runtime_error where the system has no process left.
Summary simulate_apart(uint64_t seed);

}  // namespace tide::sim
