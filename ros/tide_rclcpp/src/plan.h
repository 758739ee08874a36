// SPDX-License-Identifier: Apache-2.0
// Priorities of callbacks from the chains that name them, and names without a match.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tide_rclcpp/options.hpp"

namespace tide_rclcpp {

// A callback of a present node: the members by which a chain can name it, including the period of a timer.
using Found = Callback;

class Plan {
 public:
  explicit Plan(std::vector<Chain> chains);
  bool empty() const { return chains_.empty(); }

  // The highest priority from all chains that name the callback; 0 if none does.
  tide_priority_t priority_of(const Found &found) const;
  // "chain/callback" for each chain that names the callback.
  std::vector<std::string> names_of(const Found &found) const;
  // A name in a chain.
  struct Name {
    std::string text;
    bool matches;
    std::string instead;  // what exists instead, if it does not match
  };
  std::vector<Name> names(const std::vector<Found> &found) const;
  // Names in chains that match no callback.
  std::vector<std::string> unmatched(const std::vector<Found> &found) const;

 private:
  std::vector<Chain> chains_;
};

// Log lines about the names in chains while nodes come and go: which names match, which no longer match, and which have
// never matched: after each new node, and when the node of such a name has other callbacks than before.
class NameLog {
 public:
  struct Line {
    bool warning;
    std::string text;
  };
  std::vector<Line> update(const Plan &plan, const std::vector<Found> &found);

 private:
  std::map<std::string, bool> matched_;       // the names that have ever matched; true if they match now
  std::map<std::string, std::string> never_;  // the names that have never matched, with what existed instead
  std::set<std::string> nodes_;
  bool complete_ = false;
};

}  // namespace tide_rclcpp
