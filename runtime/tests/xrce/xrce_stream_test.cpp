// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "tide/stream.h"

namespace xrce_stream_test {

// The rules of a reliable input stream, with sequence numbers that never wrap around.
struct Model {
  int64_t next = 0, announced = -1, oldest = 0;
  int64_t window = 16;
  std::set<int64_t> held;
  uint32_t duplicates = 0, given_up = 0;

  uint16_t skip() {
    uint16_t count = 0;
    for (; next < oldest && held.count(next) == 0; ++next) ++count;
    given_up += count;
    return count;
  }
  tide_stream_verdict_t arrive(int64_t sequence) {
    if (sequence < next || held.count(sequence) != 0) {
      duplicates++;
      return TIDE_STREAM_DUPLICATE;
    }
    announced = std::max(announced, sequence);
    if (sequence >= next + window) return TIDE_STREAM_OUTSIDE;
    if (sequence == next) return TIDE_STREAM_DELIVER;
    held.insert(sequence);
    return TIDE_STREAM_HOLD;
  }
  bool advance() {
    held.erase(next++);
    skip();
    return held.count(next) != 0;
  }
  uint16_t heartbeat(int64_t first, int64_t last) {
    announced = std::max(announced, last);
    oldest = std::max(oldest, first);
    return skip();
  }
  uint16_t missing() const {
    uint16_t bits = 0;
    for (int n = 0; n < window; ++n)
      if (next + n <= announced && held.count(next + n) == 0) bits = static_cast<uint16_t>(bits | 1u << n);
    return bits;
  }
};

struct Pair {
  Model model;
  tide_input_stream_t stream{};

  Pair(int64_t start, uint8_t window) {
    tide_input_stream_init(&stream, 0x80, window);
    model.next = model.oldest = start;
    model.announced = start - 1;
    model.window = window;
    stream.next = stream.oldest = static_cast<uint16_t>(start);
    stream.last_announced = static_cast<uint16_t>(start - 1);
  }
  void deliver_all() {
    for (bool more = true; more;) {
      more = model.advance();
      ASSERT_EQ(tide_input_stream_advance(&stream), more);
    }
  }
  void expect_same() const {
    ASSERT_EQ(stream.next, static_cast<uint16_t>(model.next));
    ASSERT_EQ(tide_input_stream_missing(&stream), model.missing());
    ASSERT_EQ(stream.given_up, model.given_up);
    ASSERT_EQ(stream.duplicates, model.duplicates);
    for (int n = 0; n < 16; ++n) ASSERT_EQ(stream.held >> n & 1, static_cast<int>(model.held.count(model.next + n)));
  }
};

void random_event(Pair *pair, std::mt19937_64 &random) {
  Model &model = pair->model;
  tide_input_stream_t *stream = &pair->stream;
  const int64_t near = model.next - 4 + static_cast<int64_t>(random() % 24);
  const int64_t far = model.next - 20000 + static_cast<int64_t>(random() % 40000);
  const int64_t sequence = random() % 50 == 0 ? far : near;
  switch (random() % 8) {
    case 0: {
      const int64_t last = sequence + static_cast<int64_t>(random() % 4);
      const int64_t first = random() % 8 == 0 ? sequence : model.next - static_cast<int64_t>(random() % 4);
      stream->acknowledge = false;
      ASSERT_EQ(tide_input_stream_heartbeat(stream, static_cast<uint16_t>(first), static_cast<uint16_t>(last)),
                model.heartbeat(first, last));
      ASSERT_TRUE(stream->acknowledge);
      if (model.held.count(model.next) != 0) pair->deliver_all();
      return;
    }
    case 1:
      if (sequence > model.next) {
        model.held.erase(sequence);
        tide_input_stream_forget(stream, static_cast<uint16_t>(sequence));
      }
      return;
    default: {
      stream->acknowledge = false;
      const tide_stream_verdict_t verdict = model.arrive(sequence);
      ASSERT_EQ(tide_input_stream_arrive(stream, static_cast<uint16_t>(sequence)), verdict);
      ASSERT_TRUE(stream->acknowledge);
      if (verdict == TIDE_STREAM_DELIVER) pair->deliver_all();
    }
  }
}

TEST(InputStreamProperty, BehavesAsTheModel) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Pair pair(65536 * 3 - static_cast<int64_t>(random() % 400), static_cast<uint8_t>(1 + random() % 16));
    for (int i = 0; i < 600; ++i) {
      random_event(&pair, random);
      pair.expect_same();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(InputStream, BestEffortTakesOnlyNewerMessages) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    tide_input_stream_t stream;
    tide_input_stream_init(&stream, 0x01, 16);
    int64_t last = -1;
    uint32_t lost = 0;
    for (int i = 0; i < 2000; ++i) {
      const int64_t sequence = std::max<int64_t>(0, last - 3 + static_cast<int64_t>(random() % 80));
      const bool newer = sequence > last;
      ASSERT_EQ(tide_input_stream_arrive(&stream, static_cast<uint16_t>(sequence)),
                newer ? TIDE_STREAM_DELIVER : TIDE_STREAM_DUPLICATE);
      if (!newer) continue;
      lost += static_cast<uint32_t>(sequence - last - 1);
      last = sequence;
      ASSERT_FALSE(tide_input_stream_advance(&stream));
    }
    EXPECT_GT(last, 65536);
    EXPECT_EQ(stream.gaps, lost);
    EXPECT_FALSE(stream.acknowledge);
    EXPECT_EQ(tide_input_stream_missing(&stream), 0);
    EXPECT_EQ(tide_input_stream_heartbeat(&stream, static_cast<uint16_t>(last + 9), static_cast<uint16_t>(last + 9)),
              0);
    EXPECT_EQ(stream.next, static_cast<uint16_t>(last + 1));
  }
}

TEST(InputStream, MovesOnWhenTheSenderGivesUp) {
  tide_input_stream_t stream;
  tide_input_stream_init(&stream, 0x80, 16);
  EXPECT_EQ(tide_input_stream_heartbeat(&stream, 5, 2), 5);
  EXPECT_EQ(stream.next, 5);
  const uint32_t gaps = stream.gaps;
  EXPECT_EQ(tide_input_stream_arrive(&stream, 5), TIDE_STREAM_DELIVER);
  EXPECT_FALSE(tide_input_stream_advance(&stream));
  EXPECT_EQ(stream.gaps, gaps) << "nothing more was lost";
  for (int i = 0; i < 1000; ++i) {  // until the numbers have wrapped around, without any announcement
    const uint16_t first = static_cast<uint16_t>(stream.next + 100);
    const uint16_t last = static_cast<uint16_t>(stream.next - 1);
    ASSERT_EQ(tide_input_stream_heartbeat(&stream, first, last), 100);
    ASSERT_EQ(tide_input_stream_missing(&stream), 0);
  }
  EXPECT_EQ(stream.given_up, 100005u);
}

TEST(InputStream, WindowIsKeptWithinItsLimits) {
  tide_input_stream_t stream;
  tide_input_stream_init(&stream, 0x80, 0);
  EXPECT_EQ(stream.window, 1);
  EXPECT_EQ(tide_input_stream_arrive(&stream, 1), TIDE_STREAM_OUTSIDE);
  tide_input_stream_init(&stream, 0x80, 200);
  EXPECT_EQ(stream.window, 16);
  EXPECT_EQ(tide_input_stream_arrive(&stream, 15), TIDE_STREAM_HOLD);
  EXPECT_EQ(tide_input_stream_missing(&stream), 0x7FFF);
}

}  // namespace xrce_stream_test
