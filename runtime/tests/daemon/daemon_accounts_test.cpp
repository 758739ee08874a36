// SPDX-License-Identifier: Apache-2.0
// Reservation of slots: no reader takes slots that another one needs, regardless of the traffic.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "daemon_peer.h"

namespace daemon_accounts_test {

using peer::Acknack;
using peer::Bytes;
using peer::message;
using peer::submessage;

constexpr size_t kReaders = 3;

uint8_t effort(size_t reader) { return TIDE_STREAM_BEST_EFFORT(static_cast<uint8_t>(reader)); }
uint8_t reliable(size_t reader) { return TIDE_STREAM_RELIABLE(static_cast<uint8_t>(reader)); }

Bytes data_for(size_t reader, uint8_t mark) {
  return submessage(TIDE_XRCE_DATA, Bytes{0, static_cast<uint8_t>(reader + 1), 0, 6, mark});
}

// Readers 0 to 2, each with its number as its priority. Messages with another number have no reader.
struct Readers : peer::Receiver {
  explicit Readers(const Options &options, uint16_t wanted = 2) : peer::Receiver(options) {
    priority_of = [](uint8_t, tide_xrce_request_t request) -> int32_t {
      return request.request <= kReaders ? TIDE_PRIORITY(request.request - 1, 0) : TIDE_PRIORITY_NONE;
    };
    account_of = [this](tide_xrce_request_t request) {
      return request.request <= kReaders ? &accounts[request.request - 1u] : &core.nobody;
    };
    on_submessage = [this](const tide_delivery_t &delivery) {
      const size_t reader = delivery.submessage.body[1] - 1u;
      marks[reader].push_back(delivery.submessage.body[4]);
      if (!keep) return;
      tide_receiver_retain(&core, &delivery);
      kept[reader].push_back({delivery.memory, delivery.reassembled});
    };
    for (size_t i = 0; wanted > 0 && i < kReaders; ++i) tide_receiver_open_account(&core, &accounts[i], wanted);
  }
  int arrive_for(size_t reader, uint8_t stream, uint16_t sequence) {
    return arrive(message(stream, sequence, {data_for(reader, static_cast<uint8_t>(sequence))}));
  }
  void release(size_t reader) {
    tide_receiver_release(&core, kept[reader].front().first, kept[reader].front().second);
    kept[reader].erase(kept[reader].begin());
  }
  int process_of(size_t reader) {
    const tide_frame_share_t share{TIDE_PRIORITY(reader, 0), TIDE_PRIORITY(reader, 0), 0};
    tide_slot_t *slot = tide_receiver_take_most_urgent_of(&core, &share);
    if (!slot || !tide_receiver_accept(&core, slot, tide_receiver_verify(slot))) return 0;
    const int count = tide_receiver_deliver(&core, slot);
    tide_receiver_finish(&core, slot);
    return count;
  }
  // The counters agree with the slots, and the reserved slots are available.
  void check() const {
    size_t free = 0, owed = 0;
    std::map<const tide_account_t *, size_t> used;
    for (const tide_slot_t &slot : slots) {
      if (&slot == core.filling) continue;
      if (slot.state == 0) ++free;
      ASSERT_EQ(slot.state == 0, slot.account == nullptr);
      if (slot.account != nullptr) ++used[slot.account];
    }
    for (const tide_account_t *each = &core.nobody; each != nullptr; each = each->next) {
      ASSERT_EQ(each->used, used[each]);
      if (each->used < each->reserved) owed += each->reserved - each->used;
    }
    ASSERT_EQ(core.free, free);
    ASSERT_EQ(core.owed, owed);
    ASSERT_TRUE(!settled || free >= owed);
    check_reassemblies();
  }
  // If there is one buffer for each reader, a reader that uses none finds one, whatever the others do.
  void check_reassemblies() const {
    size_t free = 0, without = 0;
    std::map<const tide_account_t *, size_t> used;
    for (const tide_reassembly_t &each : reassemblies) {
      ASSERT_EQ(each.state == 0, each.account == nullptr);
      if (each.state == 0) ++free;
      if (each.account != nullptr) ++used[each.account];
    }
    for (const tide_account_t *each = &core.nobody; each != nullptr; each = each->next) {
      ASSERT_EQ(each->reassemblies, used[each]);
      if (each->fragment_bytes > 0 && each->reassemblies == 0) ++without;
    }
    ASSERT_TRUE(reassemblies.size() < kReaders || free >= without);
  }

