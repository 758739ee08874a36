// SPDX-License-Identifier: Apache-2.0
#include "dds/transport.h"

#include <fastdds/rtps/transport/ChainingTransport.h>
#include <fastdds/rtps/transport/ChainingTransportDescriptor.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <algorithm>
#include <array>

namespace tide::agent {

// ---- messages of RTPS (2.2, sections 8.3.3 and 9.4.5) ----

namespace {

constexpr size_t kHeaderBytes = 20, kPrefixAt = 8, kPrefixBytes = 12, kSubmessageHeaderBytes = 4, kEntityBytes = 4;
constexpr size_t kSourcePrefixAt = 8;  // place of the participant's prefix in INFO_SRC
constexpr uint8_t kPad = 0x01, kHeartbeat = 0x07, kInfoTime = 0x09, kInfoSource = 0x0C, kInfoReplyIp4 = 0x0D,
                  kInfoDestination = 0x0E, kInfoReply = 0x0F, kLittleEndian = 0x01;
constexpr uint8_t kVendors = 0x80;  // least id of submessages that vendors define
constexpr std::array<uint8_t, 4> kMagic = {'R', 'T', 'P', 'S'};
// Destination and time apply to all following submessages. These two reset them to the initial state: all participants,
// no time.
constexpr std::array<uint8_t, 16> kAnyDestination = {kInfoDestination, kLittleEndian, 12, 0};
constexpr std::array<uint8_t, 4> kNoTime = {kInfoTime, kLittleEndian | 0x02, 0, 0};

// Reads the submessage at `place` and advances `place`. Returns false if there is none, or if it extends to the end of
// the message or is truncated.
bool next_submessage(std::span<const uint8_t> message, size_t &place, uint8_t &id, std::span<const uint8_t> &body) {
  if (message.size() - place < kSubmessageHeaderBytes) return false;
  id = message[place];
  const size_t first = message[place + 2], second = message[place + 3];
  const size_t length = (message[place + 1] & kLittleEndian) != 0 ? first | second << 8 : second | first << 8;
  if (length == 0 && id != kPad && id != kInfoTime) return false;
  if (message.size() - place - kSubmessageHeaderBytes < length) return false;
  body = message.subspan(place + kSubmessageHeaderBytes, length);
  place += kSubmessageHeaderBytes + length;
  return true;
}

}  // namespace

std::optional<RtpsMessage> RtpsMessage::parse(std::span<const uint8_t> bytes) {
  if (bytes.size() <= kHeaderBytes || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return std::nullopt;
  RtpsMessage message;
  message.view_ = bytes;
  bool content = false;  // true if the message contains more than times and destinations
  size_t place = kHeaderBytes;
  uint8_t id = 0;
  for (std::span<const uint8_t> body; next_submessage(bytes, place, id, body);) {
    if (id == kInfoSource || id == kInfoReply || id == kInfoReplyIp4) return std::nullopt;
    if (message.trailer_bytes_ != 0) return std::nullopt;
    if (id >= kVendors) {
      message.trailer_bytes_ = kSubmessageHeaderBytes + body.size();
    } else if (id == kInfoDestination) {
      message.names_destination_ = true;
      message.starts_with_destination_ = message.starts_with_destination_ || !content;
    } else if (id == kInfoTime) {
      message.names_time_ = true;
      message.starts_with_time_ = message.starts_with_time_ || !content;
    } else {
      content = true;
    }
  }
  return place == bytes.size() ? std::optional(message) : std::nullopt;
}

size_t RtpsMessage::growth(const RtpsMessage &next) const {
  if (!std::equal(bytes().begin(), bytes().begin() + kHeaderBytes, next.bytes().begin())) return 0;
  if (trailer_bytes_ != next.trailer_bytes_) return 0;
  const size_t destination = names_destination_ && !next.starts_with_destination_ ? kAnyDestination.size() : 0;
  const size_t time = names_time_ && !next.starts_with_time_ ? kNoTime.size() : 0;
  return next.bytes().size() - kHeaderBytes - trailer_bytes_ + destination + time;
}

void RtpsMessage::append(const RtpsMessage &next) {
  keep();
  bytes_.resize(bytes_.size() - trailer_bytes_);
  if (names_destination_ && !next.starts_with_destination_) {
    bytes_.insert(bytes_.end(), kAnyDestination.begin(), kAnyDestination.end());
  }
  if (names_time_ && !next.starts_with_time_) bytes_.insert(bytes_.end(), kNoTime.begin(), kNoTime.end());
  const std::span<const uint8_t> rest = next.bytes().subspan(kHeaderBytes);
  bytes_.insert(bytes_.end(), rest.begin(), rest.end());
  names_destination_ = names_destination_ || next.names_destination_;
  names_time_ = names_time_ || next.names_time_;
}

void RtpsMessage::keep() {
  if (bytes_.empty()) bytes_.assign(view_.begin(), view_.end());
}

// ---- contacts ----

void Contacts::watch(const std::function<Entity()> &make, OnContact on_contact) {
  {
    const std::lock_guard lock(mutex_);
    under_way_++;
  }
  const Entity reader = make();
  const std::lock_guard lock(mutex_);
  for (const auto &[entity, writer] : early_) {
    if (entity == reader) on_contact(writer);
  }
  if (--under_way_ == 0) early_.clear();
  if (reader != Entity::unknown()) readers_[reader] = std::move(on_contact);
}

void Contacts::forget(const Entity &reader) {
  const std::lock_guard lock(mutex_);
  readers_.erase(reader);
}

void Contacts::receive(std::span<const uint8_t> message) {
  constexpr size_t kEarlyMaximum = 1024;
  if (message.size() < kHeaderBytes) return;
  Guid writer;
  std::copy_n(message.begin() + kPrefixAt, kPrefixBytes, writer.guidPrefix.value);
  size_t place = kHeaderBytes;
  uint8_t id = 0;
  for (std::span<const uint8_t> body; next_submessage(message, place, id, body);) {
    if (id == kInfoSource && body.size() >= kSourcePrefixAt + kPrefixBytes) {
      std::copy_n(body.begin() + kSourcePrefixAt, kPrefixBytes, writer.guidPrefix.value);
    } else if (id == kHeartbeat && body.size() >= 2 * kEntityBytes) {
      Entity reader;  // the unknown reader stands for all readers of the participant, so it is no evidence about a
                      // particular one
      std::copy_n(body.begin(), kEntityBytes, reader.value);
      std::copy_n(body.begin() + kEntityBytes, kEntityBytes, writer.entityId.value);
      const std::lock_guard lock(mutex_);
      const auto known = readers_.find(reader);
      if (known != readers_.end()) {
        known->second(writer);
      } else if (under_way_ != 0 && early_.size() < kEarlyMaximum) {
        early_.emplace_back(reader, writer);
      }
    }
  }
}

// ---- outbox ----

void Outbox::flush() {
  owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (Outlet *outlet : std::exchange(filled_, {})) outlet->flush();
}

Outlet::~Outlet() {
  if (outbox_.is_owner()) std::erase(outbox_.filled_, this);
}

bool Outlet::send(Sender &sender, std::span<const uint8_t> bytes, LocatorsIterator &first, LocatorsIterator &last,
                  const std::chrono::steady_clock::time_point &timeout) {
  constexpr size_t kPlacesMaximum = 16;  // most destinations for which messages wait at a time
  const std::lock_guard lock(mutex_);
  const bool may_wait = outbox_.is_owner() && bytes.size() < datagram_bytes_;
  std::optional<RtpsMessage> message = may_wait ? RtpsMessage::parse(bytes) : std::nullopt;
  if (!message) {
    flush_locked();
    return sender.send(bytes.data(), static_cast<uint32_t>(bytes.size()), &first, &last, timeout);
  }
  places_.clear();
  for (; first != last; ++first) places_.push_back(*first);
  const auto same = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting &waiting) {
    return waiting.sender == &sender && waiting.places == places_;
  });
  if (same != waiting_.end()) {
    const size_t growth = same->message.growth(*message);
    if (growth != 0 && same->message.bytes().size() + growth <= datagram_bytes_) {
      same->message.append(*message);
      return true;
    }
  }
  if (same != waiting_.end() || waiting_.size() == kPlacesMaximum) flush_locked();
  if (waiting_.empty()) outbox_.filled_.push_back(this);
  message->keep();
  waiting_.push_back({&sender, places_, std::move(*message)});
  return true;
}

