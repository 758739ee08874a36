// SPDX-License-Identifier: Apache-2.0
// Writers of one level: a writer that starved during a flood has a reserved node from then on, without a loss for
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "daemon_peer.h"

namespace daemon_writers_test {

using peer::Bytes;
using peer::Transmitter;

constexpr uint16_t kFlood = 0x0005, kQuiet = 0x0015;  // publishers 0 and 1

uint16_t writer(unsigned number) { return static_cast<uint16_t>(number << 4 | 5u); }

int publish(Transmitter &t, uint16_t of, bool reliable, uint8_t level = 1, size_t bytes = 12) {
  const uint8_t stream = reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  const Bytes sample = peer::submessage(TIDE_XRCE_WRITE_DATA, Bytes(bytes, 1), TIDE_XRCE_FLAG_LITTLE_ENDIAN);
  return t.submit(stream, sample, TIDE_PRIORITY(level, 0), 0, TIDE_FOREVER, nullptr, of);
}

uint8_t account_of(uint16_t of) {
  Transmitter t({{64, 1}});
  tide_node_t *node = nullptr;
  EXPECT_EQ(tide_transmitter_acquire_for(&t.core, 12, 0, of, &node), TIDE_OK);
  return node->account;
}

bool has_node(const Transmitter &t, uint16_t of) {
  const auto is_its = [account = account_of(of)](const tide_node_t &node) {
    return node.state != 0 && node.account == account;
  };
  return std::any_of(t.nodes.begin(), t.nodes.end(), is_its);
}

void flood(Transmitter &t, bool reliable, uint8_t level = 1, size_t bytes = 12) {
  for (int i = 0; i < 100; ++i) publish(t, kFlood, reliable, level, bytes);
}

void acknowledge(Transmitter &t, uint8_t level = 1) {
  for (const tide_output_stream_t &stream : t.streams)
    if (stream.id == TIDE_STREAM_RELIABLE(level)) return t.acknack(stream.id, stream.next_to_send, 0);
}

// One round of an overload: all nodes are taken, then some are returned, and the flood is the first to request them.
TEST(daemon_writers, one_that_starved_starves_once) {
  for (const bool floods_reliably : {false, true}) {
    for (const bool reliable : {false, true}) {
      Transmitter t({{64, 6}});
      int refused = 0;
      for (int round = 0; round < 50; ++round) {
        flood(t, floods_reliably);
        refused += publish(t, kQuiet, reliable) == TIDE_ERROR_FULL;
        while (!t.send(0).empty()) continue;
        acknowledge(t);
      }
      EXPECT_EQ(refused, 1) << "flood " << floods_reliably << ", writer " << reliable;
      EXPECT_GT(t.core.counters.refused_kept, 0u);
    }
  }
}

TEST(daemon_writers, who_never_ran_short_keeps_nothing) {
  Transmitter t({{64, 6}});
  for (unsigned number = 1; number < 6; ++number) ASSERT_EQ(publish(t, writer(number), false), TIDE_OK);
  while (!t.send(0).empty()) continue;
  flood(t, true);
  EXPECT_EQ(t.core.nodes_in_use, 6u);
}

TEST(daemon_writers, one_with_a_node_in_use_does_not_starve) {
  Transmitter t({{64, 6}});
  ASSERT_EQ(publish(t, kQuiet, true), TIDE_OK);
  flood(t, true);
  EXPECT_EQ(publish(t, kQuiet, true), TIDE_ERROR_FULL);
  EXPECT_EQ(t.core.starved[0], 0u);
}

TEST(daemon_writers, what_is_kept_for_levels_is_not_for_writers) {
  Transmitter t({{64, 3}});
  ASSERT_EQ(publish(t, writer(9), false, 2), TIDE_OK);
  while (!t.send(0).empty()) continue;
  flood(t, true);
  EXPECT_EQ(publish(t, kQuiet, true), TIDE_ERROR_FULL);
  EXPECT_EQ(publish(t, writer(2), true), TIDE_ERROR_FULL);
  EXPECT_EQ(publish(t, writer(9), true, 2), TIDE_OK) << "three more writers than nodes leave each level its first";
}

TEST(daemon_writers, an_urgent_flood_does_not_evict_what_was_kept) {
  Transmitter t({{64, 4}});
  flood(t, false);
  ASSERT_EQ(publish(t, kQuiet, false), TIDE_ERROR_FULL);
  while (!t.send(0).empty()) continue;
  ASSERT_EQ(publish(t, kQuiet, false), TIDE_OK);
  flood(t, false);
  for (int i = 0; i < 100; ++i) publish(t, writer(7), false, 3);
  EXPECT_GT(t.core.counters.evicted, 0u);
  EXPECT_TRUE(has_node(t, kQuiet));
}

TEST(daemon_writers, kinds_of_objects_do_not_share) {
  std::set<uint8_t> accounts;
  for (const unsigned kind : {5u, 7u, 8u})  // publishers, clients, services
    for (unsigned number = 0; number < 8; ++number)
      accounts.insert(account_of(static_cast<uint16_t>(number << 4 | kind)));
  EXPECT_EQ(accounts.size(), 24u);
}

TEST(daemon_writers, each_size_counts_for_itself) {
  Transmitter t({{64, 4}, {512, 3}});
  flood(t, true, 1, 300);
  ASSERT_EQ(publish(t, kQuiet, true, 1, 300), TIDE_ERROR_FULL);
  while (!t.send(0).empty()) continue;
  acknowledge(t);
  flood(t, true);
  EXPECT_EQ(t.core.nodes_in_use, 6u) << "small ones take the large ones, but for the one that is kept";
  EXPECT_EQ(publish(t, kQuiet, true, 1, 300), TIDE_OK);
}

class DaemonWritersSeeds : public testing::TestWithParam<unsigned> {};

// Any order of publishing, sending and acknowledging on any two levels: after a moment in which all nodes were free, a
// writer that has starved and uses no node finds a free node.
TEST_P(DaemonWritersSeeds, finds_one_from_then_on) {
  std::mt19937 random(GetParam());
  auto draw = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  const unsigned writers = 2 + draw(4);
  Transmitter t({{64, static_cast<uint16_t>(2 + writers + draw(4))}});
  std::vector<bool> kept(writers, false), starved(writers, false);
  for (unsigned step = 0; step < 3'000; ++step) {
    const unsigned kind = draw(12), number = draw(3) == 0 ? draw(writers) : 0;
    const auto level = static_cast<uint8_t>(1 + number % 2);
    if (kind < 8) {
      const bool has_one = has_node(t, writer(number));
      const int status = publish(t, writer(number), draw(2) == 0, level);
      ASSERT_TRUE(!kept[number] || has_one || status == TIDE_OK) << "seed " << GetParam() << ", step " << step;
      if (status != TIDE_ERROR_FULL || has_one) continue;
      starved[number] = true;
      kept.assign(writers, false);  // one more writer for which a node must be kept
    } else if (kind < 10) {
      t.send(0);
    } else {
      acknowledge(t, level);
    }
    if (t.core.nodes_in_use == 0) kept = starved;
  }
}

INSTANTIATE_TEST_SUITE_P(Any, DaemonWritersSeeds, testing::Range(1u, 51u));

// ---- KEEP_LAST of best-effort writers ----

// Sends a numbered sample of a writer with the given depth. Returns the status.
int keep(Transmitter &t, uint16_t of, uint8_t number, uint16_t depth, int64_t now_ns) {
  const Bytes body = {0, 0, static_cast<uint8_t>(of >> 8), static_cast<uint8_t>(of), number};
  const Bytes sample = peer::submessage(TIDE_XRCE_WRITE_DATA, body);
  const auto bytes = static_cast<uint32_t>(sample.size());
  const tide_priority_t priority = TIDE_PRIORITY(1, 0);
  tide_node_t *node = nullptr;
  const int status = tide_transmitter_acquire_last(&t.core, bytes, priority, of, &node);
  if (status != TIDE_OK) return status;
  std::copy(sample.begin(), sample.end(), node->bytes);
  node->length = bytes;
  tide_transmitter_keep_last(&t.core, node, TIDE_STREAM_BEST_EFFORT(1), depth, now_ns);
  return tide_transmitter_submit(&t.core, node, TIDE_STREAM_BEST_EFFORT(1), now_ns);
}

// Writer and number of each waiting sample, in the order of sending.
std::vector<std::pair<int, int>> send_all(Transmitter &t) {
  std::vector<std::pair<int, int>> sent;
  for (Bytes frame; !(frame = t.send()).empty();) sent.emplace_back(frame[4 + 4 + 3], frame[4 + 4 + 4]);
  return sent;
}

constexpr int64_t kLater = 3 * TIDE_BURST_NS;

TEST(daemon_writers, keeps_the_last_in_order_and_their_turns) {
  Transmitter t({{64, 32}});
  for (uint8_t number = 0; number < 4; ++number) {
    keep(t, kFlood, number, 2, 0);
    keep(t, kQuiet, number, 4, 0);
  }
  keep(t, kFlood, 9, 2, kLater);
  EXPECT_EQ(t.core.counters.evicted, 3u);
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(send_all(t), (Pairs{{5, 3}, {0x15, 0}, {5, 9}, {0x15, 1}, {0x15, 2}, {0x15, 3}}));
}

TEST(daemon_writers, a_burst_stays_while_half_of_the_nodes_are_free) {
  Transmitter t({{64, 32}});
  for (uint8_t number = 0; number < 30; ++number) ASSERT_EQ(keep(t, kFlood, number, 1, 0), TIDE_OK);
  const auto sent = send_all(t);
  ASSERT_EQ(sent.size(), 15u);
  EXPECT_EQ(sent.back().second, 29);
}

TEST(daemon_writers, one_that_keeps_the_last_replaces_its_own_in_a_full_pool) {
  Transmitter t({{64, 4}});
  ASSERT_EQ(keep(t, kFlood, 1, 9, 0), TIDE_OK);
  for (int i = 0; i < 100; ++i) publish(t, writer(7), true);
  ASSERT_EQ(keep(t, kFlood, 2, 9, 0), TIDE_OK);
  EXPECT_EQ(keep(t, kQuiet, 3, 9, 0), TIDE_ERROR_FULL) << "it has none to replace";
  EXPECT_EQ(t.send(0).back(), 2);
}

TEST(daemon_writers, one_without_a_waiting_sample_replaces_the_oldest_of_whoever_has_most) {
  Transmitter t({{64, 6}});
  for (uint8_t number = 0; number < 2; ++number) ASSERT_EQ(keep(t, writer(7), number, 9, 0), TIDE_OK);
  for (uint8_t number = 0; number < 4; ++number) ASSERT_EQ(keep(t, kFlood, number, 9, 0), TIDE_OK);
  ASSERT_EQ(keep(t, kQuiet, 1, 1, 0), TIDE_OK);
  EXPECT_EQ(t.core.counters.evicted, 1u);
  EXPECT_EQ(t.core.counters.refused_full, 0u);
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(send_all(t), (Pairs{{0x75, 0}, {0x75, 1}, {5, 1}, {5, 2}, {5, 3}, {0x15, 1}}));
}

TEST(daemon_writers, nobody_loses_its_only_waiting_sample_to_another_one) {
  Transmitter t({{64, 2}});
  ASSERT_EQ(keep(t, kFlood, 1, 9, 0), TIDE_OK);
  ASSERT_EQ(keep(t, writer(7), 1, 9, 0), TIDE_OK);
  EXPECT_EQ(keep(t, kQuiet, 1, 1, 0), TIDE_ERROR_FULL);
  EXPECT_EQ(send_all(t).size(), 2u);
}

}  // namespace daemon_writers_test
