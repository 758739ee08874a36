// SPDX-License-Identifier: Apache-2.0
// Sessions, entities, limits and probes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "client_messages.h"

namespace tide::agent::test::agent_session_test {

TEST(Session, RefusesByCause) {
  std::vector<std::string> lines;
  Driver driver(telling(lines));
  EXPECT_EQ(TestClient(driver, 1, 0).connect(), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  EXPECT_EQ(TestClient(driver, 1, 7, 0x80).connect(), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  EXPECT_EQ(TestClient(driver, 1, 7).connect(60), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  driver.input(1, bytes_from_hex("8000000000011000585243450200010faaaabbbb8100fc01"));
  EXPECT_EQ(hex_from_bytes(driver.sent.back().bytes), "8100000004010b008600585243450100010f00");
  driver.input(1, bytes_from_hex("8000000000011000595243450100010faaaabbbb8100fc01"));
  EXPECT_EQ(hex_from_bytes(driver.sent.back().bytes), "8100000004010b008500585243450100010f00");
  EXPECT_EQ(driver.agent.client_count(), 0u);
  EXPECT_EQ(driver.agent.counters().clients_refused, 5u);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "client 00000000 at endpoint 1: refused: its key is 0; give it another one",
                       "client 00000007 at endpoint 1: refused: its CREATE_CLIENT is not valid",
                       "client 00000007 at endpoint 1: refused: its MTU is below 64 octets",
                       "client AAAABBBB at endpoint 1: refused: it speaks another version of DDS-XRCE than 1"}));
  driver.sent.clear();
  driver.input(1, bytes_from_hex("8000000000011000585243450100010faaaabbbb8102fc01"));  // one of its booleans is 2
  EXPECT_EQ(driver.agent.counters().malformed, 1u);
  EXPECT_TRUE(driver.sent.empty());
}

TEST(Session, LimitsClientsAndThoseThatWorkStay) {
  std::vector<std::string> lines;
  Options options = telling(lines);
  options.limits.clients = 3;
  Driver driver(options);
  for (uint32_t key = 1; key <= 3; key++) {
    TestClient client(driver, key, key);
    EXPECT_EQ(client.connect(), 0);
    EXPECT_EQ(client.create_xml(0x0011, 0, ""), 0);
  }
  for (uint32_t key = 10; key < 1000; key++) {
    EXPECT_EQ(TestClient(driver, key, key).connect(), TIDE_XRCE_STATUS_ERR_RESOURCES);
  }
  EXPECT_EQ(driver.agent.counters().clients_lost, 0u);
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_EQ(TestClient(driver, 1, 1).connect(), 0);  // a known client may reconnect
  EXPECT_EQ(TestClient(driver, 2, 2).remove(TIDE_XRCE_OBJECT_CLIENT), 0);
  EXPECT_EQ(TestClient(driver, 4, 4).connect(), 0);
}

TEST(Session, EachClientMayHaveItsOwnTimeout) {
  Options options;
  options.client_timeout_ns = [](Endpoint, uint32_t key) {
    return key == 0x11 ? 5 * kSecond : key == 0x22 ? 0 : 60 * kSecond;
  };
  Driver driver(options);
  for (const uint32_t key : {0x11u, 0x22u, 0x33u}) {
    ReadyClient client(driver, key, key);
    client.acknowledge(0x80);
  }
  driver.run_until(30 * kSecond);
  EXPECT_EQ(driver.agent.client_count(), 2u);
  driver.run_until(1000 * kSecond);
  EXPECT_EQ(driver.agent.client_count(), 1u);
}

class Told : public testing::Test {
 protected:
  std::vector<std::string> lines;
  Driver driver{telling(lines, true)};
};

TEST_F(Told, EachClientThatComesOrLeavesHasALine) {
  TestClient client(driver, 1, 0x11), again(driver, 2, 0x11);
  EXPECT_EQ(client.connect(508, "1000"), 0);
  client.create_all();
  EXPECT_EQ(client.remove(TIDE_XRCE_OBJECT_CLIENT), 0);
  EXPECT_EQ(client.connect(508, "1000"), 0);
  driver.run_until(20 * kSecond);
  const std::string name = "client 00000011 at endpoint 1 ";
  EXPECT_EQ(lines,
            (std::vector<std::string>{name + "connected", name + "left", name + "is gone: it no longer answers"}))
      << "a line that was there ten seconds ago is not repeated";
}

TEST_F(Told, AFloodOfClientsIsCounted) {
  for (uint32_t key = 1; key <= 1000; key++) TestClient(driver, key, key).connect();
  EXPECT_EQ(lines.size(), Notices::kEventLines + 1) << "and one of clients that gave way";
  driver.run_until(11 * kSecond);
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(),
                    [](const std::string &line) { return line.find("lines more in 10 s about clients") != line.npos; }),
      1);
}

