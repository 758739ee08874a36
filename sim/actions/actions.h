// SPDX-License-Identifier: Apache-2.0
// Actions and services of a program on rclc, with faults, in virtual time. The rules: even if the agent ends, each goal
// is executed at most once and gets one answer and, if accepted, one result. While the agent lives, each request is
// executed once and answered once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/line.h"

namespace tide::sim {

// The Ledger records the outcome of each goal and request on both sides, and checks it against the rules. Goals and
// requests are identified by their numbers, not by their ids in messages.
//
// The servers refuse every fourth goal, however often it is requested.
constexpr bool is_refused(int32_t number) { return number % 4 == 0; }

struct GoalRecord {
  int executed = 0;              // how often its server accepted it as a new goal
  int answers = 0, results = 0;  // number received by its client
  bool accepted = false, succeeded = false;
};
struct RequestRecord {
  int executed = 0, answers = 0;
  bool given_up = false;  // given up by the requesting client
};

struct Ledger {
  std::map<int32_t, GoalRecord> goals_of_board, goals_of_nodes;  // named by the side of the client
  std::map<int32_t, RequestRecord> requests_of_board, requests_of_nodes;
  std::vector<std::string> broken;  // rules violated during the run
  bool renewed = false;             // true: there was a new session or a new agent, so messages may be lost or repeated

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
  std::vector<Incident> cuts, restarts;  // cuts of the line, and restarts of the agent
  Time agent_most = 0;                   // longest delay from the line to the agent
  // Times at which goals and requests are sent. The number of a goal or request is its position in the list, from 1.
  std::vector<Time> goals_of_board, goals_of_nodes, requests_of_board, requests_of_nodes;
  std::vector<Time> questions;  // times at which the nodes repeat unanswered requests
  bool strict = false;          // true: the nodes' server refuses a repeated goal id, as servers of rclcpp and rclpy do
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

// A run in a separate process (simulate_apart). Goal ids continue from one board of a process to the next, so only the
// first run of a process can be replayed by its seed alone. A crash of the separate process is also a violation.
struct ActionCounts {
  uint64_t goals = 0, accepted = 0, requests = 0, given_up = 0, restarts = 0, frames = 0, events = 0;
};
struct ActionSummary : ActionCounts {
  std::string violation;  // the first violation; empty if there is none
};

// Throws std::runtime_error if the operating system cannot start a process.
ActionSummary simulate_apart(uint64_t seed);

}  // namespace tide::sim
