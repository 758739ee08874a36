// SPDX-License-Identifier: Apache-2.0
// The backlog of messages that arrive faster than they are processed: it keeps the order of each client's messages, has
// bounded memory, loses messages only where loss is allowed, and lets no client wait for another client's flood.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "io/network.h"
#include "tide/xrce.h"

namespace tide::agent::test::agent_backlog_test {

using Octets = std::vector<uint8_t>;

constexpr uint8_t kSession = 0x81, kBestEffort = 0x01, kReliable = 0x80;

Octets message_of(uint8_t stream, uint32_t number, size_t length) {
  Octets message = {kSession, stream, 0, 0};
  for (unsigned shift = 0; shift < 32; shift += 8) message.push_back(static_cast<uint8_t>(number >> shift));
  message.resize(std::max(length, message.size()), 0xAA);
  return message;
}

struct Seen {
  uint8_t stream;
  uint32_t number;
};

struct Delivered {
  std::map<Endpoint, std::vector<Seen>> messages;
  size_t count = 0;
  void operator()(Endpoint endpoint, Bytes message) {
    count++;
    uint32_t number = 0;
    for (unsigned octet = 0; octet < 4; octet++) number |= static_cast<uint32_t>(message[4 + octet]) << (8 * octet);
    messages[endpoint].push_back({message[1], number});
  }
};

// A backlog with a clock: messages have different processing times, and come from endpoints with and without a session.
struct Timed {
  Time now = 0;
  std::map<Endpoint, Time> cost_ns, spent_ns;
  Delivered delivered;
  std::function<Standing(Endpoint)> standing = [](Endpoint) { return Standing::kSession; };
  BacklogLimits limits;
  Backlog backlog{[this](Endpoint endpoint, Bytes message) {
                    delivered(endpoint, message);
                    now += cost_ns.at(endpoint);
                    spent_ns[endpoint] += cost_ns.at(endpoint);
                  },
                  limits, [this](Endpoint endpoint) { return standing(endpoint); }, [this] { return now; }};
};

TEST(Backlog, KeepsTheOrderAndCountsWhatItLoses) {
  for (unsigned seed = 1; seed <= 300; seed++) {
    std::mt19937 random(seed);
    const auto pick = [&random](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
    Time now = 0;
    BacklogLimits limits;
    limits.turn_ns = 1 + static_cast<Time>(pick(2000));
    limits.messages = 1 + pick(40);
    limits.bytes = 40 + pick(4000);
    limits.total_bytes = 60 + pick(12000);
    limits.endpoints = 1 + pick(6);
    limits.messages_a_turn = 1 + pick(8);
    Delivered delivered;
    const auto deliver = [&](Endpoint endpoint, Bytes message) {
      delivered(endpoint, message);
      now += static_cast<Time>(pick(3000));
    };
    Backlog backlog(deliver, limits, {}, [&] { return now; });
    uint32_t number = 0;
    for (size_t step = 0; step < 400; step++) {
      if (pick(8) == 0) backlog.serve(pick(20), SIZE_MAX, static_cast<Time>(pick(10'000)));
      const uint8_t stream = std::array<uint8_t, 4>{kBestEffort, kBestEffort, kReliable, 0}[pick(4)];
      backlog.push(pick(7), message_of(stream, ++number, pick(3) == 0 ? pick(300) : 8));
    }
    while (!backlog.empty()) backlog.serve(10);
    ASSERT_EQ(delivered.count + backlog.dropped(), number) << "seed " << seed;
    for (const auto &[endpoint, messages] : delivered.messages) {
      for (size_t place = 1; place < messages.size(); place++) {
        ASSERT_LT(messages[place - 1].number, messages[place].number) << "seed " << seed;
      }
    }
  }
}

TEST(Backlog, NothingIsDeliveredOutOfTurnAndSamplesGiveWayFirst) {
  Delivered delivered;
  BacklogLimits limits;
  limits.messages = 10;
  Backlog backlog([&](Endpoint endpoint, Bytes message) { delivered(endpoint, message); }, limits);
  for (uint32_t number = 1; number <= 5; number++) backlog.push(1, message_of(kBestEffort, number, 8));
  for (uint32_t number = 6; number <= 20; number++) backlog.push(1, message_of(kReliable, number, 8));
  EXPECT_EQ(delivered.count, 0u);
  EXPECT_EQ(backlog.dropped(), 10u);
  backlog.serve(100);
  ASSERT_EQ(delivered.messages[1].size(), 10u);
  EXPECT_EQ(delivered.messages[1].front().number, 6u) << "all samples gave way";
  EXPECT_EQ(delivered.messages[1].back().number, 15u) << "the client sends the others again";
}

TEST(Backlog, AClientThatAsksForItsSessionAgainAndAgainHasAShortLine) {
  Timed timed;
  timed.cost_ns = {{1, 100'000}, {2, 10'000}};
  for (uint32_t number = 1; number <= 10'000; number++) {
    Octets create = message_of(0, number, 8);
    create[0] = 0x80;
    timed.backlog.push(1, create);
    timed.backlog.push(2, message_of(kReliable, number, 8));
  }
  EXPECT_EQ(timed.now, 0) << "nobody was served out of turn";
  EXPECT_EQ(timed.backlog.dropped(), 10'000 - timed.limits.stranger_messages);
}

TEST(Backlog, AFloodLosesItsOldestAndNobodyElseWaits) {
  Delivered delivered;
  const BacklogLimits limits;
  Backlog backlog([&](Endpoint endpoint, Bytes message) { delivered(endpoint, message); }, limits);
  const auto sent = static_cast<uint32_t>(3 * limits.messages);
  for (uint32_t number = 1; number <= sent; number++) backlog.push(1, message_of(kBestEffort, number, 28));
  backlog.push(2, message_of(0, 7, 8));
  EXPECT_EQ(backlog.dropped(), 2 * limits.messages);
  backlog.serve(2 * limits.messages_a_turn);
  ASSERT_EQ(delivered.messages[2].size(), 1u);
  EXPECT_EQ(delivered.messages[1].front().number, sent - limits.messages + 1);
}

TEST(Backlog, WhatIsDearToAnswerCostsItsSenderAndNobodyElse) {
  Timed timed;
  timed.cost_ns = {{1, 1'000'000}, {2, 10'000}};
  for (uint32_t number = 1; number <= 10'000; number++) {
    if (number <= 500) timed.backlog.push(1, message_of(kReliable, number, 8));
    timed.backlog.push(2, message_of(kReliable, number, 8));
  }
  while (timed.now < 100'000'000) timed.backlog.serve(64, SIZE_MAX, 1'000'000);
  EXPECT_NEAR(static_cast<double>(timed.spent_ns[1]), static_cast<double>(timed.spent_ns[2]), 3e6);
}

TEST(Backlog, StrangersShareASmallPartAndASessionWaitsForFew) {
  constexpr Endpoint kStrangers = 58, kGood = 100;
  Timed timed;
  timed.standing = [](Endpoint endpoint) { return endpoint == kGood ? Standing::kSession : Standing::kStranger; };
  timed.cost_ns[kGood] = 10'000;
  for (Endpoint endpoint = 1; endpoint <= kStrangers; endpoint++) timed.cost_ns[endpoint] = 100'000;
  for (uint32_t number = 1; timed.now < 200'000'000; number++) {
    for (uint32_t sent = 0; sent < 300; sent++)
      timed.backlog.push(kGood, message_of(kReliable, 300 * number + sent, 8));
    for (Endpoint endpoint = 1; endpoint <= kStrangers; endpoint++)
      timed.backlog.push(endpoint, message_of(0, number, 8));
    timed.backlog.serve(256, SIZE_MAX, 2'000'000);
  }
  EXPECT_GE(timed.spent_ns[kGood], timed.now * 85 / 100);
  EXPECT_GE(timed.now - timed.spent_ns[kGood], timed.now * 8 / 100) << "strangers are not shut out";
  EXPECT_GT(timed.backlog.dropped(), 0u);
  for (Endpoint endpoint = 1; endpoint <= kStrangers; endpoint++) EXPECT_GT(timed.spent_ns[endpoint], 0) << endpoint;
  // A new stranger waits for one turn of each other stranger, and for the sessions' share of the time in between.
  const Time before = timed.now;
  timed.cost_ns[kStrangers + 1] = 100'000;
  timed.backlog.push(kStrangers + 1, message_of(0, 1, 8));
  while (timed.delivered.messages.count(kStrangers + 1) == 0) timed.backlog.serve(256, SIZE_MAX, 2'000'000);
  EXPECT_LE(timed.now - before, static_cast<Time>(kStrangers + 2) * 9 * timed.limits.turn_ns);
}

TEST(Backlog, StrangersTakeNoLineFromASession) {
  Timed timed;
  timed.standing = [](Endpoint endpoint) { return endpoint <= 10 ? Standing::kSession : Standing::kStranger; };
  for (Endpoint endpoint = 1; endpoint <= 5'000; endpoint++) timed.cost_ns[endpoint] = 1;
  for (Endpoint endpoint = 5'000; endpoint > 0; endpoint--) timed.backlog.push(endpoint, message_of(kBestEffort, 1, 8));
  EXPECT_EQ(timed.backlog.dropped(), 5'000 - 10 - timed.limits.strangers);
  while (!timed.backlog.empty()) timed.backlog.serve(1'000);
  for (Endpoint endpoint = 1; endpoint <= 10; endpoint++) EXPECT_EQ(timed.delivered.messages.count(endpoint), 1u);
}

TEST(Backlog, AStrangerThatIsLetInIsOneNoMore) {
  Timed timed;
  bool is_in = false;
  timed.standing = [&](Endpoint endpoint) {
    return endpoint == 1 && !is_in ? Standing::kStranger : Standing::kSession;
  };
  timed.cost_ns = {{1, 100'000}, {2, 100'000}};
  for (uint32_t number = 1; number <= 30; number++) timed.backlog.push(1, message_of(kReliable, number, 8));
  for (uint32_t number = 1; number <= 3'000; number++) timed.backlog.push(2, message_of(kReliable, number, 8));
  while (timed.delivered.messages[1].size() < 3) timed.backlog.serve(16);
  is_in = true;
  const Time before = timed.now;
  while (timed.delivered.messages[1].size() < 30) timed.backlog.serve(16);
  EXPECT_LE(timed.now - before, 27 * 2 * 100'000 + 9 * 2 * timed.limits.turn_ns);
}

TEST(Backlog, HoldsNoMoreThanItsLimitForAnyNumberOfEndpoints) {
  Delivered delivered;
  BacklogLimits limits;
  limits.total_bytes = 100'000;
  limits.endpoints = 50;
  Backlog backlog([&](Endpoint endpoint, Bytes message) { delivered(endpoint, message); }, limits);
  size_t sent = 0;
  for (Endpoint endpoint = 1; endpoint <= 1000; endpoint++) {
    for (uint32_t number = 1; number <= 10; number++, sent++)
      backlog.push(endpoint, message_of(kBestEffort, number, 996));
  }
  while (!backlog.empty()) backlog.serve(1000);
  EXPECT_EQ(delivered.count, 100u);
  EXPECT_EQ(delivered.count + backlog.dropped(), sent);
}

}  // namespace tide::agent::test::agent_backlog_test
