// SPDX-License-Identifier: Apache-2.0
// What a link holds of messages that come faster than they can be dealt with: in order for each client, bounded, lost
// only where loss is allowed, and nobody waits behind somebody else's flood.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "io/backlog.h"
#include "tide/xrce.h"

namespace tide::agent::test {
namespace {

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

TEST(Backlog, KeepsTheOrderAndLosesOnlyWhatMayBeLost) {
  for (unsigned seed = 1; seed <= 300; seed++) {
    std::mt19937 random(seed);
    const auto pick = [&random](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
    BacklogLimits limits;
    limits.messages = 1 + pick(40);
    limits.bytes = 40 + pick(4000);
    limits.total_bytes = 60 + pick(12000);
    limits.endpoints = 1 + pick(6);
    limits.messages_a_turn = 1 + pick(8);
    Delivered delivered;
    Backlog backlog([&](Endpoint endpoint, Bytes message) { delivered(endpoint, message); }, limits);
    std::map<Endpoint, std::vector<uint32_t>> sent_reliably;
    uint32_t number = 0;
    for (size_t step = 0; step < 400; step++) {
      if (pick(8) == 0) backlog.serve(pick(20));
      const Endpoint endpoint = pick(7);
      const uint8_t stream = std::array<uint8_t, 4>{kBestEffort, kBestEffort, kReliable, 0}[pick(4)];
      backlog.push(endpoint, message_of(stream, ++number, pick(3) == 0 ? pick(300) : 8));
      if (stream != kBestEffort) sent_reliably[endpoint].push_back(number);
    }
    while (!backlog.empty()) backlog.serve(10);
    ASSERT_EQ(delivered.count + backlog.dropped(), number) << "seed " << seed;
    for (const auto &[endpoint, messages] : delivered.messages) {
      std::vector<uint32_t> reliable;
      for (size_t place = 0; place < messages.size(); place++) {
        const uint32_t before = place == 0 ? 0 : messages[place - 1].number;
        ASSERT_LT(before, messages[place].number) << "seed " << seed;
        if (messages[place].stream != kBestEffort) reliable.push_back(messages[place].number);
      }
      ASSERT_EQ(reliable, sent_reliably[endpoint]) << "seed " << seed;
    }
  }
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

}  // namespace
}  // namespace tide::agent::test
