// SPDX-License-Identifier: Apache-2.0
// DDS accepts no samples for a while: the client's stream waits, without loss or reordering, but not endlessly.
#include <gtest/gtest.h>

#include "client_messages.h"

namespace tide::agent::test::agent_backpressure_test {

constexpr Time kMillisecond = 1'000'000;

class Backpressure : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(client.connect(), 0);
    client.create_all();
    driver.sent.clear();
  }
  // The first octets of the samples that have reached DDS.
  Octets written() const {
    Octets firsts;
    for (const Written &sample : driver.middleware.written) firsts.push_back(sample.payload[0]);
    return firsts;
  }
  void pass(Time duration) { driver.run_until(driver.now() + duration); }
  // The first unacknowledged message according to the last ACKNACK.
  int acknowledged() {
    const Octets body = client.last(TIDE_XRCE_ACKNACK);
    return body.empty() ? -1 : body[0] | body[1] << 8;
  }

  std::vector<std::string> told;
  Driver driver{telling(told, true), 1'000'000'000};
  TestClient client{driver, 1, 0x11};
};

TEST_F(Backpressure, TheStreamWaitsAndGoesOn) {
  client.write(0x0015, {1});
  const int before = acknowledged();
  driver.middleware.full = true;
  driver.sent.clear();
  for (uint8_t number = 2; number <= 6; number++) client.write(0x0015, {number});
  pass(50 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1}));
  EXPECT_LE(acknowledged(), before);  // messages that wait are not acknowledged
  driver.middleware.full = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(acknowledged(), before + 5);
  EXPECT_EQ(driver.agent.counters().write_failed, 0u);
  EXPECT_EQ(driver.agent.counters().write_waited, 1u);
  EXPECT_EQ(driver.agent.counters().samples_to_dds, 6u);
}

TEST_F(Backpressure, OtherStreamsGoOn) {
  driver.middleware.full = true;
  client.write(0x0015, {1}, 0x81);
  EXPECT_EQ(client.create_xml(0x0021, 0, "<dds><participant><rtps><name>q</name></rtps></participant></dds>"), 0);
  driver.middleware.full = false;
  client.write(0x0015, {2});
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{2, 1}));  // a blocked stream does not block another one
}

TEST_F(Backpressure, WhatComesBehindInTheStreamWaitsToo) {
  driver.middleware.full = true;
  client.write(0x0015, {1});
  EXPECT_EQ(client.remove(0x0015), -1);
  pass(20 * kMillisecond);
  EXPECT_EQ(driver.middleware.writers, 1);
  driver.middleware.full = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1}));
  EXPECT_EQ(driver.middleware.writers, 0);
}

TEST_F(Backpressure, FragmentsOfOneSampleWaitAsOne) {
  driver.middleware.full = true;
  Octets whole = {0x07, 1, 0, 0, 0, 0x99, 0x00, 0x15};  // a WRITE_DATA to the writer 0x0015
  for (uint8_t octet = 0; octet < 100; octet++) whole.push_back(octet);
  whole[2] = static_cast<uint8_t>(whole.size() - 4);
  const auto piece = [&](size_t from, size_t to) {
    return Octets(whole.begin() + static_cast<std::ptrdiff_t>(from), whole.begin() + static_cast<std::ptrdiff_t>(to));
  };
  client.submit(0x80, TIDE_XRCE_FRAGMENT, 1, piece(0, 50));
  client.submit(0x80, TIDE_XRCE_FRAGMENT, 1 | TIDE_XRCE_FLAG_LAST_FRAGMENT, piece(50, whole.size()));
  client.write(0x0015, {200});
  pass(20 * kMillisecond);
  EXPECT_TRUE(written().empty());
  driver.middleware.full = false;
  pass(5 * kMillisecond);
  ASSERT_EQ(written(), (Octets{0, 200}));
  EXPECT_EQ(driver.middleware.written[0].payload.size(), 100u);
}

TEST_F(Backpressure, MessagesBeyondTheWindowAreNotKept) {
  driver.middleware.full = true;
  for (uint8_t number = 0; number < 40; number++) client.write(0x0015, {number});
  driver.middleware.full = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written().size(), size_t{TIDE_STREAM_WINDOW_MAXIMUM});
  EXPECT_EQ(driver.agent.counters().outside_window, 40u - TIDE_STREAM_WINDOW_MAXIMUM);
}

TEST_F(Backpressure, ItDoesNotWaitForEver) {
  const Limits limits;
  driver.middleware.full = true;
  for (uint8_t number = 1; number <= 3; number++) client.write(0x0015, {number});
  pass(limits.write_wait_ns - kMillisecond);
  EXPECT_EQ(driver.agent.counters().write_failed, 0u);
  pass(5 * kMillisecond);
  EXPECT_EQ(driver.agent.counters().write_failed, 3u);  // the others fail at once: one wait is enough
  EXPECT_EQ(told.back(),
            "client 00000011 at endpoint 1 loses a message of its publisher of 't', type 'T': DDS accepts none; does a "
            "reader of its topic not acknowledge?");
  driver.middleware.full = false;
  client.write(0x0015, {4});
  driver.middleware.full = true;
  client.write(0x0015, {5});
  EXPECT_EQ(driver.agent.counters().write_failed, 3u);  // this sample waits again
  driver.middleware.full = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{4, 5}));
}

