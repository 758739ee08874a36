// SPDX-License-Identifier: Apache-2.0
// The agent's trace records of its clients' messages: one for each message, with its incoming or outgoing frame.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "client_messages.h"
#include "core/tracer.h"
#include "tide/status.h"

namespace tide::agent::test::agent_trace_test {

constexpr Time kMillisecond = 1'000'000;
constexpr uint8_t kReliable = 0x80;

struct Record {
  int kind, stream;
  uint32_t object, sequence;
  Time time_ns;
};

class AgentTrace : public testing::Test {
 protected:
  static Options with(Tracer &tracer) {
    Options options;
    options.tracer = &tracer;
    return options;
  }
  void SetUp() override {
    ASSERT_EQ(client.connect(), 0);
    client.create_all();
    (void)drained();
  }
  static int take(void *context, const uint8_t *bytes, size_t count) {
    auto &blocks = *static_cast<std::vector<Octets> *>(context);
    blocks.emplace_back(bytes, bytes + count);
    return TIDE_OK;
  }
  // The drained records, by the number of their ring.
  std::map<int, std::vector<Record>> drained() {
    std::vector<Octets> blocks;
    EXPECT_TRUE(tracer.drain(take, &blocks));
    std::map<int, std::vector<Record>> found;
    for (const Octets &block : blocks) {
      for (size_t at = TIDE_TRACE_BLOCK_HEADER_BYTES; at < block.size(); at += sizeof(tide_trace_record_t)) {
        tide_trace_record_t one;
        std::memcpy(&one, block.data() + at, sizeof one);
        found[block[10]].push_back({one.kind, one.detail, one.instance >> 16, one.instance & 0xFFFFu, one.time_ns});
      }
    }
    return found;
  }

  Tracer tracer{4};
  Driver driver{with(tracer)};
  TestClient client{driver, 1, 0x11223344};
};

TEST_F(AgentTrace, AMessageToDdsIsRecordedWithItsFrame) {
  driver.run_until(5 * kMillisecond);
  client.write(0x0015, {1, 2, 3, 4});
  client.write(0x0015, {5}, 0x01);
  const std::vector<Record> records = drained()[0];
  ASSERT_EQ(records.size(), 4u);
  for (size_t at = 0; at < 4; at += 2) {
    EXPECT_EQ(records[at].kind, TIDE_TRACE_RECEIVED);
    EXPECT_EQ(records[at + 1].kind, TIDE_TRACE_DIGESTED);
    EXPECT_EQ(records[at].time_ns, 5 * kMillisecond);
    EXPECT_EQ(records[at].object, 0x0015u);
    EXPECT_EQ(records[at + 1].object, 0x0015u);
    EXPECT_EQ(records[at].sequence, records[at + 1].sequence);
  }
  EXPECT_EQ(records[0].stream, kReliable);
  EXPECT_EQ(records[0].sequence, 6u);  // after six CREATEs on this stream
  EXPECT_EQ(records[2].stream, 0x01);
  EXPECT_EQ(records[2].sequence, 0u);
}

TEST_F(AgentTrace, AMessageFromDdsIsRecordedAsOftenAsItIsSent) {
  client.read(0x0016, kReliable);
  (void)drained();
  driver.run_until(20 * kMillisecond);
  Sample sample;
  sample.payload = {9, 9, 9, 9};
  driver.sent.clear();
  driver.middleware.sources.at(0)->offer(sample);
  driver.pump();
  std::vector<Record> records = drained()[0];
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].kind, TIDE_TRACE_SUBMIT);
  EXPECT_EQ(records[1].kind, TIDE_TRACE_WIRE_START);
  EXPECT_EQ(records[2].kind, TIDE_TRACE_WIRE_END);
  for (const Record &one : records) {
    EXPECT_EQ(one.object, 0x0016u);
    EXPECT_EQ(one.stream, kReliable);
    EXPECT_EQ(one.time_ns, 20 * kMillisecond);
    ASSERT_FALSE(driver.sent.empty());
    EXPECT_EQ(one.sequence, driver.sent[0].bytes[2]);
  }
}

TEST_F(AgentTrace, EachClientHasARingThatBeginsWithItsKey) {
  TestClient other{driver, 2, 0x55667788};
  ASSERT_EQ(other.connect(), 0);
  const auto rings = drained();
  ASSERT_EQ(rings.count(1), 1u);
  const Record &first = rings.at(1).at(0);
  EXPECT_EQ(first.kind, TIDE_TRACE_CLIENT);
  EXPECT_EQ(first.object << 16 | first.sequence, 0x55667788u);
}

TEST_F(AgentTrace, WhatASinkRefusesIsKept) {
  client.write(0x0015, {1, 2, 3, 4});
  const auto refuse = [](void *, const uint8_t *, size_t) -> int { return TIDE_ERROR_FULL; };
  EXPECT_FALSE(tracer.drain(refuse, nullptr));
  EXPECT_EQ(drained()[0].size(), 2u);
}

}  // namespace tide::agent::test::agent_trace_test
