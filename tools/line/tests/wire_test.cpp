// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace wire_test {

using tide::line::Counters;
using tide::line::kForever;
using tide::line::Settings;
using tide::line::Wire;

struct Passed {
  int64_t time_ns;
  uint8_t byte;
  bool operator==(const Passed &) const = default;
};

// Runs the wire until it is idle, calling deliver exactly when it asks for it.
std::vector<Passed> drain(Wire &wire) {
  std::vector<Passed> passed;
  while (wire.next_ns() != kForever) {
    const int64_t now_ns = wire.next_ns();
    uint8_t bytes[64];
    const size_t count = wire.deliver(now_ns, bytes);
    for (size_t index = 0; index < count; index++) passed.push_back({now_ns, bytes[index]});
  }
  return passed;
}

Settings exact() {
  Settings settings;
  settings.trigger_bytes = 1;
  settings.queue_bytes = 1u << 20;
  return settings;
}

std::vector<std::vector<uint8_t>> random_frames(std::mt19937_64 &random, size_t count) {
  std::vector<std::vector<uint8_t>> frames(count);
  for (auto &frame : frames) {
    frame.push_back(0x7E);
    for (size_t left = 1 + random() % 60; left > 0; left--) frame.push_back(static_cast<uint8_t>(random() % 0x7E));
  }
  return frames;
}

std::vector<uint8_t> bytes_of(const std::vector<Passed> &passed) {
  std::vector<uint8_t> bytes;
  for (const Passed &one : passed) bytes.push_back(one.byte);
  return bytes;
}

TEST(Wire, EveryByteDepartsOneByteTimeAfterTheLaterOfItsArrivalAndThePreviousDeparture) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Settings settings = exact();
    settings.baud = std::vector<uint32_t>{9600, 115200, 460800, 921600, 1'000'000}[random() % 5];
    Wire wire(settings);
    std::vector<Passed> expected, passed;
    int64_t now_ns = 5'000'000'000 + static_cast<int64_t>(random() % 1'000'000'000);
    long double free_ns = 0;  // the expected times, without rounding
    const long double byte_ns = 1e10L / settings.baud;
    for (int burst = 0; burst < 20; burst++) {
      std::vector<uint8_t> bytes(random() % 200);
      for (auto &byte : bytes) byte = static_cast<uint8_t>(random());
      wire.accept(bytes, now_ns);
      for (const uint8_t byte : bytes) {
        free_ns = std::max(free_ns, static_cast<long double>(now_ns)) + byte_ns;
        expected.push_back({static_cast<int64_t>(free_ns), byte});
      }
      now_ns += static_cast<int64_t>(random() % 4 == 0 ? random() % 30'000'000 : random() % 3'000'000);
    }
    passed = drain(wire);
    ASSERT_EQ(passed.size(), expected.size());
    for (size_t index = 0; index < passed.size(); index++) {
      ASSERT_EQ(passed[index].byte, expected[index].byte);
      ASSERT_GE(passed[index].time_ns, expected[index].time_ns);
      ASSERT_LE(passed[index].time_ns, expected[index].time_ns + 2);
    }
  }
}

TEST(Wire, NeverDriftsHoweverLongItIsBusy) {
  Settings settings = exact();
  Wire wire(settings);
  const std::vector<uint8_t> block(115200, 0x55);
  int64_t last_ns = 0;
  for (int round = 0; round < 20; round++) {
    wire.accept(block, 1000);
    last_ns = drain(wire).back().time_ns;
  }
  EXPECT_EQ(last_ns, 1000 + 200'000'000'000);
}

TEST(Wire, ComesTogetherUpToTheTriggerButFrameEndsAreExact) {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Settings settings = exact(), grouped = exact();
    grouped.trigger_bytes = 2 + random() % 15;
    Wire one(settings), many(grouped);
    std::set<int64_t> frame_ends, deliveries;
    size_t bytes = 0;
    for (const auto &frame : random_frames(random, 50)) {
      one.accept(frame, 0);
      many.accept(frame, 0);
      bytes += frame.size();
    }
    const auto each = drain(one), together = drain(many);
    ASSERT_EQ(bytes_of(each), bytes_of(together));
    for (size_t index = 0; index < bytes; index++) {
      ASSERT_GE(together[index].time_ns, each[index].time_ns);
      deliveries.insert(together[index].time_ns);
      if (index + 1 == bytes || each[index + 1].byte == 0x7E) {
        ASSERT_EQ(together[index].time_ns, each[index].time_ns);
      }
    }
    EXPECT_LT(deliveries.size(), bytes);
  }
}

