// SPDX-License-Identifier: Apache-2.0
// A connected program for tests of actions, and the ROS 2 side, which the test simulates.
#pragma once

#include <test_interfaces/action/count.h>

#include <array>

#include "../services.h"
#include "tide/rclc_action.h"

namespace tide::compat::test {

using GoalRequest = test_interfaces__action__Count_SendGoal_Request;
using GoalFeedback = test_interfaces__action__Count_FeedbackMessage;
using GoalResult = test_interfaces__action__Count_GetResult_Response;
using GoalId = std::array<uint8_t, 16>;

inline const rosidl_action_type_support_t *count_type() {
  return ROSIDL_GET_ACTION_TYPE_SUPPORT(test_interfaces, Count);
}

inline GoalId goal_id(uint8_t number) {
  GoalId id;
  for (size_t octet = 0; octet < id.size(); octet++) id[octet] = static_cast<uint8_t>(number + 16 * octet);
  return id;
}
inline GoalId id_of(const rclc_action_goal_handle_t *handle) {
  GoalId id;
  std::memcpy(id.data(), handle->goal_id.uuid, id.size());
  return id;
}

inline void append(Octets *bytes, int32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes->push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> shift));
  }
}
inline Octets bytes_of(const GoalId &id, std::initializer_list<int32_t> words) {
  Octets bytes(id.begin(), id.end());
  for (const int32_t word : words) append(&bytes, word);
  return bytes;
}
inline int32_t word_at(const Octets &bytes, size_t place) {
  uint32_t word = 0;
  for (size_t octet = 0; octet < 4; octet++) word |= static_cast<uint32_t>(bytes.at(place + octet)) << (8 * octet);
  return static_cast<int32_t>(word);
}
inline GoalId id_at(const Octets &bytes, size_t place) {
  GoalId id;
  for (size_t octet = 0; octet < id.size(); octet++) id[octet] = bytes.at(place + octet);
  return id;
}

class Actions : public Services {
 protected:
  Actions() : Services(2) {}
  size_t count_of(const std::string &part) { return server.replies(name + part).size(); }
  Octets reply(const std::string &part, size_t place) { return server.replies(name + part).at(place).payload; }
  bool ask_part(const std::string &part, const Octets &request, uint8_t asker = 1) {
    return eventually([&] { return server.ask(name + part, request, identity_of(asker, asked_++)); });
  }
  // Calls a service of the action and returns the answer.
  Octets call(const std::string &part, const Octets &request) {
    const size_t before = count_of(part);
    EXPECT_TRUE(ask_part(part, request));
    EXPECT_TRUE(spin_until([&] { return count_of(part) > before; })) << part;
    return count_of(part) > before ? reply(part, before) : Octets(64);
  }
  void spin_for_a_while() {
    for (int round = 0; round < 20; round++) EXPECT_OK(rclc_executor_spin_some(&executor, kMillisecond));
  }
  std::string name = "/count/_action/";

 private:
  uint32_t asked_ = 1;
};

}  // namespace tide::compat::test
