// SPDX-License-Identifier: Apache-2.0
// Every recorded frame of the stock client and agents is decoded and encoded again, which must give the same bytes.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "recode.h"
#include "tide/framing.h"
#include "vectors.h"

namespace xrce_vectors_test {

// The stock client's sign of life in answer to a hard-liveliness poll is not a message (see the README of the
// recordings).
const Bytes sign_of_life = bytes_from_hex("81000000 0000000000000000");

// A decoded frame is framed again.
Bytes reframed(const Bytes &message, bool client_to_agent) {
  Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
  const size_t half = message.size() / 2;
  const int written = tide_framing_encode(frame.data(), frame.size(), client_to_agent ? 1 : 0, client_to_agent ? 0 : 1,
                                          message.data(), half, message.data() + half, message.size() - half);
  EXPECT_GT(written, 0);
  frame.resize(static_cast<size_t>(std::max(written, 0)));
  return frame;
}

class Comparison {
 public:
  std::map<int, size_t> kinds;  // number of submessages compared, by id
  size_t messages = 0, fragmented = 0, masked = 0;

  void compare(const Bytes &message, bool client_to_agent) {
    SCOPED_TRACE(hex_from_bytes(message));
    ++messages;
    const bool pad_last = client_to_agent && message.at(1) != TIDE_XRCE_STREAM_NONE;
    Recoded recoded = recode_message(message.data(), message.size(), pad_last);
    if (message == sign_of_life) {
      EXPECT_EQ(recoded.status, TIDE_ERROR_MALFORMED);
      return;
    }
    ASSERT_EQ(recoded.status, TIDE_OK);
    Bytes expected = message;
    ASSERT_EQ(recoded.padding.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      if (recoded.padding[i]) {
        masked += expected[i] != 0;
        expected[i] = 0;
      }
    EXPECT_EQ(hex_from_bytes(recoded.bytes), hex_from_bytes(expected));
    for (const tide_xrce_submessage_t &submessage : recoded.submessages) {
      ++kinds[submessage.id];
      if (submessage.id == TIDE_XRCE_FRAGMENT) keep_fragment(message, submessage, client_to_agent);
    }
  }

  // A message that was sent in fragments is a submessage with its own header, and is compared like an unfragmented one.
  void keep_fragment(const Bytes &message, const tide_xrce_submessage_t &submessage, bool client_to_agent) {
    const auto stream = std::make_pair(client_to_agent, message[1]);
    const uint16_t sequence = static_cast<uint16_t>(message[2] | message[3] << 8);
    auto &fragments = streams_[stream];
    fragments[sequence] = {submessage.flags, Bytes(submessage.body, submessage.body + submessage.body_bytes)};
  }

  // Whole messages, reassembled from the fragments of one file.
  void compare_fragmented() {
    for (const auto &[stream, fragments] : streams_) {
      Bytes whole = bytes_from_hex("81800000");
      uint16_t expected = fragments.begin()->first;
      for (const auto &[sequence, fragment] : fragments) {
        EXPECT_EQ(sequence, expected) << "a fragment was never recorded";
        const auto &[flags, body] = fragment;
        whole.insert(whole.end(), body.begin(), body.end());
        expected = static_cast<uint16_t>(sequence + 1);
        if ((flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0) continue;
        ++fragmented;
        while (stream.first && whole.size() % 4 != 0) whole.push_back(0);
        compare(whole, stream.first);
        whole.resize(4);
        const auto next = fragments.upper_bound(sequence);
        if (next != fragments.end()) expected = next->first;
      }
      EXPECT_EQ(whole.size(), 4u) << "the last fragment is missing";
    }
  }

  void compare_file(const std::string &file) {
    streams_.clear();
    for (const Record &record : load_vectors(file)) {
      if (record.transport == "serial") {
        compare_serial(record);
      } else if (record.transport == "tcp") {
        ASSERT_GE(record.bytes.size(), 2u);
        EXPECT_EQ(record.bytes[0] | record.bytes[1] << 8, static_cast<int>(record.bytes.size()) - 2);
        compare(Bytes(record.bytes.begin() + 2, record.bytes.end()), record.client_to_agent);
      } else {
        compare(record.bytes, record.client_to_agent);
      }
    }
    compare_fragmented();
  }

 private:
  void compare_serial(const Record &record) {
    Unframer reader(record.client_to_agent ? 0 : 1);
    const std::vector<Unframer::Frame> frames = reader.take(record.bytes);
    ASSERT_EQ(frames.size(), 1u) << hex_from_bytes(record.bytes);
    EXPECT_EQ(frames[0].crc_valid, !record.corrupted);
    if (record.corrupted) return;
    EXPECT_EQ(hex_from_bytes(reframed(frames[0].message, record.client_to_agent)), hex_from_bytes(record.bytes));
    EXPECT_EQ(reader.reader.counters.noise_bytes, 0u);
    compare(frames[0].message, record.client_to_agent);
  }

  using Fragments = std::map<uint16_t, std::pair<uint8_t, Bytes>>;
  std::map<std::pair<bool, uint8_t>, Fragments> streams_;
};

TEST(Vectors, EncodeToTheSameBytes) {
  Comparison comparison;
  for (const std::string &file : all_vector_files()) {
    SCOPED_TRACE(file);
    if (file == vector_file("serial_raw_chunks.jsonl")) continue;  // it has a test of its own
    comparison.compare_file(file);
  }
  for (int id = TIDE_XRCE_CREATE_CLIENT; id <= TIDE_XRCE_TIMESTAMP_REPLY; ++id) {
    if (id == TIDE_XRCE_RESET) continue;  // the stock programs never send it
    EXPECT_GT(comparison.kinds[id], 2u) << "submessages of kind " << id;
  }
  EXPECT_GT(comparison.messages, 2500u);
  EXPECT_GT(comparison.fragmented, 10u);
  EXPECT_GT(comparison.masked, 5u);
}

TEST(RawChunks, GiveTheSameFramesAsTheyCame) {
  Unframer to_agent(0), to_client(1);
  Bytes recorded[2], framed_again[2];
  size_t frames = 0;
  for (const Record &record : load_vectors(vector_file("serial_raw_chunks.jsonl"))) {
    const size_t side = record.client_to_agent ? 0 : 1;
    recorded[side].insert(recorded[side].end(), record.bytes.begin(), record.bytes.end());
    for (const Unframer::Frame &frame : (side == 0 ? to_agent : to_client).take(record.bytes)) {
      EXPECT_TRUE(frame.crc_valid);
      const Bytes again = reframed(frame.message, record.client_to_agent);
      framed_again[side].insert(framed_again[side].end(), again.begin(), again.end());
      ++frames;
    }
  }
  EXPECT_GE(frames, 19u);
  for (size_t side : {0u, 1u}) EXPECT_EQ(hex_from_bytes(framed_again[side]), hex_from_bytes(recorded[side]));
}

}  // namespace xrce_vectors_test
