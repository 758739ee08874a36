// SPDX-License-Identifier: Apache-2.0
// Actions and services of a program on rclc, with faults, in virtual time: each goal is executed at most once and has
// one answer and, when accepted, one result, whenever the agent dies; each request is executed once, and answered once,
// while the agent lives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/line.h"

namespace tide::sim {

// What became of each goal and each request, seen from both sides, and what must hold of it. A goal or request is known
// by its number, whatever its id on the way is.
//
// Every fourth one is refused, however often it is asked.
constexpr bool is_refused(int32_t number) { return number % 4 == 0; }

struct GoalRecord {
  int executed = 0;              // by its server: taken as a new one and accepted
  int answers = 0, results = 0;  // heard by its client
  bool accepted = false, succeeded = false;
};
struct RequestRecord {
  int executed = 0, answers = 0;
  bool given_up = false;  // by the client that asked
};

struct Ledger {
  std::map<int32_t, GoalRecord> goals_of_board, goals_of_nodes;  // by whose client they are
  std::map<int32_t, RequestRecord> requests_of_board, requests_of_nodes;
  std::vector<std::string> broken;  // seen on the way
  bool renewed = false;             // the session, or the agent: what was on its way may be gone, or come again

  void note(const std::string &what) { broken.push_back(what); }
  bool all_goals_settled() const;
  bool all_requests_settled() const;
  std::vector<std::string> violations() const;
};

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

// A run in a process of its own. The runtime keeps numbers of its own from one board to the next (ids of goals), so
// only a run that is the first of its process can be replayed by its seed alone. A crash is a violation, too.
struct ActionCounts {
  uint64_t goals = 0, accepted = 0, requests = 0, given_up = 0, restarts = 0, frames = 0, events = 0;
};
struct ActionSummary : ActionCounts {
  std::string violation;  // the first; empty: all is well
};

// Throws std::runtime_error where the system has no process left.
ActionSummary simulate_apart(uint64_t seed);

}  // namespace tide::sim
