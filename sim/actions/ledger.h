// SPDX-License-Identifier: Apache-2.0
// What became of each goal and each request, seen from both sides, and what must hold of it. A goal or request is known
// by its number, whatever its id on the way is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tide::sim {

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

}  // namespace tide::sim
