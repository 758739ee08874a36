// SPDX-License-Identifier: Apache-2.0
// How long messages are on a serial line with 8N1 framing: headers, fragments, padding and escaped bytes.
#pragma once

#include <cstdint>

#include "analysis/link/system.h"

namespace tide::analysis {

enum class Direction { up, down };

// One message as frames.
struct Message {
  int64_t frames = 0;
  time_ns total_ns = 0;  // of all its frames, at most
  time_ns unit_ns = 0;   // of the longest frame, at most
  time_ns least_ns = 0;  // of all its frames, at least
  time_ns plain_ns = 0;  // of all its frames, if no byte is escaped
};

// Bytes of an XRCE message: what fits into one frame of this direction.
int64_t message_limit(const Line &line, Direction direction);
// Of a frame that carries so many bytes of XRCE message.
time_ns frame_ns(const Line &line, int64_t message_bytes);
Message message(const Line &line, Direction direction, int64_t payload_bytes);
// An ACKNACK or a HEARTBEAT, and the question whether the other side is alive.
time_ns answer_frame_ns(const Line &line);
time_ns question_frame_ns(const Line &line);

}  // namespace tide::analysis