  std::array<tide_account_t, kReaders> accounts{};
  std::array<std::vector<int>, kReaders> marks;
  std::array<std::vector<std::pair<void *, bool>>, kReaders> kept;
  bool keep = false;
  bool settled = true;  // no account was opened while others were using its slots
};

using Marks = std::vector<int>;

TEST(daemon_accounts, a_flood_takes_nothing_from_others) {
  for (size_t flooded = 0; flooded < kReaders; ++flooded) {
    Readers r({.slots = 12});
    for (uint16_t i = 0; i < 100; ++i) r.arrive_for(flooded, effort(flooded), i);
    for (size_t reader = 0; reader < kReaders; ++reader) {
      if (reader == flooded) continue;
      for (uint16_t i = 0; i < 2; ++i) EXPECT_EQ(r.arrive_for(reader, effort(reader), i), 1);
      EXPECT_EQ(r.accounts[reader].dropped, 0u);
    }
    r.check();
    r.process_all();
    for (size_t reader = 0; reader < kReaders; ++reader) {
      if (reader != flooded) {
        EXPECT_EQ(r.marks[reader], (Marks{0, 1}));
      }
    }
    EXPECT_EQ(r.accounts[flooded].dropped + r.marks[flooded].size(), 100u);
    EXPECT_EQ(r.marks[flooded].back(), 99) << "the last ones are kept";
  }
}

TEST(daemon_accounts, all_get_the_same_and_nobody_has_a_slot_too) {
  Readers r({.slots = 12}, 0);
  tide_receiver_open_account(&r.core, &r.accounts[0], 9);
  EXPECT_EQ(r.accounts[0].reserved, 9u);
  tide_receiver_open_account(&r.core, &r.accounts[1], 9);
  EXPECT_EQ(r.accounts[0].reserved, 5u);
  EXPECT_EQ(r.accounts[1].reserved, 5u);
  tide_receiver_open_account(&r.core, &r.accounts[2], 1);
  EXPECT_EQ(r.accounts[0].reserved, 4u);
  EXPECT_EQ(r.accounts[2].reserved, 1u);
  EXPECT_EQ(r.core.nobody.reserved, 1u);
  tide_receiver_close_account(&r.core, &r.accounts[1]);
  EXPECT_EQ(r.accounts[0].reserved, 9u);
  r.check();
}

TEST(daemon_accounts, more_readers_than_slots_share_them) {
  Readers r({.slots = 4}, 4);
  for (const tide_account_t &account : r.accounts) EXPECT_EQ(account.reserved, 0u);
  for (uint16_t i = 0; i < 50; ++i) r.arrive_for(2, effort(2), i);
  EXPECT_EQ(r.arrive_for(0, effort(0), 0), 1);
  r.process_all();
  EXPECT_EQ(r.marks[0], (Marks{0}));
  r.check();
}

TEST(daemon_accounts, one_who_joins_later_gets_its_slots_back) {
  Readers r({.slots = 8}, 0);
  r.settled = false;
  tide_receiver_open_account(&r.core, &r.accounts[2], 4);
  for (uint16_t i = 0; i < 50; ++i) r.arrive_for(2, effort(2), i);
  tide_receiver_open_account(&r.core, &r.accounts[0], 2);
  EXPECT_EQ(r.accounts[0].reserved, 2u);
  EXPECT_EQ(r.arrive_for(0, effort(0), 0), 1);
  EXPECT_EQ(r.arrive_for(0, effort(0), 1), 1);
  r.check();
  r.process_all();
  EXPECT_EQ(r.marks[0], (Marks{0, 1}));
}

TEST(daemon_accounts, one_who_leaves_takes_nothing_along) {
  Readers r({.slots = 8});
  r.keep = true;
  r.arrive_for(1, effort(1), 0);
  r.process_all();
  r.arrive_for(1, effort(1), 1);
  tide_receiver_close_account(&r.core, &r.accounts[1]);
  EXPECT_EQ(r.accounts[1].used, 0u);
  r.check();
  r.process_all();
  r.release(1);
  r.release(1);
  r.check();
  EXPECT_EQ(r.slots_in_use(), 0u);
}

TEST(daemon_accounts, what_nobody_reads_stops_nobody) {
  Readers r({.slots = 8});
  const uint8_t stream = reliable(1);
  for (uint16_t i = 0; i < 40; ++i) r.arrive_for(kReaders, stream, i);  // in order and unwanted: none is processed
  for (size_t reader = 0; reader < kReaders; ++reader) EXPECT_EQ(r.arrive_for(reader, effort(reader), 0), 1);
  r.check();
}

TEST(daemon_accounts, a_full_reader_holds_its_stream_and_loses_nothing) {
  Readers r({.slots = 8});
  tide_receiver_set_full(&r.core, &r.accounts[1], true);
  for (uint16_t i = 0; i < 2; ++i) r.arrive_for(1, reliable(1), i);
  EXPECT_EQ(r.process_all(), 0);
  EXPECT_TRUE(r.acknacks.empty()) << "nothing is acknowledged";
  r.arrive_for(0, reliable(0), 0);
  EXPECT_EQ(r.process_all(), 1) << "other streams go on";
  tide_receiver_set_full(&r.core, &r.accounts[1], false);
  EXPECT_EQ(r.process_all(), 2);
  EXPECT_EQ(r.marks[1], (Marks{0, 1}));
}

// ---- messages in fragments ----

using peer::cut;

// Sends a message of two fragments to a reader, as far as the fragments are accepted.
void arrive_cut(Readers &r, size_t reader, uint16_t &sequence, uint8_t mark, size_t parts = 2) {
  Bytes body{0, static_cast<uint8_t>(reader + 1), 0, 6, mark};
  body.resize(150);
  const auto all = cut(submessage(TIDE_XRCE_DATA, body), 100);
  for (size_t part = 0; part < parts; ++part) {
    r.arrive(message(reliable(reader), sequence++, {all[part]}));
    r.process_all();
  }
}

TEST(daemon_accounts, one_who_does_not_read_keeps_no_memory_that_others_need) {
  for (size_t idle = 0; idle < kReaders; ++idle) {
    Readers r({.slots = 16, .reassemblies = {400, 400, 400}});
    std::array<uint16_t, kReaders> next{};
    for (size_t reader = 0; reader < kReaders; ++reader) arrive_cut(r, reader, next[reader], 0);
    r.keep = true;
    for (uint8_t mark = 1; mark < 4; ++mark) arrive_cut(r, idle, next[idle], mark);
    EXPECT_EQ(r.accounts[idle].reassemblies, 1u) << "its second one is kept for others";
    EXPECT_GE(r.accounts[idle].waits, 1u);
    for (size_t reader = 0; reader < kReaders; ++reader) {
      if (reader == idle) continue;
      arrive_cut(r, reader, next[reader], 1);
      EXPECT_EQ(r.marks[reader], (Marks{0, 1})) << reader;
      EXPECT_EQ(r.accounts[reader].waits, 0u);
    }
    r.check();
    for (size_t reader = 0; reader < kReaders; ++reader) r.release(reader);
    r.process_all();
    EXPECT_EQ(r.marks[idle].back(), 2) << "it goes on when it reads";
  }
}

TEST(daemon_accounts, a_sender_that_stops_in_a_message_delays_its_reader_only) {
  Readers r({.slots = 16, .reassemblies = {400, 400, 400}});
  std::array<uint16_t, kReaders> next{};
  arrive_cut(r, 0, next[0], 7, 1);
  for (uint8_t mark = 0; mark < 20; ++mark) {
    for (size_t reader = 1; reader < kReaders; ++reader) arrive_cut(r, reader, next[reader], mark);
  }
  EXPECT_EQ(r.marks[1].size(), 20u);
  EXPECT_EQ(r.marks[2].size(), 20u);
  r.check();
}

TEST(daemon_accounts, who_is_alone_uses_all_memory) {
  Readers r({.slots = 16, .reassemblies = {400, 400, 400}});
  r.keep = true;
  uint16_t next = 0;
  for (uint8_t mark = 0; mark < 3; ++mark) arrive_cut(r, 1, next, mark);
  EXPECT_EQ(r.marks[1], (Marks{0, 1, 2}));
  EXPECT_EQ(r.accounts[1].waits, 0u);
  tide_receiver_close_account(&r.core, &r.accounts[1]);
  r.check_reassemblies();
  while (!r.kept[1].empty()) r.release(1);
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
}

TEST(daemon_accounts, fragments_that_nobody_reads_take_no_memory) {
  Readers r({.slots = 8, .reassemblies = {400}});
  uint16_t next = 0;
  arrive_cut(r, kReaders, next, 1, 1);
  EXPECT_EQ(r.reassemblies_in_use(), 0u);
  uint16_t other = 0;
  arrive_cut(r, 0, other, 5);
  EXPECT_EQ(r.marks[0], (Marks{5}));
}

TEST(daemon_accounts, a_message_behind_an_unfinished_one_is_of_its_own_reader) {
  Readers r({.slots = 8, .reassemblies = {400, 400}});
  uint16_t sequence = 0;
  const auto parts_for = [](size_t reader) {
    Bytes body{0, static_cast<uint8_t>(reader + 1), 0, 6, 9};
    body.resize(150);
    return cut(submessage(TIDE_XRCE_DATA, body), 100);
  };
  const auto first = parts_for(2), second = parts_for(0);
  r.arrive(message(reliable(0), sequence++, {first[0]}));
  r.process_all();
  r.arrive(message(reliable(0), sequence++, {first[1]}));  // waits for a reassembly buffer
  for (const Bytes &part : second) r.arrive(message(reliable(0), sequence++, {part}));
  EXPECT_EQ(r.accounts[2].used, 1u);
  EXPECT_EQ(r.accounts[0].used, 2u);
  r.process_all();
  EXPECT_EQ(r.marks[2], (Marks{9}));
  EXPECT_EQ(r.marks[0], (Marks{9}));
}

class DaemonFragmentsSeeds : public testing::TestWithParam<unsigned> {};

// Floods of messages in fragments, complete and aborted, with readers that release at any time.
TEST_P(DaemonFragmentsSeeds, each_finds_its_first_memory) {
  std::mt19937 random(GetParam());
  auto draw = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  Readers r({.slots = 20, .reassemblies = std::vector<uint32_t>(kReaders + draw(3), 400)});
  std::array<uint16_t, kReaders> next{};
  std::array<bool, kReaders> begun{};
  for (size_t reader = 0; reader < kReaders; ++reader) arrive_cut(r, reader, next[reader], 0); /* makes it known */
  r.keep = true;
  for (unsigned step = 0; step < 2'000 && !HasFatalFailure(); ++step) {
    const size_t reader = draw(kReaders);
    const bool idle = r.accounts[reader].reassemblies == 0 && !begun[reader];
    if (draw(3) == 0) {
      if (!r.kept[reader].empty()) r.release(reader);
      r.process_all();
    } else if (idle) {
      begun[reader] = draw(20) == 0; /* the rest of the message never comes */
      const size_t told = r.marks[reader].size();
      arrive_cut(r, reader, next[reader], 1, begun[reader] ? 1 : 2);
      EXPECT_EQ(r.marks[reader].size(), told + (begun[reader] ? 0 : 1)) << "seed " << GetParam() << ", step " << step;
    } else if (!begun[reader] && r.accounts[reader].used < 4) {
      arrive_cut(r, reader, next[reader], 1);
    }
    r.check();
  }
}

INSTANTIATE_TEST_SUITE_P(Any, DaemonFragmentsSeeds, testing::Range(1u, 51u));

// A peer that follows the protocol: it has a window of 16, repeats requested messages, and sends HEARTBEATs.
struct Sender {
  Readers &r;
  size_t reader;
  uint16_t total, next = 0, acknowledged = 0;
  std::vector<uint16_t> again{};