TEST_F(Told, WhatIsRefusedIsNamedWithItsCause) {
  ReadyClient client(driver, 1, 0x11);
  lines.clear();
  client.create_xml(0x0022, 0x0011, topic_xml("t", "Other"));
  client.create_xml(0x0025, 0x0013, writer_xml("u"));
  client.create_xml(0x0035, 0x0993, writer_xml("t"));
  client.create_xml(0x0045, 0x0013, "<dds><data_writer>");
  client.create_xml(0x0055, 0x0013, "<dds><data_writer><topic><name>rt/\n0</name></topic></data_writer></dds>");
  client.create_xml(0x0033, 0x0991, "");
  client.create_xml(0x0034, 0x0991, "");
  client.submit(0x80, TIDE_XRCE_CREATE, TIDE_XRCE_FLAG_LITTLE_ENDIAN, {0x00, 0x77, 0x00, 0x12, 0x02});
  client.create_xml(0x0011, 0, "");  // a reconnecting client creates what exists already, and gets its former entities
  driver.middleware.refuse = true;
  client.create_xml(0x0065, 0x0013, writer_xml("t"));
  const std::string start = "client 00000011 at endpoint 1 is refused a ";
  const std::vector<std::string> expected = {
      start + "topic 't', type 'Other': this node uses the topic with another type",
      start + "publisher of 'u': its topic object, which has the type, does not exist",
      start + "publisher of 't': its parent object does not exist",
      start + "publisher of '': its description cannot be read",
      start + "publisher of 'rt/\\x0a0': topic 'rt/\\x0a0' has a part that starts with a digit",
      start + "publisher object: its parent object does not exist",
      start + "subscriber object: its parent object does not exist",
      start + "CREATE: it cannot be parsed",
      start + "publisher of 't', type 'T': DDS refuses it; is there a topic of this name with another type?"};
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t number = 0; number < lines.size(); number++) {
    if (number != 4) EXPECT_EQ(lines[number], expected[number]);
  }
  EXPECT_EQ(lines[4].find('\n'), std::string::npos) << "a name from the network is quoted";
}

// Sessions in which nothing happens must use little of the agent's memory.
TEST(Session, MemoryToSendInIsTakenWhenSomethingIsSent) {
  Driver driver;
  TestClient client(driver, 1, 0x11);
  ASSERT_EQ(client.connect(), 0);
  driver.run_until(100 * kSecond);
  EXPECT_EQ(driver.agent.counters().probes_sent, 0u) << "who was never sent anything is not asked";
  EXPECT_EQ(driver.agent.output_count(), 0u);
  EXPECT_EQ(client.create_xml(0x0011, 0, ""), 0);
  EXPECT_EQ(driver.agent.output_count(), 1u);
  EXPECT_EQ(client.connect(), 0);
  EXPECT_EQ(driver.agent.output_count(), 0u) << "a session that begins anew";
  EXPECT_EQ(client.connect(508, "5000"), 0);
  driver.run_until(driver.now() + 4 * kSecond);
  EXPECT_EQ(driver.agent.output_count(), 0u) << "who announces when to be asked";
  driver.run_until(driver.now() + 2 * kSecond);
  EXPECT_EQ(driver.agent.output_count(), 1u);
  EXPECT_EQ(driver.agent.counters().probes_sent, 2u);
}

// A board of tide need not create its readers again, so its only message in the next session may be a READ_DATA.
TEST(Session, TheFirstThingThatIsAskedInTheNextSessionIsAnswered) {
  Driver driver;
  TideClient before(driver, 1, 0x11, 0x81), after(driver, 1, 0x11, 0x82);
  ASSERT_EQ(before.connect(), 0);
  before.create_all();
  ASSERT_EQ(after.connect(), 0);
  after.read(0x0016, 0x01, 0xFFFF, 0, 0, 0, 0x01);
  Sample sample;
  sample.payload = {1, 2, 3, 4};
  driver.middleware.sources.at(0)->offer(sample);
  driver.pump();
  EXPECT_EQ(after.all(TIDE_XRCE_DATA).size(), 1u);
}

