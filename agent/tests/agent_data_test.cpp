// SPDX-License-Identifier: Apache-2.0
// Data in both directions: formats, delivery control, priorities, services, fragments, loss and overload.
#include <gtest/gtest.h>

#include <cstring>

#include "client_messages.h"

namespace tide::agent::test::agent_data_test {

constexpr Time kMillisecond = 1'000'000;

class Data : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(client.connect(), 0);
    client.create_all();
    driver.sent.clear();
    ASSERT_EQ(driver.middleware.sources.size(), 1u);
  }
  FakeSource &source() { return *driver.middleware.sources[0]; }
  void offer(size_t count, size_t bytes = 4) {
    for (size_t number = 0; number < count; number++) source().offer(sample_of(Octets(bytes, next_++)));
  }
  size_t delivered() { return client.all(TIDE_XRCE_DATA).size(); }

  std::vector<std::string> told;
  Driver driver{telling(told, true)};
  TestClient client{driver, 1, 0x11};
  uint8_t next_ = 0;
};

TEST_F(Data, WritesReachDdsWithTheirByteOrder) {
  client.write(0x0015, {1, 2, 3, 4});
  client.write(0x0015, {5}, 0x01);
  client.write(0x0015, {6, 7}, 0x80, 0);
  ASSERT_EQ(driver.middleware.written.size(), 3u);
  EXPECT_EQ(driver.middleware.written[0].payload, (Octets{1, 2, 3, 4}));
  EXPECT_EQ(driver.middleware.written[1].payload, (Octets{5}));
  EXPECT_EQ(driver.middleware.written[2].payload, (Octets{6, 7}));
  EXPECT_FALSE(driver.middleware.written[0].big_endian);
  EXPECT_TRUE(driver.middleware.written[2].big_endian);
}

TEST_F(Data, ASequenceOfSamplesIsWrittenOneByOne) {
  client.write(0x0015, {2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0, 1, 0, 0, 0, 9}, 0x80, 1 | TIDE_XRCE_FORMAT_DATA_SEQUENCE);
  ASSERT_EQ(driver.middleware.written.size(), 2u);
  EXPECT_EQ(driver.middleware.written[0].payload, (Octets{1, 2, 3}));
  EXPECT_EQ(driver.middleware.written[1].payload, (Octets{9}));
  client.write(0x0015, {255, 255, 255, 255}, 0x80, 1 | TIDE_XRCE_FORMAT_DATA_SEQUENCE);
  client.write(0x0015, {1}, 0x80, 1 | TIDE_XRCE_FORMAT_PACKED_SAMPLES);
  EXPECT_EQ(driver.middleware.written.size(), 2u);
  EXPECT_EQ(driver.agent.counters().malformed, 1u);
  EXPECT_EQ(driver.agent.counters().format_unsupported, 1u);
}

TEST_F(Data, AWriteToNobodyIsCounted) {
  client.write(0x0095, {1});
  client.write(0x0016, {1});
  EXPECT_EQ(driver.agent.counters().write_unknown, 2u);
  EXPECT_TRUE(driver.middleware.written.empty());
}

TEST_F(Data, NothingIsDeliveredUntilItIsAskedFor) {
  offer(2);
  driver.pump();
  EXPECT_EQ(delivered(), 0u);
  client.read(0x0016, 0x80);
  EXPECT_EQ(delivered(), 2u);
}

TEST_F(Data, WithoutDeliveryControlOneSampleIsMeant) {
  client.submit(0x80, TIDE_XRCE_READ_DATA, 1, bytes_from_hex("000e001680000000"));
  offer(3);
  driver.pump();
  EXPECT_EQ(delivered(), 1u);
}

TEST_F(Data, MaxSamplesCountsAndZeroCancels) {
  client.read(0x0016, 0x80, 3);
  offer(5);
  driver.pump();
  EXPECT_EQ(delivered(), 3u);
  client.read(0x0016, 0x80);
  EXPECT_EQ(delivered(), 5u);
  client.read(0x0016, 0x00, 0);
  offer(1);
  driver.pump();
  EXPECT_EQ(delivered(), 5u);
  EXPECT_TRUE(client.all(TIDE_XRCE_STATUS).empty());
}

TEST_F(Data, MaxElapsedTimeEnds) {
  client.read(0x0016, 0x80, 0xFFFF, 2);
  const Time start = driver.now();
  driver.run_until(start + 2 * kSecond - kMillisecond);
  offer(1);
  driver.pump();
  EXPECT_EQ(delivered(), 1u);
  driver.run_until(start + 2 * kSecond);
  offer(1);
  driver.run_until(start + 3 * kSecond);
  EXPECT_EQ(delivered(), 1u);
}

TEST_F(Data, MinPacePeriodKeepsSamplesApart) {
  client.read(0x0016, 0x01, 0xFFFF, 0, 0, 10);
  offer(5);
  const Time start = driver.now();
  driver.pump();
  for (size_t number = 1; number <= 5; number++) {
    EXPECT_EQ(delivered(), number);
    driver.run_until(start + static_cast<Time>(number) * 10 * kMillisecond - 1);
    EXPECT_EQ(delivered(), number);
    driver.run_until(start + static_cast<Time>(number) * 10 * kMillisecond);
  }
}

