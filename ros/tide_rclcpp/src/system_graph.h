// SPDX-License-Identifier: Apache-2.0
// How the chains of a system.toml hang together by branches_from and joins, and what priorities follow from it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "system_file.h"
#include "tide_rclcpp/options.hpp"

namespace tide_rclcpp {

class SystemGraph {
 public:
  // The tables outlive it. std::runtime_error: a priority that is none, more of them on this executor than there are
  // levels, a chain.callback that is not there or publishes nothing, or a chain that waits for itself; the message
  // names the file. executor: whose levels these are, in the order of the priorities of the chains that come there: the
  // priorities themselves where all of them are levels, else they are numbered from 1 (tide/system/levels.py has the
  // same rule).
  SystemGraph(const std::string &path, const std::vector<Table> &tables, const std::string &executor);

  struct Node {
    const Table *table = nullptr;  // of the callback
    tide_priority_t priority = 0;  // its own, or the highest that one of the chains gives to which it leads
  };
  struct Branch {
    const Table *table = nullptr;  // of the chain
    std::uint8_t level = 0;        // 0: it does not come to this executor
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
  std::int64_t chain_priority(std::size_t chain) const;
  void find_executors(std::size_t chain, std::size_t last, std::set<Place> &seen, bool &comes) const;
  void find_levels();

  std::string path_, executor_;
  std::vector<Branch> chains_;
  std::map<std::string, Place> places_;     // of chain.callback
  std::vector<std::vector<Place>> inputs_;  // of each chain's first callback
  std::vector<std::vector<std::uint8_t>> levels_;
  static constexpr std::size_t kUnknown = SIZE_MAX, kUnderWay = SIZE_MAX - 1;
  std::vector<std::size_t> depths_;  // callbacks before the chain's first one, on the longest way from the timer
};

}  // namespace tide_rclcpp
