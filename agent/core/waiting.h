// SPDX-License-Identifier: Apache-2.0
// What a client has said to a requester or replier before ROS 2 is ready for it: requests that no server would get, and
// replies whose asker DDS has not matched yet. ROS 2 would lose them. Kept for a while only: a request that is carried
// out much later does harm.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "core/limits.h"
#include "core/middleware.h"

namespace tide::agent {

struct WaitingMessage {
  uint16_t request = 0;       // of a requester: id of the request
  SampleIdentity identity{};  // of a replier: of the request that is answered
  std::vector<uint8_t> payload;
  bool big_endian = false;
  Time until_ns = 0;
};

class WaitingMessages {
 public:
  bool empty() const { return messages_.empty(); }
  Time next_ns() const;  // when the first is given up
  // Returns how many of the oldest had to give way.
  size_t push(WaitingMessage message, const Limits &limits);
  // Offers them to hand_on, oldest first; what it returns true for goes. Returns how many were given up since their
  // time is over.
  size_t flush(Time now, const std::function<bool(const WaitingMessage &)> &hand_on);

 private:
  void check() const;

  std::deque<WaitingMessage> messages_;
  size_t bytes_ = 0;
};

}  // namespace tide::agent