TEST_F(Data, MaxBytesPerSecondIsKept) {
  client.read(0x0016, 0x01, 0xFFFF, 0, 1000);
  offer(100, 100);
  const Time start = driver.now();
  driver.run_until(start + 5 * kSecond);
  EXPECT_EQ(delivered(), 51u);  // the first one at once, then ten a second
}

TEST_F(Data, ANewRequestReplacesAndMovesTheStream) {
  client.read(0x0016, 0x80);
  offer(1);
  driver.pump();
  client.read(0x0016, 0x05);
  offer(1);
  driver.pump();
  ASSERT_EQ(delivered(), 2u);
  std::vector<uint8_t> streams;
  for (const Sent &message : driver.sent) {
    if (message.bytes[4] == TIDE_XRCE_DATA) streams.push_back(message.bytes[1]);
  }
  EXPECT_EQ(streams, (std::vector<uint8_t>{0x80, 0x05}));
}

TEST_F(Data, DataCarryTheIdsOfTheirRequestAndTheByteOrder) {
  client.read(0x0016, 0x01);
  Sample sample = sample_of({1, 2});
  sample.big_endian = true;
  source().offer(std::move(sample));
  driver.pump();
  const Octets body = client.last(TIDE_XRCE_DATA);
  ASSERT_EQ(body.size(), 6u);
  EXPECT_EQ(body[3], 0x16);
  EXPECT_EQ(driver.sent.back().bytes[5] & TIDE_XRCE_FLAG_LITTLE_ENDIAN, 0);
}

TEST_F(Data, ABestEffortSampleTooLargeForAMessageIsCountedAndTold) {
  client.read(0x0016, 0x01);
  offer(1, 600);
  offer(1, 100);
  driver.pump();
  EXPECT_EQ(delivered(), 1u);
  EXPECT_EQ(driver.agent.counters().samples_too_large, 1u);
  ASSERT_FALSE(told.empty());
  EXPECT_NE(told.back().find("cannot receive a message of 't': 600 octets are too long"), std::string::npos)
      << told.back();
  const Octets status = client.last(TIDE_XRCE_STATUS);
  ASSERT_EQ(status.size(), 6u);
  EXPECT_EQ(status[4], TIDE_XRCE_STATUS_ERR_RESOURCES);
  EXPECT_EQ(status[5], 1) << "so many";
  const size_t lines = told.size();
  for (size_t more = 0; more < 20; more++) offer(1, 601 + more);
  driver.pump();
  EXPECT_EQ(driver.agent.counters().samples_too_large, 21u);
  EXPECT_EQ(told.size(), lines) << "one line for a topic, whatever the lengths";
  driver.run_until(driver.now() + 10 * kSecond);
  offer(1, 700);
  driver.pump();
  EXPECT_EQ(told.size(), lines + 1);
}

TEST_F(Data, AReliableSampleLeavesInFragments) {
  client.read(0x0016, 0x80);
  offer(1, 3000);
  driver.pump();
  Octets whole;
  const auto fragments = client.all(TIDE_XRCE_FRAGMENT);
  for (const Octets &fragment : fragments) whole.insert(whole.end(), fragment.begin(), fragment.end());
  EXPECT_EQ(fragments.size(), 7u);
  EXPECT_EQ(whole.size(), 4u + 4u + 3000u);
}

// Without acknowledgments, only a bounded number of samples is taken from DDS; the others stay there.
TEST_F(Data, AReliableReaderWaitsInDds) {
  client.read(0x0016, 0x80);
  for (int burst = 0; burst < 50; burst++) offer(10, 300);
  driver.pump();
  const Limits limits;
  EXPECT_LE(source().taken, limits.in_flight_reliable + 1);
  EXPECT_GE(source().waiting.size(), 480u);
  EXPECT_EQ(driver.agent.counters().samples_too_large, 0u);
  size_t received = 0;
  for (int round = 0; round < 200 && received < 500; round++) {
    client.acknowledge(0x80);
    received = static_cast<size_t>(driver.agent.counters().samples_to_client);
  }
  EXPECT_EQ(received, 500u);
  EXPECT_TRUE(source().waiting.empty());
}

// ---- KEEP_LAST ----

class KeepLast : public Data {
 protected:
  static constexpr uint16_t kReader = 0x0026;
  void begin(uint32_t depth) {
    const std::string reader = "<dds><data_reader><topic><name>t</name><historyQos><kind>KEEP_LAST</kind><depth>" +
                               std::to_string(depth) + "</depth></historyQos></topic></data_reader></dds>";
    ASSERT_EQ(client.create_xml(kReader, 0x0014, reader), 0);
    client.acknowledge(0x80);  // afterwards nothing is unacknowledged
    driver.sent.clear();
  }
  FakeSource &source() { return *driver.middleware.sources.back(); }
  void offer(uint8_t count) {
    for (uint8_t number = 0; number < count; number++) source().offer(sample_of({next_++}));
    driver.pump();
  }
  void acknowledge_all() {
    for (int round = 0; round < 20; round++) client.acknowledge(0x80);
  }
  // The first octets of the samples that the client has received.
  Octets received() {
    Octets result;
    for (const Octets &data : client.all(TIDE_XRCE_DATA)) result.push_back(data.at(4));
    return result;
  }
  static Octets range(uint8_t first, uint8_t end) {
    Octets result;
    for (uint8_t number = first; number < end; number++) result.push_back(number);
    return result;
  }
};