  void hear(const Acknack &acknack) {
    if (acknack.stream != reliable(reader)) return;
    acknowledged = std::max(acknowledged, acknack.first);
    for (uint16_t n = 0; n < 16; ++n) {
      const auto sequence = static_cast<uint16_t>(acknack.first + n);
      if ((acknack.missing >> n & 1) != 0 && sequence < next) again.push_back(sequence);
    }
  }
  void step() {
    if (!again.empty()) {
      const uint16_t sequence = again.front();
      again.erase(again.begin());
      if (sequence >= acknowledged) r.arrive_for(reader, reliable(reader), sequence);
    } else if (next < total && next - acknowledged < 16) {
      r.arrive_for(reader, reliable(reader), next++);
    } else if (acknowledged < next) {
      r.arrive(peer::heartbeat(reliable(reader), acknowledged, static_cast<uint16_t>(next - 1)));
    }
  }
};

// Reliable senders and floods of best-effort messages, with readers that take at any time. All reliable messages arrive
// once and in order, and a reader that uses less than its reservation always gets its frame.
class DaemonAccountsSeeds : public testing::TestWithParam<unsigned> {};

TEST_P(DaemonAccountsSeeds, reservations_hold_and_reliable_loses_nothing) {
  std::mt19937 random(GetParam());
  auto draw = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  Readers r({.slots = 8 + draw(10)}, static_cast<uint16_t>(1 + draw(3)));
  r.keep = true;
  std::array<Sender, 2> senders{{{r, 0, 120}, {r, 1, 120}}};
  size_t heard = 0;
  uint16_t flood = 0;
  auto work = [&](unsigned kind) {
    const size_t reader = draw(kReaders);
    if (kind < 3) {
      senders[draw(2)].step();
    } else if (kind < 6) {
      const bool has_slot = r.accounts[2].used < r.accounts[2].reserved;
      const int noted = r.arrive_for(2, effort(2), flood++);
      EXPECT_TRUE(!has_slot || noted == 1) << "a reader did not get what is reserved for it";
    } else if (kind < 8) {
      r.process_of(reader);
    } else if (!r.kept[reader].empty()) {
      r.release(reader);
    }
    for (; heard < r.acknacks.size(); ++heard)
      for (Sender &sender : senders) sender.hear(r.acknacks[heard]);
  };
  for (unsigned step = 0; step < 6'000 && !HasFatalFailure(); ++step) {
    work(draw(10));
    r.check();
  }
  for (unsigned step = 0; step < 20'000; ++step) work(step % 2 == 0 ? draw(3) : 6 + draw(4));
  for (const Sender &sender : senders) {
    Marks expected;
    for (int mark = 0; mark < sender.total; ++mark) expected.push_back(mark);
    EXPECT_EQ(r.marks[sender.reader], expected) << "seed " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Any, DaemonAccountsSeeds, testing::Range(1u, 101u));

// The slots of readers 1 and 2, which reader 0 may not take, count as free for the stream that serves all three. If
// each repeat that finds no slot were requested again, link and processor would be busy until reader 0 releases a
// sample.
TEST(daemon_accounts, a_repeat_that_found_no_room_is_requested_when_there_is_some) {
  Readers r({.slots = 8});
  for (const uint16_t reader : {1, 2}) r.arrive_for(reader, reliable(0), reader - 1u);
  r.process_all();
  Sender sender{r, 0, 12, 2};
  size_t heard = 0, frames = 0;
  const auto hear = [&] {
    for (; heard < r.acknacks.size(); ++heard) sender.hear(r.acknacks[heard]);
    return !sender.again.empty() || sender.next < sender.total;
  };
  const auto send_all = [&] {
    for (; hear() && frames < 1'000; ++frames) sender.step();
  };
  send_all();
  EXPECT_LE(frames, 40u);
  while (r.process() > 0) send_all();
  EXPECT_EQ(r.marks[0], (Marks{2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) << "without a heartbeat";
  EXPECT_LE(frames, 150u);
  r.check();
}

// ---- a reader that keeps its last samples does not block its stream ----

constexpr uint8_t kStream = TIDE_STREAM_RELIABLE(2);

// Readers 0 to 2 on one stream; all of them keep their last samples.
struct Keepers : Readers {
  explicit Keepers(uint8_t kept_samples, size_t slot_count = 40) : Readers({.slots = slot_count}, 4) {
    priority_of = [](uint8_t, tide_xrce_request_t) -> int32_t { return TIDE_PRIORITY(2, 0); };
    for (tide_account_t &account : accounts) account.keep = kept_samples;
  }
};

TEST(daemon_accounts, what_waits_is_acknowledged_before_the_window_is_full) {
  Keepers r(20);
  for (uint16_t i = 0; i < 12; ++i) EXPECT_EQ(r.arrive_for(0, kStream, i), 1);
  EXPECT_TRUE(r.acknacks.empty());
  for (uint16_t i = 12; i < 20; ++i) EXPECT_EQ(r.arrive_for(0, kStream, i), 1);
  EXPECT_EQ(r.acknacks.back().first, 8);
  EXPECT_EQ(r.marks[0], Marks{}) << "delivery waits for the executor";
  EXPECT_EQ(r.process_all(), 20);
  Marks expected;
  for (int mark = 0; mark < 20; ++mark) expected.push_back(mark);
  EXPECT_EQ(r.marks[0], expected);
  EXPECT_EQ(r.acknacks.back().first, 20);
  EXPECT_EQ(r.accounts[0].dropped, 0u);
}

TEST(daemon_accounts, what_was_acknowledged_survives_the_session) {
  Keepers r(20);
  for (uint16_t i = 0; i < 14; ++i) r.arrive_for(0, kStream, i);
  ASSERT_EQ(r.acknacks.back().first, 2);
  tide_receiver_reset(&r.core);
  r.arrive_for(0, kStream, 0);
  r.process_all();
  EXPECT_EQ(r.marks[0], (Marks{0, 1, 0})) << "the others are sent again in the next session";
}

TEST(daemon_accounts, a_damaged_sample_is_not_acknowledged_and_sent_again) {
  Keepers r(20);
  r.arrive_checked(message(kStream, 0, {data_for(0, 0)}), 0x1234);
  for (uint16_t i = 1; i < 14; ++i) r.arrive_for(0, kStream, i);
  EXPECT_TRUE(r.acknacks.empty());
  r.process_all();
  EXPECT_EQ(r.acknacks.back().first, 0);
  EXPECT_EQ(r.acknacks.back().missing, 1);
}

TEST(daemon_accounts, one_below_its_reservation_takes_the_place_of_an_acknowledged_sample) {
  Keepers r(40, 18);
  for (uint16_t i = 0; i < 40; ++i) r.arrive_for(0, kStream, i);
  const auto before = r.accounts[0].used;
  ASSERT_GT(before, 4u);
  for (uint16_t i = 0; i < 4; ++i) EXPECT_EQ(r.arrive_for(1, effort(1), i), 1);
  EXPECT_EQ(r.accounts[1].used, 4u);
  r.check();
}

class DaemonKeepersSeeds : public testing::TestWithParam<unsigned> {};

// Losses, repeats in any order, and an executor that seldom runs: nothing is lost for which the histories have room,
// and each reader gets its samples in order.
TEST_P(DaemonKeepersSeeds, each_gets_all_in_order) {
  std::mt19937 random(GetParam());
  auto draw = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  Keepers r(200, 100);
  constexpr int kTotal = 60;
  std::vector<size_t> reader_of;
  for (int i = 0; i < kTotal; ++i) reader_of.push_back(draw(kReaders));
  uint16_t next = 0, acknowledged = 0;
  size_t heard = 0;
  std::vector<uint16_t> again;
  const auto arrive = [&](uint16_t sequence) {
    if (draw(4) != 0) r.arrive_for(reader_of[sequence], kStream, sequence);
  };
  for (unsigned step = 0; step < 4'000; ++step) {
    const unsigned kind = draw(10);
    if (kind < 4 && !again.empty()) {
      arrive(again.back());
      again.pop_back();
    } else if (kind < 6 && next < kTotal && next - acknowledged < 16) {
      arrive(next++);
    } else if (kind == 6 && acknowledged < next) {
      r.arrive(peer::heartbeat(kStream, acknowledged, static_cast<uint16_t>(next - 1)));
    } else if (kind == 7 && (draw(20) == 0 || step > 2'000)) {
      r.process();
    }
    for (; heard < r.acknacks.size(); ++heard) {
      acknowledged = std::max(acknowledged, r.acknacks[heard].first);
      again.clear();
      for (uint16_t n = 0; n < 16; ++n)
        if ((r.acknacks[heard].missing >> n & 1) != 0) again.push_back(static_cast<uint16_t>(acknowledged + n));
      std::erase_if(again, [&](uint16_t sequence) { return sequence >= next; });
    }
    r.check();
  }
  for (size_t reader = 0; reader < kReaders; ++reader) {
    Marks expected;
    for (int i = 0; i < kTotal; ++i)
      if (reader_of[static_cast<size_t>(i)] == reader) expected.push_back(i);
    EXPECT_EQ(r.marks[reader], expected) << "seed " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Any, DaemonKeepersSeeds, testing::Range(1u, 11u));

}  // namespace daemon_accounts_test
