// SPDX-License-Identifier: Apache-2.0
// Reliable samples that share a frame while they wait: which ones may, how they are sent, and that each arrives once
// and in order.
#include <gtest/gtest.h>

#include "daemon_peer.h"

namespace daemon_packing_test {

using peer::Bytes;
using peer::Transmitter;

constexpr uint8_t reliable0 = TIDE_STREAM_RELIABLE(0), reliable1 = TIDE_STREAM_RELIABLE(1);

// A sample of a writer: request, object, and the mark.
Bytes sample(uint8_t mark, size_t bytes = 1, uint8_t object = 5, uint8_t id = TIDE_XRCE_WRITE_DATA) {
  Bytes body{0, mark, 0, object};
  body.insert(body.end(), bytes, mark);
  return peer::submessage(id, body);
}

// The marks of the samples in a frame, in order; each sample must be whole.
std::vector<int> marks_of(const Bytes &frame) {
  std::vector<int> marks;
  tide_xrce_header_t header;
  const int start = tide_xrce_get_header(frame.data(), frame.size(), &header);
  if (start < 0) return marks;
  size_t position = static_cast<size_t>(start);
  tide_xrce_submessage_t each;
  while (tide_xrce_next_submessage(frame.data(), frame.size(), &position, &each) == 1) {
    const uint8_t mark = each.body[1];
    for (size_t i = 4; i < each.body_bytes; ++i) EXPECT_EQ(each.body[i], mark);
    marks.push_back(mark);
  }
  return marks;
}

struct Packing : testing::Test {
  Packing() : Packing([](auto &) {}) {}
  explicit Packing(const std::function<void(tide_transmitter_config_t &)> &adjust)
      : t({{64, 16}, {512, 4}}, [&](tide_transmitter_config_t &config) {
          config.window = 2;
          config.pad_last = true;
          config.pack = true;
          adjust(config);
        }) {
    t.on_done = [this](const tide_node_t &node, tide_node_outcome_t outcome) {
      outcomes.emplace_back(node.bytes[5], outcome);
    };
  }

  void submit(const Bytes &bytes, uint8_t stream = reliable0, tide_priority_t priority = TIDE_PRIORITY(0, 0),
              int64_t expires_ns = TIDE_FOREVER) {
    EXPECT_EQ(t.submit(stream, bytes, priority, 0, expires_ns), TIDE_OK);
  }
  // Two samples are in transfer and fill the window, so further samples wait.
  void fill_window() {
    for (uint8_t mark : {1, 2}) {
      submit(sample(mark));
      EXPECT_EQ(marks_of(t.send()), std::vector<int>{mark});
    }
  }
  // The marks of the waiting samples, after everything that was sent has been acknowledged.
  std::vector<std::vector<int>> frames(uint16_t out = 2) {
    std::vector<std::vector<int>> all;
    for (;;) {
      t.acknack(reliable0, out, 0);
      const Bytes frame = t.send();
      if (frame.empty() || frame[1] != reliable0) return all;
      all.push_back(marks_of(frame));
      ++out;
    }
  }