TEST_F(Backpressure, BestEffortDoesNotWait) {
  driver.middleware.full = true;
  client.write(0x0015, {1}, 0x01);
  EXPECT_EQ(driver.agent.counters().write_failed, 1u);
  driver.middleware.full = false;
  client.write(0x0015, {2}, 0x01);
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{2}));
}

TEST_F(Backpressure, ANewSessionForgetsWhatWaits) {
  driver.middleware.full = true;
  client.write(0x0015, {1});
  ASSERT_EQ(client.connect(), 0);
  driver.middleware.full = false;
  pass(20 * kMillisecond);
  EXPECT_TRUE(written().empty());  // the sample was not acknowledged, so the client will send it again
  client.write(0x0015, {1});
  EXPECT_EQ(written(), (Octets{1}));
}

// A client that had sessions with a former agent: its writers in DDS are new, and discover their readers late.
class AfterRestart : public Backpressure {
 protected:
  static constexpr uint8_t kDepth = 10;
  void SetUp() override {
    driver.middleware.unread = true;
    begin(0x22, 0x82);
  }
  void begin(uint32_t key, uint8_t session, const std::string &durability = "VOLATILE") {
    returned = std::make_unique<ReadyClient>(driver, key, key, session, TIDE_XRCE_VENDOR);
    const std::string qos = "<qos><durability><kind>" + durability + "</kind></durability></qos>";
    const std::string topic = "<topic><name>t</name><historyQos><kind>KEEP_LAST</kind><depth>" +
                              std::to_string(kDepth) + "</depth></historyQos></topic>";
    ASSERT_EQ(returned->create_xml(0x0025, 0x0013, "<dds><data_writer>" + topic + qos + "</data_writer></dds>"), 0);
    driver.sent.clear();
  }
  std::unique_ptr<TestClient> returned;
};

TEST_F(AfterRestart, KeptSamplesWaitForAReader) {
  for (uint8_t number = 1; number <= 3; number++) returned->write(0x0025, {number});
  pass(500 * kMillisecond);
  EXPECT_TRUE(written().empty());
  driver.middleware.unread = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1, 2, 3}));
  driver.middleware.unread = true;  // a reader that was found once is enough, even if it is gone
  returned->write(0x0025, {4});
  EXPECT_EQ(written(), (Octets{1, 2, 3, 4}));
}

// A discovered reader that does not know the writer yet receives only samples that DDS repeats.
TEST_F(AfterRestart, KeptSamplesWaitForAReaderThatKnowsTheWriter) {
  driver.middleware.unread = false;
  driver.middleware.unacknowledged = true;
  for (uint8_t number = 1; number <= 3; number++) returned->write(0x0025, {number});
  pass(500 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1}));
  driver.middleware.unacknowledged = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1, 2, 3}));
  driver.middleware.unacknowledged = true;  // one acknowledgment is enough
  returned->write(0x0025, {4});
  EXPECT_EQ(written(), (Octets{1, 2, 3, 4}));
}

// All kept samples arrive at once. A reader that acknowledges slowly loses none of them.
TEST_F(AfterRestart, KeptSamplesDoNotReplaceEachOther) {
  driver.middleware.unread = false;
  driver.middleware.unacknowledged = true;
  for (uint8_t number = 1; number <= 1 + kDepth + 3; number++) returned->write(0x0025, {number});
  driver.middleware.unacknowledged = false;
  const auto hold = [&](const Written &) { driver.middleware.unacknowledged = true; };
  driver.middleware.on_written = hold;
  pass(5 * kMillisecond);
  EXPECT_EQ(written().size(), size_t{1} + kDepth);
  driver.middleware.unacknowledged = false;
  pass(5 * kMillisecond);
  EXPECT_EQ(written().size(), size_t{1} + kDepth + 3);
  driver.middleware.on_written = nullptr;
}

TEST_F(AfterRestart, AReaderThatAcknowledgesNothingIsNotWaitedForForEver) {
  driver.middleware.unread = false;
  driver.middleware.unacknowledged = true;
  for (uint8_t number = 1; number <= 3; number++) returned->write(0x0025, {number});
  pass(Limits{}.reader_wait_ns + 5 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1, 2, 3}));
}

TEST_F(AfterRestart, WhatNobodyReadsDoesNotWaitForEver) {
  const Limits limits;
  returned->write(0x0025, {1});
  pass(limits.reader_wait_ns - 10 * kMillisecond);
  EXPECT_TRUE(written().empty());
  pass(15 * kMillisecond);
  EXPECT_EQ(written(), (Octets{1}));
}

TEST_F(AfterRestart, BestEffortAFirstSessionAndWhatTheWriterKeepsDoNotWait) {
  returned->write(0x0025, {1}, 0x01);
  begin(0x33, 0x81);
  returned->write(0x0025, {2});
  begin(0x44, 0x82, "TRANSIENT_LOCAL");
  returned->write(0x0025, {3});
  EXPECT_EQ(written(), (Octets{1, 2, 3}));
}

}  // namespace tide::agent::test::agent_backpressure_test