void Outlet::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void Outlet::flush_locked() {
  const auto timeout = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (const Waiting &waiting : waiting_) {
    const std::span<const uint8_t> bytes = waiting.message.bytes();
    eprosima::fastdds::rtps::Locators first(waiting.places.begin()), last(waiting.places.end());
    waiting.sender->send(bytes.data(), static_cast<uint32_t>(bytes.size()), &first, &last, timeout);
  }
  waiting_.clear();
}

// ---- transport ----

namespace {

namespace transports = eprosima::fastdds::rtps;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::rtps::LocatorsIterator;
using eprosima::fastrtps::rtps::octet;
using eprosima::fastrtps::rtps::SenderResource;

constexpr const char *kLoopback = "127.0.0.1";
constexpr uint32_t kPeersOnLoopback = 32;
constexpr uint32_t kSocketBytes = 4 * 1024 * 1024;
// Greatest lengths of joined datagrams. Loopback permits longer ones, but a reader's socket holds only about 200 kB. On
// Ethernet, longer ones do not fit into one packet.
constexpr size_t kLoopbackDatagramBytes = 16384, kNetworkDatagramBytes = 1472;

struct TransportDescriptor : transports::ChainingTransportDescriptor {
  TransportDescriptor(std::shared_ptr<transports::UDPv4TransportDescriptor> udp, bool loopback, Outbox &to,
                      std::shared_ptr<Contacts> from)
      : ChainingTransportDescriptor(std::move(udp)), loopback_only(loopback), outbox(to), contacts(std::move(from)) {}
  transports::TransportInterface *create_transport() const override;

