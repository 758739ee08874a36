// SPDX-License-Identifier: Apache-2.0
// Recorded traffic as messages, without the framing of serial lines and the lengths of TCP.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/middleware.h"
#include "vectors.h"

namespace tide::agent::test {

using Octets = std::vector<uint8_t>;

struct Message {
  int64_t t_ns = 0;
  bool from_client = false;
  bool dropped = false;
  Octets bytes;
  Octets frame;  // serial lines only: the frame as on the line
};

inline std::vector<Message> recorded_messages(const std::string &path) {
  std::vector<Message> messages;
  Unframer to_agent(0), to_client(1);
  for (const Record &record : load_vectors(path)) {
    // Messages of the agent count as sent even if the line damaged them; messages of the client count as received.
    const Octets &bytes = record.client_to_agent ? record.bytes : record.original;
    Message message{record.t_ns, record.client_to_agent, record.dropped, bytes, {}};
    if (record.transport == "tcp") message.bytes.erase(message.bytes.begin(), message.bytes.begin() + 2);
    if (record.transport != "serial") {
      messages.push_back(message);
      continue;
    }
    for (const Unframer::Frame &frame : (record.client_to_agent ? to_agent : to_client).take(bytes)) {
      message.bytes = frame.message;
      message.frame = frame.line;
      if (frame.crc_valid) messages.push_back(message);
    }
  }
  return messages;
}

}  // namespace tide::agent::test
