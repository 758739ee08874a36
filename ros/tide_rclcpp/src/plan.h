// SPDX-License-Identifier: Apache-2.0
// Which priority a callback has by the chains that name it, and what they name in vain.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tide_rclcpp/options.hpp"

namespace tide_rclcpp {

// A callback of a node that is there: with all that a chain can say of it, and a period where it is a timer.
using Found = Callback;

class Plan {
 public:
  explicit Plan(std::vector<Chain> chains);
  bool empty() const { return chains_.empty(); }

  // The highest of those of all chains that name it; 0: none does.
  tide_priority_t priority_of(const Found &found) const;
  // "chain/callback" of all that name it.
  std::vector<std::string> names_of(const Found &found) const;
  // A name that a chain gives a callback here, with its chain.
  struct Name {
    std::string text;
    bool matches;
    std::string instead;  // of one that does not match: what is there
  };
  std::vector<Name> names(const std::vector<Found> &found) const;
  // The texts of those that match nothing.
  std::vector<std::string> unmatched(const std::vector<Found> &found) const;

 private:
  std::vector<Chain> chains_;
};

// What there is to log about the names of chains while nodes come and go: which match, which do no longer, and, each
// time that a node has come, which never did.
class NameLog {
 public:
  struct Line {
    bool warning;
    std::string text;
  };
  std::vector<Line> update(const Plan &plan, const std::vector<Found> &found);

 private:
  std::map<std::string, bool> matched_;  // names that ever matched: whether they do
  std::set<std::string> nodes_;
  bool complete_ = false;
};

}  // namespace tide_rclcpp
