// SPDX-License-Identifier: Apache-2.0
// Reservation of nodes: no level takes nodes that another one needs, regardless of publications and acknowledgments.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "daemon_peer.h"

namespace daemon_levels_test {

using peer::Bytes;
using peer::Transmitter;

constexpr uint8_t kLevels = 4;

Bytes sample(size_t bytes = 12) {
  return peer::submessage(TIDE_XRCE_WRITE_DATA, Bytes(bytes, 1), TIDE_XRCE_FLAG_LITTLE_ENDIAN);
}

int publish(Transmitter &t, uint8_t level, bool reliable, size_t bytes = 12) {
  const uint8_t stream = reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  return t.submit(stream, sample(bytes), TIDE_PRIORITY(level, 0));
}

// The state after each level has published once, and everything has been sent.
void introduce(Transmitter &t, size_t bytes = 12) {
  for (uint8_t level = 0; level < kLevels; ++level) ASSERT_EQ(publish(t, level, false, bytes), TIDE_OK);
  while (!t.send(0).empty()) continue;
  ASSERT_EQ(t.core.nodes_in_use, 0u);
}

TEST(daemon_levels, a_flood_leaves_the_first_one_of_others) {
  for (const bool reliable : {false, true}) {
    for (uint8_t flooded = 0; flooded < kLevels; ++flooded) {
      Transmitter t({{64, 8}});
      introduce(t);
      for (int i = 0; i < 100; ++i) publish(t, flooded, reliable);  // so far nothing is acknowledged or sent
      EXPECT_EQ(t.core.nodes_in_use, 8u - (kLevels - 1u));
      EXPECT_GT(t.core.counters.refused_kept, 0u);
      for (uint8_t level = 0; level < kLevels; ++level) {
        if (level != flooded) {
          EXPECT_EQ(publish(t, level, true), TIDE_OK) << int{level} << " beside " << int{flooded};
        }
      }
    }
  }
}

TEST(daemon_levels, an_urgent_flood_evicts_nobodys_only_one) {
  Transmitter t({{64, 6}});
  introduce(t);
  int evicted = 0;
  t.on_done = [&](const tide_node_t &, tide_node_outcome_t outcome) { evicted += outcome == TIDE_NODE_EVICTED; };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(publish(t, 0, false), TIDE_OK);
  EXPECT_EQ(publish(t, 1, false), TIDE_OK);
  for (int i = 0; i < 100; ++i) publish(t, 3, false);
  EXPECT_EQ(evicted, 2) << "what was beyond the first one";
  EXPECT_EQ(publish(t, 2, false), TIDE_OK);
}

TEST(daemon_levels, one_level_uses_all_nodes) {
  Transmitter t({{64, 6}});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(publish(t, 2, true), TIDE_OK);
  EXPECT_EQ(publish(t, 2, true), TIDE_ERROR_FULL);
  EXPECT_EQ(t.core.counters.refused_kept, 0u);
}

TEST(daemon_levels, more_levels_than_nodes_have_one_each_as_they_come) {
  Transmitter t({{64, 2}});
  introduce(t);
  EXPECT_EQ(publish(t, 1, true), TIDE_OK);
  EXPECT_EQ(publish(t, 1, true), TIDE_ERROR_FULL);
  EXPECT_EQ(publish(t, 0, true), TIDE_OK);
  EXPECT_EQ(publish(t, 2, true), TIDE_ERROR_FULL);
}

TEST(daemon_levels, each_size_counts_for_itself) {
  Transmitter t({{64, 8}, {512, 4}});
  introduce(t);
  for (const uint8_t level : {0, 1}) EXPECT_EQ(publish(t, level, false, 300), TIDE_OK);
  while (!t.send(0).empty()) continue;
  for (int i = 0; i < 100; ++i) publish(t, 0, true, 300);
  EXPECT_EQ(t.core.nodes_in_use, 3u) << "one large one is kept for level 1, none for those that send none";
  for (int i = 0; i < 100; ++i) publish(t, 0, true);
  EXPECT_EQ(t.core.nodes_in_use, 8u) << "small ones do not take the large one that is kept";
  EXPECT_EQ(publish(t, 1, true, 300), TIDE_OK);
}

TEST(daemon_levels, a_session_has_what_is_kept_for_others) {
  Transmitter t({{64, 5}});
  introduce(t);
  for (int i = 0; i < 100; ++i) publish(t, 3, true);
  std::set<tide_node_t *> own;
  tide_node_t *node = nullptr;
  while (tide_transmitter_acquire_own(&t.core, 12, &node) == TIDE_OK) own.insert(node);
  EXPECT_EQ(own.size(), 3u);
  for (tide_node_t *each : own) tide_transmitter_abandon(&t.core, each);
  EXPECT_EQ(publish(t, 0, true), TIDE_OK);
}

class DaemonLevelsSeeds : public testing::TestWithParam<unsigned> {};

// Whatever the order of publishing, sending and acknowledging, a level that uses no node finds a free node.
TEST_P(DaemonLevelsSeeds, each_level_finds_its_first) {
  std::mt19937 random(GetParam());
  auto draw = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  Transmitter t({{64, static_cast<uint16_t>(kLevels + draw(6))}});
  introduce(t);
  for (unsigned step = 0; step < 3'000 && !HasFatalFailure(); ++step) {
    const auto level = static_cast<uint8_t>(draw(kLevels));
    const unsigned kind = draw(10);
    if (kind < 6) {
      bool has_one = false;
      for (const tide_node_t &node : t.nodes) has_one |= node.state != 0 && TIDE_PRIORITY_LEVEL(node.priority) == level;
      const int status = publish(t, level, draw(2) == 0);
      ASSERT_TRUE(has_one || status == TIDE_OK) << "seed " << GetParam() << ", step " << step;
    } else if (kind < 8) {
      t.send(0);
    } else {
      for (const tide_output_stream_t &stream : t.streams) {
        if (stream.id != TIDE_STREAM_RELIABLE(level)) continue;
        tide_xrce_acknack_t body{};
        body.stream = stream.id;
        body.first_unacknowledged = stream.next_to_send;
        tide_transmitter_on_acknack(&t.core, &body, 0);
      }
    }
    size_t free = 0;
    for (const tide_node_t &node : t.nodes) free += node.state == 0 ? 1 : 0;
    ASSERT_EQ(t.core.free_counts[0], free);
  }
}

INSTANTIATE_TEST_SUITE_P(Any, DaemonLevelsSeeds, testing::Range(1u, 51u));

}  // namespace daemon_levels_test
