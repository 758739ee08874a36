// SPDX-License-Identifier: Apache-2.0
// The middleware implemented with Fast DDS. Payloads pass unchanged, except that the four octets of the encapsulation
// are added and removed, so any type works without generated code. Participants use UDPv4 only.
#pragma once

#include <cstddef>
#include <memory>

#include "core/middleware.h"

namespace tide::agent {

// Size of a rmw_dds_common/msg/Gid in octets: kGidBytes since Iron, kGidBytesOfHumble in Humble.
constexpr size_t kGidBytes = 16, kGidBytesOfHumble = 24;

struct DdsOptions {
  bool loopback_only = true;        // false: all interfaces of this machine
  bool verbose = false;             // true: Fast DDS reports more than errors
  bool shared_participants = true;  // true: one participant for each domain; false: one for each participant of a
                                    // client
  size_t gid_bytes = kGidBytes;     // of the ROS 2 release whose tools show clients as nodes; 0: clients are not
                                    // published as nodes
};

std::unique_ptr<Middleware> make_fast_dds(const DdsOptions &options);

}  // namespace tide::agent