TEST(Session, KeysTravelBelow0x80AndShareAnEndpoint) {
  Driver driver;
  TestClient first(driver, 1, 0x11, 0x01), second(driver, 1, 0x22, 0x01);
  EXPECT_EQ(first.connect(), 0);
  EXPECT_EQ(second.connect(), 0);
  EXPECT_EQ(driver.agent.client_count(), 2u);
  first.create_all();
  second.create_all();
  EXPECT_EQ(driver.middleware.participants, 2);
  EXPECT_EQ(first.remove(TIDE_XRCE_OBJECT_CLIENT), 0);
  EXPECT_EQ(second.remove(0x0015), 0);
  EXPECT_EQ(driver.middleware.participants, 1);
}

TEST(Session, ADeviceThatRestartsWithAnotherKeyTakesItsOldPlace) {
  Driver driver;
  ReadyClient first(driver, 1, 0x11);
  TestClient second(driver, 1, 0x22);
  EXPECT_EQ(second.connect(), 0);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  EXPECT_EQ(driver.middleware.participants, 0);
  EXPECT_EQ(driver.agent.counters().clients_displaced, 1u);
}

TEST(Session, AnotherSessionOfTheSameKeyStartsAnew) {
  Driver driver;
  ReadyClient before(driver, 1, 0x11, 0x81);
  TestClient after(driver, 1, 0x11, 0x82);
  EXPECT_EQ(after.connect(), 0);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  EXPECT_EQ(driver.middleware.participants, 0);
}

// New firmware creates a node or nothing, but not the publisher and the subscription of the old firmware, which must
// therefore go. The first session of a client of tide means that it was restarted. A stock client may have lost only
// its connection, and keeps its entities until it creates something.
TEST(Session, WhatAFormerProgramHadGoesOnceTheNewOneHasMadeItsOwn) {
  for (const uint16_t vendor : {uint16_t{TIDE_XRCE_VENDOR}, uint16_t{0x010F}}) {
    for (const bool creates : {true, false}) {
      Driver driver;
      TestClient client(driver, 1, 0x11);
      client.vendor = vendor;
      EXPECT_EQ(client.connect(), 0);
      client.create_all();
      EXPECT_EQ(driver.middleware.sources.size(), 1u);
      driver.run_until(driver.now() + kSecond);
      EXPECT_EQ(client.connect(), 0);  // the same session id means that the client was restarted
      constexpr uint8_t kAnew = TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE;
      if (creates) EXPECT_GE(client.create_xml(0x0011, 0, TestClient::kParticipant, kAnew), 0);
      driver.run_until(driver.now() + (creates ? 1 : 10) * Limits{}.settle_ns - 1);
      EXPECT_EQ(driver.middleware.writers, 1);
      driver.run_until(driver.now() + kSecond);
      const bool stays = !creates && vendor != TIDE_XRCE_VENDOR;
      EXPECT_EQ(driver.middleware.writers, stays ? 1 : 0);
      EXPECT_EQ(driver.middleware.sources.size(), stays ? 1u : 0u);
      EXPECT_EQ(driver.middleware.participants, stays || creates ? 1 : 0);
    }
  }
}

