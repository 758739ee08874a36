// SPDX-License-Identifier: Apache-2.0
// A recording of the stock client and its agent, taken apart into messages.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tide/session.h"
#include "vectors.h"

namespace session_replay {

using Bytes = std::vector<uint8_t>;

constexpr uint8_t client_address = 1, agent_address = 0;

struct Submessage {
  uint8_t id = 0, flags = 0;
  Bytes body;
  bool little_endian() const { return (flags & 1) != 0; }
};

struct Message {
  tide_xrce_header_t header{};
  std::vector<Submessage> submessages;
  Bytes bytes;
  uint8_t id() const { return submessages.empty() ? 0xFF : submessages[0].id; }
};

inline Message parse(const Bytes &bytes) {
  Message message;
  message.bytes = bytes;
  const int start = tide_xrce_get_header(bytes.data(), bytes.size(), &message.header);
  if (start < 0) return message;
  size_t position = static_cast<size_t>(start);
  tide_xrce_submessage_t view;
  while (tide_xrce_next_submessage(bytes.data(), bytes.size(), &position, &view) == 1) {
    message.submessages.push_back({view.id, view.flags, Bytes(view.body, view.body + view.body_bytes)});
    if (view.id == TIDE_XRCE_CREATE_CLIENT) break; /* the properties of CREATE_CLIENT extend to its end */
  }
  return message;
}

// The events, with one entry for each message. If a serial line was recorded in chunks, one record gives several
// messages or none.
struct Event {
  bool to_agent = false;
  int64_t t_ns = 0;
  Message message;  // set for frames of the client
  Bytes raw;        // as recorded
  bool dropped = false, duplicate = false, damaged = false;
};

struct Recording {
  explicit Recording(const std::string &name) {
    Unframer to_agent(agent_address), to_client(client_address);
    for (const Record &record : load_vectors(vector_file(name + ".jsonl"))) {
      transport = record.transport;
      Event event{record.client_to_agent, record.t_ns,     {}, record.bytes, record.dropped,
                  record.duplicate,       record.corrupted};
      const Bytes &sent = record.client_to_agent ? record.original : record.bytes;
      std::vector<Bytes> messages;
      if (transport == "serial") {
        for (const Unframer::Frame &frame : (record.client_to_agent ? to_agent : to_client).take(sent))
          if (frame.crc_valid) messages.push_back(frame.message);
      } else if (transport == "tcp") {
        EXPECT_EQ(sent[0] | sent[1] << 8, static_cast<int>(sent.size()) - 2);
        messages.emplace_back(sent.begin() + 2, sent.end());
      } else {
        messages.push_back(sent);
      }
      if (messages.empty()) events.push_back(event); /* a damaged frame, or a part of one */
      for (size_t i = 0; i < messages.size(); ++i) {
        event.message = parse(messages[i]);
        events.push_back(event);
        event.raw.clear(); /* raw bytes are fed only once */
      }
    }
  }
  std::string transport;
  std::vector<Event> events;
};

}  // namespace session_replay