// A newer sample cannot replace one that is in a node, so samples are passed to the output only when they can be sent
// at once.
TEST_F(KeepLast, NothingOldWaitsForABusyLine) {
  begin(1);
  client.read(kReader, 0x80);
  tide_frame_parts_t frame;
  source().offer(sample_of({1}));
  Time now = driver.now();
  driver.agent.poll(now);
  ASSERT_TRUE(driver.agent.next(1, now, frame));  // it is not completed yet
  for (uint8_t number = 2; number < 20; number++) {
    source().offer(sample_of({number}));
    driver.agent.poll(now += 10'000'000);
  }
  driver.agent.sent(1, now);
  driver.run_until(now);
  const Octets came = received();
  EXPECT_EQ(came.back(), 19);
  EXPECT_LE(came.size(), 3u) << "2 was to be next, 18 and 19 are a burst";
}

// Sixteen samples are in transfer, and their acknowledgments may be about to arrive. Later samples are therefore kept
// for burst_ns, although they exceed the depth.
TEST_F(KeepLast, WhatComesTogetherIsNotCutToTheDepth) {
  begin(1);
  client.read(kReader, 0x80);
  offer(60);
  driver.run_until(driver.now() + Limits{}.burst_ns - 1);
  acknowledge_all();
  EXPECT_EQ(received(), range(0, 60));
  EXPECT_EQ(driver.agent.counters().samples_skipped, 0u);
}

TEST_F(KeepLast, AClientThatTakesNothingGetsTheNewest) {
  begin(3);
  client.read(kReader, 0x80);
  offer(60);
  driver.run_until(driver.now() + Limits{}.burst_ns);
  acknowledge_all();
  Octets expected = range(0, 16);
  for (const uint8_t number : range(57, 60)) expected.push_back(number);
  EXPECT_EQ(received(), expected);
  EXPECT_EQ(driver.agent.counters().samples_skipped, 41u);
  EXPECT_EQ(source().waiting.size(), 0u);
}

TEST_F(KeepLast, WhatCameBeforeItIsReadIsCutToTheDepth) {
  begin(3);
  offer(60);
  client.read(kReader, 0x80);
  acknowledge_all();
  EXPECT_EQ(received(), range(57, 60));
}

TEST_F(KeepLast, ABurstIsBounded) {
  begin(1);
  client.read(kReader, 0x80);
  const Limits limits;
  for (size_t number = 0; number < limits.burst_samples + 116; number += 50) offer(50);
  EXPECT_EQ(driver.agent.counters().samples_skipped, 400 - limits.in_flight_reliable - limits.burst_samples);
  for (int number = 0; number < 6; number++) source().offer(sample_of(Octets(60000, 1)));
  driver.pump();
  EXPECT_GE(driver.agent.counters().samples_skipped, 400 - limits.in_flight_reliable);
}

// Samples that were in transfer are repeated in the next session; only samples that waited may be replaced by newer
// ones.
TEST_F(KeepLast, WhatWasUnderWayIsNotCut) {
  begin(1);
  client.read(kReader, 0x80);
  offer(20);
  TideClient next(driver, 1, 0x11, 0x82);
  driver.sent.clear();
  ASSERT_EQ(next.connect(), 0);
  driver.run_until(driver.now() + kSecond);
  offer(1);
  next.read(kReader, 0x80);
  for (int round = 0; round < 20; round++) next.acknowledge(0x80);
  Octets expected = range(0, 16), came;
  expected.push_back(20);
  for (const Octets &data : next.all(TIDE_XRCE_DATA)) came.push_back(data.at(4));
  EXPECT_EQ(came, expected);
}

// If the line is blocked for a while, urgent data overtake less urgent data that wait.
TEST(Priority, TheMoreUrgentStreamLeavesFirst) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  EXPECT_EQ(client.create_xml(0x0026, 0x0014, TestClient::kReader), 0);
  client.read(0x0016, TIDE_STREAM_BEST_EFFORT(1));
  client.read(0x0026, TIDE_STREAM_BEST_EFFORT(9));
  ASSERT_EQ(driver.middleware.sources.size(), 2u);
  for (uint8_t number = 0; number < 3; number++) driver.middleware.sources[0]->offer(sample_of({number}));
  driver.agent.poll(driver.now());
  driver.middleware.sources[1]->offer(sample_of({99}));
  driver.sent.clear();
  driver.pump();
  ASSERT_GE(client.all(TIDE_XRCE_DATA).size(), 4u);
  EXPECT_EQ(client.all(TIDE_XRCE_DATA)[0][4], 99);
}

