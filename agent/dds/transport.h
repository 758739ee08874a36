// SPDX-License-Identifier: Apache-2.0
// Transport of the agent's DDS participants. It joins messages to be sent into few datagrams, and finds out from
// received messages which remote writers know which readers.
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

// Finds out which remote writers know which readers of a participant. The two sides of a match discover each other
// independently. A writer sends a HEARTBEAT to each reliable reader that it has discovered, so a reader that receives a
// HEARTBEAT is known to its sender. Fast DDS does not report this.
class Contacts {
 public:
  using Guid = eprosima::fastrtps::rtps::GUID_t;
  using Entity = eprosima::fastrtps::rtps::EntityId_t;
  using OnContact = std::function<void(const Guid &writer)>;  // may be called by any thread, and repeatedly; must not
                                                              // call functions of this object

  // Creates a reader by `make`, and reports the writers that send HEARTBEATs to it, until forget is called. `make` must
  // return the entity id of the reader, or the unknown id if it was refused.
  void watch(const std::function<Entity()> &make, OnContact on_contact);
  void forget(const Entity &reader);
  // Processes a received RTPS message of any content; called by threads of DDS.
  void receive(std::span<const uint8_t> message);
  // Call this when the participant can receive; until then, its transport sends nothing. Peers answer only a first
  // announcement immediately, and Fast DDS would send this announcement before it processes received messages. A
  // participant that misses the answer has to wait up to three seconds for the next announcements.
  void open() { open_ = true; }
  bool is_open() const { return open_; }

 private:
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::map<Entity, OnContact> readers_;
  size_t under_way_ = 0;                        // number of readers that are being created and are not yet in readers_
  std::vector<std::pair<Entity, Guid>> early_;  // contacts with readers that are not yet in readers_
};

// An RTPS message. Several messages to one destination can be joined into one, because a message consists of a header
// and any number of submessages (RTPS 2.2, section 8.3.4).
class RtpsMessage {
 public:
  // Returns no value if the message cannot be joined with others, because a submessage extends to the end of the
  // message or refers to data outside of it.
  static std::optional<RtpsMessage> parse(std::span<const uint8_t> bytes);

  // Number of octets that append would add; 0 if the messages cannot be joined, for example because they are from
  // different participants.
  size_t growth(const RtpsMessage &next) const;
  void append(const RtpsMessage &next);
  std::span<const uint8_t> bytes() const { return bytes_.empty() ? view_ : std::span<const uint8_t>(bytes_); }
  // Copies the octets that were passed to parse. Call this before they become invalid.
  void keep();

 private:
  std::span<const uint8_t> view_;  // the octets that were passed to parse
  std::vector<uint8_t> bytes_;
  size_t trailer_bytes_ = 0;  // length of a vendor's submessage at the end, with a count of messages that Fast DDS
                              // accepts only there
  bool names_destination_ = false, starts_with_destination_ = false;
  bool names_time_ = false, starts_with_time_ = false;
};

class Outlet;

// Collects the messages that the agent's thread sends while it processes its clients' messages; then flush() sends the
// messages to each destination as one datagram. This saves time, because a datagram is most of a small sample's cost
// for the agent and for the reader. No message waits while the agent sleeps. Threads of DDS send their messages
// immediately, but after those that wait in the same outlet. All participants share one outbox.
class Outbox {
 public:
  // Sends waiting messages. After the first call, messages of the calling thread may wait until the next call, so this
  // must always be called from the same thread.
  void flush();

 private:
  friend class Outlet;
  bool is_owner() const { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  std::atomic<std::thread::id> owner_;
  std::vector<Outlet *> filled_;  // outlets with waiting messages; only the owning thread uses this list
};

// The sending end of one participant's transport.
class Outlet {
 public:
  using Sender = eprosima::fastrtps::rtps::SenderResource;
  using Locator = eprosima::fastdds::rtps::Locator;
  using LocatorsIterator = eprosima::fastdds::rtps::LocatorsIterator;

  // `outbox` must outlive this object. datagram_bytes: greatest length of a joined datagram.
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
  std::vector<Locator> places_;  // destination of the message that is being sent
};

// A transport over UDPv4, on all interfaces or only on loopback. It sends through `outbox`, which must outlive it, and
// passes received messages to `contacts`. With loopback_only, its sockets are bound to 127.0.0.1. ROS 2 participants
// announce the address of a network interface even if they stay on this machine, so messages to addresses of this
// machine are sent to 127.0.0.1.
std::shared_ptr<eprosima::fastdds::rtps::TransportDescriptorInterface> make_transport(
    bool loopback_only, Outbox &outbox, std::shared_ptr<Contacts> contacts);

}  // namespace tide::agent
