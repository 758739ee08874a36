// SPDX-License-Identifier: Apache-2.0
// DDS messages that are joined: a receiver that follows the rules of RTPS finds the contents of the single messages in
// the joined one. Waiting messages are sent in order, whichever thread sends them.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "dds/endpoints.h"
#include "dds/transport.h"

namespace tide::agent::test::agent_outbox_test {

using Octets = std::vector<uint8_t>;
using Random = std::mt19937;

constexpr uint8_t kData = 0x15, kHeartbeat = 0x07, kPad = 0x01, kTime = 0x09, kDestination = 0x0E, kCount = 0x80;

size_t pick(Random &random, size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); }

void put_submessage(Octets &message, uint8_t id, uint8_t flags, const Octets &body, bool little_endian) {
  const auto low = static_cast<uint8_t>(body.size()), high = static_cast<uint8_t>(body.size() >> 8);
  message.push_back(id);
  message.push_back(static_cast<uint8_t>(flags | (little_endian ? 1 : 0)));
  message.push_back(little_endian ? low : high);
  message.push_back(little_endian ? high : low);
  message.insert(message.end(), body.begin(), body.end());
}

Octets header_of(uint8_t participant) {
  Octets header = {'R', 'T', 'P', 'S', 2, 2, 1, 15};
  header.resize(20, participant);
  return header;
}

// A message of random submessages in an order that RTPS allows, with or without a trailer.
Octets random_message(Random &random, bool trailer) {
  Octets message = header_of(7);
  static uint8_t serial = 0;
  const size_t count = 1 + pick(random, 4);
  for (size_t number = 0; number < count; number++) {
    const bool little_endian = pick(random, 4) != 0;
    if (pick(random, 3) == 0) {
      put_submessage(message, kDestination, 0, Octets(12, static_cast<uint8_t>(pick(random, 3))), little_endian);
    }
    if (pick(random, 3) == 0) {
      const bool invalidate = pick(random, 4) == 0;
      put_submessage(message, kTime, invalidate ? 2 : 0, Octets(invalidate ? 0 : 8, ++serial), little_endian);
    }
    if (pick(random, 5) == 0) put_submessage(message, kPad, 0, {}, little_endian);
    const size_t length = 4 * (1 + pick(random, 100));
    put_submessage(message, pick(random, 2) == 0 ? kData : kHeartbeat, 0, Octets(length, ++serial), little_endian);
  }
  if (trailer) put_submessage(message, kCount, 0, Octets(20, ++serial), true);
  return message;
}

struct Said {
  uint8_t id;
  Octets destination, time, body;
  bool operator==(const Said &) const = default;
};

// Receives a message as RTPS 2.2, section 8.3.4, demands: a destination or time applies until the next one.
std::vector<Said> take_apart(const Octets &message, size_t &trailers) {
  std::vector<Said> result;
  Octets destination(12, 0), time;
  for (size_t place = 20; place < message.size();) {
    const uint8_t id = message[place], flags = message[place + 1];
    const size_t first = message[place + 2], second = message[place + 3];
    const size_t length = (flags & 1) != 0 ? first | second << 8 : second | first << 8;
    const Octets body(message.begin() + static_cast<long>(place) + 4,
                      message.begin() + static_cast<long>(place + 4 + length));
    place += 4 + length;
    if (id == kDestination) destination = body;
    if (id == kTime) time = body;
    if (id == kData || id == kHeartbeat) result.push_back({id, destination, time, body});
    if (id == kCount) {
      trailers++;
      EXPECT_EQ(place, message.size()) << "Fast DDS accepts its count only at the end";
    }
  }
  return result;
}

