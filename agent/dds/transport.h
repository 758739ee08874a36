// SPDX-License-Identifier: Apache-2.0
// What the agent's DDS participants send and receive, message by message: sent messages are joined into few datagrams,
// and received ones tell which writers know which readers.
#pragma once

#include <fastdds/rtps/common/Guid.h>
#include <fastdds/rtps/network/SenderResource.h>
#include <fastdds/rtps/transport/TransportDescriptorInterface.h>
#include <fastdds/rtps/common/LocatorList.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace tide::agent {

// Which remote writers know which readers of a participant. Each side of a match discovers the other by itself; a
// writer sends a HEARTBEAT to each reliable reader that it has discovered, so a reader that receives one is known. Fast
// DDS does not report that.
class Contacts {
 public:
  using Guid = eprosima::fastrtps::rtps::GUID_t;
  using Entity = eprosima::fastrtps::rtps::EntityId_t;
  using OnContact = std::function<void(const Guid &writer)>;  // by any thread, more than once; must not call this

  // Creates a reader and reports writers that send to it, from the first HEARTBEAT on, until forget. make: returns the
  // reader's entity, unknown when it was refused.
  void watch(const std::function<Entity()> &make, OnContact on_contact);
  void forget(const Entity &reader);
  // An RTPS message, by threads of DDS. It may contain anything.
  void receive(std::span<const uint8_t> message);
  // The participant can receive. Its transport sends nothing before: peers answer only its first announcement at once,
  // and Fast DDS sends that before it processes what arrives. A participant that misses the answer waits for the next
  // announcements, up to three seconds.
  void open() { open_ = true; }
  bool is_open() const { return open_; }

 private:
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::map<Entity, OnContact> readers_;
  size_t under_way_ = 0;                        // readers that are being created: they have no entry yet
  std::vector<std::pair<Entity, Guid>> early_;  // contacts meanwhile
};

// A message of RTPS. Several to one place become one (RTPS 2.2, section 8.3.4: a header and any number of submessages).
class RtpsMessage {
 public:
  // Null: it cannot be joined, because a submessage extends to its end or refers to something outside of it.
  static std::optional<RtpsMessage> parse(std::span<const uint8_t> bytes);

  // How many octets append would add; 0: they cannot be joined, as they are of different participants, for example.
  size_t growth(const RtpsMessage &next) const;
  void append(const RtpsMessage &next);
  std::span<const uint8_t> bytes() const { return bytes_.empty() ? view_ : std::span<const uint8_t>(bytes_); }
  // Copies octets that belong to the caller of parse; to be called before they are gone.
  void keep();

 private:
  std::span<const uint8_t> view_;  // of the caller of parse
  std::vector<uint8_t> bytes_;
  size_t trailer_bytes_ = 0;  // of a vendor's submessage at the end: Fast DDS accepts its count of messages only there
  bool names_destination_ = false, starts_with_destination_ = false;
  bool names_time_ = false, starts_with_time_ = false;
};

class Outlet;

// What the agent's thread sends to DDS waits until it has processed all that had come from its clients. Messages to one
// place then leave as one datagram, which is most of a small sample's cost, for the agent and for its reader. Nothing
// waits while the agent waits. Threads of DDS send at once, after what waits for the same outlet. One for all
// participants.
class Outbox {
 public:
  // Sends what waits. From its first call on, what the calling thread sends may wait until the next; always the same
  // thread.
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

  // outbox: outlives this. datagram_bytes: greatest length of a joined datagram.
  Outlet(Outbox &outbox, size_t datagram_bytes) : outbox_(outbox), datagram_bytes_(datagram_bytes) {}
  ~Outlet();

  bool send(Sender &sender, std::span<const uint8_t> bytes, LocatorsIterator &first, LocatorsIterator &last,
            const std::chrono::steady_clock::time_point &timeout);
  void flush();

 private:
  struct Waiting {
    Sender *sender;
    std::vector<Locator> places;
    RtpsMessage message;
  };

  void flush_locked();

  Outbox &outbox_;
  const size_t datagram_bytes_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;
  std::vector<Locator> places_;  // of the message that is being sent
};

// UDPv4 through the outbox and past the contacts, on all interfaces or on loopback alone. There its sockets are bound
// to 127.0.0.1. ROS 2 participants announce the address of a network interface even when they stay on this machine;
// such an address of this machine is reached at 127.0.0.1, too. outbox: outlives the transports.
std::shared_ptr<eprosima::fastdds::rtps::TransportDescriptorInterface> make_transport(
    bool loopback_only, Outbox &outbox, std::shared_ptr<Contacts> contacts);

}  // namespace tide::agent
