// SPDX-License-Identifier: Apache-2.0
// The evaluation of PoDS on the simulator: why Figs. 11 and 12 deviate. Table 1, cell by cell, and Figs. 10 to 12 are
// in lab/tests/test_reproduce.py.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/board/plan.h"
#include "sim/board/system.h"
#include "sim/engine/random.h"

namespace tide::sim {
namespace sim_pods_test {

enum class System { kTide, kBatch };

Plan plan_of(const std::string &name, System system) {
  std::ifstream file(std::string(TIDE_SIM_PLANS) + "/" + name + ".plan");
  std::ostringstream text;
  text << file.rdbuf();
  Plan plan;
  read_plan(plan, text.str());
  if (system == System::kBatch) {
    plan.policy = Policy::kBatch;
    return plan;
  }
  plan.send = Send::kAsynchronous;
  plan.lanes = 1;
  return plan;
}

Summary first_chain(const Plan &plan) {
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  EXPECT_EQ(result.chains[0].latencies.size(), plan.periods);
  return summarise(result.chains[0]);
}

double milliseconds(Time time) { return static_cast<double>(time) / kMillisecond; }

// For callbacks of 10 ms the latency here differs from Fig. 12, because the message, the host and the answer take
// 13 ms. If callbacks are shorter than that, a second callback of other chains begins before the answer arrives, which
// makes four executions, as in Table 1. With a faster line there are three.
TEST(SimPods, ShortExecutionsCountFourTimesBecauseTheAnswerComesLater) {
  const auto executions = [](Time execution, uint64_t baud) {
    Plan plan = plan_of("pods-execution", System::kTide);
    plan.periods = 50;
    plan.baud = baud;
    for (ChainPlan &chain : plan.chains) chain.sample = chain.act = execution;
    return static_cast<double>(first_chain(plan).maximum) / static_cast<double>(execution);
  };
  EXPECT_NEAR(executions(10 * kMillisecond, 115200), 4, 0.15);
  EXPECT_NEAR(executions(12 * kMillisecond, 115200), 4, 0.15);  // 12 ms is longer than the 10 ms of the frame
  EXPECT_NEAR(executions(14 * kMillisecond, 115200), 3, 0.15);
  EXPECT_NEAR(executions(10 * kMillisecond, 160000), 3, 0.15);
}

// Why Fig. 11 deviates: a line on which each 100 bytes more take the published 10 ms is slower than the line of Table
// 1.
TEST(SimPods, NoLineHasBothTheSlopeOfFig11AndTable1) {
  const auto maximum = [](uint32_t bytes, uint64_t baud) {
    Plan plan = plan_of("pods-size", System::kTide);
    plan.periods = 50;
    plan.baud = baud;
    for (ChainPlan &chain : plan.chains) chain.payload_bytes = bytes - 4;
    return milliseconds(first_chain(plan).maximum);
  };
  EXPECT_NEAR((maximum(500, 115200) - maximum(100, 115200)) / 4, 8.68, 0.01);
  EXPECT_NEAR((maximum(500, 100000) - maximum(100, 100000)) / 4, 10, 0.01);
  Plan slow = plan_of("pods-reliable", System::kBatch);
  slow.success_percent = 100;
  slow.baud = 100000;
  EXPECT_GT(milliseconds(first_chain(slow).mean), 1.07 * 85.03);
}

// One urgent chain, and 1 to 50 others with messages of any size and callbacks of any length.
struct Crowd {
  Plan plan;
  Time longest_callback = 0, up_quantum = 0, down_quantum = 0;
};

Time frame_time(uint32_t message_bytes) { return (message_bytes + 7) * 10 * kSecond / 115200; }

Crowd draw_crowd(uint64_t seed) {
  constexpr uint32_t kMtus[] = {128, 192, 256};
  Random random(seed * 77 + 5);
  Crowd crowd;
  Plan &plan = crowd.plan = plan_of("pods-chains", System::kTide);
  plan.seed = seed;
  plan.periods = 20;
  plan.mtu = kMtus[random.below(3)];
  plan.nodes = 128;
  plan.slots = 64;
  plan.settle = 200 * kSecond;
  plan.chains.resize(1);
  ChainPlan &urgent = plan.chains[0];
  urgent.level = 100;
  urgent.reliable = random.chance(0.5);
  urgent.payload_bytes = static_cast<uint32_t>(random.between(8, 90));
  urgent.sample = random.between(0, 20) * kMillisecond;
  urgent.act = random.between(0, 20) * kMillisecond;
  const int64_t others = random.between(1, 50);
  for (int64_t number = 1; number <= others; number++) {
    ChainPlan chain;
    chain.name = "other" + std::to_string(number);
    chain.level = static_cast<unsigned>(random.between(1, 99));
    chain.reliable = random.chance(0.8);
    chain.period = random.between(5, 10) * kSecond;
    chain.phase = random.between(0, 2000) * kMillisecond;
    chain.payload_bytes = static_cast<uint32_t>(random.between(6, chain.reliable ? 3000 : plan.mtu - 32));
    chain.reply_bytes = static_cast<uint32_t>(random.between(6, plan.mtu - 32));
    chain.sample = random.between(0, 50) * kMillisecond;
    chain.act = random.between(0, 50) * kMillisecond;
    crowd.longest_callback = std::max({crowd.longest_callback, chain.sample, chain.act});
    plan.chains.push_back(chain);
  }
  crowd.up_quantum = crowd.down_quantum = frame_time(plan.mtu);
  return crowd;
}

// The other chains delay the urgent one at most by one callback (by none with preemptive lanes) and, in each direction,
// by one frame that is already on the line.
TEST(SimPods, OthersCostOneCallbackAndOneQuantum) {
  constexpr Time kOverhead = kMillisecond;  // submit, process and dispatch costs of the delaying callback
  for (uint64_t seed = 1; seed <= 6; seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Crowd crowd = draw_crowd(seed);
    Plan alone = crowd.plan;
    alone.chains.resize(1);
    const Time limit = first_chain(alone).maximum + crowd.up_quantum + crowd.down_quantum;
    Plan many = crowd.plan;
    EXPECT_LE(first_chain(many).maximum, limit + crowd.longest_callback + kOverhead);
    many.lanes = 2;
    EXPECT_LE(first_chain(many).maximum, limit + kOverhead / 2);
  }
}

// ---- saturation ----

// Number of events with this name in the trace between the two times.
size_t count_events(const std::string &trace, const std::string &name, Time from, Time to) {
  size_t count = 0;
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Time time = 0;
    std::string what;
    words >> time >> what;
    count += what == name && time >= from && time < to ? 1 : 0;
  }
  return count;
}

struct Saturation {
  const char *name;
  uint32_t payload_bytes, reply_bytes;
  bool reliable, down;
  Time period;
};

// The share of the line's time that necessary traffic takes: messages, their headers, and one ACKNACK for each message
// of the other direction. The rest is idle time, HEARTBEATs and retransmissions.
double goodput(const Saturation &saturation) {
  Plan plan;
  plan.agent_least = kMillisecond / 2;
  plan.agent_most = 2 * kMillisecond;
  plan.interrupt_complete = 5'000;
  plan.interrupt_receive = 10'000;
  plan.slots = 32;
  plan.periods = static_cast<uint32_t>(10 * kSecond / saturation.period);
  plan.settle = 100 * kSecond;
  plan.trace = true;
  ChainPlan chain;
  chain.level = 1;
  chain.period = saturation.period;
  chain.payload_bytes = saturation.payload_bytes;
  chain.reply_bytes = saturation.reply_bytes;
  chain.reliable = saturation.reliable;
  chain.reply_reliable = saturation.down;
  plan.chains.push_back(chain);
  const Result result = simulate(plan);
  EXPECT_TRUE(result.violations.empty()) << saturation.name << ": " << result.violations.front();
  const uint32_t headers = 4 + 4 + 4;  // headers of the message, the submessage and the request
  const uint32_t sample = saturation.down ? saturation.reply_bytes : saturation.payload_bytes;
  const uint32_t whole = sample + headers, quantum = (plan.mtu - 4) - 4 - 4;
  const uint32_t fragments = whole <= plan.mtu - 4 ? 0 : (sample + 8 + quantum - 1) / quantum;
  const Time each =
      fragments == 0 ? frame_time(whole) : frame_time(sample + 8 + fragments * 8) + (fragments - 1) * frame_time(0);
  const Time from = 2 * kSecond, to = 9 * kSecond;
  const size_t count = count_events(result.trace, saturation.down ? "acted" : "host_received", from, to);
  const size_t requests = count_events(result.trace, "host_received", from, to);
  const Time acknowledging = saturation.down && saturation.reliable ? frame_time(13) : 0;
  return (static_cast<double>(count) * static_cast<double>(each) +
          static_cast<double>(requests) * static_cast<double>(acknowledging)) /
         static_cast<double>(to - from);
}

TEST(SimPods, TheLineCarriesWhatItCan) {
  constexpr Saturation kCases[] = {
      {"up, best effort", 96, 6, false, false, 5 * kMillisecond},
      {"up, reliable", 96, 6, true, false, 5 * kMillisecond},
      {"up, reliable, small", 16, 6, true, false, 2 * kMillisecond},
      {"up, reliable, in fragments", 3000, 6, true, false, 100 * kMillisecond},
      {"down, best effort", 8, 400, false, true, 20 * kMillisecond},
      {"down, reliable", 8, 400, true, true, 20 * kMillisecond},
      {"down, reliable, in fragments", 8, 3000, true, true, 100 * kMillisecond},
  };
  for (const Saturation &each : kCases) {
    const double share = goodput(each);
    EXPECT_GE(share, 0.95) << each.name;
    EXPECT_LE(share, 1.05) << each.name;  // more than 1 is possible, because one ACKNACK may acknowledge two messages
    RecordProperty(each.name, std::to_string(share));
  }
}

}  // namespace sim_pods_test
}  // namespace tide::sim