  bool loopback_only;
  Outbox &outbox;
  std::shared_ptr<Contacts> contacts;
};

class Transport : public transports::ChainingTransport {
 public:
  explicit Transport(const TransportDescriptor &descriptor)
      : ChainingTransport(descriptor),
        descriptor_(descriptor),
        outlet_(descriptor.outbox, descriptor.loopback_only ? kLoopbackDatagramBytes : kNetworkDatagramBytes) {}

  transports::TransportDescriptorInterface *get_configuration() override { return &descriptor_; }

  bool transform_remote_locator(const Locator_t &remote, Locator_t &result) const override {
    if (!low_level_transport_->IsLocatorSupported(remote)) return false;
    if (!descriptor_.loopback_only || !low_level_transport_->is_local_locator(remote)) {
      return low_level_transport_->transform_remote_locator(remote, result);
    }
    result = remote;
    IPLocator::setIPv4(result, kLoopback);
    return true;
  }

  bool send(SenderResource *sender, const octet *bytes, uint32_t count, LocatorsIterator *first, LocatorsIterator *last,
            const std::chrono::steady_clock::time_point &timeout) override {
    if (!descriptor_.contacts->is_open()) return true;
    return outlet_.send(*sender, {bytes, count}, *first, *last, timeout);
  }

  void receive(transports::TransportReceiverInterface *receiver, const octet *bytes, uint32_t count,
               const Locator_t &local, const Locator_t &remote) override {
    descriptor_.contacts->receive({bytes, count});
    receiver->OnDataReceived(bytes, count, local, remote);
  }

  void shutdown() override { low_level_transport_->shutdown(); }

 private:
  TransportDescriptor descriptor_;
  Outlet outlet_;
};

transports::TransportInterface *TransportDescriptor::create_transport() const { return new Transport(*this); }

}  // namespace

std::shared_ptr<transports::TransportDescriptorInterface> make_transport(bool loopback_only, Outbox &outbox,
                                                                         std::shared_ptr<Contacts> contacts) {
  auto udp = std::make_shared<transports::UDPv4TransportDescriptor>();
  udp->maxInitialPeersRange = kPeersOnLoopback;
  udp->sendBufferSize = kSocketBytes;
  udp->receiveBufferSize = kSocketBytes;
  if (loopback_only) udp->interfaceWhiteList.assign(1, kLoopback);
  return std::make_shared<TransportDescriptor>(std::move(udp), loopback_only, outbox, std::move(contacts));
}

}  // namespace tide::agent
