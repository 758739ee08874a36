// SPDX-License-Identifier: Apache-2.0
// Bodies of answers to questions about the agent itself, inside and outside of sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tide/xrce.h"

namespace tide::agent {

// The vendor id that every stock client has seen so far.
constexpr uint16_t kVendor = 0x010F;
constexpr uint8_t kVersionMajor = 1, kVersionMinor = 0;

// The INFO that answers a GET_INFO. known: the client has a session. Returns its bytes, here and below; 0: malformed.
size_t answer_get_info(const tide_xrce_submessage_t &question, bool known, std::span<uint8_t> answer);
// The TIMESTAMP_REPLY that answers a TIMESTAMP.
size_t answer_timestamp(const tide_xrce_submessage_t &question, const std::function<int64_t()> &wall_clock_ns,
                        std::span<uint8_t> answer);

}  // namespace tide::agent
