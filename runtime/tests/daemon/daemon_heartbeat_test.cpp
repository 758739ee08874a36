// SPDX-License-Identifier: Apache-2.0
// When a transmitter asks for an acknowledgment by itself.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tide/platform.h"
#include "tide/transmitter.h"

namespace daemon_heartbeat_test {

constexpr int64_t millisecond = 1000000;

class Heartbeat : public ::testing::Test {
 protected:
  void SetUp() override {
    tide_transmitter_config_t config{};
    config.nodes = nodes_.data();
    config.execution_storage = execution_.data();
    config.pending_storage = pending_.data();
    config.node_count = nodes_.size();
    class_ = {reinterpret_cast<uint8_t *>(storage_.data()), 128, static_cast<uint16_t>(nodes_.size())};
    config.classes = &class_;
    config.class_count = 1;
    config.streams = streams_.data();
    config.stream_count = streams_.size();
    config.message_bytes = 508;
    config.window = 16;
    config.pad_last = true;
    config.heartbeat_delay_ns = -1;
    ASSERT_EQ(tide_transmitter_init(&transmitter_, &config), 0);
    tide_transmitter_set_session(&transmitter_, 0x81, 0);
  }

  void submit(int64_t now_ns) {
    tide_node_t *node = nullptr;
    ASSERT_EQ(tide_transmitter_acquire(&transmitter_, 112, 0, &node), 0);
    std::memset(node->bytes, 0, 112);
    tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, TIDE_XRCE_FLAG_LITTLE_ENDIAN, 108);
    node->length = 112;
    ASSERT_EQ(tide_transmitter_submit(&transmitter_, node, TIDE_STREAM_RELIABLE(0), now_ns), 0);
  }

  bool next(int64_t now_ns) { return tide_transmitter_next(&transmitter_, now_ns, &frame_) == 1; }
  bool frame_is_heartbeat() const { return frame_.head_bytes > 4 && frame_.head[4] == TIDE_XRCE_HEARTBEAT; }

  /* A whole exchange on a wire that takes 10 ms a frame, acknowledged 2 ms after its end. */
  int64_t exchange(int64_t now_ns, uint16_t sequence) {
    submit(now_ns);
    EXPECT_TRUE(next(now_ns));
    for (int64_t poll_ns = now_ns; poll_ns < now_ns + 10 * millisecond; poll_ns += millisecond) {
      tide_transmitter_poll(&transmitter_, poll_ns);
    }
    now_ns += 10 * millisecond;
    tide_transmitter_sent(&transmitter_, now_ns);
    EXPECT_FALSE(next(now_ns)) << "nothing is to be asked when a frame has just left";
    now_ns += 2 * millisecond;
    const tide_xrce_acknack_t acknack = {static_cast<uint16_t>(sequence + 1), 0, TIDE_STREAM_RELIABLE(0)};
    tide_transmitter_on_acknack(&transmitter_, &acknack, now_ns);
    return now_ns;
  }

  tide_transmitter_t transmitter_{};
  std::array<tide_node_t, 8> nodes_{};
  std::array<tide_queue_entry_t *, 8> execution_{}, pending_{};
  std::array<tide_output_stream_t, 2> streams_{};
  std::array<uint64_t, 128> storage_{};
  tide_size_class_t class_{};
  tide_frame_parts_t frame_{};
};

TEST_F(Heartbeat, IsNotDueWhileItsFrameIsStillOnASlowWire) {
  int64_t now_ns = millisecond;
  for (uint16_t sequence = 0; sequence < 20; ++sequence) now_ns = exchange(now_ns, sequence) + 50 * millisecond;
  EXPECT_EQ(transmitter_.counters.heartbeats, 0u);
  EXPECT_EQ(transmitter_.counters.acknowledged, 20u);
}

TEST_F(Heartbeat, AsksWithinAFewRoundTripsWhenNoAnswerComes) {
  int64_t now_ns = millisecond;
  for (uint16_t sequence = 0; sequence < 5; ++sequence) now_ns = exchange(now_ns, sequence) + 50 * millisecond;
  submit(now_ns);
  ASSERT_TRUE(next(now_ns));
  now_ns += 10 * millisecond;
  tide_transmitter_sent(&transmitter_, now_ns);
  const int64_t due_ns = tide_transmitter_poll(&transmitter_, now_ns);
  EXPECT_GE(due_ns, now_ns + 2 * millisecond);
  EXPECT_LE(due_ns, now_ns + 10 * millisecond);
  tide_transmitter_poll(&transmitter_, due_ns);
  ASSERT_TRUE(next(due_ns));
  EXPECT_TRUE(frame_is_heartbeat());
}

// The bounds of a line count one HEARTBEAT of a stream at a time.
TEST_F(Heartbeat, IsNotFollowedByAnotherBecauseAnAcknowledgmentMetIt) {
  ASSERT_EQ(tide_transmitter_set_heartbeat_delay(&transmitter_, 0), 0);
  int64_t now_ns = millisecond;
  for (int message = 0; message < 2; ++message) submit(now_ns);
  for (int message = 0; message < 2; ++message) {
    ASSERT_TRUE(next(now_ns));
    ASSERT_FALSE(frame_is_heartbeat());
    now_ns += 10 * millisecond;
    tide_transmitter_sent(&transmitter_, now_ns);
  }
  ASSERT_TRUE(next(now_ns));
  ASSERT_TRUE(frame_is_heartbeat());
  const tide_xrce_acknack_t acknack = {1, 0, TIDE_STREAM_RELIABLE(0)};  // of the first message
  tide_transmitter_on_acknack(&transmitter_, &acknack, now_ns + millisecond);
  tide_transmitter_poll(&transmitter_, now_ns + millisecond);
  now_ns += 2 * millisecond;
  tide_transmitter_sent(&transmitter_, now_ns);
  EXPECT_FALSE(next(now_ns));
  EXPECT_EQ(tide_transmitter_poll(&transmitter_, now_ns), now_ns + 100 * millisecond);
}

}  // namespace daemon_heartbeat_test