TEST(Wire, AFullQueuePushesBack) {
  Settings settings = exact();
  settings.queue_bytes = 100;
  Wire wire(settings);
  EXPECT_EQ(wire.room(), 100u);
  wire.accept(std::vector<uint8_t>(60, 1), 0);
  EXPECT_EQ(wire.room(), 40u);
  wire.accept(std::vector<uint8_t>(40, 2), 0);
  EXPECT_EQ(wire.room(), 0u);
  uint8_t byte;
  EXPECT_EQ(wire.deliver(wire.next_ns() - 1, {&byte, 1}), 0u);
  EXPECT_EQ(wire.deliver(wire.next_ns(), {&byte, 1}), 1u);
  EXPECT_EQ(wire.room(), 1u);
}

TEST(Wire, TheSeedDecidesTheFaultsAndTimeDoesNot) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Settings settings = exact();
    settings.seed = seed;
    settings.faults = {0.01, 0.02, 0.05, 0.1, 0};
    Wire first(settings), second(settings);
    settings.seed = ~seed;
    Wire other(settings);
    int64_t now_ns = 0;
    for (const auto &frame : random_frames(random, 300)) {
      first.accept(frame, 0);
      other.accept(frame, 0);
      second.accept(frame, now_ns += static_cast<int64_t>(random() % 10'000'000));
    }
    const auto bytes = bytes_of(drain(first));
    EXPECT_EQ(bytes, bytes_of(drain(second)));
    EXPECT_NE(bytes, bytes_of(drain(other)));
    const Counters &counters = first.counters();
    EXPECT_EQ(counters.delivered, counters.bytes - counters.bytes_dropped + counters.noise_bytes);
    EXPECT_EQ(counters.delivered, bytes.size());
    EXPECT_GT(counters.bits_flipped, 0u);
    EXPECT_GT(counters.noise_bytes, 0u);
  }
}

