// SPDX-License-Identifier: Apache-2.0
// The number of each DDS participant in this process, from which its ports follow. Left to itself Fast DDS counts on
// with each participant it ever makes, and ends the process when the port of one is too high; here a number is used
// again.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <set>

namespace tide::agent {

class ParticipantNumbers {
 public:
  // The lowest that is free, if it is below the limit.
  std::optional<int> take(size_t limit) {
    const std::lock_guard lock(mutex_);
    int number = 0;
    while (taken_.contains(number)) number++;
    if (static_cast<size_t>(number) >= limit) return std::nullopt;
    taken_.insert(number);
    return number;
  }
  void give_back(int number) {
    const std::lock_guard lock(mutex_);
    taken_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::set<int> taken_;
};

}  // namespace tide::agent
