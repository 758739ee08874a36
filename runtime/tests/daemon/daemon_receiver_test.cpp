// SPDX-License-Identifier: Apache-2.0
// The receiving half, rule by rule.
#include <gtest/gtest.h>

#include "daemon_peer.h"

namespace daemon_receiver_test {

using peer::Acknack;
using peer::Bytes;
using peer::cut;
using peer::fragment;
using peer::heartbeat;
using peer::message;
using peer::submessage;

constexpr uint8_t reliable0 = TIDE_STREAM_RELIABLE(0), reliable1 = TIDE_STREAM_RELIABLE(1);
constexpr uint8_t effort0 = TIDE_STREAM_BEST_EFFORT(0), effort1 = TIDE_STREAM_BEST_EFFORT(1);

Bytes data(uint8_t mark, size_t bytes = 4) {
  Bytes body{0, 1, 0, 6};
  body.insert(body.end(), bytes, mark);
  return submessage(TIDE_XRCE_DATA, body);
}

// Records the last octet of every delivered body.
struct Receiver : peer::Receiver {
  explicit Receiver(const Options &options = {}) : peer::Receiver(options) {
    on_submessage = [this](const tide_delivery_t &delivery) {
      marks.push_back(delivery.submessage.body[delivery.submessage.body_bytes - 1]);
      sizes.push_back(delivery.submessage.body_bytes);
      if (!keep) return;
      tide_receiver_retain(&core, &delivery);
      kept.push_back({delivery.memory, delivery.reassembled});
    };
  }
  void release_all() {
    for (auto [memory, reassembled] : kept) tide_receiver_release(&core, memory, reassembled);
    kept.clear();
  }
  std::vector<int> marks;
  std::vector<size_t> sizes;
  bool keep = false;
  std::vector<std::pair<void *, bool>> kept;
};

using Marks = std::vector<int>;

TEST(daemon_receiver, rejects_bad_configurations) {
  EXPECT_EQ(Receiver().status, TIDE_OK);
  EXPECT_EQ(Receiver({.slots = 1}).status, TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(Receiver({.slot_bytes = 70'000}).status, TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(Receiver({.streams = 0}).status, TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(Receiver({.window = 17}).status, TIDE_ERROR_ARGUMENT);
}

TEST(daemon_receiver, most_urgent_first_or_oldest_first) {
  for (const bool fifo : {false, true}) {
    Receiver r;
    EXPECT_EQ(tide_receiver_most_urgent(&r.core), TIDE_PRIORITY_NONE);
    EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)})), 1);
    EXPECT_EQ(r.arrive(message(effort1, 0, {data(2)})), 1);
    EXPECT_EQ(r.arrive(message(effort0, 1, {data(3)})), 1);
    EXPECT_EQ(tide_receiver_most_urgent(&r.core), TIDE_PRIORITY(1, 0));
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(fifo ? tide_receiver_process_oldest(&r.core) : tide_receiver_process_most_urgent(&r.core), 1);
    EXPECT_EQ(r.marks, fifo ? (Marks{1, 2, 3}) : (Marks{2, 1, 3}));
    EXPECT_EQ(r.slots_in_use(), 0u);
  }
}

TEST(daemon_receiver, a_stream_keeps_its_order_and_lends_its_urgency) {
  Receiver r;
  r.priority_of = [](uint8_t, tide_xrce_request_t request) -> int32_t { return request.request; };
  auto with = [](uint8_t request, uint8_t mark) { return submessage(TIDE_XRCE_DATA, Bytes{0, request, 0, 6, mark}); };
  r.arrive(message(effort0, 0, {with(1, 1)}));
  r.arrive(message(effort1, 0, {with(5, 2)}));
  r.arrive(message(effort0, 1, {with(9, 3)}));
  EXPECT_EQ(tide_receiver_most_urgent(&r.core), 9);
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{1, 3, 2}));
}

TEST(daemon_receiver, holds_what_is_early_and_reports_the_gap_from_the_header) {
  Receiver r;
  r.arrive(message(reliable0, 0, {data(0)}));
  r.process();
  EXPECT_EQ(r.acknacks, (std::vector<Acknack>{{reliable0, 1, 0}}));
  r.acknacks.clear();
  r.arrive(message(reliable0, 3, {data(3)}));
  EXPECT_EQ(r.acknacks, (std::vector<Acknack>{{reliable0, 1, 0b011}}));  // before any frame was processed
  r.acknacks.clear();
  r.arrive(message(reliable0, 2, {data(2)}));
  EXPECT_EQ(r.process_all(), 0);
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 1, 0b001}));
  r.arrive(message(reliable0, 1, {data(1)}));
  EXPECT_EQ(r.process_all(), 3);
  EXPECT_EQ(r.marks, (Marks{0, 1, 2, 3}));
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 4, 0}));
  EXPECT_EQ(r.slots_in_use(), 0u);
}