  Transmitter t;
  std::vector<std::pair<int, tide_node_outcome_t>> outcomes;
};

TEST_F(Packing, what_waits_for_the_window_shares_a_frame) {
  fill_window();
  for (uint8_t mark = 3; mark <= 6; ++mark) submit(sample(mark));
  EXPECT_EQ(t.core.nodes_in_use, 3u);
  EXPECT_EQ(t.core.counters.packed, 3u);
  EXPECT_EQ(frames(), (std::vector<std::vector<int>>{{3, 4, 5, 6}}));
  t.acknack(reliable0, 3, 0);
  EXPECT_EQ(t.core.counters.submitted, 6u);
  EXPECT_EQ(t.core.counters.acknowledged, 3u);
  EXPECT_EQ(t.core.nodes_in_use, 0u);
  const std::vector<std::pair<int, tide_node_outcome_t>> expected = {
      {4, TIDE_NODE_PACKED},       {5, TIDE_NODE_PACKED},       {6, TIDE_NODE_PACKED},
      {1, TIDE_NODE_ACKNOWLEDGED}, {2, TIDE_NODE_ACKNOWLEDGED}, {3, TIDE_NODE_ACKNOWLEDGED}};
  EXPECT_EQ(outcomes, expected);
}

TEST_F(Packing, what_may_leave_at_once_leaves_alone) {
  for (uint8_t mark : {1, 2}) {
    submit(sample(mark));
    EXPECT_EQ(marks_of(t.send()), std::vector<int>{mark});
  }
  EXPECT_EQ(t.core.counters.packed, 0u);
}

TEST_F(Packing, samples_of_others_stay_apart) {
  fill_window();
  submit(sample(3));
  submit(sample(4, 1, 6));                                                 // from another writer
  submit(sample(5, 1, 6), reliable0, TIDE_PRIORITY(0, 1));                 // with another priority
  submit(sample(6, 1, 6), reliable0, TIDE_PRIORITY(0, 1), 1'000'000'000);  // with a time limit
  submit(sample(7, 1, 6), reliable0, TIDE_PRIORITY(0, 1));                 // behind a sample with a time limit
  submit(sample(8, 1, 6, TIDE_XRCE_DELETE), reliable0, TIDE_PRIORITY(0, 1));
  submit(sample(9, 1, 6), reliable0, TIDE_PRIORITY(0, 1));
  EXPECT_EQ(t.core.counters.packed, 0u);
  EXPECT_EQ(frames(), (std::vector<std::vector<int>>{{3}, {4}, {5}, {6}, {7}, {8}, {9}}));
}

TEST_F(Packing, another_stream_and_best_effort_stay_apart) {
  fill_window();
  submit(sample(3));
  submit(sample(4), reliable1, TIDE_PRIORITY(1, 0));
  submit(sample(5), TIDE_STREAM_BEST_EFFORT(0));
  submit(sample(6), TIDE_STREAM_BEST_EFFORT(0));
  EXPECT_EQ(t.core.counters.packed, 0u);
}

// A small node holds 64 bytes, and a sample takes 12; the last frame is in a large node and has the maximum length.
TEST_F(Packing, neither_a_node_nor_a_message_overflows) {
  fill_window();
  for (int mark = 3; mark < 200; ++mark) submit(sample(static_cast<uint8_t>(mark)));
  int next = 3;
  for (const std::vector<int> &frame : frames()) {
    EXPECT_LE(frame.size(), 512u / 12u);
    for (const int mark : frame) EXPECT_EQ(mark, next++);
  }
  EXPECT_EQ(next, 200);
  EXPECT_LE(t.core.counters.nodes_in_use_maximum, 20u);
}

TEST_F(Packing, nothing_joins_a_frame_on_the_wire) {
  submit(sample(1));
  tide_frame_parts_t frame;
  ASSERT_EQ(tide_transmitter_next(&t.core, 0, &frame), 1);
  submit(sample(2));
  submit(sample(3));
  tide_transmitter_reset(&t.core, true);  // the wire still reads the first node, which counts as unsent again
  submit(sample(4));
  EXPECT_EQ(marks_of(peer::flatten(frame)), std::vector<int>{1});
  tide_transmitter_sent(&t.core, 0);
  EXPECT_EQ(marks_of(t.send()), std::vector<int>{1});
  EXPECT_EQ(marks_of(t.send()), (std::vector<int>{2, 3, 4}));
}

TEST_F(Packing, is_repeated_as_it_left) {
  fill_window();
  for (uint8_t mark : {3, 4}) submit(sample(mark));
  t.acknack(reliable0, 2, 0);
  EXPECT_EQ(marks_of(t.send()), (std::vector<int>{3, 4}));
  submit(sample(5));
  EXPECT_EQ(marks_of(t.send()), std::vector<int>{5});
  t.acknack(reliable0, 2, 1);
  EXPECT_EQ(marks_of(t.send()), (std::vector<int>{3, 4}));
}

// The header of the next session may be longer, and fragments carry only one message.
TEST_F(Packing, fits_a_frame_with_the_longest_header) {
  fill_window();
  submit(sample(3, 400));
  submit(sample(4, 80));  // 408 + 88 fits with a header of 4 bytes, and with one of 8 as well
  submit(sample(5, 1));
  tide_transmitter_set_session(&t.core, 0x01, 0x12345678);
  std::vector<Bytes> sent;
  for (uint16_t n = 0; n < 8; ++n) {
    const Bytes frame = t.send();
    if (frame.empty()) break;
    if (frame[1] != reliable0) continue;
    sent.push_back(frame);
    t.acknack(reliable0, static_cast<uint16_t>(sent.size()), 0);
  }
  ASSERT_GE(sent.size(), 3u);
  for (const Bytes &frame : sent) {
    EXPECT_LE(frame.size(), 512u);
    EXPECT_EQ(frame[8], TIDE_XRCE_WRITE_DATA);
  }
}

struct Unpacked : Packing {
  Unpacked() : Packing([](tide_transmitter_config_t &config) { config.pack = false; }) {}
};
TEST_F(Unpacked, each_leaves_alone_where_nobody_asked_for_it) {
  fill_window();
  for (uint8_t mark : {3, 4}) submit(sample(mark));
  EXPECT_EQ(frames(), (std::vector<std::vector<int>>{{3}, {4}}));
}

}  // namespace daemon_packing_test
