// SPDX-License-Identifier: Apache-2.0
// Which writers of others know which readers of a participant. Each side of a match finds the other on its own; a
// writer sends a HEARTBEAT to each reliable reader that it has found, so a reader that has received one is known. Fast
// DDS does not report that, so it is read from what arrives.
#pragma once

#include <fastdds/rtps/common/Guid.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace tide::agent {

class Contacts {
 public:
  using Guid = eprosima::fastrtps::rtps::GUID_t;
  using Entity = eprosima::fastrtps::rtps::EntityId_t;
  using OnContact = std::function<void(const Guid &writer)>;  // by any thread, more than once; must not call this

  // Makes a reader and reports what writers send to it, from the first HEARTBEAT on, until forget.
  // make: returns the reader's entity, unknown when it was refused.
  void watch(const std::function<Entity()> &make, OnContact on_contact);
  void forget(const Entity &reader);
  // A message of RTPS, by threads of DDS. Anything may be in it.
  void receive(std::span<const uint8_t> message);
  // The participant can receive. Before, its transport sends nothing: others answer its first announcement only, at
  // once, and Fast DDS sends that before it looks at what arrives. Who misses the answer waits for up to three seconds.
  void open() { open_ = true; }
  bool is_open() const { return open_; }

 private:
  void contact(const Entity &reader, const Guid &writer);

  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::map<Entity, OnContact> readers_;
  size_t under_way_ = 0;                        // readers that are being made: they have no entry yet
  std::vector<std::pair<Entity, Guid>> early_;  // contacts meanwhile
};

}  // namespace tide::agent
