// SPDX-License-Identifier: Apache-2.0
// The middleware by Fast DDS. Payloads pass through unchanged, so any type works without generated code; only the four
// octets of the encapsulation are added and removed. Participants use UDPv4 only.
#pragma once

#include <cstddef>
#include <memory>

#include "core/middleware.h"

namespace tide::agent {

// Octets of a rmw_dds_common/msg/Gid: since Iron, and in Humble.
constexpr size_t kGidBytes = 16, kGidBytesOfHumble = 24;

struct DdsOptions {
  bool loopback_only = true;        // false: all interfaces of this machine
  bool verbose = false;             // makes the library report more than errors
  bool shared_participants = true;  // one for each domain; false: one for each participant of a client
  size_t gid_bytes = kGidBytes;     // of the ROS 2 release that lists clients as nodes; 0: none does
};

std::unique_ptr<Middleware> make_fast_dds(const DdsOptions &options);

}  // namespace tide::agent