TEST(Session, ATopicWhoseTypeChangedIsReplacedOnTheFirstStart) {
  const auto topic = [](const char *type) {
    return std::string("<dds><topic><name>rt/other</name><dataType>") + type + "</dataType></topic></dds>";
  };
  const auto writer = [](const char *type) {
    return std::string("<dds><data_writer><topic><name>rt/other</name><dataType>") + type +
           "</dataType></topic></data_writer></dds>";
  };
  constexpr uint8_t kAnew = TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE;
  for (const uint16_t place : {uint16_t{0x0010}, uint16_t{0x0020}}) {  // with the old object ids, and with other ones
    std::vector<std::string> told;
    Driver driver(telling(told, true));
    TideClient client(driver, 1, 0x11);
    EXPECT_EQ(client.connect(), 0);
    EXPECT_EQ(client.create_xml(0x0011, 0, TestClient::kParticipant, kAnew), 0);
    EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic("Int32"), kAnew), 0);
    EXPECT_EQ(client.create_xml(0x0013, 0x0011, "", kAnew), 0);
    EXPECT_EQ(client.create_xml(0x0015, 0x0013, writer("Int32"), kAnew), 0);
    EXPECT_EQ(client.create_xml(0x0022, 0x0011, topic("Bool"), kAnew), TIDE_XRCE_STATUS_ERR_DDS) << "in use";
    ASSERT_FALSE(told.empty());
    EXPECT_NE(told.back().find("rt/other"), std::string::npos) << told.back();
    driver.run_until(driver.now() + kSecond);
    EXPECT_EQ(client.connect(), 0);
    EXPECT_EQ(client.create_xml(0x0011, 0, TestClient::kParticipant, kAnew), TIDE_XRCE_STATUS_OK_MATCHED);
    EXPECT_EQ(client.create_xml(place | 2, 0x0011, topic("Twist"), kAnew), 0);
    EXPECT_EQ(client.create_xml(place | 3, 0x0011, "", kAnew) & 0x80, 0);
    EXPECT_EQ(client.create_xml(place | 5, place | 3, writer("Twist"), kAnew), 0);
    EXPECT_EQ(driver.middleware.writers, 1);
  }
}

// A client of tide numbers its sessions, so late messages of a former session are not taken for messages of the current
// one.
TEST(Session, TheNextSessionOfATideClientKeepsItsEntities) {
  Driver driver;
  TideClient before(driver, 1, 0x11, 0x81), after(driver, 1, 0x11, 0x82);
  EXPECT_EQ(before.connect(), 0);
  before.create_all();
  before.read(0x0016, 0x80);
  EXPECT_EQ(after.connect(), 0);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  EXPECT_EQ(driver.middleware.participants, 1);
  EXPECT_EQ(driver.agent.counters().clients_resumed, 1u);
  driver.sent.clear();
  before.write(0x0015, {1, 2, 3, 4});
  EXPECT_EQ(driver.agent.counters().unknown_session, 1u);
  EXPECT_EQ(driver.agent.counters().samples_to_dds, 0u);
  driver.middleware.sources.at(0)->offer({});
  driver.pump();
  EXPECT_TRUE(after.all(TIDE_XRCE_DATA).empty());  // the client has not requested data in this session
  EXPECT_EQ(after.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
  EXPECT_EQ(driver.sent.front().bytes[0], 0x82);
  EXPECT_EQ(driver.sent.front().bytes[2], 0);
}

// When the next session of a board begins, unacknowledged messages of the old one are sent again, in order;
// acknowledged messages are not.
TEST(Session, TheNextSessionBeginsWithWhatWasNotAcknowledged) {
  for (unsigned seed = 1; seed <= 200; seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&random](uint32_t count) {
      return std::uniform_int_distribution<uint32_t>(0, count - 1)(random);
    };
    Driver driver;
    uint8_t session = 0x81;
    auto client = std::make_unique<TestClient>(driver, 1, 0x11, session);
    client->vendor = TIDE_XRCE_VENDOR;
    ASSERT_EQ(client->connect(), 0);
    client->create_all();
    uint32_t offered = 0, acknowledged = 0, expected = 0;
    size_t seen = 0;
    const auto look = [&] {
      driver.pump();
      const std::vector<Octets> came = client->all(TIDE_XRCE_DATA);
      for (; seen < came.size(); seen++) EXPECT_EQ(came[seen].at(4), expected++ % 251);
    };
    const auto confirm = [&] {
      look();
      client->acknowledge(0x80);
      acknowledged = expected;
      look();
    };
    const auto begin = [&] {
      client = std::make_unique<TestClient>(driver, 1, 0x11, ++session);
      client->vendor = TIDE_XRCE_VENDOR;
      driver.sent.clear();
      ASSERT_EQ(client->connect(), 0);
      expected = acknowledged;
      seen = 0;
    };
    for (int step = 0; step < 60 && session < 0xF0; step++) {
      switch (pick(5)) {
        case 0: begin(); break;
        case 1: confirm(); break;
        case 2: client->read(0x0016, 0x80); break;
        default:
          for (uint32_t more = pick(12); more > 0; more--) {
            Sample sample;
            sample.payload = Octets(1 + pick(200), static_cast<uint8_t>(offered++ % 251));
            driver.middleware.sources.at(0)->offer(std::move(sample));
          }
      }
      look();
    }
    begin();
    client->read(0x0016, 0x80);
    for (int turn = 0; turn < 400 && expected < offered; turn++) confirm();
    EXPECT_EQ(expected, offered);
  }
}

