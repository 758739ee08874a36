// SPDX-License-Identifier: Apache-2.0
// How clients and links are, at one moment: what /diagnostics says of them. Counts are since the agent's start, of a
// client since it came.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/limits.h"

namespace tide::agent {

// Of a service that a client asks: from when DDS has the request until its reply is taken from there. Of one that it
// serves: from when the request is taken from DDS until the reply is given to it.
struct ServiceVitals {
  std::string name;
  bool serves = false;
  uint64_t replies = 0;
  Time last_ns = 0, greatest_ns = 0;
};

struct ClientVitals {
  uint32_t key = 0;
  std::string place;    // where it is: the name of its endpoint
  bool silent = false;  // it was asked for a sign of life and has not answered
  Time silence_ns = 0;  // since it was heard
  size_t entities = 0;
  size_t queued = 0, queue = 0;  // nodes of its transmitter: in use, and all
  uint64_t messages_in = 0, bytes_in = 0, messages_out = 0, bytes_out = 0;
  uint64_t repeated = 0;                // messages to it that were sent again
  uint64_t lost_from = 0;               // messages of it that never came, or were dropped here
  uint64_t lost_to = 0;                 // samples for it that DDS or the agent dropped
  uint64_t refused = 0;                 // requests
  uint64_t limited = 0;                 // times a limit of the agent was reached
  std::vector<ServiceVitals> services;  // that have been replied to
};

struct LinkVitals {
  std::string name;              // as the agent prints it when it is ready
  uint64_t bits_per_second = 0;  // 0: not known
  uint64_t frames_in = 0, bytes_in = 0, frames_out = 0, bytes_out = 0;
  uint64_t checksum_errors = 0, send_dropped = 0, receive_dropped = 0;
  uint64_t reopened = 0, connections_refused = 0, connections_timed_out = 0;
};
using LinksVitals = std::function<void(std::vector<LinkVitals> &links)>;

}  // namespace tide::agent
