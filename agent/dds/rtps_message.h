// SPDX-License-Identifier: Apache-2.0
// Messages of RTPS, which DDS speaks, as octets: several to one place become one (RTPS 2.2, section 8.3.4: a message is
// a header and any number of submessages).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tide::agent {

class RtpsMessage {
 public:
  // Null: a message that has to stay alone, as its end, or what its submessages refer to, is not said in it.
  static std::optional<RtpsMessage> parse(std::span<const uint8_t> bytes);

  // Whether both come from one participant, so that one header says what both did.
  bool has_header_of(const RtpsMessage &other) const;
  // How many octets append would add; 0 when they cannot be joined.
  size_t growth(const RtpsMessage &next) const;
  void append(const RtpsMessage &next);
  std::span<const uint8_t> bytes() const { return bytes_.empty() ? view_ : std::span<const uint8_t>(bytes_); }
  // Makes a copy of octets that belong to somebody else; to be called before they are gone.
  void keep();

 private:
  std::span<const uint8_t> view_;  // of somebody else
  std::vector<uint8_t> bytes_;
  size_t trailer_bytes_ = 0;  // what a vendor puts at the end: Fast DDS its count of what was sent, and only there
  bool names_destination_ = false, starts_with_destination_ = false;
  bool names_time_ = false, starts_with_time_ = false;
};

}  // namespace tide::agent