// The agent answers on the stream of the request, so unacknowledged data on one stream does not delay answers on
// another.
TEST(Session, AnswersAreOnTheStreamOfTheirRequest) {
  for (const uint8_t stream : {uint8_t{0x80}, uint8_t{0x84}, uint8_t{TIDE_STREAM_REQUESTS}}) {
    Driver driver;
    ReadyClient client(driver, 1, 0x11);
    driver.sent.clear();
    client.read(0x0016, TIDE_STREAM_RELIABLE(0));
    for (uint8_t number = 0; number < 40; number++) driver.middleware.sources.at(0)->offer({{number}, false, {}, 0, 0});
    driver.pump();
    const auto sent = static_cast<uint8_t>(driver.sent.back().bytes[2] + 1);
    const bool waits = stream == TIDE_STREAM_RELIABLE(0);
    EXPECT_EQ(client.create_xml(0x0025, 0x0013, writer_xml("t"), 0, stream), waits ? -1 : 0);
    client.submit(0, TIDE_XRCE_ACKNACK, 1, {sent, 0, 0, 0, TIDE_STREAM_RELIABLE(0)});
    for (int round = 0; round < 40; round++) client.acknowledge(TIDE_STREAM_RELIABLE(0));
    std::set<uint8_t> streams;
    for (const Sent &message : driver.sent)
      if (message.bytes[4] == TIDE_XRCE_STATUS) streams.insert(message.bytes[1]);
    EXPECT_EQ(streams, std::set<uint8_t>{stream});
  }
}

