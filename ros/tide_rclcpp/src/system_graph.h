// SPDX-License-Identifier: Apache-2.0
// How the chains of a system.toml hang together by branches_from and joins, and what priorities follow from it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "system_file.h"
#include "tide_rclcpp/options.hpp"

namespace tide_rclcpp {

class SystemGraph {
 public:
  // The tables outlive it. std::runtime_error: a priority that is none, a chain.callback that is not there or publishes
  // nothing, or a chain that waits for itself; the message names the file.
  SystemGraph(const std::string &path, const std::vector<Table> &tables);

  struct Node {
    const Table *table = nullptr;  // of the callback
    tide_priority_t priority = 0;  // its own, or the highest that one of the chains gives to which it leads
  };
  struct Branch {
    const Table *table = nullptr;  // of the chain
    std::vector<Node> callbacks;
    std::vector<std::string>
        topics;  // what its first callback takes, one for each message that it joins; none: a timer
  };
  const std::vector<Branch> &chains() const { return chains_; }

 private:
  using Place = std::pair<std::size_t, std::size_t>;  // chain, callback

  [[noreturn]] void refuse(std::size_t chain, const std::string &what) const;
  void find_inputs(std::size_t chain);
  std::size_t depth_of(std::size_t chain);
  void raise(const Place &place, std::uint8_t level);
  std::uint8_t level_of(std::size_t chain) const;

  std::string path_;
  std::vector<Branch> chains_;
  std::map<std::string, Place> places_;     // of chain.callback
  std::vector<std::vector<Place>> inputs_;  // of each chain's first callback
  std::vector<std::vector<std::uint8_t>> levels_;
  static constexpr std::size_t kUnknown = SIZE_MAX, kUnderWay = SIZE_MAX - 1;
  std::vector<std::size_t> depths_;  // callbacks before the chain's first one, on the longest way from the timer
};

}  // namespace tide_rclcpp