TEST(daemon_receiver, heartbeat_does_not_ask_for_what_is_here) {
  Receiver r;
  r.arrive(message(reliable0, 0, {data(0)}));
  r.arrive(heartbeat(reliable0, 0, 0));
  EXPECT_EQ(r.core.counters.gaps, 0u) << "the message waits to be processed";
  r.arrive(heartbeat(reliable0, 0, 2));
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 0, 0b110}));
  EXPECT_EQ(r.core.counters.gaps, 1u);
  r.arrive(heartbeat(reliable1, 0, 0));  // the first message of a stream was lost
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable1, 0, 0b1}));
}

TEST(daemon_receiver, what_the_sender_gave_up_is_skipped) {
  Receiver r({.reassemblies = {1000}});
  const auto parts = cut(data(7, 300), 100);
  r.arrive(message(reliable0, 0, {parts[0]}));
  r.arrive(message(reliable0, 3, {data(3)}));
  r.process_all();
  EXPECT_EQ(r.reassemblies_in_use(), 1u);
  r.arrive(heartbeat(reliable0, 3, 3));
  EXPECT_EQ(r.process_all(), 1);
  EXPECT_EQ(r.marks, (Marks{3}));
  EXPECT_EQ(r.core.counters.given_up, 2u);
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
  for (uint16_t i = 0; i < 4; ++i)
    r.arrive(message(reliable0, static_cast<uint16_t>(4 + i), {cut(data(8, 300), 100)[i]}));
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{3, 8}));
}

TEST(daemon_receiver, duplicates_and_messages_beyond_the_window) {
  Receiver r({.window = 4});
  r.arrive(message(reliable0, 0, {data(0)}));
  EXPECT_EQ(r.arrive(message(reliable0, 0, {data(0)})), 0);
  r.process_all();
  r.acknacks.clear();
  EXPECT_EQ(r.arrive(message(reliable0, 0, {data(0)})), 0);
  EXPECT_EQ(r.acknacks, (std::vector<Acknack>{{reliable0, 1, 0}}));  // the answer was apparently lost
  EXPECT_EQ(r.arrive(message(reliable0, 5, {data(5)})), 0);
  EXPECT_EQ(r.arrive(message(reliable0, 4, {data(4)})), 1);
  EXPECT_EQ(r.core.counters.duplicates, 2u);
  EXPECT_EQ(r.core.counters.outside_window, 1u);
  r.arrive(message(effort0, 7, {data(7)}));
  r.arrive(message(effort0, 6, {data(6)}));
  r.arrive(message(effort0, 7, {data(7)}));
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{0, 7}));
}

TEST(daemon_receiver, damaged_frames_are_dropped_and_asked_for) {
  Receiver r;
  Bytes good = message(reliable0, 0, {data(1)});
  const uint16_t crc = tide_crc16(good.data(), good.size());
  Bytes bad = good;
  bad.back() ^= 4;
  EXPECT_EQ(r.arrive_checked(good, crc), 1);
  EXPECT_EQ(r.process(), 1);
  bad[2] = good[2] = 1;
  const uint16_t next_crc = tide_crc16(good.data(), good.size());
  EXPECT_EQ(r.arrive_checked(bad, next_crc), 1);
  EXPECT_EQ(r.process(), 0);
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 1, 1}));
  EXPECT_EQ(r.core.counters.checksum_errors, 1u);
  EXPECT_EQ(r.arrive_checked(good, next_crc), 1);
  EXPECT_EQ(r.process(), 1);
  const Bytes beat = heartbeat(reliable1, 0, 5);
  r.acknacks.clear();
  EXPECT_EQ(r.arrive_checked(beat, 0x1234), 0);
  EXPECT_TRUE(r.acknacks.empty());
}

// Counts calls of the reception handler, by the last octet of the body.
struct Answered : Receiver {
  explicit Answered(const Options &options = {}) : Receiver(options) {
    on_control = [this](const tide_delivery_t &delivery) {
      if (delivery.submessage.id == TIDE_XRCE_STATUS) answers.push_back(delivery.submessage.body[5]);
    };
  }
  Marks answers;
};