TEST(Outbox, AJoinedMessageSaysWhatItsPartsSaid) {
  for (unsigned seed = 1; seed <= 2000; seed++) {
    Random random(seed);
    const bool trailer = pick(random, 2) == 0;
    std::optional<RtpsMessage> joined;
    std::vector<Said> expected;
    for (size_t number = 0, count = 2 + pick(random, 6); number < count; number++) {
      const Octets octets = random_message(random, trailer);
      size_t trailers = 0;
      for (Said &said : take_apart(octets, trailers)) expected.push_back(std::move(said));
      const auto message = RtpsMessage::parse(octets);
      ASSERT_TRUE(message) << "seed " << seed;
      if (!joined) {
        joined = message;
        joined->keep();
        continue;
      }
      const size_t before = joined->bytes().size(), growth = joined->growth(*message);
      ASSERT_GT(growth, 0u) << "seed " << seed;
      joined->append(*message);
      ASSERT_EQ(joined->bytes().size(), before + growth) << "seed " << seed;
    }
    size_t trailers = 0;
    const Octets whole(joined->bytes().begin(), joined->bytes().end());
    ASSERT_EQ(take_apart(whole, trailers), expected) << "seed " << seed;
    ASSERT_EQ(trailers, trailer ? 1u : 0u) << "seed " << seed;
  }
}

TEST(Outbox, AMessageThatCannotBeJoinedIsKnown) {
  const auto parses = [](const Octets &message) { return RtpsMessage::parse(message).has_value(); };
  Octets good = header_of(7);
  put_submessage(good, kData, 0, Octets(8, 1), true);
  EXPECT_TRUE(parses(good));
  for (size_t length = 0; length < good.size(); length++) {
    EXPECT_FALSE(parses({good.begin(), good.begin() + static_cast<long>(length)})) << length;
  }
  Octets to_the_end = good;
  put_submessage(to_the_end, kData, 0, {}, true);
  EXPECT_FALSE(parses(to_the_end));
  Octets of_another = good;
  put_submessage(of_another, 0x0C, 0, Octets(20, 1), true);
  EXPECT_FALSE(parses(of_another));
  Octets behind_the_trailer = good;
  put_submessage(behind_the_trailer, kCount, 0, Octets(20, 1), true);
  EXPECT_TRUE(parses(behind_the_trailer));
  put_submessage(behind_the_trailer, kData, 0, Octets(8, 1), true);
  EXPECT_FALSE(parses(behind_the_trailer));
  Octets stranger = header_of(8);
  put_submessage(stranger, kData, 0, Octets(8, 1), true);
  EXPECT_EQ(RtpsMessage::parse(good)->growth(*RtpsMessage::parse(stranger)), 0u);
}

// ---- the outbox ----

using eprosima::fastdds::rtps::Locator;
using eprosima::fastdds::rtps::Locators;
using eprosima::fastdds::rtps::LocatorsIterator;

class FakeSender : public eprosima::fastrtps::rtps::SenderResource {
 public:
  FakeSender() : SenderResource(LOCATOR_KIND_UDPv4) {
    send_lambda_ = [this](const auto *bytes, uint32_t count, LocatorsIterator *, LocatorsIterator *, const auto &) {
      sent.emplace_back(bytes, bytes + count);
      return true;
    };
  }
  std::vector<Octets> sent;
};

Octets data(uint8_t value, size_t length = 40) {
  Octets message = header_of(7);
  put_submessage(message, kData, 0, Octets(length, value), true);
  return message;
}

struct Fixture {
  static constexpr size_t kDatagramBytes = 400;
  Outbox outbox;
  Outlet outlet{outbox, kDatagramBytes};
  FakeSender sender;

  void send(const Octets &message, uint32_t port = 1) {
    const std::vector<Locator> places = {Locator(port)};
    Locators first(places.begin()), last(places.end());
    EXPECT_TRUE(outlet.send(sender, message, first, last, std::chrono::steady_clock::now()));
  }
  std::vector<uint8_t> values() const {
    std::vector<uint8_t> result;
    size_t trailers = 0;
    for (const Octets &datagram : sender.sent) {
      EXPECT_LE(datagram.size(), kDatagramBytes);
      for (const Said &said : take_apart(datagram, trailers)) result.push_back(said.body.front());
    }
    return result;
  }
};