TEST(Session, LateCopiesOfACreateClientDoNotTouchTheSession) {
  Driver driver;
  TestClient client(driver, 1, 0x11, 0x81), next(driver, 1, 0x11, 0x82), copy(driver, 1, 0x11, 0x81);
  client.vendor = next.vendor = copy.vendor = TIDE_XRCE_VENDOR;
  EXPECT_EQ(client.connect(), 0);
  client.create_all();
  driver.run_until(driver.now() + 200'000'000);
  EXPECT_EQ(copy.connect(), 0);
  client.write(0x0015, {1, 2, 3, 4});  // the client continues its numbering
  EXPECT_EQ(driver.agent.counters().samples_to_dds, 1u);
  EXPECT_EQ(next.connect(), 0);
  driver.sent.clear();
  EXPECT_EQ(copy.connect(), -1);
  EXPECT_EQ(next.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
  // A restarted device begins with the first session number again. It is admitted when no late copy of a former
  // CREATE_CLIENT can exist any more.
  driver.run_until(driver.now() + 4'000'000'000);
  EXPECT_EQ(copy.connect(), 0);
  EXPECT_EQ(copy.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
  driver.run_until(driver.now() + 400'000'000);
  TideClient restarted(driver, 1, 0x11, 0x81);
  EXPECT_EQ(restarted.connect(), 0);
  EXPECT_EQ(restarted.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
}

TEST(Session, ResetStartsStreamsAnewAndKeepsEntities) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  client.submit(0, TIDE_XRCE_RESET, 1, {});
  TestClient again(driver, 1, 0x11);
  EXPECT_EQ(again.create_xml(0x0013, 0x0011, ""), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
  EXPECT_EQ(driver.sent.front().bytes[2], 0);  // its streams start at 0, as those of the test client
}

TEST(Session, NewsOfAReaderThatIsGoneAreIgnored) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  client.read(0x0016, 0x80);
  const Wake wake = driver.middleware.sources.at(0)->wake;
  wake();
  EXPECT_EQ(client.remove(0x0016), 0);
  EXPECT_EQ(client.create_xml(0x0016, 0x0014, TestClient::kReader), 0);
  client.read(0x0016, 0x80);
  const Wake later = driver.middleware.sources.at(0)->wake;
  later();
  EXPECT_EQ(client.remove(TIDE_XRCE_OBJECT_CLIENT), 0);
  wake();
  later();
  driver.pump();
  EXPECT_EQ(driver.agent.client_count(), 0u);
}

// DDS may report an event of an entity and then refuse the entity. The client may also leave before the agent handles
// the event.
TEST(Session, NewsOfAnEntityThatNeverCameAboutAreIgnored) {
  const std::vector<std::tuple<uint16_t, uint16_t, const char *>> kinds = {{0x0026, 0x0014, TestClient::kReader},
                                                                           {0x0017, 0x0011, TestClient::kRequester},
                                                                           {0x0018, 0x0011, TestClient::kReplier}};
  for (const auto &[object, parent, xml] : kinds) {
    for (const bool leaves : {false, true}) {
      Driver driver;
      ReadyClient client(driver, 1, 0x11);
      driver.middleware.wake_and_refuse = true;
      driver.pumps = false;
      client.create_xml(object, parent, xml);
      if (leaves) client.remove(TIDE_XRCE_OBJECT_CLIENT);
      driver.pump();
      EXPECT_EQ(driver.agent.client_count(), leaves ? 0u : 1u);
      EXPECT_EQ(driver.agent.counters().entities_refused, 1u);
      EXPECT_EQ(driver.middleware.sources.size(), leaves ? 0u : 1u);
    }
  }
}

TEST(Entities, StatusesByRule) {
  Driver driver;
  TestClient client(driver, 1, 0x11);
  EXPECT_EQ(client.connect(), 0);
  const std::string topic = topic_xml("t", "T"), other = topic_xml("u", "T");
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic), TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  EXPECT_EQ(client.create_xml(0x0011, 0, TestClient::kParticipant), 0);
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic), 0);
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic), TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS);
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic, TIDE_XRCE_FLAG_REUSE), TIDE_XRCE_STATUS_OK_MATCHED);
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, other, TIDE_XRCE_FLAG_REUSE), TIDE_XRCE_STATUS_ERR_MISMATCH);
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, other, TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE), 0);
  EXPECT_EQ(client.create_xml(0x0012, 0x0011, topic, TIDE_XRCE_FLAG_REPLACE), 0);
  EXPECT_EQ(client.create_xml(0x0023, 0x0011, ""), 0);
  EXPECT_EQ(client.create_xml(0x0025, 0x0023, writer_xml("t")), 0);
  EXPECT_EQ(client.create_xml(0x0022, 0x0011, topic_xml("t", "X")), TIDE_XRCE_STATUS_ERR_DDS);
  EXPECT_EQ(client.create_xml(0x0013, 0x0012, ""), TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);  // a topic cannot be a
                                                                                             // parent
  EXPECT_EQ(client.remove(0x0092), TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  driver.middleware.refuse = true;
  EXPECT_EQ(client.create_xml(0x0021, 0, TestClient::kParticipant), TIDE_XRCE_STATUS_ERR_DDS);
}

TEST(Entities, AWriterInBinaryFormFindsItsTopic) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  tide_xrce_object_t writer{};
  writer.representation = TIDE_XRCE_BY_BINARY;
  writer.parent = 0x0013;
  writer.topic = 0x0092;
  EXPECT_EQ(client.create(0x0025, writer), TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  writer.topic = 0x0012;
  EXPECT_EQ(client.create(0x0025, writer), 0);
  client.write(0x0025, {1, 2, 3});
  ASSERT_EQ(driver.middleware.written.size(), 1u);
  EXPECT_EQ(driver.middleware.written[0].topic, "t");
  EXPECT_EQ(driver.middleware.written[0].payload, (Octets{1, 2, 3}));
}

TEST(Entities, DeletingAParentDeletesWhatItContains) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  EXPECT_EQ(driver.agent.entity_count(), 6u);
  EXPECT_EQ(client.remove(0x0013), 0);
  EXPECT_EQ(driver.middleware.writers, 0);
  EXPECT_EQ(driver.agent.entity_count(), 4u);
  EXPECT_EQ(client.remove(0x0011), 0);
  EXPECT_EQ(driver.agent.entity_count(), 0u);
  EXPECT_TRUE(driver.middleware.sources.empty());
}

