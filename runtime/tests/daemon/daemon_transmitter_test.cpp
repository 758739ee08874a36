// SPDX-License-Identifier: Apache-2.0
// The sending half, rule by rule.
#include <gtest/gtest.h>

#include "daemon_peer.h"
#include "vectors.h"

namespace daemon_transmitter_test {

using peer::Bytes;
using peer::Transmitter;

constexpr int64_t millisecond = 1'000'000;
constexpr uint8_t reliable0 = TIDE_STREAM_RELIABLE(0), reliable1 = TIDE_STREAM_RELIABLE(1);
constexpr uint8_t effort0 = TIDE_STREAM_BEST_EFFORT(0), effort1 = TIDE_STREAM_BEST_EFFORT(1);

Bytes sample(uint8_t mark, size_t bytes = 12) {
  return peer::submessage(TIDE_XRCE_WRITE_DATA, Bytes(bytes, mark), TIDE_XRCE_FLAG_LITTLE_ENDIAN);
}

struct Seen {
  uint8_t stream = 0xFF, kind = 0, mark = 0;
  uint16_t sequence = 0;
};

Seen look(const Bytes &bytes) {
  if (bytes.empty()) return {};
  tide_xrce_header_t header;
  const int position = tide_xrce_get_header(bytes.data(), bytes.size(), &header);
  return {header.stream, bytes.at(size_t(position)), bytes.at(size_t(position) + 4), header.sequence};
}

tide_xrce_heartbeat_t heartbeat_of(const Bytes &bytes) {
  tide_cdr_t cdr;
  tide_xrce_heartbeat_t body{};
  tide_cdr_reader(&cdr, bytes.data() + 8, bytes.size() - 8, false);
  tide_xrce_get_heartbeat(&cdr, &body);
  return body;
}

TEST(daemon_transmitter, rejects_bad_configurations) {
  auto status = [](auto adjust) { return Transmitter({{64, 2}}, adjust).status; };
  EXPECT_EQ(status([](auto &) {}), TIDE_OK);
  EXPECT_EQ(status([](auto &config) { config.message_bytes = 60; }), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status([](auto &config) { config.message_bytes = 66; }), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status([](auto &config) { config.window = 17; }), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status([](auto &config) { config.node_count = 3; }), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status([](auto &config) { config.streams = nullptr; }), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status([](auto &config) { config.class_count = 5; }), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(Transmitter({{64, 2}, {32, 2}}).status, TIDE_ERROR_ARGUMENT);
}

TEST(daemon_transmitter, most_urgent_first_and_first_come_first_served) {
  Transmitter t({{64, 8}});
  t.submit(effort0, sample(1), TIDE_PRIORITY(0, 0));
  t.submit(effort0, sample(2), TIDE_PRIORITY(0, 1));
  t.submit(effort0, sample(3), TIDE_PRIORITY(0, 0));
  t.submit(effort1, sample(4), TIDE_PRIORITY(1, 0));
  t.submit(reliable1, sample(5), TIDE_PRIORITY(1, 0));
  std::vector<int> marks;
  for (Bytes bytes; !(bytes = t.send()).empty();) marks.push_back(look(bytes).mark);
  EXPECT_EQ(marks, (std::vector<int>{4, 5, 2, 1, 3}));
}

TEST(daemon_transmitter, best_effort_numbers_follow_the_wire) {
  Transmitter t({{64, 8}});
  t.submit(effort0, sample(1), TIDE_PRIORITY(0, 0));
  t.submit(effort0, sample(2), TIDE_PRIORITY(0, 1));
  EXPECT_EQ(look(t.send()).sequence, 0);
  EXPECT_EQ(look(t.send()).sequence, 1);
}

TEST(daemon_transmitter, full_window_blocks_only_its_stream) {
  Transmitter t({{64, 12}}, [](auto &config) { config.window = 2; });
  for (uint8_t i = 0; i < 4; ++i) t.submit(reliable1, sample(i), TIDE_PRIORITY(1, 0));
  t.submit(effort0, sample(77), 0);
  EXPECT_EQ(look(t.send()).mark, 0);
  EXPECT_EQ(look(t.send()).mark, 1);
  EXPECT_EQ(look(t.send()).mark, 77);
  EXPECT_TRUE(t.send().empty());
  t.acknack(reliable1, 1, 0);
  EXPECT_EQ(look(t.send()).mark, 2);
  EXPECT_TRUE(t.send().empty());
}

TEST(daemon_transmitter, resends_what_is_flagged_and_nothing_else) {
  Transmitter t({{64, 4}, {2048, 1}});
  t.submit(reliable0, sample(1, 2000), 0);
  t.submit(reliable0, sample(2), 0);
  for (int i = 0; i < 5; ++i) t.send(0);
  t.acknack(reliable0, 1, 0b1010, millisecond);  // 2 and 4 are missing
  EXPECT_EQ(look(t.send(millisecond)).sequence, 2);
  EXPECT_EQ(look(t.send(millisecond)).sequence, 4);
  EXPECT_TRUE(t.send(millisecond).empty());
  // requested again at once: they are under way, so the request is only counted
  t.acknack(reliable0, 1, 0b1010, millisecond);
  EXPECT_TRUE(t.send(millisecond).empty());
  EXPECT_EQ(t.core.counters.nack_ignored, 2u);
  // requested much later: the repeats count as lost, too
  t.acknack(reliable0, 1, 0b1000, 200 * millisecond);
  EXPECT_EQ(look(t.send(200 * millisecond)).sequence, 4);
  EXPECT_EQ(t.core.counters.retransmissions, 3u);
  t.acknack(reliable0, 5, 0, 201 * millisecond);
  EXPECT_EQ(t.core.nodes_in_use, 0);
  EXPECT_EQ(t.core.counters.acknowledged, 2u);
}

TEST(daemon_transmitter, a_reliable_stream_is_first_come_first_served_when_resent_too) {
  Transmitter t({{64, 8}});
  t.submit(reliable0, sample(1), TIDE_PRIORITY(0, 0));
  t.submit(reliable0, sample(2), TIDE_PRIORITY(0, 2));
  t.submit(effort0, sample(3), TIDE_PRIORITY(0, 1));
  EXPECT_EQ(look(t.send()).mark, 3);
  EXPECT_EQ(look(t.send()).mark, 1);
  EXPECT_EQ(look(t.send()).mark, 2);
  t.acknack(reliable0, 0, 0b11, millisecond);
  EXPECT_EQ(look(t.send(millisecond)).mark, 1);
  EXPECT_EQ(look(t.send(millisecond)).mark, 2);
}

TEST(daemon_transmitter, nonsense_is_ignored_and_counted) {
  Transmitter t({{64, 4}});
  t.submit(reliable0, sample(1), 0);
  t.submit(reliable0, sample(2), 0);
  t.send();
  t.acknack(reliable0, 2, 0);       // only one was sent
  t.acknack(reliable1, 0, 0xFFFF);  // no such stream
  t.acknack(effort0, 1, 0);
  EXPECT_EQ(t.core.counters.nack_ignored, 3u);
  t.acknack(reliable0, 0xFFFF, 0xFFFF);  // a later ACKNACK has overtaken it
  t.acknack(reliable0, 0, 0xFFFE);       // it flags messages that were never sent
  EXPECT_EQ(t.core.nodes_in_use, 2);
  EXPECT_EQ(look(t.send()).mark, 2);
  EXPECT_EQ(t.core.counters.retransmissions, 0u);
}

TEST(daemon_transmitter, acknowledgment_may_overtake_the_end_of_the_frame) {
  Transmitter t({{64, 1}});
  int done = 0;
  t.on_done = [&](const tide_node_t &, tide_node_outcome_t outcome) { done += outcome == TIDE_NODE_ACKNOWLEDGED; };
  t.submit(reliable0, sample(1), 0);
  tide_frame_parts_t frame;
  ASSERT_EQ(tide_transmitter_next(&t.core, 0, &frame), 1);
  t.acknack(reliable0, 1, 0);
  EXPECT_EQ(done, 0);  // the wire still reads its bytes
  EXPECT_EQ(t.submit(reliable0, sample(2), 0), TIDE_ERROR_FULL);
  tide_transmitter_sent(&t.core, 1);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(t.submit(reliable0, sample(2), 0), TIDE_OK);
}

// If a frame is acknowledged during its second transmission, the HEARTBEAT for the other frames must still be sent.
TEST(daemon_transmitter, heartbeat_for_the_rest_when_a_resent_frame_is_acknowledged_on_the_wire) {
  for (const bool cut : {false, true}) {
    Transmitter t({{64, 4}});
    for (uint8_t i = 0; i < 3; ++i) t.submit(reliable0, sample(i), 0);
    for (int i = 0; i < 3; ++i) t.send(0);
    t.acknack(reliable0, 0, 0b001, millisecond);
    tide_frame_parts_t frame;
    ASSERT_EQ(tide_transmitter_next(&t.core, millisecond, &frame), 1);
    t.acknack(reliable0, 1, 0, 2 * millisecond);
    if (cut)
      tide_transmitter_cancel(&t.core);
    else
      tide_transmitter_sent(&t.core, 3 * millisecond);
    EXPECT_EQ(look(t.send(1000 * millisecond)).kind, TIDE_XRCE_HEARTBEAT);
    EXPECT_EQ(t.core.nodes_in_use, 2);
  }
}

TEST(daemon_transmitter, heartbeat_after_the_last_frame_and_again) {
  Transmitter t({{64, 4}}, [](auto &config) {
    config.heartbeat_delay_ns = 5 * millisecond;
    config.heartbeat_period_ns = 50 * millisecond;
  });
  t.submit(reliable0, sample(1), 0);
  t.submit(reliable0, sample(2), 0);
  t.send(0);
  t.send(millisecond);
  EXPECT_EQ(tide_transmitter_poll(&t.core, 2 * millisecond), 6 * millisecond);
  EXPECT_TRUE(t.send(5 * millisecond).empty());
  const Bytes first = t.send(6 * millisecond);
  ASSERT_EQ(look(first).kind, TIDE_XRCE_HEARTBEAT);
  EXPECT_EQ(heartbeat_of(first).first_unacknowledged, 0);
  EXPECT_EQ(heartbeat_of(first).last, 1);
  EXPECT_EQ(first.size(), 13u);
  EXPECT_EQ(tide_transmitter_poll(&t.core, 7 * millisecond), 56 * millisecond);
  EXPECT_EQ(look(t.send(56 * millisecond)).kind, TIDE_XRCE_HEARTBEAT);
  t.acknack(reliable0, 2, 0, 57 * millisecond);
  EXPECT_EQ(tide_transmitter_poll(&t.core, 58 * millisecond), TIDE_FOREVER);
}

TEST(daemon_transmitter, heartbeat_at_once_as_pods) {
  Transmitter t({{64, 4}, {2048, 1}}, [](auto &config) { config.heartbeat_delay_ns = 0; });
  t.submit(reliable0, sample(1, 1500), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look(t.send(i)).kind, TIDE_XRCE_FRAGMENT);
  EXPECT_EQ(look(t.send(3)).kind, TIDE_XRCE_HEARTBEAT);
}

TEST(daemon_transmitter, heartbeat_delay_follows_the_round_trip) {
  Transmitter t({{64, 4}});
  int64_t now = 0;
  auto delay = [&] {
    t.submit(reliable0, sample(1), 0, now);
    t.send(now);
    const int64_t at = tide_transmitter_poll(&t.core, now);
    return at - now;
  };
  auto answer = [&](int64_t after) {
    now += after;
    t.acknack(reliable0, t.streams[0].next_to_send, 0, now);
  };
  EXPECT_EQ(delay(), 20 * millisecond);  // no round trip was measured yet
  answer(8 * millisecond);
  for (int i = 0; i < 30; ++i) {
    delay();
    answer(8 * millisecond);
  }
  EXPECT_NEAR(double(delay()), 8e6, 1e6);
  answer(8 * millisecond);
  for (int i = 0; i < 60; ++i) {
    delay();
    answer(20'000);
  }
  EXPECT_EQ(delay(), 2 * millisecond);  // the least possible delay
  answer(20'000);
  // the line becomes slow: answers that come after a HEARTBEAT are not measured, so the delay doubles until an answer
  // comes before a HEARTBEAT
  int heartbeats = 0;
  for (int i = 0; i < 20; ++i) {
    const int64_t at = now + delay();
    const int64_t answered = now + 30 * millisecond;
    for (int64_t time = at; time < answered; time = tide_transmitter_poll(&t.core, time))
      heartbeats += !t.send(time).empty();
    answer(30 * millisecond);
  }
  EXPECT_GT(INT64_C(128) * t.core.round_trip_eighths, 10 * millisecond);
  EXPECT_LT(heartbeats, 40);
}

TEST(daemon_transmitter, control_and_answers_go_before_their_own_level_only) {
  Transmitter t({{64, 4}});
  const Bytes control = peer::submessage(TIDE_XRCE_GET_INFO, Bytes(8, 5));
  t.submit(effort0, sample(1), TIDE_PRIORITY(0, 5));
  t.submit(effort1, sample(2), TIDE_PRIORITY(1, 0));
  tide_transmitter_request_acknack(&t.core, reliable0, 3, 1);
  tide_transmitter_request_acknack(&t.core, reliable0, 4, 2);  // it replaces the former request
  EXPECT_EQ(tide_transmitter_submit_control(&t.core, control.data(), control.size(), 0x80, TIDE_PRIORITY(0, 9)),
            TIDE_OK);
  EXPECT_EQ(look(t.send()).mark, 2);
  const Bytes acknack = t.send();
  EXPECT_EQ(hex_from_bytes(acknack),
            "810000000a010500"
            "0400"
            "0002"
            "80");
  const Bytes info = t.send();
  EXPECT_EQ(look(info).kind, TIDE_XRCE_GET_INFO);
  EXPECT_EQ(info[0], 0x80);
  EXPECT_EQ(look(t.send()).mark, 1);
  for (int i = 0; i < TIDE_CONTROL_PLACES; ++i)
    EXPECT_EQ(tide_transmitter_submit_control(&t.core, control.data(), control.size(), 0xFF, 0), TIDE_OK);
  EXPECT_EQ(tide_transmitter_submit_control(&t.core, control.data(), control.size(), 0xFF, 0), TIDE_ERROR_FULL);
  EXPECT_EQ(tide_transmitter_submit_control(&t.core, Bytes(44).data(), 44, 0xFF, 0), TIDE_ERROR_TOO_LARGE);
}

TEST(daemon_transmitter, holds_less_urgent_frames_until_acknowledged) {
  Transmitter t({{64, 6}}, [](auto &config) { config.hold_until_acknowledged = true; });
  t.submit(reliable1, sample(1), TIDE_PRIORITY(1, 0));
  t.submit(effort0, sample(2), 0);
  t.submit(effort1, sample(3), TIDE_PRIORITY(1, 0));
  EXPECT_EQ(look(t.send()).mark, 1);
  EXPECT_EQ(look(t.send()).mark, 3);  // the same level continues
  EXPECT_TRUE(t.send().empty());
  t.acknack(reliable1, 1, 0);
  EXPECT_EQ(look(t.send()).mark, 2);
}

TEST(daemon_transmitter, each_level_chooses_whether_it_holds) {
  constexpr uint8_t reliable2 = TIDE_STREAM_RELIABLE(2), reliable100 = TIDE_STREAM_RELIABLE(100);
  Transmitter t({{64, 8}}, [](auto &config) {
    config.hold_levels[0] = 1u << 2;
    config.hold_levels[3] = 1u << (100 - 96);
  });
  ASSERT_EQ(t.submit(reliable1, sample(1), TIDE_PRIORITY(1, 0)), TIDE_OK);
  EXPECT_EQ(look(t.send()).mark, 1);
  ASSERT_EQ(t.submit(reliable0, sample(2), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(look(t.send()).mark, 2);  // level 1 is not acknowledged, but this does not matter here
  for (const uint8_t holding : {reliable2, reliable100}) {
    ASSERT_EQ(t.submit(holding, sample(3), TIDE_PRIORITY(TIDE_STREAM_LEVEL(holding), 0)), TIDE_OK);
    ASSERT_EQ(t.submit(reliable1, sample(4), TIDE_PRIORITY(1, 0)), TIDE_OK);
    EXPECT_EQ(look(t.send()).mark, 3);
    EXPECT_TRUE(t.send().empty());
    t.acknack(holding, 1, 0);
    EXPECT_EQ(look(t.send()).mark, 4);
  }
}

TEST(daemon_transmitter, requests_are_as_urgent_as_level_0) {
  Transmitter t({{64, 8}}, [](auto &config) { config.hold_levels[0] = 1u << 1; });
  t.submit(reliable1, sample(1), TIDE_PRIORITY(1, 0));
  EXPECT_EQ(look(t.send()).mark, 1);
  t.submit(TIDE_STREAM_REQUESTS, sample(2), 0);
  EXPECT_TRUE(t.send().empty()) << "level 1 holds it";
  t.acknack(reliable1, 1, 0);
  EXPECT_EQ(look(t.send()).mark, 2);
  tide_transmitter_request_acknack(&t.core, TIDE_STREAM_REQUESTS, 0, 0);
  tide_transmitter_request_acknack(&t.core, reliable1, 0, 0);
  constexpr size_t stream_of_acknack = 12;
  EXPECT_EQ(t.send().at(stream_of_acknack), reliable1);
  EXPECT_EQ(t.send().at(stream_of_acknack), TIDE_STREAM_REQUESTS);
}

TEST(daemon_transmitter, a_level_begins_and_ceases_to_hold_at_any_time) {
  Transmitter t({{64, 8}});
  for (const bool hold : {true, false}) {
    EXPECT_EQ(tide_transmitter_hold_level(&t.core, 1, hold), TIDE_OK);
    t.submit(reliable1, sample(1), TIDE_PRIORITY(1, 0));
    t.submit(effort0, sample(2), 0);
    EXPECT_EQ(look(t.send()).mark, 1);
    EXPECT_EQ(t.send().empty(), hold);
    if (hold) {
      EXPECT_EQ(tide_transmitter_hold_level(&t.core, 1, false), TIDE_OK);
      EXPECT_EQ(look(t.send()).mark, 2);
    }
    t.acknack(reliable1, hold ? 1 : 2, 0);
  }
  EXPECT_EQ(tide_transmitter_hold_level(&t.core, TIDE_LEVEL_MAXIMUM, true), TIDE_OK);
  EXPECT_EQ(tide_transmitter_hold_level(&t.core, TIDE_LEVEL_MAXIMUM + 1, true), TIDE_ERROR_ARGUMENT);
}

TEST(daemon_transmitter, asks_as_soon_as_it_is_told_to) {
  Transmitter t({{64, 8}}, [](auto &config) { config.heartbeat_delay_ns = -1; });
  EXPECT_EQ(tide_transmitter_set_heartbeat_delay(&t.core, -2), TIDE_ERROR_ARGUMENT);
  t.submit(reliable1, sample(1), TIDE_PRIORITY(1, 0));
  EXPECT_EQ(look(t.send()).mark, 1);
  EXPECT_TRUE(t.send().empty());
  EXPECT_EQ(tide_transmitter_set_heartbeat_delay(&t.core, 0), TIDE_OK);
  t.submit(TIDE_STREAM_RELIABLE(2), sample(2), TIDE_PRIORITY(2, 0));
  EXPECT_EQ(look(t.send()).mark, 2);
  EXPECT_EQ(look(t.send()).kind, TIDE_XRCE_HEARTBEAT);
}

// Only streams that are in use cost time. All stream entries can be used, and can be used again after each reset.
TEST(daemon_transmitter, gives_places_of_streams_back_at_a_reset) {
  constexpr size_t places = 100;
  Transmitter t({{64, places}}, {}, places);
  for (int round = 0; round < 2; round++) {
    EXPECT_EQ(t.core.stream_places, 0u);
    for (size_t level = 0; level < places; level++) {
      const auto stream = TIDE_STREAM_RELIABLE(level);
      ASSERT_EQ(t.submit(stream, sample(static_cast<uint8_t>(level)), TIDE_PRIORITY(level, 0)), TIDE_OK);
      EXPECT_EQ(t.core.stream_places, level + 1);
    }
    EXPECT_EQ(tide_transmitter_request_acknack(&t.core, TIDE_STREAM_RELIABLE(places), 0, 0),
              TIDE_ERROR_CAPACITY_STREAMS);
    for (size_t level = places; level-- > 0;) EXPECT_EQ(look(t.send()).mark, static_cast<uint8_t>(level));
    tide_transmitter_reset(&t.core, true);
    EXPECT_EQ(t.core.stream_places, places);  // messages that are kept stay in their stream
    tide_transmitter_reset(&t.core, false);
  }
}

TEST(daemon_transmitter, keeps_what_is_submitted_while_it_is_reset) {
  Transmitter t({{64, 4}});
  int discarded = 0;
  t.on_done = [&](const tide_node_t &, tide_node_outcome_t outcome) {
    if (outcome == TIDE_NODE_DISCARDED && ++discarded == 3) t.submit(effort1, sample(9), TIDE_PRIORITY(1, 0));
  };
  for (uint8_t mark = 1; mark <= 3; mark++) t.submit(effort1, sample(mark), TIDE_PRIORITY(1, 0));
  tide_transmitter_reset(&t.core, false);
  EXPECT_EQ(discarded, 3);
  EXPECT_EQ(look(t.send()).mark, 9);
  EXPECT_TRUE(t.send().empty());
  EXPECT_TRUE(tide_transmitter_is_idle(&t.core, 0));
}

TEST(daemon_transmitter, pool_refuses_by_priority) {
  Transmitter t({{16, 2}, {64, 2}});
  std::vector<int> evicted;
  t.on_done = [&](const tide_node_t &node, tide_node_outcome_t outcome) {
    if (outcome == TIDE_NODE_EVICTED) evicted.push_back(node.bytes[4]);
  };
  EXPECT_EQ(t.submit(effort0, sample(0, 80), 0), TIDE_ERROR_TOO_LARGE);
  EXPECT_EQ(t.submit(effort0, sample(1), TIDE_PRIORITY(0, 1)), TIDE_OK);
  EXPECT_EQ(t.submit(effort0, sample(2), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(t.submit(effort0, sample(3), TIDE_PRIORITY(0, 0)), TIDE_OK);  // a larger node is taken
  EXPECT_EQ(t.submit(reliable0, sample(4), TIDE_PRIORITY(0, 0)), TIDE_OK);
  EXPECT_EQ(t.submit(effort0, sample(5), TIDE_PRIORITY(0, 0)), TIDE_ERROR_FULL);
  EXPECT_EQ(t.submit(effort1, sample(6), TIDE_PRIORITY(1, 0)), TIDE_OK);
  EXPECT_EQ(evicted, (std::vector<int>{2}));                                  // the least urgent first, then the oldest
  EXPECT_EQ(t.submit(effort1, sample(7, 40), TIDE_PRIORITY(1, 0)), TIDE_OK);  // only one is large enough
  EXPECT_EQ(evicted, (std::vector<int>{2, 3}));
  EXPECT_EQ(t.submit(effort1, sample(8, 40), TIDE_PRIORITY(1, 0)), TIDE_ERROR_FULL);
  EXPECT_EQ(t.core.counters.evicted, 2u);
  EXPECT_EQ(t.core.counters.refused_full, 2u);
  EXPECT_EQ(t.core.counters.nodes_in_use_maximum, 4u);
}

TEST(daemon_transmitter, refuses_what_cannot_be_sent) {
  Transmitter t({{2048, 2}}, {}, 1);
  EXPECT_EQ(t.submit(effort0, sample(1, 600), 0), TIDE_ERROR_TOO_LARGE);  // best effort is not fragmented
  EXPECT_EQ(t.submit(effort0, sample(1, 504), 0), TIDE_OK);
  EXPECT_EQ(t.submit(reliable0, sample(1), 0), TIDE_ERROR_CAPACITY_STREAMS);
  EXPECT_EQ(t.core.nodes_in_use, 1);
}

TEST(daemon_transmitter, expires_unsent_without_a_trace) {
  Transmitter t({{64, 4}});
  std::vector<tide_node_outcome_t> outcomes;
  t.on_done = [&](const tide_node_t &, tide_node_outcome_t outcome) { outcomes.push_back(outcome); };
  t.submit(reliable0, sample(1), 0, 0, 10);
  t.submit(effort0, sample(2), 0, 0, 20);
  t.submit(reliable0, sample(3), 0, 0);
  EXPECT_EQ(tide_transmitter_poll(&t.core, 5), 10);
  EXPECT_EQ(tide_transmitter_poll(&t.core, 20), TIDE_FOREVER);
  EXPECT_EQ(outcomes, (std::vector{TIDE_NODE_EXPIRED, TIDE_NODE_EXPIRED}));
  const Seen seen = look(t.send(20));
  EXPECT_EQ(seen.mark, 3);
  EXPECT_EQ(seen.sequence, 0);
}

TEST(daemon_transmitter, expires_sent_from_the_front_and_tells_the_peer) {
  Transmitter t({{64, 4}, {2048, 1}});
  std::vector<int> expired;
  t.on_done = [&](const tide_node_t &node, tide_node_outcome_t outcome) {
    if (outcome == TIDE_NODE_EXPIRED) expired.push_back(node.bytes[4]);
  };
  t.submit(reliable0, sample(1), 0, 0);
  t.submit(reliable0, sample(2, 1500), 0, 0, 100);
  t.submit(reliable0, sample(3), 0, 0);
  t.send(0);
  t.send(0);
  t.send(0);  // two of its three fragments
  tide_transmitter_poll(&t.core, 100);
  EXPECT_TRUE(expired.empty());  // sample 1 precedes it
  t.acknack(reliable0, 1, 0, 150);
  EXPECT_EQ(expired, (std::vector<int>{2}));
  const Bytes told = t.send(150);
  ASSERT_EQ(look(told).kind, TIDE_XRCE_HEARTBEAT);
  EXPECT_EQ(heartbeat_of(told).first_unacknowledged, 4);  // 1, 2 and the fragment that was never sent are given up
  EXPECT_EQ(heartbeat_of(told).last, 3);
  EXPECT_EQ(look(t.send(160)).sequence, 4);
  t.acknack(reliable0, 5, 0, 170);
  EXPECT_EQ(tide_transmitter_poll(&t.core, 180), TIDE_FOREVER);
}

TEST(daemon_transmitter, reset_keeps_what_was_not_acknowledged) {
  Transmitter t({{64, 6}, {2048, 1}});
  std::vector<tide_node_outcome_t> outcomes;
  t.on_done = [&](const tide_node_t &, tide_node_outcome_t outcome) { outcomes.push_back(outcome); };
  t.submit(reliable0, sample(1), 0);
  t.submit(reliable0, sample(2), 0);
  t.submit(reliable0, sample(3, 1500), 0);
  t.submit(effort0, sample(4), 0);
  t.send();
  t.send();
  t.send();
  t.acknack(reliable0, 1, 0);
  tide_frame_parts_t frame;
  ASSERT_EQ(tide_transmitter_next(&t.core, 0, &frame), 1);  // the second fragment is on the wire
  tide_transmitter_reset(&t.core, true);
  EXPECT_EQ(outcomes, (std::vector{TIDE_NODE_ACKNOWLEDGED, TIDE_NODE_DISCARDED}));
  tide_transmitter_sent(&t.core, 0);
  EXPECT_EQ(look(t.send()).sequence, 0);
  for (uint16_t i = 1; i < 4; ++i) EXPECT_EQ(look(t.send()).sequence, i);
  EXPECT_TRUE(t.send().empty());
  t.acknack(reliable0, 4, 0);
  EXPECT_EQ(t.core.nodes_in_use, 0);
  t.submit(reliable0, sample(5), 0);
  tide_transmitter_reset(&t.core, false);
  EXPECT_EQ(outcomes.back(), TIDE_NODE_DISCARDED);
  EXPECT_EQ(t.core.nodes_in_use, 0);
}

TEST(daemon_transmitter, take_back_hands_out_in_order_of_submission) {
  Transmitter t({{64, 6}});
  t.submit(reliable0, sample(1), 0);
  t.submit(reliable1, sample(2), TIDE_PRIORITY(1, 0));
  t.submit(reliable0, sample(3), 0);
  t.submit(effort0, sample(4), 0);
  t.send();
  tide_frame_parts_t frame;
  ASSERT_EQ(tide_transmitter_next(&t.core, 0, &frame), 1);
  std::vector<int> marks;
  for (tide_node_t *node = tide_transmitter_take_back(&t.core); node;) {
    tide_node_t *next = node->next_in_stream;
    marks.push_back(node->bytes[4]);
    tide_transmitter_abandon(&t.core, node);
    node = next;
  }
  tide_transmitter_sent(&t.core, 0);
  EXPECT_EQ(marks, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(t.core.nodes_in_use, 0);
}

TEST(daemon_transmitter, cut_off_frames_go_again) {
  Transmitter t({{64, 4}});
  const Bytes control = peer::submessage(TIDE_XRCE_GET_INFO, Bytes(8, 5));
  t.submit(reliable0, sample(1), 0);
  t.submit(effort0, sample(2), 0);
  tide_transmitter_request_acknack(&t.core, reliable1, 0, 0);
  tide_transmitter_submit_control(&t.core, control.data(), control.size(), 0xFF, 0x200);
  std::vector<Bytes> twice[2];
  for (int i = 0; i < 4; ++i) {
    tide_frame_parts_t frame;
    ASSERT_EQ(tide_transmitter_next(&t.core, 0, &frame), 1);
    twice[0].push_back(peer::flatten(frame));
    tide_transmitter_cancel(&t.core);
    twice[1].push_back(t.send());
  }
  EXPECT_EQ(twice[0], twice[1]);
  EXPECT_TRUE(t.send().empty());
}

TEST(daemon_transmitter, paused_streams_let_control_through) {
  Transmitter t({{64, 4}});
  const Bytes control = peer::submessage(TIDE_XRCE_GET_INFO, Bytes(8, 5));
  t.submit(reliable1, sample(1), TIDE_PRIORITY(1, 0));
  tide_transmitter_request_acknack(&t.core, reliable1, 0, 0);
  tide_transmitter_submit_control(&t.core, control.data(), control.size(), 0xFF, 0);
  tide_transmitter_pause_streams(&t.core, true);
  EXPECT_EQ(look(t.send()).kind, TIDE_XRCE_GET_INFO);
  EXPECT_TRUE(t.send().empty());
  tide_transmitter_pause_streams(&t.core, false);
  EXPECT_EQ(look(t.send()).kind, TIDE_XRCE_ACKNACK);
  EXPECT_EQ(look(t.send()).mark, 1);
}

TEST(daemon_transmitter, headers_carry_the_key_below_0x80) {
  Transmitter t({{2048, 2}});
  tide_transmitter_set_session(&t.core, 0x01, 0x11223344);
  t.submit(reliable0, sample(1, 1000), 0);
  Bytes all;
  for (Bytes bytes; !(bytes = t.send()).empty();) {
    EXPECT_EQ(hex_from_bytes({bytes.begin() + 4, bytes.begin() + 8}), "11223344");
    EXPECT_LE(bytes.size(), 512u);
    all.insert(all.end(), bytes.begin() + 12, bytes.end());
  }
  EXPECT_EQ(all, sample(1, 1000));
}

TEST(daemon_transmitter, sequence_numbers_wrap) {
  Transmitter t({{64, 4}});
  for (uint32_t i = 0; i < 70'000; ++i) {
    ASSERT_EQ(t.submit(reliable0, sample(1), 0, i), TIDE_OK);
    ASSERT_EQ(look(t.send(i)).sequence, static_cast<uint16_t>(i));
    t.acknack(reliable0, static_cast<uint16_t>(i + 1), 0, i);
  }
  EXPECT_EQ(t.core.counters.acknowledged, 70'000u);
  EXPECT_EQ(t.core.counters.nack_ignored, 0u);
}

}  // namespace daemon_transmitter_test