TEST(Outbox, WhatItsThreadSendsLeavesTogether) {
  Fixture fixture;
  fixture.send(data(1));
  EXPECT_EQ(fixture.sender.sent.size(), 1u) << "nobody has said that somebody will call flush";
  fixture.outbox.flush();
  for (uint8_t value = 2; value <= 9; value++) fixture.send(data(value));
  EXPECT_EQ(fixture.sender.sent.size(), 1u);
  fixture.outbox.flush();
  EXPECT_EQ(fixture.sender.sent.size(), 2u);
  fixture.outbox.flush();
  EXPECT_EQ(fixture.values(), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Outbox, ADatagramIsNoLongerThanItsLimitAndKeepsTheOrder) {
  Fixture fixture;
  fixture.outbox.flush();
  std::vector<uint8_t> expected;
  for (uint8_t value = 1; value <= 100; value++) {
    fixture.send(data(value, value % 7 == 0 ? 376 : 40));
    expected.push_back(value);
  }
  fixture.outbox.flush();
  EXPECT_EQ(fixture.values(), expected);
  EXPECT_LT(fixture.sender.sent.size(), 50u);
}

TEST(Outbox, PlacesAreKeptApart) {
  Fixture fixture;
  fixture.outbox.flush();
  for (uint8_t value = 1; value <= 40; value++) fixture.send(data(value), 1u + value % 4u);
  fixture.outbox.flush();
  size_t trailers = 0;
  for (const Octets &datagram : fixture.sender.sent) {
    const std::vector<Said> said = take_apart(datagram, trailers);
    for (const Said &one : said) EXPECT_EQ(one.body.front() % 4, said.front().body.front() % 4);
  }
}

TEST(Outbox, AnotherThreadSendsAtOnceAndNotBeforeWhatWaits) {
  Fixture fixture;
  fixture.outbox.flush();
  fixture.send(data(1));
  std::thread([&] { fixture.send(data(2)); }).join();
  EXPECT_EQ(fixture.values(), (std::vector<uint8_t>{1, 2}));
  fixture.send(data(3));
  fixture.outbox.flush();
  EXPECT_EQ(fixture.values(), (std::vector<uint8_t>{1, 2, 3}));
}

TEST(Outbox, AParticipantThatEndsIsForgotten) {
  Fixture fixture;
  fixture.outbox.flush();
  {
    Outlet gone(fixture.outbox, 400);
    const std::vector<Locator> places = {Locator(1)};
    Locators first(places.begin()), last(places.end());
    gone.send(fixture.sender, data(1), first, last, std::chrono::steady_clock::now());
  }
  fixture.outbox.flush();
  EXPECT_TRUE(fixture.sender.sent.empty());
}

// ---- contents of received messages ----

using Guid = Contacts::Guid;
using Entity = Contacts::Entity;

constexpr uint8_t kSource = 0x0C;

Octets heartbeat(uint8_t reader, uint8_t writer) {
  Octets body = {0, 0, reader, 0x04, 0, 0, writer, 0x03};
  body.resize(28, 0);
  return body;
}

Entity reader_of(uint8_t number) {
  Entity entity;
  entity.value[2] = number;
  entity.value[3] = 0x04;
  return entity;
}

struct Watching {
  Contacts contacts;
  std::vector<std::pair<int, int>> found;  // participant and writer of each reported contact
  void watch(uint8_t reader, const Octets &early = {}) {
    contacts.watch(
        [&] {
          if (!early.empty()) contacts.receive(early);
          return reader_of(reader);
        },
        [this](const Guid &writer) { found.emplace_back(writer.guidPrefix.value[5], writer.entityId.value[2]); });
  }
};

TEST(Contacts, AHeartbeatNamesWhoKnowsAReader) {
  Watching watching;
  watching.watch(1);
  for (const bool little_endian : {true, false}) {
    Octets message = header_of(7);
    put_submessage(message, kTime, 0, Octets(8, 1), little_endian);
    put_submessage(message, kHeartbeat, 0, heartbeat(1, 9), little_endian);
    put_submessage(message, kHeartbeat, 0, heartbeat(2, 8), little_endian);   // is for another reader
    put_submessage(message, kHeartbeat, 0, heartbeat(0, 10), little_endian);  // names no reader
    put_submessage(message, kData, 0, heartbeat(1, 11), little_endian);
    put_submessage(message, kSource, 0, Octets(20, 6), little_endian);
    put_submessage(message, kHeartbeat, 0, heartbeat(1, 12), little_endian);
    watching.contacts.receive(message);
    EXPECT_EQ(watching.found, (std::vector<std::pair<int, int>>{{7, 9}, {6, 12}}));
    watching.found.clear();
  }
}

TEST(Contacts, WhatComesWhileAReaderIsMadeIsNotLost) {
  Octets message = header_of(7);
  put_submessage(message, kHeartbeat, 0, heartbeat(1, 9), true);
  Watching watching;
  watching.contacts.receive(message);
  watching.watch(1, message);
  EXPECT_EQ(watching.found.size(), 1u);
  watching.contacts.forget(reader_of(1));
  watching.contacts.receive(message);
  EXPECT_EQ(watching.found.size(), 1u);
}

TEST(Contacts, AnyOctetsMayCome) {
  Octets message = header_of(7);
  put_submessage(message, kHeartbeat, 0, heartbeat(1, 9), true);
  put_submessage(message, kSource, 0, Octets(20, 6), true);
  for (size_t length = 0; length <= message.size(); length++) {
    Watching watching;
    watching.watch(1);
    const Octets part(message.begin(), message.begin() + static_cast<long>(length));
    watching.contacts.receive(part);
    EXPECT_EQ(watching.found.size(), length >= 20 + 4 + 28 ? 1u : 0u) << length;
  }
  Random random(1);
  for (int round = 0; round < 20000; round++) {
    Watching watching;
    watching.watch(1);
    Octets noise = header_of(7);
    const size_t count = pick(random, 80);
    for (size_t place = 0; place < count; place++) noise.push_back(static_cast<uint8_t>(pick(random, 16)));
    watching.contacts.receive(noise);
  }
}

// ---- discovered participants ----

TEST(Peers, APeerIsMetOnceItHasFoundUs) {
  using eprosima::fastdds::dds::InstanceHandle_t;
  int woken = 0;
  Peers request_readers([&] { woken++; }), reply_writers([&] { woken++; }, std::chrono::hours(1));
  const auto guid = [](uint8_t participant, uint8_t number) {
    Guid result;
    result.guidPrefix.value[0] = participant;
    result.entityId.value[2] = number;
    return result;
  };
  request_readers.change(InstanceHandle_t(guid(1, 1)), true);
  EXPECT_FALSE(request_readers.meets(reply_writers));
  reply_writers.change(InstanceHandle_t(guid(1, 2)), true);
  EXPECT_FALSE(request_readers.meets(reply_writers)) << "the server would drop its reply";
  reply_writers.add_contact(guid(2, 2));
  EXPECT_FALSE(request_readers.meets(reply_writers));
  reply_writers.add_contact(guid(1, 2));
  EXPECT_TRUE(request_readers.meets(reply_writers));
  EXPECT_EQ(woken, 4);
  reply_writers.add_contact(guid(1, 2));
  EXPECT_EQ(woken, 4) << "only news wakes";
  reply_writers.change(InstanceHandle_t(guid(1, 2)), false);
  EXPECT_FALSE(request_readers.meets(reply_writers));
  reply_writers.change(InstanceHandle_t(guid(1, 2)), true);
  EXPECT_FALSE(request_readers.meets(reply_writers)) << "found anew, it has to say so anew";
  Peers silent([] {}, std::chrono::hours(-1));
  silent.change(InstanceHandle_t(guid(1, 2)), true);
  EXPECT_TRUE(request_readers.meets(silent)) << "it never says so";
}

}  // namespace tide::agent::test::agent_outbox_test