TEST(Services, IdentitiesTravelBothWays) {
  Driver driver;
  TestClient client(driver, 1, 0x11);
  ASSERT_EQ(client.connect(), 0);
  ASSERT_EQ(client.create_xml(0x0011, 0, ""), 0);
  ASSERT_EQ(client.create_xml(0x0017, 0x0011, TestClient::kRequester), 0);
  ASSERT_EQ(client.create_xml(0x0018, 0x0011, TestClient::kReplier), 0);
  FakeSource &replies = *driver.middleware.sources[0], &requests = *driver.middleware.sources[1];
  client.read(0x0017, 0x80);
  client.read(0x0018, 0x80);
  driver.sent.clear();

  Sample request = sample_of({7});
  for (size_t octet = 0; octet < request.identity.size(); octet++)
    request.identity[octet] = static_cast<uint8_t>(octet);
  const SampleIdentity identity = request.identity;
  requests.offer(std::move(request));
  driver.pump();
  Octets body = client.last(TIDE_XRCE_DATA);
  ASSERT_EQ(body.size(), 4u + 24u + 1u);
  EXPECT_TRUE(std::equal(identity.begin(), identity.end(), body.begin() + 4));
  Octets reply(identity.begin(), identity.end());
  reply.push_back(8);
  client.write(0x0018, reply);
  ASSERT_EQ(driver.middleware.written.size(), 1u);
  EXPECT_EQ(driver.middleware.written[0].topic, "s_Reply");
  EXPECT_EQ(driver.middleware.written[0].identity, identity);
  EXPECT_EQ(driver.middleware.written[0].payload, (Octets{8}));
  client.write(0x0018, Octets(23));
  EXPECT_EQ(driver.agent.counters().write_failed, 1u);

  client.write(0x0017, {1});
  client.write(0x0017, {2});
  EXPECT_EQ(driver.middleware.written.back().topic, "s_Request");
  const uint16_t second = static_cast<uint16_t>(client.next_request() - 1);
  Sample answer = sample_of({5});
  answer.request = 2;
  replies.offer(answer);
  answer.request = 77;  // is no request of this client
  replies.offer(answer);
  driver.sent.clear();
  driver.pump();
  body = client.last(TIDE_XRCE_DATA);
  EXPECT_EQ(Octets(body.begin() + 4, body.end()),
            (Octets{static_cast<uint8_t>(second >> 8), static_cast<uint8_t>(second), 0x00, 0x17, 5}));
  EXPECT_EQ(driver.agent.counters().replies_unmatched, 1u);
}

TEST(Services, UnansweredRequestsAreBounded) {
  Driver driver(limited(&Limits::pending_requests, 4));
  TestClient client(driver, 1, 0x11);
  ASSERT_EQ(client.connect(), 0);
  ASSERT_EQ(client.create_xml(0x0011, 0, ""), 0);
  ASSERT_EQ(client.create_xml(0x0017, 0x0011, TestClient::kRequester), 0);
  client.read(0x0017, 0x80);
  for (int number = 0; number < 10; number++) client.write(0x0017, {1});
  driver.sent.clear();
  for (uint64_t number = 1; number <= 10; number++) {
    Sample answer = sample_of({5});
    answer.request = number;
    driver.middleware.sources[0]->offer(answer);
  }
  driver.pump();
  EXPECT_EQ(client.all(TIDE_XRCE_DATA).size(), 4u);
}

class Asking : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(client.connect(), 0);
    ASSERT_EQ(client.create_xml(0x0011, 0, ""), 0);
    ASSERT_EQ(client.create_xml(0x0017, 0x0011, TestClient::kRequester), 0);
    ASSERT_EQ(client.create_xml(0x0018, 0x0011, TestClient::kReplier), 0);
    client.read(0x0017, 0x80);
    driver.middleware.served = false;
  }
  void serve() {
    driver.middleware.served = true;
    driver.middleware.sources[0]->wake();
    driver.pump();
  }
  std::vector<uint8_t> written() {
    std::vector<uint8_t> first;
    for (const Written &sample : driver.middleware.written) first.push_back(sample.payload[0]);
    return first;
  }
  void answer(uint64_t number) {
    Sample reply = sample_of({5});
    reply.request = number;
    driver.middleware.sources[0]->offer(reply);
    driver.pump();
  }
  Octets reply_to(uint8_t asker) {
    Octets reply(24, asker);
    reply.push_back(asker);
    return reply;
  }
  void set_unreachable(uint8_t asker, bool unreachable) {
    SampleIdentity identity;
    identity.fill(asker);
    if (unreachable) {
      driver.middleware.unreachable.insert(identity);
    } else {
      driver.middleware.unreachable.erase(identity);
    }
  }

  bool is_told(const std::string &what) const {
    return std::count(told.begin(), told.end(), "client 00000011 at endpoint 1 " + what) == 1;
  }

  std::vector<std::string> told;
  Driver driver{telling(told, true)};
  TestClient client{driver, 1, 0x11};
};

