// SPDX-License-Identifier: Apache-2.0
// Many chains of one client: each level has streams of its own, both ways and in both modes; beyond the limit they are
// refused and counted.
#include <gtest/gtest.h>

#include "client_messages.h"

namespace tide::agent::test {
namespace agent_streams_test {

constexpr uint8_t kChains = 50;

uint16_t reader_of(uint8_t level) { return static_cast<uint16_t>((0x100 + level) << 4 | 0x6); }

TEST(Streams, OfFiftyChainsInBothModesHavePlaces) {
  Driver driver;
  TestClient client(driver, 1, 0x50);
  ASSERT_EQ(client.connect(), 0);
  client.create_all();
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
  TestClient client(driver, 1, 0x52);
  ASSERT_EQ(client.connect(), 0);
  client.create_all();
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
  Options options;
  options.limits.input_streams = 4;
  Driver driver(std::move(options));
  TestClient client(driver, 1, 0x51);
  ASSERT_EQ(client.connect(), 0);
  client.create_all();
  for (uint8_t level = 0; level < 10; level++) client.write(0x0015, {level}, TIDE_STREAM_BEST_EFFORT(level));
  EXPECT_EQ(driver.middleware.written.size(), 3u);  // the fourth stream carried the creations
  EXPECT_EQ(driver.agent.counters().streams_refused, 7u);
  client.write(0x0015, {9}, TIDE_STREAM_BEST_EFFORT(1));
  EXPECT_EQ(driver.middleware.written.size(), 4u);
}

}  // namespace agent_streams_test
}  // namespace tide::agent::test