TEST(Entities, AreLimited) {
  Driver driver(limited(&Limits::entities_per_client, 4));
  TestClient client(driver, 1, 0x11);
  EXPECT_EQ(client.connect(), 0);
  EXPECT_EQ(client.create_xml(0x0011, 0, ""), 0);
  for (uint16_t number = 1; number <= 3; number++) {
    EXPECT_EQ(client.create_xml(TIDE_XRCE_OBJECT(number, TIDE_XRCE_KIND_PUBLISHER), 0x0011, ""), 0);
  }
  EXPECT_EQ(client.create_xml(0x0014, 0x0011, ""), TIDE_XRCE_STATUS_ERR_RESOURCES);
  EXPECT_EQ(client.create_xml(0x0013, 0x0011, "", TIDE_XRCE_FLAG_REUSE), TIDE_XRCE_STATUS_OK_MATCHED);
}

// A reader that nobody reads, whose client asks for the deepest history, must not make the agent store samples for
// ever.
TEST(Entities, DepthsAreLimited) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  const std::string deep =
      "<dds><data_reader><topic><name>t</name><historyQos><kind>KEEP_LAST</kind><depth>4294967295</depth></historyQos>"
      "</topic></data_reader></dds>";
  ASSERT_EQ(client.create_xml(0x0026, 0x0014, deep), 0);
  FakeSource &source = *driver.middleware.sources.at(1);
  EXPECT_EQ(source.qos.depth, kDepthMaximum);
  for (int sample = 0; sample < 2000; sample++) {
    source.offer(sample_of({1}));
    driver.pump();
  }
  EXPECT_EQ(driver.agent.counters().samples_skipped, 2000u - kDepthMaximum);
}

TEST(Entities, ParticipantsAndDomainsAreLimited) {
  Options options;
  options.limits.participants_per_client = 3;
  options.limits.domains = 2;
  Driver driver(options);
  TestClient client(driver, 1, 0x11), other(driver, 2, 0x22);
  EXPECT_EQ(client.connect(), 0);
  EXPECT_EQ(other.connect(), 0);
  tide_xrce_object_t participant{};
  participant.representation = TIDE_XRCE_BY_BINARY;
  for (const auto &[object, domain, status] :
       std::vector<std::tuple<int, int, int>>{{0x0011, 3, 0},
                                              {0x0021, 4, 0},
                                              {0x0031, 5, TIDE_XRCE_STATUS_ERR_RESOURCES},
                                              {0x0031, 4, 0},
                                              {0x0041, 4, TIDE_XRCE_STATUS_ERR_RESOURCES},
                                              {0x0051, 233, TIDE_XRCE_STATUS_ERR_INVALID_DATA},
                                              {0x0051, -1, TIDE_XRCE_STATUS_ERR_INVALID_DATA}}) {
    participant.domain = static_cast<int16_t>(domain);
    EXPECT_EQ(client.create(static_cast<uint16_t>(object), participant), status) << object << " in " << domain;
  }
  participant.domain = 5;
  EXPECT_EQ(other.create(0x0011, participant), TIDE_XRCE_STATUS_ERR_RESOURCES);
  EXPECT_EQ(client.remove(0x0021), 0);
  EXPECT_EQ(other.create(0x0011, participant), TIDE_XRCE_STATUS_ERR_RESOURCES);  // 0x0031 still uses the domain
  EXPECT_EQ(client.remove(0x0031), 0);
  EXPECT_EQ(other.create(0x0011, participant), 0);
}

// In every domain, the highest port of the last participant is at most 65535, and more than 40 participants are
// possible.
TEST(Entities, EveryDomainHasPortsForItsParticipants) {
  for (int domain = 0; domain <= 232; domain++) {
    const size_t most = participants_maximum(domain);
    ASSERT_GT(most, 40u) << domain;
    EXPECT_LE(7400u + 250u * static_cast<size_t>(domain) + 11u + 2u * (most - 1), 65535u) << domain;
  }
  EXPECT_EQ(participants_maximum(233), 0u);
  EXPECT_EQ(participants_maximum(-1), 0u);
}

