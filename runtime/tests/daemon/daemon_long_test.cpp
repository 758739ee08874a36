// SPDX-License-Identifier: Apache-2.0
// Messages longer than any node: their parts on the wire, the messages after them, and their end.
#include <gtest/gtest.h>

#include "daemon_peer.h"

namespace daemon_long_test {

using peer::Bytes;
using peer::Transmitter;

constexpr uint8_t reliable0 = TIDE_STREAM_RELIABLE(0);

Bytes sample(uint8_t mark, size_t bytes = 12) {
  return peer::submessage(TIDE_XRCE_WRITE_DATA, Bytes(bytes, mark), TIDE_XRCE_FLAG_LITTLE_ENDIAN);
}

class Long : public ::testing::Test {
 protected:
  void take(int count) {
    for (int i = 0; i < count; ++i) {
      tide_node_t *node = nullptr;
      ASSERT_EQ(tide_transmitter_acquire(&t.core, 200, TIDE_PRIORITY(0, 0), &node), TIDE_OK);
      node->next_free = message.free;
      message.free = node;
    }
  }
  int put(size_t bytes, bool complete) {
    tide_node_t *node = message.free;
    message.free = node->next_free;
    std::fill_n(node->bytes, bytes, 1);
    node->length = static_cast<uint32_t>(bytes);
    return tide_transmitter_submit_part(&t.core, &message, node, reliable0, complete, 0);
  }
  // "F" is a fragment, "L" the last one, "M" a whole message; each is followed by its number in the stream.
  std::string sent() {
    std::string all;
    for (Bytes bytes; !(bytes = t.send()).empty();) {
      tide_xrce_header_t header;
      const size_t at = static_cast<size_t>(tide_xrce_get_header(bytes.data(), bytes.size(), &header));
      const bool last = (bytes[at + 1] & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0;
      all += bytes[at] == TIDE_XRCE_WRITE_DATA ? 'M' : bytes[at] != TIDE_XRCE_FRAGMENT ? '?' : last ? 'L' : 'F';
      all += std::to_string(header.sequence);
    }
    return all;
  }
  int nodes() const {
    int count = 0;
    for (const tide_node_t *node = message.free; node != nullptr; node = node->next_free) ++count;
    return count;
  }

  Transmitter t{{{64, 4}, {200, 3}}, [](auto &config) { config.message_bytes = 108; }};
  tide_long_message_t message{};
};

TEST_F(Long, PartsStandTogetherAndComeBackAsTheyAreAcknowledged) {
  take(2);
  EXPECT_EQ(put(200, false), TIDE_OK);
  EXPECT_EQ(t.submit(reliable0, sample(9), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(sent(), "F0F1");
  EXPECT_EQ(put(200, false), TIDE_OK);
  EXPECT_EQ(nodes(), 0);
  EXPECT_EQ(sent(), "F2F3");
  t.acknack(reliable0, 2, 0);
  EXPECT_EQ(nodes(), 1);
  t.acknack(reliable0, 4, 0);  // everything was sent
  EXPECT_EQ(nodes(), 2);
  EXPECT_EQ(sent(), "");
  EXPECT_EQ(put(60, true), TIDE_OK);
  EXPECT_EQ(sent(), "L4M5");
  t.acknack(reliable0, 4, 1);
  EXPECT_EQ(sent(), "L4");
  EXPECT_EQ(message.parts, 1);
  t.acknack(reliable0, 5, 0);
  EXPECT_TRUE(message.complete && message.parts == 0 && !message.lost);
  EXPECT_EQ(nodes(), 2);
}

TEST_F(Long, AnotherOneWaits) {
  take(1);
  EXPECT_EQ(put(100, false), TIDE_OK);
  tide_long_message_t other{};
  take(1);
  tide_node_t *node = message.free;
  node->length = 100;
  EXPECT_EQ(tide_transmitter_submit_part(&t.core, &other, node, reliable0, false, 0), TIDE_ERROR_FULL);
  EXPECT_EQ(other.free, node);
  EXPECT_EQ(other.stream, 0);
}

// The peer would append later fragments to the message that was given up.
TEST_F(Long, WhenItIsGivenUpNothingLeavesUntilTheNextSession) {
  take(2);
  EXPECT_EQ(t.submit(reliable0, sample(8, 190), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(put(200, false), TIDE_OK);
  EXPECT_EQ(t.submit(reliable0, sample(9), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(sent(), "F0L1F2F3");
  EXPECT_TRUE(tide_transmitter_give_up_long(&t.core, &message, 0));
  EXPECT_FALSE(tide_transmitter_give_up_long(&t.core, &message, 0));
  EXPECT_EQ(nodes(), 2);
  EXPECT_TRUE(message.lost);
  EXPECT_EQ(put(10, false), TIDE_ERROR_DISCONNECTED);
  EXPECT_EQ(sent(), "");
  t.acknack(reliable0, 3, 0);  // acknowledgment of the part that was sent
  t.acknack(reliable0, 0, 0xF);
  EXPECT_EQ(sent(), "");
  tide_transmitter_reset(&t.core, true);
  tide_transmitter_pause_streams(&t.core, false);
  EXPECT_EQ(sent(), "F0L1M2");
}

TEST_F(Long, ANewSessionTakesOnlyTheOthersAlong) {
  take(2);
  EXPECT_EQ(t.submit(reliable0, sample(8), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(put(200, false), TIDE_OK);
  EXPECT_EQ(t.submit(reliable0, sample(9), TIDE_PRIORITY(0, 0)), TIDE_OK);
  tide_node_t *taken = tide_transmitter_take_back(&t.core);
  ASSERT_NE(taken, nullptr);
  ASSERT_NE(taken->next_in_stream, nullptr);
  EXPECT_EQ(taken->bytes[4], 8);
  EXPECT_EQ(taken->next_in_stream->bytes[4], 9);
  EXPECT_EQ(taken->next_in_stream->next_in_stream, nullptr);
  EXPECT_TRUE(message.lost);
  EXPECT_EQ(nodes(), 2);
}

TEST_F(Long, APartThatIsAcknowledgedOnTheWireComesBackWhenTheWireLetsGo) {
  take(1);
  EXPECT_EQ(put(60, true), TIDE_OK);
  tide_frame_parts_t frame;
  ASSERT_EQ(tide_transmitter_next(&t.core, 0, &frame), 1);
  t.acknack(reliable0, 1, 0);
  EXPECT_EQ(message.parts, 1);
  EXPECT_EQ(nodes(), 0);
  tide_transmitter_sent(&t.core, 0);
  EXPECT_EQ(message.parts, 0);
  EXPECT_EQ(nodes(), 1);
}

}  // namespace daemon_long_test
