// SPDX-License-Identifier: Apache-2.0
#include "sim/actions/ledger.h"

#include <algorithm>

namespace tide::sim {
namespace {

bool is_settled(const GoalRecord &goal) { return goal.answers > 0 && (!goal.accepted || goal.results > 0); }

void check_goal(const std::string &name, int32_t number, const GoalRecord &goal, std::vector<std::string> &found) {
  const auto must = [&](bool holds, const char *what) {
    if (!holds) found.push_back(name + " " + std::to_string(number) + " " + what);
  };
  must(goal.executed <= 1, "was executed twice");
  must(goal.answers > 0, "has no answer");
  must(goal.answers <= 1, "has two answers");
  must(goal.results <= 1, "has two results");
  must(!goal.accepted || (goal.results == 1 && goal.succeeded), "was accepted and has no good result");
  must(goal.accepted || goal.results == 0, "was refused and has a result");
  must(goal.accepted == (goal.executed > 0), "is accepted for one side and not for the other");
  must(!goal.accepted || !is_refused(number), "was accepted by a server that refuses it");
}

void check_request(const std::string &name, int32_t number, const RequestRecord &request, bool renewed,
                   std::vector<std::string> &found) {
  const auto must = [&](bool holds, const char *what) {
    if (!holds) found.push_back(name + " " + std::to_string(number) + " " + what);
  };
  must(request.executed <= 1 || renewed, "was executed twice");
  must(request.answers <= 1, "has two answers");
  must(request.answers == 0 || request.executed > 0, "was answered and never executed");
  must(renewed || (request.executed == 1 && request.answers == 1), "was lost while the agent lived");
  must(request.answers > 0 || request.given_up || renewed, "has no end");
}

}  // namespace

bool Ledger::all_goals_settled() const {
  const auto settled = [](const auto &named) { return is_settled(named.second); };
  return std::all_of(goals_of_board.begin(), goals_of_board.end(), settled) &&
         std::all_of(goals_of_nodes.begin(), goals_of_nodes.end(), settled);
}

bool Ledger::all_requests_settled() const {
  const auto settled = [](const auto &named) { return named.second.answers > 0 || named.second.given_up; };
  return std::all_of(requests_of_board.begin(), requests_of_board.end(), settled) &&
         std::all_of(requests_of_nodes.begin(), requests_of_nodes.end(), settled);
}

std::vector<std::string> Ledger::violations() const {
  std::vector<std::string> found = broken;
  for (const auto &[number, goal] : goals_of_board) check_goal("the board's goal", number, goal, found);
  for (const auto &[number, goal] : goals_of_nodes) check_goal("a node's goal", number, goal, found);
  for (const auto &[number, request] : requests_of_board)
    check_request("the board's request", number, request, renewed, found);
  for (const auto &[number, request] : requests_of_nodes)
    check_request("a node's request", number, request, renewed, found);
  return found;
}

}  // namespace tide::sim
