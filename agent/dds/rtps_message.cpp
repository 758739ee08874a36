// SPDX-License-Identifier: Apache-2.0
#include "dds/rtps_message.h"

#include <algorithm>
#include <array>

namespace tide::agent {
namespace {

constexpr size_t kHeaderBytes = 20, kSubmessageHeaderBytes = 4;
constexpr uint8_t kVendors = 0x80;  // from here on
constexpr uint8_t kPad = 0x01, kInfoTime = 0x09, kInfoSource = 0x0C, kInfoReplyIp4 = 0x0D, kInfoDestination = 0x0E,
                  kInfoReply = 0x0F, kLittleEndian = 0x01;
constexpr std::array<uint8_t, 4> kMagic = {'R', 'T', 'P', 'S'};
// For whom and from when the next submessages are: for all, and not said.
constexpr std::array<uint8_t, 16> kAnyDestination = {kInfoDestination, kLittleEndian, 12, 0};
constexpr std::array<uint8_t, 4> kNoTime = {kInfoTime, kLittleEndian | 0x02, 0, 0};

}  // namespace

std::optional<RtpsMessage> RtpsMessage::parse(std::span<const uint8_t> bytes) {
  if (bytes.size() <= kHeaderBytes || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) return std::nullopt;
  RtpsMessage message;
  message.view_ = bytes;
  bool content = false;  // a submessage that has more than a time or a destination for others
  for (size_t place = kHeaderBytes; place != bytes.size();) {
    if (bytes.size() - place < kSubmessageHeaderBytes) return std::nullopt;
    const uint8_t id = bytes[place];
    const auto low = static_cast<size_t>(bytes[place + 2]), high = static_cast<size_t>(bytes[place + 3]);
    const size_t length = (bytes[place + 1] & kLittleEndian) != 0 ? low | high << 8 : high | low << 8;
    // No length: up to the end, however far that is.
    if (length == 0 && id != kPad && id != kInfoTime) return std::nullopt;
    if (id == kInfoSource || id == kInfoReply || id == kInfoReplyIp4) return std::nullopt;
    if (message.trailer_bytes_ != 0) return std::nullopt;
    if (id >= kVendors) {
      message.trailer_bytes_ = kSubmessageHeaderBytes + length;
    } else if (id == kInfoDestination) {
      message.names_destination_ = true;
      message.starts_with_destination_ = message.starts_with_destination_ || !content;
    } else if (id == kInfoTime) {
      message.names_time_ = true;
      message.starts_with_time_ = message.starts_with_time_ || !content;
    } else {
      content = true;
    }
    if (bytes.size() - place - kSubmessageHeaderBytes < length) return std::nullopt;
    place += kSubmessageHeaderBytes + length;
  }
  return message;
}

bool RtpsMessage::has_header_of(const RtpsMessage &other) const {
  return std::equal(bytes().begin(), bytes().begin() + kHeaderBytes, other.bytes().begin());
}

size_t RtpsMessage::growth(const RtpsMessage &next) const {
  if (!has_header_of(next) || trailer_bytes_ != next.trailer_bytes_) return 0;
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

}  // namespace tide::agent