Bytes status(uint8_t mark) { return submessage(TIDE_XRCE_STATUS, {0, 10, 0, 0x11, 0, mark}); }

TEST(daemon_receiver, answers_in_their_turn_need_neither_slot_nor_executor) {
  Answered r({.slots = 2});
  EXPECT_EQ(r.arrive(message(reliable1, 0, {data(1)})), 1);
  EXPECT_EQ(r.arrive(message(reliable0, 0, {status(0)})), 0);
  EXPECT_EQ(r.answers, (Marks{0}));
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 1, 0}));
  // Early messages are replaced by more urgent ones and requested again; no stream is blocked.
  EXPECT_EQ(r.arrive(message(reliable0, 2, {status(2)})), 0);
  EXPECT_EQ(r.answers, (Marks{0}));
  EXPECT_EQ(r.arrive(message(reliable0, 1, {status(1)})), 0);
  EXPECT_EQ(r.arrive(message(reliable0, 2, {status(2)})), 0);
  EXPECT_EQ(r.answers, (Marks{0, 1, 2}));
  EXPECT_EQ(r.arrive(message(reliable0, 1, {status(1)})), 0);
  EXPECT_EQ(r.answers.size(), 3u);
  EXPECT_EQ(r.core.counters.duplicates, 1u);
  EXPECT_EQ(r.core.counters.answers, 3u);
  EXPECT_EQ(r.process_all(), 1);
  EXPECT_EQ(r.marks, (Marks{1}));
  EXPECT_EQ(r.slots_in_use(), 0u);
}

TEST(daemon_receiver, answers_that_waited_for_their_turn_follow_at_once) {
  Answered r;
  EXPECT_EQ(r.arrive(message(reliable0, 1, {status(1), status(2)})), 1);
  EXPECT_EQ(r.arrive(message(reliable0, 2, {status(3)})), 1);
  EXPECT_EQ(r.arrive(message(reliable0, 4, {status(5)})), 1);
  EXPECT_EQ(r.arrive(message(reliable0, 0, {status(0)})), 0);
  EXPECT_EQ(r.answers, (Marks{0, 1, 2, 3}));
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 3, 0b01}));
  // One answer waits for data of its stream; before the other answer, the sender has given up the data.
  EXPECT_EQ(r.arrive(message(reliable0, 3, {data(9)})), 1);
  EXPECT_EQ(r.answers.size(), 4u);
  EXPECT_EQ(r.process_all(), 1);
  EXPECT_EQ(r.answers.back(), 5);
  EXPECT_EQ(r.arrive(message(reliable0, 7, {status(7)})), 1);
  EXPECT_EQ(r.arrive(heartbeat(reliable0, 7, 7)), 0);
  EXPECT_EQ(r.answers.back(), 7);
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 8, 0}));
  EXPECT_EQ(r.slots_in_use(), 0u);
}

TEST(daemon_receiver, damaged_answers_are_asked_for_and_mixed_ones_wait) {
  Answered r;
  const Bytes good = message(reliable0, 0, {status(0)});
  const uint16_t crc = tide_crc16(good.data(), good.size());
  Bytes bad = good;
  bad.back() ^= 1;
  EXPECT_EQ(r.arrive_checked(bad, crc), 0);
  EXPECT_TRUE(r.answers.empty());
  EXPECT_EQ(r.core.counters.checksum_errors, 1u);
  EXPECT_EQ(r.arrive_checked(good, crc), 0);
  EXPECT_EQ(r.answers, (Marks{0}));
  Bytes second = message(reliable0, 2, {status(2)});
  second.back() ^= 1;
  EXPECT_EQ(r.arrive_checked(second, crc), 1);
  EXPECT_EQ(r.arrive(message(reliable0, 1, {status(1)})), 0);
  EXPECT_EQ(r.answers, (Marks{0, 1}));
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 2, 0b1}));
  EXPECT_EQ(r.slots_in_use(), 0u);
  EXPECT_EQ(r.arrive(message(reliable0, 2, {status(2), data(3)})), 1);
  EXPECT_EQ(r.process(), 2);
  EXPECT_EQ(r.marks, (Marks{2, 3}));
  // On a best-effort stream, a later STATUS that is processed at once does not make waiting messages outdated.
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(4)})), 1);
  EXPECT_EQ(r.arrive(message(effort0, 1, {status(4)})), 0);
  EXPECT_EQ(r.answers, (Marks{0, 1, 4}));
  EXPECT_EQ(r.process_all(), 1);
}

