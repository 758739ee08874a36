// SPDX-License-Identifier: Apache-2.0
// Actions and services of a program on rclc, with faults, in virtual time: each goal is executed at most once and has
// one answer and, if accepted, one result, even if the agent dies; each request is executed once and answered once
// while the agent lives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/line.h"

namespace tide::sim {

// The outcome of each goal and request, as both sides see it, and the conditions that it must meet. A goal or request
// is identified by its number, not by its id in messages.
//
// Every fourth goal is refused, however often it is requested.
constexpr bool is_refused(int32_t number) { return number % 4 == 0; }

struct GoalRecord {
  int executed = 0;              // number of times that its server accepted it as a new goal
  int answers = 0, results = 0;  // number received by its client
  bool accepted = false, succeeded = false;
};
struct RequestRecord {
  int executed = 0, answers = 0;
  bool given_up = false;  // given up by the requesting client
};

struct Ledger {
  std::map<int32_t, GoalRecord> goals_of_board, goals_of_nodes;  // by the side that has the client
  std::map<int32_t, RequestRecord> requests_of_board, requests_of_nodes;
  std::vector<std::string> broken;  // violations that were seen during the run
  bool renewed = false;             // the session or the agent was renewed, so messages may be lost or repeated

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
  std::vector<Incident> cuts, restarts;  // when the line is cut, and when the agent is restarted
  Time agent_most = 0;                   // longest delay from the line to the agent
  // Times of sending; the number of each goal or request is its position here, from 1.
  std::vector<Time> goals_of_board, goals_of_nodes, requests_of_board, requests_of_nodes;
  std::vector<Time> questions;  // times at which the nodes repeat unanswered requests
  bool strict = false;          // the nodes' server refuses a repeated id, like those of rclcpp and rclpy
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

// A run in a separate process. Within a process, goal ids continue from one board to the next, so only the first run of
// a process can be replayed by its seed alone. A crash of the process is also a violation.
struct ActionCounts {
  uint64_t goals = 0, accepted = 0, requests = 0, given_up = 0, restarts = 0, frames = 0, events = 0;
};
struct ActionSummary : ActionCounts {
  std::string violation;  // the first violation; empty if there is none
};

// Throws std::runtime_error if the operating system cannot start a process.
ActionSummary simulate_apart(uint64_t seed);

}  // namespace tide::sim