TEST_F(Asking, RequestsWaitForAServerAndKeepTheirOrder) {
  client.write(0x0017, {1});
  client.write(0x0017, {2});
  EXPECT_EQ(written(), (std::vector<uint8_t>{}));
  serve();
  client.write(0x0017, {3});
  EXPECT_EQ(written(), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(driver.agent.counters().requests_waited, 2u);
}

TEST_F(Asking, RequestsAreGivenUpAfterAWhile) {
  client.read(0x0017, 0x80);
  client.write(0x0017, {1});
  driver.run_until(driver.now() + 4 * kSecond);
  client.write(0x0017, {2});
  driver.run_until(driver.now() + kSecond);
  EXPECT_EQ(driver.agent.counters().requests_unserved, 1u);
  EXPECT_TRUE(is_told("loses a message of its client of 's_Request', type 'Q': no server can be reached"));
  const Octets status = client.last(TIDE_XRCE_STATUS);
  ASSERT_EQ(status.size(), 6u);
  EXPECT_EQ(status[4], TIDE_XRCE_STATUS_ERR_DDS);
  EXPECT_EQ(status[5], 1) << "so many";
  serve();
  EXPECT_EQ(written(), (std::vector<uint8_t>{2}));
}

TEST_F(Asking, TheOldestOfTooManyGivesWay) {
  for (uint8_t number = 0; number < 70; number++) client.write(0x0017, {number});
  EXPECT_EQ(driver.agent.counters().requests_unserved, 6u);
  serve();
  ASSERT_FALSE(written().empty());
  EXPECT_EQ(written()[0], 6);
}

TEST_F(Asking, WhatHasWaitedComesInPortions) {
  for (uint8_t number = 0; number < 30; number++) client.write(0x0017, {number});
  const Time start = driver.now();
  serve();
  EXPECT_EQ(written().size(), 8u);
  answer(1);
  answer(2);
  EXPECT_EQ(written().size(), 10u) << "each reply makes room for one";
  driver.run_until(start + 100 * kMillisecond - 1);
  EXPECT_EQ(written().size(), 10u);
  driver.run_until(start + 100 * kMillisecond);
  EXPECT_EQ(written().size(), 18u);
  client.write(0x0017, {30});
  driver.run_until(start + 300 * kMillisecond);
  std::vector<uint8_t> expected(31);
  for (uint8_t number = 0; number < 31; number++) expected[number] = number;
  EXPECT_EQ(written(), expected);
}

TEST_F(Asking, ClientsOfOneServiceShareThePortion) {
  TestClient other(driver, 2, 0x22);
  ASSERT_EQ(other.connect(), 0);
  ASSERT_EQ(other.create_xml(0x0011, 0, ""), 0);
  for (uint16_t object : {0x0017, 0x0027}) {  // a requester of the same service, and one of another service
    const std::string name = object == 0x0017 ? "s" : "t";
    const std::string text = "<dds><requester service_name='" + name + "' request_type='Q' reply_type='R'/></dds>";
    ASSERT_EQ(other.create_xml(object, 0x0011, text), 0);
  }
  EXPECT_EQ(driver.agent.unserved_requesters(), 3u);
  for (uint8_t number = 0; number < 6; number++) {
    client.write(0x0017, {number});
    other.write(0x0017, {static_cast<uint8_t>(100 + number)});
    other.write(0x0027, {static_cast<uint8_t>(200 + number)});
  }
  const Time start = driver.now();
  driver.middleware.served = true;
  EXPECT_EQ(driver.agent.unserved_requesters(), 0u);
  for (const auto &source : driver.middleware.sources) source->wake();
  driver.pump();
  const auto count = [&](uint8_t least) {
    const std::vector<uint8_t> all = written();
    return std::count_if(all.begin(), all.end(), [&](uint8_t one) { return one >= least && one < least + 100; });
  };
  EXPECT_EQ(count(0) + count(100), 8) << "of one service";
  EXPECT_EQ(count(200), 6) << "another one's server has its own history";
  driver.run_until(start + 100 * kMillisecond);
  EXPECT_EQ(count(0), 6);
  EXPECT_EQ(count(100), 6);
}

TEST_F(Asking, RepliesWaitForTheirAskerAndForNobodyElse) {
  set_unreachable(1, true);
  client.write(0x0018, reply_to(1));
  client.write(0x0018, reply_to(2));
  EXPECT_EQ(written(), (std::vector<uint8_t>{2}));
  set_unreachable(1, false);
  driver.middleware.sources[1]->wake();
  driver.pump();
  EXPECT_EQ(written(), (std::vector<uint8_t>{2, 1}));
}

TEST_F(Asking, RepliesToWhoIsGoneAreGivenUp) {
  set_unreachable(1, true);
  client.write(0x0018, reply_to(1));
  driver.run_until(driver.now() + Limits{}.reply_wait_ns);
  EXPECT_EQ(driver.agent.counters().replies_unreachable, 1u);
  EXPECT_TRUE(is_told("loses a message of its service of 's_Request', type 'Q': the caller cannot be reached"));
  set_unreachable(1, false);
  driver.middleware.sources[1]->wake();
  driver.pump();
  EXPECT_EQ(written(), (std::vector<uint8_t>{}));
}

// DDS refuses a request for a moment: on a busy machine its lock may be taken, or its history may be full.
TEST_F(Asking, WhatDdsRefusesIsOfferedAgainInOrder) {
  driver.middleware.served = true;
  driver.middleware.full = true;
  for (uint8_t number = 1; number <= 3; number++) client.write(0x0017, {number});
  client.write(0x0018, reply_to(7));
  EXPECT_EQ(written(), (std::vector<uint8_t>{}));
  driver.middleware.full = false;
  driver.run_until(driver.now() + 2 * kMillisecond);
  EXPECT_EQ(written(), (std::vector<uint8_t>{1, 2, 3, 7}));
  EXPECT_EQ(driver.agent.counters().requests_unserved + driver.agent.counters().replies_unreachable, 0u);
}

TEST_F(Asking, WhatIsTooLongForAServiceOrItsClientIsNamed) {
  client.read(0x0018, 0x01);
  driver.middleware.sources[1]->offer(sample_of(Octets(600)));
  driver.pump();
  const std::string remedy = "600 octets are too long; subscribe reliably, or raise the client's MTU (TIDE_MTU_BYTES)";
  EXPECT_TRUE(is_told("cannot receive a message of 's_Request': " + remedy));
  serve();
  client.read(0x0017, 0x01);
  client.write(0x0017, {1});
  Sample reply = sample_of(Octets(600));
  reply.request = 1;
  driver.middleware.sources[0]->offer(reply);
  driver.pump();
  EXPECT_TRUE(is_told("cannot receive a message of 's_Reply': " + remedy));
}

// A server may discover both endpoints without an event of DDS, so the agent checks this from time to time.
TEST_F(Asking, AServerIsLookedForAgain) {
  client.write(0x0017, {1});
  driver.middleware.served = true;
  driver.run_until(driver.now() + Limits{}.look_again_ns);
  EXPECT_EQ(written(), (std::vector<uint8_t>{1}));
}

// A wake-up that comes while the client has no active READ_DATA is not lost.
TEST_F(Asking, AWakeBeforeTheRequestIsNotLost) {
  client.read(0x0017, 0x00, 0);
  driver.middleware.sources[0]->wake();
  driver.pump();
  client.write(0x0017, {1});
  serve();
  EXPECT_EQ(written(), (std::vector<uint8_t>{1}));
}

// A restarted board must not get replies to requests of its former run, whose ids it reuses. A board that only
// reconnected gets them.
TEST_F(Asking, RepliesToAFormerLifeAreNobodys) {
  serve();
  client.write(0x0017, {1});
  TideClient reconnected(driver, 1, 0x11, 0x82);
  ASSERT_EQ(reconnected.connect(), 0);
  reconnected.read(0x0017, 0x80);
  answer(1);
  EXPECT_EQ(reconnected.all(TIDE_XRCE_DATA).size(), 1u);
  reconnected.write(0x0017, {2});
  driver.run_until(driver.now() + 20 * kSecond);  // until no late copy of the first session's CREATE_CLIENT can arrive
  driver.sent.clear();
  TideClient anew(driver, 1, 0x11, 0x81);
  ASSERT_EQ(anew.connect(), 0);
  anew.read(0x0017, 0x80);
  driver.sent.clear();
  answer(2);
  EXPECT_EQ(anew.all(TIDE_XRCE_DATA).size(), 0u);
  EXPECT_EQ(driver.agent.counters().replies_unmatched, 1u);
}

// A reply that is in transfer when the session ends is repeated in the next session, because the board still waits for
// it. A request to a server on the board is not, because the server may already have executed it.
TEST_F(Asking, RepliesUnderWayGoOnAndRequestsDoNot) {
  serve();
  client.read(0x0018, 0x80);
  client.write(0x0017, {1});
  const uint16_t asked = static_cast<uint16_t>(client.next_request() - 1);
  answer(1);
  driver.middleware.sources[1]->offer(sample_of({9}));
  driver.pump();
  ASSERT_EQ(client.all(TIDE_XRCE_DATA).size(), 2u);
  TideClient next(driver, 1, 0x11, 0x82);
  driver.sent.clear();
  ASSERT_EQ(next.connect(), 0);
  next.read(0x0018, 0x80);
  next.read(0x0017, 0x80);
  const std::vector<Octets> came = next.all(TIDE_XRCE_DATA);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].at(4) << 8 | came[0].at(5), asked);
  EXPECT_EQ(driver.agent.counters().samples_repeated, 1u);
}

