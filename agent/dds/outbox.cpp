// SPDX-License-Identifier: Apache-2.0
#include "dds/outbox.h"

#include <algorithm>
#include <utility>

namespace tide::agent {
namespace {

using eprosima::fastdds::rtps::Locators;

constexpr size_t kPlacesMaximum = 16;  // that messages wait for at once
constexpr std::chrono::milliseconds kSendLimit{100};

}  // namespace

void Outbox::flush() {
  owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (Outlet *outlet : std::exchange(filled_, {})) outlet->flush();
}

Outlet::~Outlet() {
  if (outbox_.is_owner()) std::erase(outbox_.filled_, this);
}

bool Outlet::send(Sender &sender, std::span<const uint8_t> bytes, LocatorsIterator &first, LocatorsIterator &last,
                  const std::chrono::steady_clock::time_point &timeout) {
  const std::lock_guard lock(mutex_);
  const bool may_wait = outbox_.is_owner() && bytes.size() < datagram_bytes_;
  std::optional<RtpsMessage> message = may_wait ? RtpsMessage::parse(bytes) : std::nullopt;
  if (!message) {
    flush_locked();
    return sender.send(bytes.data(), static_cast<uint32_t>(bytes.size()), &first, &last, timeout);
  }
  places_.clear();
  for (; first != last; ++first) places_.push_back(*first);
  if (join(sender, *message, places_)) return true;
  if (waiting_.size() == kPlacesMaximum) flush_locked();
  if (waiting_.empty()) outbox_.filled_.push_back(this);
  message->keep();
  waiting_.push_back({&sender, places_, std::move(*message)});
  return true;
}

// What was full for this place leaves, and is no longer there.
bool Outlet::join(Sender &sender, const RtpsMessage &message, const std::vector<Locator> &places) {
  const auto place = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting &waiting) {
    return waiting.sender == &sender && waiting.places == places;
  });
  if (place == waiting_.end()) return false;
  const size_t growth = place->message.growth(message);
  if (growth != 0 && place->message.bytes().size() + growth <= datagram_bytes_) {
    place->message.append(message);
    return true;
  }
  flush_locked();
  return false;
}

void Outlet::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void Outlet::flush_locked() {
  const auto timeout = std::chrono::steady_clock::now() + kSendLimit;
  for (const Waiting &waiting : waiting_) {
    const std::span<const uint8_t> bytes = waiting.message.bytes();
    Locators first(waiting.places.begin()), last(waiting.places.end());
    waiting.sender->send(bytes.data(), static_cast<uint32_t>(bytes.size()), &first, &last, timeout);
  }
  waiting_.clear();
}

}  // namespace tide::agent
