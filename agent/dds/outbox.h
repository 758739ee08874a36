// SPDX-License-Identifier: Apache-2.0
// What the agent's thread sends into DDS waits until it has dealt with all that had come from its clients: messages to
// one place then leave as one datagram. A datagram is most of what a small sample costs, for the agent and for its
// reader. Nothing waits while the agent waits; threads of DDS send at once, and before that what waits for their place.
#pragma once

#include <fastdds/rtps/network/SenderResource.h>
#include <fastdds/rtps/common/LocatorList.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "dds/rtps_message.h"

namespace tide::agent {

class Outlet;

// Of all participants.
class Outbox {
 public:
  // Sends what waits. From its first call on, what the calling thread sends may wait until the next; it is always the
  // same thread that calls.
  void flush();

 private:
  friend class Outlet;
  bool is_owner() const { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  std::atomic<std::thread::id> owner_;
  std::vector<Outlet *> filled_;  // of the owner alone
};

// Of one participant's transport.
class Outlet {
 public:
  using Sender = eprosima::fastrtps::rtps::SenderResource;
  using Locator = eprosima::fastdds::rtps::Locator;
  using LocatorsIterator = eprosima::fastdds::rtps::LocatorsIterator;

  // outbox: outlives this. datagram_bytes: as long may a datagram become.
  Outlet(Outbox &outbox, size_t datagram_bytes) : outbox_(outbox), datagram_bytes_(datagram_bytes) {}
  ~Outlet();
  Outlet(const Outlet &) = delete;
  Outlet &operator=(const Outlet &) = delete;

  bool send(Sender &sender, std::span<const uint8_t> bytes, LocatorsIterator &first, LocatorsIterator &last,
            const std::chrono::steady_clock::time_point &timeout);
  void flush();

 private:
  struct Waiting {
    Sender *sender;
    std::vector<Locator> places;
    RtpsMessage message;
  };

  bool join(Sender &sender, const RtpsMessage &message, const std::vector<Locator> &places);
  void flush_locked();

  Outbox &outbox_;
  const size_t datagram_bytes_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;
  std::vector<Locator> places_;  // of the message that is being sent
};

}  // namespace tide::agent
