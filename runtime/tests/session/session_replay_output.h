// SPDX-License-Identifier: Apache-2.0
// The output of a client on the wire, and the comparison of two outputs.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session_replay_recording.h"
#include "tide/status.h"

namespace session_replay {

struct Output {
  std::vector<Bytes> requests;                      // all messages but ACKNACK and HEARTBEAT; repeats are counted once
  std::map<uint8_t, std::vector<Bytes>> by_stream;  // submessages with their headers, in the order of sequence
  std::vector<Bytes> acknacks, heartbeats;          // bodies; immediate repeats count once
  unsigned infos = 0;
  std::map<uint32_t, unsigned> times_sent;  // by stream and sequence number
};

inline Bytes with_header(const Submessage &submessage) {
  Bytes bytes = {submessage.id, submessage.flags, static_cast<uint8_t>(submessage.body.size()),
                 static_cast<uint8_t>(submessage.body.size() >> 8)};
  bytes.insert(bytes.end(), submessage.body.begin(), submessage.body.end());
  return bytes;
}

inline void add_once(std::vector<Bytes> &list, const Bytes &bytes) {
  if (list.empty() || list.back() != bytes) list.push_back(bytes);
}

// The request id of GET_INFO, which the client may choose.
inline Bytes without_ping_id(const Message &message) {
  Bytes bytes = message.bytes;
  if (message.id() == TIDE_XRCE_GET_INFO) {
    const size_t at = tide_xrce_header_bytes(message.header.session) + 4;
    bytes[at] = bytes[at + 1] = 0;
  }
  return bytes;
}

inline void add(Output &output, const Message &message) {
  if (message.header.stream != 0) {
    const uint32_t number = static_cast<uint32_t>(message.header.stream) << 16 | message.header.sequence;
    if (++output.times_sent[number] > 1) return;
    output.requests.push_back(message.bytes);
    for (const Submessage &submessage : message.submessages)
      output.by_stream[message.header.stream].push_back(with_header(submessage));
    return;
  }
  switch (message.id()) {
    case TIDE_XRCE_ACKNACK: return add_once(output.acknacks, message.submessages[0].body);
    case TIDE_XRCE_HEARTBEAT: return add_once(output.heartbeats, message.submessages[0].body);
    case TIDE_XRCE_INFO: ++output.infos; return;
    default: return add_once(output.requests, without_ping_id(message));
  }
}

inline std::optional<tide_xrce_create_t> binary_create(const Message &message) {
  if (message.id() != TIDE_XRCE_CREATE) return std::nullopt;
  const Submessage &submessage = message.submessages[0];
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage.body.data(), submessage.body.size(), false);
  tide_xrce_create_t create;
  tide_xrce_get_create(&cdr, &create);
  if (cdr.status != TIDE_OK || create.object.representation != TIDE_XRCE_BY_BINARY) return std::nullopt;
  return create;
}

// The stock client pads the last submessage with whatever its buffer held before, and tide's client with zeros. The
// stock client also counts this padding into the length of a last FRAGMENT. Returns the stock client's message without
// these two differences.
inline Bytes tidied(const Message &theirs) {
  Bytes bytes = theirs.bytes;
  if (theirs.header.stream == 0 || theirs.submessages.empty()) return bytes;
  const Submessage &last = theirs.submessages.back();
  const size_t padding = (4 - last.body.size() % 4) % 4;
  std::fill(bytes.end() - static_cast<long>(padding), bytes.end(), uint8_t{0});
  return bytes;
}

inline bool equal_but_for_counted_padding(const Message &ours, const Message &theirs) {
  if (ours.submessages.empty() || theirs.submessages.empty() || ours.bytes.size() != theirs.bytes.size()) return false;
  const Submessage &our_last = ours.submessages.back(), &their_last = theirs.submessages.back();
  const bool last_fragments = our_last.id == TIDE_XRCE_FRAGMENT && our_last.flags == their_last.flags &&
                              (our_last.flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0;
  return last_fragments && our_last.body.size() < their_last.body.size() &&
         our_last.body.size() + 3 >= their_last.body.size() &&
         std::equal(our_last.body.begin(), our_last.body.end(), their_last.body.begin()) &&
         std::equal(ours.bytes.begin(), ours.bytes.begin() + 6, theirs.bytes.begin());
}

// True if they are equal except for alignment octets in a binary CREATE, which tide's client sets to zero. An octet is
// an alignment octet if its value does not change the meaning of the message.
inline void expect_equal(const Bytes &ours, const Bytes &theirs) {
  const Message our_message = parse(ours), their_message = parse(theirs);
  if (ours == tidied(their_message) || equal_but_for_counted_padding(our_message, their_message)) return;
  if (!binary_create(their_message) || ours.size() != theirs.size()) {
    ADD_FAILURE() << "ours   " << hex_from_bytes(ours) << "\ntheirs " << hex_from_bytes(theirs);
    return;
  }
  Bytes again(1024);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, again.data(), again.size());
  const tide_xrce_create_t create = *binary_create(their_message);
  tide_xrce_put_create(&cdr, &create);
  again.resize(cdr.position);
  EXPECT_EQ(hex_from_bytes(our_message.submessages[0].body), hex_from_bytes(again));
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i] == theirs[i] || ours[i] == 0) << "octet " << i;
}

inline void expect_equal(const std::vector<Bytes> &ours, const std::vector<Bytes> &theirs, const char *what) {
  SCOPED_TRACE(what);
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    SCOPED_TRACE("number " + std::to_string(i));
    expect_equal(ours[i], theirs[i]);
  }
  for (size_t i = theirs.size(); i < ours.size(); ++i) ADD_FAILURE() << "ours only: " << hex_from_bytes(ours[i]);
  for (size_t i = ours.size(); i < theirs.size(); ++i) ADD_FAILURE() << "theirs only: " << hex_from_bytes(theirs[i]);
}

}  // namespace session_replay