// ---- reception under loss, repetition and reordering ----

TEST(Streams, NumbersWrapAroundInBothDirections) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  client.read(0x0016, 0x80);
  for (uint32_t number = 0; number < 66'000; number++) {
    driver.sent.clear();
    driver.middleware.written.clear();
    Octets payload(sizeof number);
    std::memcpy(payload.data(), &number, sizeof number);
    client.write(0x0015, payload);
    ASSERT_EQ(driver.middleware.written.size(), 1u) << number;
    ASSERT_EQ(driver.middleware.written[0].payload, payload);
    driver.middleware.newest_source()->offer(sample_of(payload));
    driver.pump();
    const std::vector<Octets> data = client.all(TIDE_XRCE_DATA);
    ASSERT_EQ(data.size(), 1u) << number;
    ASSERT_EQ(Octets(data[0].end() - sizeof number, data[0].end()), payload);
    client.acknowledge(0x80);
  }
}

// A header can announce at most 65535 octets. Stock clients announce a longer sample either as 0, which means "up to
// the end", or modulo 65536. In the second case the client gets an error, the sample does not reach DDS, and the stream
// continues.
TEST(Streams, WhatWasPutTogetherIsAsLongAsItsHeaderSays) {
  struct Case {
    size_t payload_bytes;
    int announced_more;  // announced length less the real one, in octets
    bool good;
  };
  const std::vector<Case> cases = {{1, 0, true},      {65531, 0, true},    {65532, 0, true},   {65533, 0, false},
                                   {65536, 0, false}, {100'040, 0, false}, {131'068, 0, true}, {200'000, 0, false},
                                   {1000, 4, false},  {1000, 1, false},    {1000, -4, false},  {1000, -500, false}};
  for (const Case &one : cases) {
    SCOPED_TRACE(std::to_string(one.payload_bytes) + " octets, announced " + std::to_string(one.announced_more) +
                 " more");
    std::vector<std::string> told;
    Driver driver(telling(told, true));
    ReadyClient client(driver, 1, 0x11);
    driver.sent.clear();
    told.clear();
    const uint16_t request = client.next_request();
    Octets body = TestClient::ids(request, 0x0015);
    body.resize(body.size() + one.payload_bytes, 7);
    Octets whole(4);
    tide_xrce_put_submessage_header(whole.data(), TIDE_XRCE_WRITE_DATA, 1,
                                    static_cast<uint16_t>(static_cast<int>(body.size()) + one.announced_more));
    whole.insert(whole.end(), body.begin(), body.end());
    client.submit_in_fragments(whole, 1400);
    EXPECT_EQ(driver.middleware.written.size(), one.good ? 1u : 0u);
    EXPECT_EQ(driver.agent.counters().samples_to_dds, one.good ? 1u : 0u);
    EXPECT_EQ(driver.agent.counters().fragmented_refused, one.good ? 0u : 1u);
    EXPECT_EQ(client.status(request), one.good ? -1 : TIDE_XRCE_STATUS_ERR_RESOURCES);
    ASSERT_EQ(told.size(), one.good ? 0u : 1u);
    if (!one.good)
      EXPECT_NE(told[0].find("loses a message of its publisher of 't', type 'T': it"), std::string::npos) << told[0];
    driver.middleware.written.clear();
    client.write(0x0015, {1});
    ASSERT_EQ(driver.middleware.written.size(), 1u);
    EXPECT_EQ(driver.middleware.written[0].payload, (Octets{1}));
  }
}

// A length announced as 0 means "up to the end of the message". While such a sample waits for DDS it is kept, however
// many other messages are stored.
TEST(Streams, ASampleLongerThanAHeaderCanSayIsTakenUpToItsLimit) {
  Options options;
  options.limits.sample_bytes = 300'000;
  for (const size_t payload_bytes : {size_t{299'999}, size_t{300'000}, size_t{300'001}}) {
    const bool good = payload_bytes <= options.limits.sample_bytes;
    Driver driver(options);
    ReadyClient client(driver, 1, 0x11);
    const uint16_t request = client.next_request();
    const Octets ids = TestClient::ids(request, 0x0015);
    Octets whole = {TIDE_XRCE_WRITE_DATA, 1, 0, 0};
    whole.insert(whole.end(), ids.begin(), ids.end());
    const size_t start = whole.size();
    for (size_t i = 0; i < payload_bytes; i++) whole.push_back(static_cast<uint8_t>(i % 251));
    driver.middleware.full = good;
    client.submit_in_fragments(whole, 1400);
    EXPECT_TRUE(driver.middleware.written.empty());
    driver.middleware.full = false;
    driver.run_until(driver.now() + 100'000'000);
    EXPECT_EQ(driver.agent.counters().held_dropped, 0u);
    EXPECT_EQ(driver.agent.counters().fragmented_refused, good ? 0u : 1u);
    ASSERT_EQ(driver.middleware.written.size(), good ? 1u : 0u);
    if (good) {
      EXPECT_TRUE(std::equal(whole.begin() + static_cast<std::ptrdiff_t>(start), whole.end(),
                             driver.middleware.written[0].payload.begin(), driver.middleware.written[0].payload.end()));
    }
  }
}

TEST(Streams, ReassemblyIsBounded) {
  Driver driver(limited(&Limits::reassembly_bytes, 1000));
  ReadyClient client(driver, 1, 0x11);
  for (int number = 0; number < 5; number++) client.submit(0x80, TIDE_XRCE_FRAGMENT, number == 4 ? 3 : 1, Octets(300));
  client.write(0x0015, {1});
  EXPECT_EQ(driver.middleware.written.size(), 1u);
  EXPECT_EQ(driver.agent.counters().fragments_dropped, 2u);
  client.submit(0x80, TIDE_XRCE_FRAGMENT, 1, bytes_from_hex("07010a000100001500"));  // earlier fragments are dropped
  client.submit(0x80, TIDE_XRCE_FRAGMENT, 3, bytes_from_hex("0102030405"));
  ASSERT_EQ(driver.middleware.written.size(), 2u);
  EXPECT_EQ(driver.middleware.written[1].payload, bytes_from_hex("000102030405"));
}

TEST(Streams, AGapThatIsGivenUpEndsTheMessageItTore) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  client.submit(0x80, TIDE_XRCE_FRAGMENT, 1, bytes_from_hex("07010a000100001500"));
  client.send(0x81, 0x80, 8, TIDE_XRCE_FRAGMENT, 3, bytes_from_hex("0102030405"));
  client.send(0x81, 0x80, 9, TIDE_XRCE_WRITE_DATA, 1, bytes_from_hex("0001001509"));
  EXPECT_TRUE(driver.middleware.written.empty());
  client.submit(0, TIDE_XRCE_HEARTBEAT, 1, bytes_from_hex("0800090080"));
  ASSERT_EQ(driver.middleware.written.size(), 1u);
  EXPECT_EQ(driver.middleware.written[0].payload, bytes_from_hex("09"));
  EXPECT_EQ(driver.agent.counters().given_up, 1u);
  EXPECT_EQ(hex_from_bytes(client.last(TIDE_XRCE_ACKNACK)), "0a00000080");
  client.send(0x81, 0x80, 10, TIDE_XRCE_FRAGMENT, 1, bytes_from_hex("07010a000100001500"));
  client.send(0x81, 0x80, 11, TIDE_XRCE_FRAGMENT, 3, bytes_from_hex("0102030405"));
  ASSERT_EQ(driver.middleware.written.size(), 2u);
  EXPECT_EQ(driver.middleware.written[1].payload, bytes_from_hex("000102030405"));
}

TEST(Streams, EarlyMessagesAreBounded) {
  Driver driver(limited(&Limits::held_bytes, 1000));
  ReadyClient client(driver, 1, 0x11);
  Octets body = TestClient::ids(1, 0x0015);
  body.resize(400);
  for (uint16_t sequence = 7; sequence < 12; sequence++)
    client.send(0x81, 0x80, sequence, TIDE_XRCE_WRITE_DATA, 1, body);
  EXPECT_EQ(driver.agent.counters().held_dropped, 3u);
  EXPECT_TRUE(driver.middleware.written.empty());
  client.send(0x81, 0x80, 6, TIDE_XRCE_WRITE_DATA, 1, body);
  EXPECT_EQ(driver.middleware.written.size(), 3u);
  const Octets acknack = client.last(TIDE_XRCE_ACKNACK);
  EXPECT_EQ(acknack[0] | acknack[1] << 8, 9);  // the other messages are requested again
  EXPECT_EQ(acknack[3], 0x07);
  for (uint16_t sequence = 8; sequence < 40; sequence++) {  // each sample must release its memory
    client.send(0x81, 0x80, sequence ^ 1u, TIDE_XRCE_WRITE_DATA, 1, body);
  }
  EXPECT_EQ(driver.agent.counters().held_dropped, 3u);
}

// ---- many chains: each level has its own streams, in both directions, reliable and best effort ----

constexpr uint8_t kChains = 50;

uint16_t reader_of(uint8_t level) { return static_cast<uint16_t>((0x100 + level) << 4 | 0x6); }

TEST(Streams, OfFiftyChainsInBothModesHavePlaces) {
  Driver driver;
  ReadyClient client(driver, 1, 0x50);
  for (uint8_t level = 1; level <= kChains; level++) {
    ASSERT_EQ(client.create_xml(reader_of(level), 0x0014, TestClient::kReader), 0);
    ASSERT_EQ(client.create_xml(static_cast<uint16_t>(reader_of(level) + 0x1000), 0x0014, TestClient::kReader), 0);
    client.acknowledge(0x80);
    client.read(reader_of(level), TIDE_STREAM_RELIABLE(level));
    client.read(static_cast<uint16_t>(reader_of(level) + 0x1000), TIDE_STREAM_BEST_EFFORT(level));
  }
  ASSERT_EQ(driver.middleware.sources.size(), 1u + 2u * kChains);
  driver.sent.clear();
  for (uint8_t round = 0; round < 3; round++) {
    for (uint8_t level = 1; level <= kChains; level++) {
      client.write(0x0015, {level, round}, TIDE_STREAM_RELIABLE(level));
      client.write(0x0015, {level, round}, TIDE_STREAM_BEST_EFFORT(level));
    }
    for (FakeSource *source : driver.middleware.sources) source->offer({{round}, false, {}, 0, 0});
    driver.pump();
    for (uint8_t level = 1; level <= kChains; level++) client.acknowledge(TIDE_STREAM_RELIABLE(level));
  }
  EXPECT_EQ(driver.middleware.written.size(), 3u * 2u * kChains);
  std::map<uint8_t, size_t> of_stream;
  for (const Sent &message : driver.sent) of_stream[message.bytes[1]]++;
  for (uint8_t level = 1; level <= kChains; level++) {
    EXPECT_EQ(of_stream[TIDE_STREAM_RELIABLE(level)], 3u) << int{level};
    EXPECT_EQ(of_stream[TIDE_STREAM_BEST_EFFORT(level)], 3u) << int{level};
  }
  std::set<uint8_t> acknowledged;
  for (const Octets &body : client.all(TIDE_XRCE_ACKNACK)) acknowledged.insert(body[4]);
  EXPECT_EQ(acknowledged.size(), size_t{kChains});
  EXPECT_EQ(driver.agent.counters().streams_refused, 0u);
  EXPECT_EQ(driver.agent.counters().entities_refused, 0u);
}

TEST(Streams, OfReadersThatAreNotAcknowledgedLeaveANodeForEachOther) {
  Driver driver;
  ReadyClient client(driver, 1, 0x52);
  for (uint8_t level = 1; level <= kChains; level++) {
    ASSERT_EQ(client.create_xml(reader_of(level), 0x0014, TestClient::kReader), 0);
    client.read(reader_of(level), TIDE_STREAM_RELIABLE(level));
    client.acknowledge(0x80);
  }
  std::vector<FakeSource *> sources = driver.middleware.sources;
  FakeSource *urgent = sources.back();
  for (FakeSource *source : sources) {
    for (uint8_t number = 0; number < 30 && source != urgent; number++) source->offer({{number}, false, {}, 0, 0});
  }
  driver.pump();
  driver.sent.clear();
  urgent->offer({{7}, false, {}, 0, 0});
  driver.pump();
  EXPECT_EQ(client.all(TIDE_XRCE_DATA).size(), 1u);
}

TEST(Streams, BeyondTheLimitAreRefusedAndDisturbNobody) {
  Driver driver(limited(&Limits::input_streams, 4));
  ReadyClient client(driver, 1, 0x51);
  for (uint8_t level = 0; level < 10; level++) client.write(0x0015, {level}, TIDE_STREAM_BEST_EFFORT(level));
  EXPECT_EQ(driver.middleware.written.size(), 3u);  // the CREATEs were on the fourth stream
  EXPECT_EQ(driver.agent.counters().streams_refused, 7u);
  client.write(0x0015, {9}, TIDE_STREAM_BEST_EFFORT(1));
  EXPECT_EQ(driver.middleware.written.size(), 4u);
}

}  // namespace tide::agent::test::agent_data_test
