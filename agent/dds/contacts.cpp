// SPDX-License-Identifier: Apache-2.0
#include "dds/contacts.h"

#include <algorithm>

namespace tide::agent {
namespace {

constexpr size_t kEarlyMaximum = 1024;
// RTPS 2.2, sections 8.3.3 and 9.4.5.
constexpr size_t kHeaderBytes = 20, kPrefixAt = 8, kPrefixBytes = 12, kSubmessageHeaderBytes = 4, kEntityBytes = 4;
constexpr size_t kSourcePrefixAt = 8;  // in INFO_SRC
constexpr uint8_t kHeartbeat = 0x07, kInfoTime = 0x09, kInfoSource = 0x0C, kPad = 0x01, kLittleEndian = 0x01;

Contacts::Entity entity_at(std::span<const uint8_t> bytes, size_t at) {
  Contacts::Entity entity;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kEntityBytes, entity.value);
  return entity;
}

void set_prefix(Contacts::Guid &guid, std::span<const uint8_t> bytes, size_t at) {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kPrefixBytes, guid.guidPrefix.value);
}

}  // namespace

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

void Contacts::contact(const Entity &reader, const Guid &writer) {
  const std::lock_guard lock(mutex_);
  const auto place = readers_.find(reader);
  if (place != readers_.end()) {
    place->second(writer);
  } else if (under_way_ != 0 && early_.size() < kEarlyMaximum) {
    early_.emplace_back(reader, writer);
  }
}

// A HEARTBEAT for all readers of a participant names none, and says nothing of any.
void Contacts::receive(std::span<const uint8_t> message) {
  if (message.size() < kHeaderBytes) return;
  Guid writer;
  set_prefix(writer, message, kPrefixAt);
  for (size_t place = kHeaderBytes; message.size() - place >= kSubmessageHeaderBytes;) {
    const uint8_t id = message[place];
    const size_t low = message[place + 2], high = message[place + 3];
    const size_t length = (message[place + 1] & kLittleEndian) != 0 ? low | high << 8 : high | low << 8;
    if (length == 0 && id != kPad && id != kInfoTime) return;  // up to the end
    place += kSubmessageHeaderBytes;
    if (message.size() - place < length) return;
    const std::span<const uint8_t> body = message.subspan(place, length);
    if (id == kInfoSource && length >= kSourcePrefixAt + kPrefixBytes) {
      set_prefix(writer, body, kSourcePrefixAt);
    } else if (id == kHeartbeat && length >= 2 * kEntityBytes) {
      writer.entityId = entity_at(body, kEntityBytes);
      contact(entity_at(body, 0), writer);
    }
    place += length;
  }
}

}  // namespace tide::agent