// "Exactly once": the header of a frame is read once, on arrival, whatever happens to the frame later.
TEST(daemon_receiver, a_header_is_looked_at_exactly_once) {
  Receiver r({.slots = 3});
  int looks = 0;
  r.priority_of = [&](uint8_t stream, tide_xrce_request_t) {
    looks++;
    return TIDE_STREAM_LEVEL(stream) << 8;
  };
  EXPECT_EQ(r.arrive(message(reliable1, 1, {data(1)})), 1);  // early, so it is held and passed on later
  EXPECT_EQ(r.process(), 0);
  EXPECT_EQ(r.arrive(message(reliable1, 0, {data(0), data(5), data(6)})), 1);
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(7)})), 0);  // replaced at once
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(r.process_all(), 4);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(r.arrive(message(reliable1, 1, {data(1)})), 0);  // a copy is ignored
  EXPECT_EQ(looks, 3);
}

TEST(daemon_receiver, several_submessages_share_one_slot) {
  Receiver r;
  r.keep = true;
  r.arrive(message(effort0, 0, {data(1, 3), data(2, 5), data(3, 6)}));
  EXPECT_EQ(r.process(), 3);
  EXPECT_EQ(r.marks, (Marks{1, 2, 3}));
  EXPECT_EQ(r.slots_in_use(), 1u);
  auto kept = r.kept;
  for (auto [memory, reassembled] : kept) {
    EXPECT_EQ(r.slots_in_use(), 1u);
    tide_receiver_release(&r.core, memory, reassembled);
  }
  EXPECT_EQ(r.slots_in_use(), 0u);
}

TEST(daemon_receiver, fragments_grow_into_a_message) {
  Receiver r({.reassemblies = {5000, 1000, 400}});
  r.keep = true;
  const Bytes whole = data(9, 800);
  uint16_t sequence = 0;
  for (const Bytes &part : cut(whole, 100)) r.arrive(message(reliable0, sequence++, {part})), r.process();
  EXPECT_EQ(r.marks, (Marks{9}));
  EXPECT_EQ(r.sizes, (std::vector<size_t>{804}));
  EXPECT_TRUE(r.kept.at(0).second);
  EXPECT_EQ(r.kept.at(0).first, &r.reassemblies[1]);  // the smallest that is large enough
  EXPECT_EQ(r.reassemblies_in_use(), 1u);
  r.release_all();
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
}

TEST(daemon_receiver, a_message_that_is_too_large_never_wedges_the_stream) {
  Receiver r({.reassemblies = {400}});
  uint16_t sequence = 0;
  for (const Bytes &part : cut(data(9, 800), 100)) r.arrive(message(reliable0, sequence++, {part})), r.process();
  // a message that announces a small size but continues
  Bytes liar = data(8, 800);
  liar[2] = 100;
  liar[3] = 0;
  for (const Bytes &part : cut(liar, 100)) r.arrive(message(reliable0, sequence++, {part})), r.process();
  r.arrive(message(reliable0, sequence++, {data(1)}));
  for (const Bytes &part : cut(data(2, 300), 100)) r.arrive(message(reliable0, sequence++, {part})), r.process_all();
  EXPECT_EQ(r.marks, (Marks{1, 2}));
  EXPECT_EQ(r.core.counters.reassembly_too_large, 2u);
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, sequence, 0}));
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
}

TEST(daemon_receiver, waits_unacknowledged_for_reassembly_memory) {
  Receiver r({.reassemblies = {400}});
  r.keep = true;
  uint16_t sequence = 0;
  for (const Bytes &part : cut(data(1, 150), 100)) r.arrive(message(reliable0, sequence++, {part}));
  r.process_all();
  const auto parts = cut(data(2, 150), 100);
  r.arrive(message(reliable0, sequence, {parts[0]}));
  r.arrive(message(reliable0, static_cast<uint16_t>(sequence + 1), {parts[1]}));
  r.arrive(message(reliable1, 0, {data(5)}));
  r.acknacks.clear();
  EXPECT_EQ(r.process_all(), 1);  // the other stream is not delayed
  for (const Acknack &each : r.acknacks)
    EXPECT_TRUE(each.stream != reliable0 || each == (Acknack{reliable0, sequence, 0}));
  EXPECT_GE(r.core.counters.reassembly_busy, 1u);
  EXPECT_EQ(tide_receiver_most_urgent(&r.core), TIDE_PRIORITY_NONE);
  r.release_all();
  EXPECT_EQ(tide_receiver_most_urgent(&r.core), 0);
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{1, 5, 2}));
}