TEST(Wire, FrameLossTakesWholeFramesAndTheirTime) {
  std::mt19937_64 random(11);
  Settings settings = exact();
  settings.faults.frame_loss = 0.1;
  Wire wire(settings);
  const auto frames = random_frames(random, 20'000);
  size_t bytes = 0;
  for (const auto &frame : frames) {
    wire.accept(frame, 0);
    bytes += frame.size();
  }
  const auto passed = drain(wire);
  EXPECT_NEAR(static_cast<double>(wire.counters().frames_dropped), 2000, 170);  // four standard deviations
  std::vector<std::vector<uint8_t>> arrived;
  for (const Passed &one : passed) {
    if (one.byte == 0x7E) arrived.emplace_back();
    arrived.back().push_back(one.byte);
  }
  EXPECT_EQ(arrived.size(), frames.size() - wire.counters().frames_dropped);
  auto sent = frames.begin();  // received frames are the sent ones in order, with gaps
  for (const auto &frame : arrived) {
    sent = std::find(sent, frames.end(), frame);
    ASSERT_NE(sent++, frames.end());
  }
  EXPECT_EQ(passed.back().time_ns,
            static_cast<int64_t>((bytes * 10'000'000'000 + 115'199) / 115'200));  // the last byte arrived in time
}

// A frame of serial framing: flag, addresses, length, session, stream, sequence, and the rest.
std::vector<uint8_t> xrce_frame(uint8_t stream, uint16_t sequence, uint8_t bytes) {
  std::vector<uint8_t> frame = {0x7E, 0, 1, bytes, 0, 0x81, stream, static_cast<uint8_t>(sequence), 0};
  frame.resize(size_t{9} + bytes, 0x55);
  if (frame[7] == 0x7E || frame[7] == 0x7D) {
    frame[7] ^= 0x20;
    frame.insert(frame.begin() + 7, 0x7D);
  }
  return frame;
}

TEST(Wire, FirstLossBreaksOffTheFirstTransmissionAndNoOther) {
  Settings settings = exact();
  settings.faults.first_loss = 1;
  Wire wire(settings);
  int64_t now_ns = 0;
  const auto passes = [&](const std::vector<uint8_t> &frame) {
    wire.accept(frame, now_ns += 1'000'000'000);
    return drain(wire).size() == frame.size();
  };
  for (uint16_t sequence = 0; sequence < 200; sequence++) {
    EXPECT_FALSE(passes(xrce_frame(0x83, sequence, 100))) << sequence;
    EXPECT_TRUE(passes(xrce_frame(0x83, sequence, 100))) << sequence;
    EXPECT_TRUE(passes(xrce_frame(0x83, sequence, 100))) << sequence;
  }
  EXPECT_FALSE(passes(xrce_frame(0x84, 0, 100)));  // another stream has its own count
  EXPECT_TRUE(passes(xrce_frame(0x83, 201, 63)));
  EXPECT_TRUE(passes(xrce_frame(0x03, 0, 100)));  // best effort
  EXPECT_TRUE(passes(xrce_frame(0x00, 0, 100)));
  EXPECT_EQ(wire.counters().frames_dropped, 201u);
}

TEST(Wire, FirstLossIsDrawnOnceForWhatIsSentTogether) {
  Settings settings = exact();
  settings.faults.first_loss = 0.5;
  Wire wire(settings);
  uint64_t lost = 0;
  for (uint16_t period = 0; period < 250; period++) {
    const uint64_t before = wire.counters().frames_dropped;
    const int64_t start_ns = int64_t{period} * 500'000'000;
    for (const uint8_t stream : {0x81, 0x82, 0x83}) wire.accept(xrce_frame(stream, period, 100), start_ns);
    drain(wire);
    const uint64_t together = wire.counters().frames_dropped - before;
    EXPECT_TRUE(together == 0 || together == 3) << period;
    lost += together / 3;
  }
  EXPECT_NEAR(static_cast<double>(lost), 125, 32);  // four standard deviations
}

TEST(Wire, ACutTakesWhatPassesInItsWindow) {
  Settings settings = exact();
  settings.baud = 10'000;  // a byte takes 1 ms
  settings.cut_from_ns = 10'500'000;
  settings.cut_until_ns = 20'500'000;
  Wire wire(settings);
  std::vector<uint8_t> bytes(30), expected;
  for (uint8_t index = 0; index < 30; index++) bytes[index] = index;
  wire.accept(bytes, 0);
  for (uint8_t index = 0; index < 30; index++) {
    if (index < 10 || index >= 20) expected.push_back(index);
  }
  EXPECT_EQ(bytes_of(drain(wire)), expected);
  EXPECT_EQ(wire.counters().bytes_cut, 10u);
  wire.set_cut(true);
  wire.accept(bytes, 100'000'000);
  EXPECT_TRUE(drain(wire).empty());
  wire.set_cut(false);
  wire.accept(bytes, 200'000'000);
  EXPECT_EQ(bytes_of(drain(wire)), bytes);
}

TEST(Wire, DelayKeepsTheOrderAndItsBound) {
  std::mt19937_64 random(3);
  Settings settings = exact(), delayed = exact();
  delayed.faults.max_delay_ns = 20'000'000;
  Wire plain(settings), late(delayed);
  int64_t now_ns = 0;
  for (const auto &frame : random_frames(random, 500)) {
    now_ns += static_cast<int64_t>(random() % 10'000'000);
    plain.accept(frame, now_ns);
    late.accept(frame, now_ns);
  }
  const auto on_time = drain(plain), afterwards = drain(late);
  ASSERT_EQ(bytes_of(on_time), bytes_of(afterwards));
  int64_t worst_ns = 0;
  for (size_t index = 0; index < on_time.size(); index++) {
    const int64_t delay_ns = afterwards[index].time_ns - on_time[index].time_ns;
    ASSERT_GE(delay_ns, 0);
    ASSERT_LE(delay_ns, 20'000'000);
    worst_ns = std::max(worst_ns, delay_ns);
  }
  EXPECT_GT(worst_ns, 15'000'000);
}

TEST(Wire, LogTellsWhenEachFramePassedAndStopsWhenItIsFull) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Wire wire(exact());
    wire.keep_log(8);
    const auto frames = random_frames(random, 12);
    const int64_t byte_ns = 10 * 1'000'000'000LL / 115200;
    int64_t now_ns = 1'000'000'000;
    std::vector<int64_t> starts;
    for (const auto &frame : frames) {
      starts.push_back(now_ns);
      wire.accept(frame, now_ns);
      now_ns += static_cast<int64_t>(frame.size()) * (byte_ns + 1) + static_cast<int64_t>(random() % 1'000'000);
      drain(wire);
    }
    ASSERT_EQ(wire.log().size(), 8u);
    for (size_t index = 0; index < wire.log().size(); index++) {
      const auto &logged = wire.log()[index];
      const auto &frame = frames[index];
      EXPECT_EQ(logged.bytes, frame.size());
      EXPECT_NEAR(static_cast<double>(logged.start_ns), static_cast<double>(starts[index]), 2);
      EXPECT_NEAR(static_cast<double>(logged.end_ns - logged.start_ns),
                  static_cast<double>(frame.size()) * 1e10 / 115200, 2);
      const size_t head = std::min(frame.size(), logged.head.size());
      EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(head), logged.head.begin()));
    }
  }
}

}  // namespace wire_test
