// SPDX-License-Identifier: Apache-2.0
// When a transmitter requests an acknowledgment by itself.
#include <gtest/gtest.h>

#include "daemon_peer.h"

namespace daemon_heartbeat_test {

using peer::Bytes;

constexpr int64_t millisecond = 1000000;
constexpr uint8_t reliable0 = TIDE_STREAM_RELIABLE(0);

class Heartbeat : public ::testing::Test {
 protected:
  void submit(int64_t now_ns) {
    ASSERT_EQ(t.submit(reliable0, peer::submessage(TIDE_XRCE_WRITE_DATA, Bytes(108)), 0, now_ns), TIDE_OK);
  }
  bool next(int64_t now_ns) { return tide_transmitter_next(&t.core, now_ns, &frame_) == 1; }
  bool frame_is_heartbeat() const { return frame_.head_bytes > 4 && frame_.head[4] == TIDE_XRCE_HEARTBEAT; }

  /* A whole exchange on a wire on which a frame takes 10 ms and is acknowledged 2 ms after its end. */
  int64_t exchange(int64_t now_ns, uint16_t sequence) {
    submit(now_ns);
    EXPECT_TRUE(next(now_ns));
    for (int64_t poll_ns = now_ns; poll_ns < now_ns + 10 * millisecond; poll_ns += millisecond) {
      tide_transmitter_poll(&t.core, poll_ns);
    }
    now_ns += 10 * millisecond;
    tide_transmitter_sent(&t.core, now_ns);
    EXPECT_FALSE(next(now_ns)) << "nothing is to be asked when a frame has just left";
    now_ns += 2 * millisecond;
    t.acknack(reliable0, static_cast<uint16_t>(sequence + 1), 0, now_ns);
    return now_ns;
  }

  peer::Transmitter t{{{128, 8}}};
  tide_frame_parts_t frame_{};
};

TEST_F(Heartbeat, IsNotDueWhileItsFrameIsStillOnASlowWire) {
  int64_t now_ns = millisecond;
  for (uint16_t sequence = 0; sequence < 20; ++sequence) now_ns = exchange(now_ns, sequence) + 50 * millisecond;
  EXPECT_EQ(t.core.counters.heartbeats, 0u);
  EXPECT_EQ(t.core.counters.acknowledged, 20u);
}

TEST_F(Heartbeat, AsksWithinAFewRoundTripsWhenNoAnswerComes) {
  int64_t now_ns = millisecond;
  for (uint16_t sequence = 0; sequence < 5; ++sequence) now_ns = exchange(now_ns, sequence) + 50 * millisecond;
  submit(now_ns);
  ASSERT_TRUE(next(now_ns));
  now_ns += 10 * millisecond;
  tide_transmitter_sent(&t.core, now_ns);
  const int64_t due_ns = tide_transmitter_poll(&t.core, now_ns);
  EXPECT_GE(due_ns, now_ns + 2 * millisecond);
  EXPECT_LE(due_ns, now_ns + 10 * millisecond);
  tide_transmitter_poll(&t.core, due_ns);
  ASSERT_TRUE(next(due_ns));
  EXPECT_TRUE(frame_is_heartbeat());
}

// The bounds of a line assume that a stream has one HEARTBEAT at a time.
TEST_F(Heartbeat, IsNotFollowedByAnotherBecauseAnAcknowledgmentMetIt) {
  ASSERT_EQ(tide_transmitter_set_heartbeat_delay(&t.core, 0), 0);
  int64_t now_ns = millisecond;
  for (int message = 0; message < 2; ++message) submit(now_ns);
  for (int message = 0; message < 2; ++message) {
    ASSERT_TRUE(next(now_ns));
    ASSERT_FALSE(frame_is_heartbeat());
    now_ns += 10 * millisecond;
    tide_transmitter_sent(&t.core, now_ns);
  }
  ASSERT_TRUE(next(now_ns));
  ASSERT_TRUE(frame_is_heartbeat());
  t.acknack(reliable0, 1, 0, now_ns + millisecond);  // acknowledgment of the first message
  tide_transmitter_poll(&t.core, now_ns + millisecond);
  now_ns += 2 * millisecond;
  tide_transmitter_sent(&t.core, now_ns);
  EXPECT_FALSE(next(now_ns));
  EXPECT_EQ(tide_transmitter_poll(&t.core, now_ns), now_ns + 100 * millisecond);
}

TEST_F(Heartbeat, ToASilentPeerComesAtAnEighthOfTheRateAndNoLessOften) {
  submit(millisecond);
  ASSERT_TRUE(next(millisecond));
  int64_t now_ns = millisecond, before_ns = 0;
  std::vector<int64_t> apart_ms;
  while (apart_ms.size() < 60) {
    tide_transmitter_sent(&t.core, now_ns);
    now_ns = tide_transmitter_poll(&t.core, now_ns);
    tide_transmitter_poll(&t.core, now_ns);
    if (!next(now_ns)) continue;
    ASSERT_TRUE(frame_is_heartbeat());
    apart_ms.push_back((now_ns - before_ns) / millisecond);
    before_ns = now_ns;
  }
  EXPECT_EQ(apart_ms[8], 100);
  EXPECT_EQ(std::vector<int64_t>(apart_ms.end() - 30, apart_ms.end()), std::vector<int64_t>(30, 800));
}

}  // namespace daemon_heartbeat_test