TEST(daemon_receiver, the_end_of_one_message_and_the_start_of_the_next_in_one_frame) {
  Receiver r({.reassemblies = {400}});
  r.keep = true;
  const auto first = cut(data(1, 150), 100), second = cut(data(2, 150), 100);
  r.arrive(message(reliable0, 0, {data(7), first[0]}));
  r.arrive(message(reliable0, 1, {first[1], data(8), second[0]}));
  r.arrive(message(reliable0, 2, {second[1]}));
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{7, 1, 8}));
  EXPECT_EQ(r.acknacks.back().first, 2);  // the frame is acknowledged, but those after it wait
  r.release_all();
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{7, 1, 8, 2}));
  r.release_all();
  EXPECT_EQ(r.slots_in_use(), 0u);
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
}

TEST(daemon_receiver, overflow_drops_the_least_urgent_then_the_farthest_then_the_newest) {
  Receiver r({.slots = 4});
  r.arrive(message(reliable0, 1, {data(1)}));
  r.arrive(message(reliable0, 5, {data(5)}));
  r.arrive(message(effort1, 0, {data(9)}));
  EXPECT_EQ(r.arrive(message(reliable0, 7, {data(7)})), 0);  // dropped, because it is the farthest ahead
  EXPECT_EQ(r.arrive(message(reliable0, 0, {data(0)})), 1);  // 5 is replaced
  EXPECT_EQ(r.arrive(message(effort1, 1, {data(8)})), 1);    // 1 is replaced
  EXPECT_EQ(r.core.counters.overflow_dropped, 3u);
  EXPECT_EQ(r.arrive(message(effort1, 2, {data(6)})), 1);  // 0 is replaced
  EXPECT_EQ(r.arrive(message(effort1, 3, {data(5)})), 0);  // dropped, because it is the newest among equals
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{9, 8, 6}));
  r.arrive(heartbeat(reliable0, 0, 7));
  EXPECT_EQ(r.acknacks.back().first, 0);
  EXPECT_EQ(r.acknacks.back().missing, 0b111);  // as many frames are requested as there are slots
}

// Requests are as urgent as level 0; their answers wait only if they come too early.
TEST(daemon_receiver, overflow_drops_an_early_answer_before_data_of_its_level) {
  Answered r({.slots = 3});
  EXPECT_EQ(r.arrive(message(TIDE_STREAM_REQUESTS, 1, {status(1)})), 1);
  EXPECT_EQ(r.arrive(message(reliable0, 0, {data(0)})), 1);
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(9)})), 1);  // the answer is replaced
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{0, 9}));
  EXPECT_EQ(r.arrive(message(TIDE_STREAM_REQUESTS, 0, {status(0)})), 0);
  EXPECT_EQ(r.arrive(message(TIDE_STREAM_REQUESTS, 1, {status(1)})), 0);
  EXPECT_EQ(r.answers, (Marks{0, 1}));
}

TEST(daemon_receiver, a_held_frame_that_gives_way_is_asked_for_again) {
  Receiver r({.slots = 3});
  r.arrive(message(reliable0, 1, {data(1)}));
  r.arrive(message(reliable0, 2, {data(2)}));
  r.process_all();  // both frames are held
  r.arrive(message(effort1, 0, {data(9)}));
  r.process_all();
  r.arrive(heartbeat(reliable0, 0, 2));
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 0, 0b001}));
  r.arrive(message(reliable0, 0, {data(0)}));
  r.process_all();
  r.arrive(message(reliable0, 2, {data(2)}));
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{9, 0, 1, 2}));
}

TEST(daemon_receiver, samples_in_use_are_never_overwritten) {
  Receiver r({.slots = 2});
  r.keep = true;
  r.arrive(message(effort0, 0, {data(1)}));
  r.process();
  EXPECT_EQ(r.arrive(message(effort1, 0, {data(2)})), 0);
  EXPECT_EQ(static_cast<tide_slot_t *>(r.kept[0].first)->bytes[12], 1);
  r.release_all();
  EXPECT_EQ(r.arrive(message(effort1, 1, {data(3)})), 1);
}

