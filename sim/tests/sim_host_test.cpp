// SPDX-License-Identifier: Apache-2.0
// Chains on executors of several lanes: random systems obey the rules, a defective program is detected, and the paper's
// case study and the chain set of the rclcpp measurement give the published results.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "gtest/gtest.h"
#include "sim/board/campaign.h"
#include "sim/board/system.h"
#include "sim/engine/random.h"

namespace tide::sim {
namespace sim_host_test {

uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

TEST(SimHost, RandomSystemsKeepTheRules) {
  const uint64_t first = environment("TIDE_SEED", 1);
  const uint64_t last = first + environment("TIDE_SEEDS", std::getenv("TIDE_SEED") == nullptr ? 800 : 1);
  uint64_t ran = 0, exclusive = 0, dropped = 0, readyset = 0;
  for (uint64_t seed = first; seed < last; seed++) {
    Plan plan = draw_host(seed);
    plan.record = true;
    const Result result = simulate(plan);
    ASSERT_TRUE(result.violations.empty()) << result.violations.front() << "; replay with TIDE_SEED=" << seed;
    readyset += plan.executors.front().policy == HostPolicy::kReadyset ? 1 : 0;
    for (const ExecutorResult &executor : result.executors) ran += executor.runs;
    for (size_t number = 0; number < plan.callbacks.size(); number++) {
      dropped += result.dropped[number];
      exclusive += plan.callbacks[number].group > 0 ? result.records.runs[number].size() : 0;
    }
  }
  if (std::getenv("TIDE_SEED") != nullptr) return;
  EXPECT_GT(ran, 60'000u) << "the systems do not do enough to prove anything";
  EXPECT_GT(exclusive, 12'000u);
  EXPECT_GT(dropped, 500u);
  EXPECT_GT(readyset, 300u);
}

// A notification and two expiries meet: a lane due to wake at that instant does not sleep.
TEST(SimHost, RulesAreHeldWhenAnInstantIsOver) {
  Plan plan;
  read_plan(plan, R"(horizon_us = 1000000
executor = name=e0 policy=readyset
executor = name=e1 policy=readyset lanes=3
callback = name=feed.b0 on=e0 period_us=100000 priority=6400 execution_us=40000
callback = name=feed.b1 on=e1 priority=6401 execution_us=5000
callback = name=a.b0 on=e1 period_us=20000 priority=28928 execution_us=15000
callback = name=b.b0 on=e1 period_us=20000 priority=20480 execution_us=15000
message = name=feed from=feed.b0 to=feed.b1 bytes=8
path = name=feed callbacks=feed.b0,feed.b1
path = name=a callbacks=a.b0
path = name=b callbacks=b.b0
)");
  const Result result = simulate(plan);
  EXPECT_GT(result.chains[0].latencies.size(), 0u);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
}

TEST(SimHost, SameSeedSameTraceAndAPlanIsWrittenAsItIsRead) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    Plan plan = draw_host(seed), again;
    plan.trace = true;
    const std::string text = write_plan(plan);
    read_plan(again, text);
    EXPECT_EQ(write_plan(again), text);
    const std::string trace = simulate(plan).trace;
    EXPECT_FALSE(trace.empty());
    EXPECT_EQ(simulate(plan).trace, trace);
    EXPECT_EQ(simulate(again).trace, trace);
  }
}

// ---- the published chain sets ----

struct Chain {
  const char *name;
  std::vector<std::pair<int, int>> callbacks;  // execution in ms, priority
  int period_ms;
  bool begins_with_c1 = false;
};

const std::vector<Chain> kPicas{{"c1", {{3, 8}, {3, 12}}, 50},
                                {"c2", {{4, 9}, {3, 10}, {4, 11}}, 50, true},
                                {"c3", {{11, 5}, {12, 6}, {12, 7}}, 100},
                                {"c4", {{21, 1}, {41, 2}, {42, 3}, {22, 4}}, 200}};
const std::vector<Chain> kFour{{"c1", {{6, 1024}, {8, 1025}, {6, 1026}}, 80},
                               {"c2", {{8, 768}, {10, 769}, {6, 770}, {6, 771}}, 100},
                               {"c3", {{12, 512}, {15, 513}, {10, 514}, {11, 515}}, 160},
                               {"c4", {{20, 256}, {18, 257}, {20, 258}, {12, 259}}, 200}};

struct Setting {
  HostPolicy policy;
  unsigned lanes;
  bool exclusive = false;  // the callbacks of c1 and c2
  Time cost = 0;
  uint64_t phasings = 1;  // number of runs with newly drawn start times of the timers; 1: all at once
  Time duration = 20 * kSecond;
};

struct Responses {
  std::map<std::string, std::vector<Time>> chains;
  std::vector<uint64_t> updates, choices;  // updates of the set, and choices of a callback, by phasing
  double percentile_ms(const std::string &chain, unsigned percent) const {
    const std::vector<Time> &sorted = chains.at(chain);
    return static_cast<double>(sorted[std::max<size_t>((sorted.size() * percent + 99) / 100, 1) - 1]) / 1e6;
  }
  double deviation_ms(const std::string &chain) const {
    double sum = 0, squares = 0;
    for (const Time one : chains.at(chain)) sum += static_cast<double>(one);
    const double mean = sum / static_cast<double>(chains.at(chain).size());
    for (const Time one : chains.at(chain))
      squares += (static_cast<double>(one) - mean) * (static_cast<double>(one) - mean);
    return std::sqrt(squares / static_cast<double>(chains.at(chain).size())) / 1e6;
  }
};

Plan plan_of(const std::vector<Chain> &chains, const Setting &run, uint64_t seed) {
  Plan plan;
  Random random(seed);
  plan.seed = seed;
  plan.horizon = run.duration;
  plan.settle = 600 * kSecond;
  ExecutorPlan executor;
  executor.name = "main";
  executor.lanes = run.lanes;
  executor.policy = run.policy;
  executor.dispatch = run.cost;
  plan.executors = {executor};
  std::map<std::string, MessagePlan> messages;
  for (const Chain &chain : chains) {
    const bool mutex = run.exclusive && (std::string(chain.name) == "c1" || std::string(chain.name) == "c2");
    PathPlan path;
    path.name = chain.name;
    if (chain.begins_with_c1) path.callbacks.push_back("c1.0");
    for (size_t index = 0; index < chain.callbacks.size(); index++) {
      CallbackPlan callback;
      callback.name = chain.name + std::string(".") + std::to_string(index);
      callback.on = "main";
      callback.execution = chain.callbacks[index].first * kMillisecond;
      callback.priority = static_cast<unsigned>(chain.callbacks[index].second);
      callback.group = mutex ? 1 : 0;
      callback.reentrant = !mutex;
      if (path.callbacks.empty()) {
        callback.period = chain.period_ms * kMillisecond;
        callback.phase = run.phasings > 1 ? random.between(0, 200 * kMillisecond) : 0;
      } else {
        messages[path.callbacks.back()].to.push_back(callback.name);
      }
      plan.callbacks.push_back(callback);
      path.callbacks.push_back(callback.name);
    }
    plan.paths.push_back(path);
  }
  for (auto &[sender, message] : messages) {
    message.name = message.from = sender;
    plan.messages.push_back(message);
  }
  return plan;
}

Responses play(const std::vector<Chain> &chains, const Setting &run) {
  Responses responses;
  for (uint64_t phasing = 0; phasing < run.phasings; phasing++) {
    Setting one = run;
    one.duration /= static_cast<Time>(run.phasings);
    const Result result = simulate(plan_of(chains, one, phasing + 1));
    EXPECT_TRUE(result.violations.empty()) << result.violations.front();
    responses.updates.push_back(result.executors[0].updates);
    responses.choices.push_back(result.executors[0].choices);
    for (const ChainResult &chain : result.chains) {
      std::vector<Time> &all = responses.chains[chain.name];
      all.insert(all.end(), chain.latencies.begin(), chain.latencies.end());
    }
  }
  for (auto &[name, all] : responses.chains) std::sort(all.begin(), all.end());
  return responses;
}

TEST(SimHost, PriorityDrivenShortensAndNarrowsTheUrgentChainsOfTheCaseStudy) {
  for (const bool exclusive : {false, true}) {
    for (const unsigned lanes : {2u, 3u, 4u}) {
      Setting run{HostPolicy::kReadyset, lanes, exclusive, 0, 400, 160 * kSecond};
      const Responses usual = play(kPicas, run);
      run.policy = HostPolicy::kTide;
      const Responses driven = play(kPicas, run);
      for (const char *chain : {"c1", "c2"}) {
        const std::string where =
            std::string(chain) + ", lanes " + std::to_string(lanes) + (exclusive ? ", exclusive" : "");
        for (const unsigned percent : {50u, 99u, 100u}) {
          EXPECT_LE(driven.percentile_ms(chain, percent), usual.percentile_ms(chain, percent))
              << where << " " << percent;
        }
        EXPECT_LE(driven.deviation_ms(chain), usual.deviation_ms(chain) + 1e-9) << where;
        if (lanes > 2) continue;
        EXPECT_LT(driven.percentile_ms(chain, 99), 0.9 * usual.percentile_ms(chain, 99)) << where;
        EXPECT_LT(driven.deviation_ms(chain), 0.9 * usual.deviation_ms(chain)) << where;
      }
      for (size_t phasing = 0; phasing < run.phasings; phasing++) {
        const auto updates = static_cast<double>(driven.updates[phasing]);
        EXPECT_LT(updates, 1.1 * static_cast<double>(usual.updates[phasing]))
            << "lanes " << lanes << (exclusive ? ", exclusive" : "") << ", phasing " << phasing + 1;
        EXPECT_LT(updates, 0.6 * static_cast<double>(driven.choices[phasing])) << "most choices need none";
        EXPECT_GT(updates, 0.1 * static_cast<double>(driven.choices[phasing]));
      }
    }
  }
}

// p50, p99 and maximum in ms of real rclcpp, where a callback costs 0.6 ms.
TEST(SimHost, FourChainsAgreeWithRealRclcpp) {
  using Figures = std::array<std::array<double, 3>, 4>;
  constexpr Time kCost = 600'000;
  const Figures multi_threaded{{{22, 45, 49}, {33, 57, 62}, {57, 81, 83}, {85, 100, 104}}};
  const Responses ours = play(kFour, {HostPolicy::kReadyset, 2, false, kCost});
  const Responses free = play(kFour, {HostPolicy::kReadyset, 2});
  for (size_t index = 0; index < kFour.size(); index++) {
    const char *chain = kFour[index].name;
    EXPECT_NEAR(ours.percentile_ms(chain, 50), multi_threaded[index][0], 0.05 * multi_threaded[index][0]) << chain;
    EXPECT_NEAR(ours.percentile_ms(chain, 99), multi_threaded[index][1], 0.05 * multi_threaded[index][1]) << chain;
    EXPECT_NEAR(ours.percentile_ms(chain, 100), multi_threaded[index][2], 0.1 * multi_threaded[index][2]) << chain;
    EXPECT_NEAR(free.percentile_ms(chain, 99), multi_threaded[index][1], 0.1 * multi_threaded[index][1]) << chain;
  }
  const Responses driven = play(kFour, {HostPolicy::kTide, 2});
  EXPECT_LE(driven.percentile_ms("c1", 99), 25) << "of a subclass of rclcpp's executor that takes the most urgent";
  EXPECT_LE(driven.percentile_ms("c2", 99), 38);
  EXPECT_LE(driven.percentile_ms("c1", 99), 0.6 * free.percentile_ms("c1", 99));
}

}  // namespace sim_host_test
}  // namespace tide::sim
