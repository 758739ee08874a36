// SPDX-License-Identifier: Apache-2.0
// Actions and services of a program on rclc, with faults, in virtual time: each goal is executed at most once and has
// one answer and, when accepted, one result, whenever the agent dies; each request is executed once, and answered once,
// while the agent lives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/actions/ledger.h"
#include "sim/engine/line.h"

namespace tide::sim {

struct Incident {
  Time at = 0, duration = 0;
};

struct ActionPlan {
  uint64_t seed = 0;
  Faults up, down;
  std::vector<Incident> cuts, restarts;  // of the line, of the agent
  Time agent_most = 0;                   // from the line to the agent
  // When they are sent; the number of each is its place, from 1.
  std::vector<Time> goals_of_board, goals_of_nodes, requests_of_board, requests_of_nodes;
  std::vector<Time> questions;  // when the nodes ask again for what they have no answer to
  bool strict = false;          // the nodes' server refuses an id that comes twice, as those of rclcpp and rclpy
};

struct ActionResult {
  std::vector<std::string> violations;
  Ledger ledger;
  Time simulated = 0;
  uint64_t events = 0, frames = 0, frames_lost = 0;
  unsigned restarts = 0;
};

ActionPlan draw_actions(uint64_t seed);
ActionResult simulate(const ActionPlan &plan);

}  // namespace tide::sim
