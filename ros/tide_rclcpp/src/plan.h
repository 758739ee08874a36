// SPDX-License-Identifier: Apache-2.0
// Which priority a callback has by the chains that name it, and what they name in vain.
#pragma once

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
  // Every name of a chain that is not among these, with its chain.
  std::vector<std::string> unmatched(const std::vector<Found> &found) const;

 private:
  std::vector<Chain> chains_;
};

}  // namespace tide_rclcpp