TEST(Entities, DomainsAreOverridden) {
  for (const auto &[override, fallback, expected] :
       {std::tuple{std::optional<int>{}, 0, 3}, std::tuple{std::optional<int>{5}, 0, 5},
        std::tuple{std::optional<int>{}, 9, 3}}) {
    Options options;
    options.domain = override;
    options.default_domain = fallback;
    Driver driver(options);
    TestClient client(driver, 1, 0x11);
    EXPECT_EQ(client.connect(), 0);
    tide_xrce_object_t participant{};
    participant.representation = TIDE_XRCE_BY_BINARY;
    participant.domain = 3;
    EXPECT_EQ(client.create(0x0011, participant), 0);
    participant.domain = 0;
    EXPECT_EQ(client.create(0x0021, participant), 0);
    participant.domain = 255;  // stock clients thereby request the agent's domain
    EXPECT_EQ(client.create(0x0031, participant), 0);
    const int agents = override.value_or(fallback);
    EXPECT_EQ(driver.middleware.domains, (std::vector<int>{expected, agents, agents}));
  }
}

TEST(Liveliness, ASilentClientIsAskedAndThenGone) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  client.acknowledge(0x80);  // this shows that the client answers
  driver.sent.clear();
  driver.run_until(29 * kSecond);
  EXPECT_TRUE(client.all(TIDE_XRCE_GET_INFO).empty());
  driver.run_until(32 * kSecond + kSecond / 2);
  EXPECT_EQ(client.all(TIDE_XRCE_GET_INFO).size(), 3u);
  EXPECT_GE(client.all(TIDE_XRCE_HEARTBEAT).size(), 3u);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  driver.run_until(34 * kSecond);
  EXPECT_EQ(driver.agent.client_count(), 0u);
  EXPECT_EQ(driver.middleware.participants, 0);
  EXPECT_EQ(driver.middleware.writers, 0);
  EXPECT_TRUE(driver.middleware.sources.empty());
  EXPECT_EQ(driver.agent.counters().clients_lost, 1u);
}

// A lean client of tide answers no GET_INFO. It has its requests on a separate stream, on which it is probed.
TEST(Liveliness, AClientIsProbedOnTheStreamOfItsRequests) {
  Driver driver;
  TestClient client(driver, 1, 0x11);
  ASSERT_EQ(client.connect(), 0);
  ASSERT_EQ(client.create_xml(0x0011, 0, "", 0, TIDE_STREAM_REQUESTS), 0);
  client.acknowledge(TIDE_STREAM_REQUESTS);
  driver.sent.clear();
  driver.run_until(31 * kSecond);
  const std::vector<Octets> heartbeats = client.all(TIDE_XRCE_HEARTBEAT);
  ASSERT_FALSE(heartbeats.empty());
  for (const Octets &body : heartbeats) EXPECT_EQ(body.at(4), TIDE_STREAM_REQUESTS);
}

TEST(Liveliness, AnAnswerKeepsAClient) {
  Driver driver;
  ReadyClient client(driver, 1, 0x11);
  for (Time t_ns = 0; t_ns < 200 * kSecond; t_ns += kSecond) {
    driver.run_until(t_ns);
    if (client.all(TIDE_XRCE_HEARTBEAT).empty() && t_ns != 0) continue;
    client.acknowledge(0x80);
    driver.sent.clear();
  }
  EXPECT_EQ(driver.agent.client_count(), 1u);
}

TEST(Liveliness, AClientThatNeverCouldAnswerStaysUntilItsPlaceIsNeeded) {
  Driver driver(limited(&Limits::clients, 1));
  TestClient silent(driver, 1, 0x11);
  EXPECT_EQ(silent.connect(), 0);
  EXPECT_EQ(silent.create_xml(0x0011, 0, ""), 0);
  TestClient next(driver, 2, 0x22);
  EXPECT_EQ(next.connect(), TIDE_XRCE_STATUS_ERR_RESOURCES);
  driver.run_until(1000 * kSecond);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  EXPECT_EQ(next.connect(), 0);
  EXPECT_EQ(driver.agent.client_count(), 1u);
  EXPECT_EQ(driver.agent.counters().clients_lost, 1u);
}

TEST(Liveliness, TheClientChoosesItsPeriod) {
  Driver driver;
  TestClient client(driver, 1, 0x11);
  EXPECT_EQ(client.connect(508, "00500"), 0);
  driver.run_until(kSecond / 4);
  EXPECT_TRUE(client.all(TIDE_XRCE_GET_INFO).empty());
  driver.run_until(kSecond * 6 / 10);
  EXPECT_EQ(client.all(TIDE_XRCE_GET_INFO).size(), 1u);
  driver.run_until(4 * kSecond);
  EXPECT_EQ(driver.agent.client_count(), 0u);
}

}  // namespace tide::agent::test::agent_session_test