TEST(daemon_receiver, sessions) {
  Receiver r;
  int control = 0;
  r.on_control = [&](const tide_delivery_t &) { ++control; };
  tide_receiver_set_session(&r.core, 0x81, 0);
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)}, 0x82)), 0);
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)}, 0x80)), 0);
  EXPECT_EQ(r.core.counters.foreign_session, 2u);
  r.arrive(message(0, 0, {submessage(TIDE_XRCE_INFO, Bytes(8))}, 0x80));
  r.arrive(message(0, 0, {submessage(TIDE_XRCE_INFO, Bytes(8)), submessage(TIDE_XRCE_STATUS, Bytes(6))}));
  EXPECT_EQ(control, 3);
  tide_receiver_set_session(&r.core, TIDE_XRCE_SESSION_NONE_WITHOUT_KEY, 0);
  for (const uint8_t session : {0x80, 0x81, 0x82}) {
    EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)}, session)), 0);
    EXPECT_EQ(r.arrive(message(reliable0, 0, {data(1)}, session)), 0);
    r.arrive(message(0, 0, {submessage(TIDE_XRCE_INFO, Bytes(8))}, session));
  }
  EXPECT_EQ(control, 6);
  EXPECT_EQ(r.core.counters.foreign_session, 8u);
  tide_receiver_set_session(&r.core, 0x01, 0x11223344);
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)}, 0x01)), 0);  // dropped, because the message's key is 0
  tide_receiver_set_session(&r.core, 0x01, 0);
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)}, 0x01)), 1);
}

TEST(daemon_receiver, reset_starts_at_zero_and_leaves_samples_alone) {
  Receiver r({.reassemblies = {400}});
  r.keep = true;
  r.arrive(message(effort0, 40, {data(1)}));
  r.process_all();
  r.arrive(message(reliable0, 0, {cut(data(2, 150), 100)[0]}));
  r.process_all();
  r.arrive(message(reliable0, 2, {data(3)}));
  r.process_all();
  r.arrive(message(reliable0, 3, {data(3)}));
  r.arrive(message(0, 0, {submessage(TIDE_XRCE_RESET, {})}));
  EXPECT_EQ(r.slots_in_use(), 1u);
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
  r.release_all();
  EXPECT_EQ(r.slots_in_use(), 0u);
  r.arrive(message(effort0, 0, {data(4)}));
  r.arrive(message(reliable0, 0, {data(5)}));
  r.process_all();
  EXPECT_EQ(r.marks, (Marks{1, 4, 5}));
}

TEST(daemon_receiver, unwanted_data_is_acknowledged_and_dropped) {
  Receiver r;
  r.priority_of = [](uint8_t, tide_xrce_request_t) -> int32_t { return -1; };
  EXPECT_EQ(r.arrive(message(effort0, 0, {data(1)})), 0);
  EXPECT_EQ(r.arrive(message(reliable0, 0, {data(2)})), 1);
  r.process_all();
  EXPECT_TRUE(r.marks.empty());
  EXPECT_EQ(r.acknacks.back(), (Acknack{reliable0, 1, 0}));
  EXPECT_EQ(r.core.counters.unwanted, 2u);
}

TEST(daemon_receiver, any_bytes_are_survived) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    uint32_t state = seed * 2654435761u + 1;
    auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    Receiver r({.slots = 4, .slot_bytes = 128, .streams = 3, .reassemblies = {200}});
    r.keep = seed % 2 == 0;
    for (int i = 0; i < 300; ++i) {
      Bytes bytes(random() % 129);
      for (uint8_t &each : bytes) each = static_cast<uint8_t>(random());
      if (bytes.size() > 8 && random() % 4 != 0) {
        bytes[0] = 0x81;
        bytes[1] = static_cast<uint8_t>(random() % 3 == 0 ? 0 : 0x80 + random() % 2);
        bytes[2] = static_cast<uint8_t>(random() % 8);
        bytes[3] = 0;
        bytes[4] = static_cast<uint8_t>(random() % 3 == 0 ? 0x0D : random() % 16);
        bytes[6] = static_cast<uint8_t>(random() % 100);
        bytes[7] = 0;
      }
      r.arrive(bytes);
      if (random() % 2 == 0) r.process();
      if (random() % 8 == 0) r.release_all();
      if (random() % 64 == 0) tide_receiver_reset(&r.core);
    }
    tide_receiver_reset(&r.core);
    r.release_all();
    ASSERT_EQ(r.slots_in_use(), 0u);
    ASSERT_EQ(r.reassemblies_in_use(), 0u);
  }
}

}  // namespace daemon_receiver_test
