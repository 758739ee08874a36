// SPDX-License-Identifier: Apache-2.0
// Chains on executors of several lanes: random systems obey the rules, a defective program is detected, and the paper's
// case study and the chain set of the rclcpp measurement give the published results.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "gtest/gtest.h"
#include "sim/host/host.h"

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
    const plan_t plan = draw_host_plan(seed);
    const HostResult result = simulate_host(plan, {.hesitate = true});
    ASSERT_TRUE(result.violations.empty()) << result.violations.front() << "; replay with TIDE_SEED=" << seed;
    readyset += plan.policy == TIDE_POLICY_READYSET ? 1 : 0;
    for (size_t index = 0; index < plan.callback_count; index++) {
      const program_callback_t &callback = result.program->callbacks[index];
      ran += callback.timer.callback.runs;
      dropped += callback.subscription.dropped;
      const tide_group_t *group = callback.timer.callback.group;
      exclusive += group != nullptr && group->kind == TIDE_GROUP_EXCLUSIVE ? callback.timer.callback.runs : 0;
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
  std::vector<std::string> words{"policy=readyset",
                                 "seconds=1",
                                 "executor=e0,1",
                                 "executor=e1,3",
                                 "callback=feed.b0,e0,100000,6400,40000,40000",
                                 "callback=feed.b1,e1,0,6401,5000,5000",
                                 "callback=a.b0,e1,20000,28928,15000,15000",
                                 "callback=b.b0,e1,20000,20480,15000,15000",
                                 "chain=feed,feed.b0,feed.b1",
                                 "chain=a,a.b0",
                                 "chain=b,b.b0"};
  std::vector<char *> pointers;
  for (std::string &word : words) pointers.push_back(word.data());
  plan_t plan;
  const char *wrong = plan_read(&plan, static_cast<int>(pointers.size()), pointers.data());
  ASSERT_EQ(wrong, nullptr) << wrong;
  const HostResult result = simulate_host(plan, {});
  EXPECT_GT(result.program->chains[0].completed, 0u);
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
}

TEST(SimHost, SameSeedSameTrace) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    const plan_t plan = draw_host_plan(seed);
    const HostOptions options{.hesitate = true, .trace = true};
    const std::string first = simulate_host(plan, options).trace;
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(first, simulate_host(plan, options).trace);
  }
}

TEST(SimHost, APlanIsWrittenAsItIsRead) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    const plan_t plan = draw_host_plan(seed);
    const std::string text = write_host_plan(plan);
    std::istringstream lines(text);
    std::vector<std::string> words;
    for (std::string line; std::getline(lines, line);) words.push_back(line);
    std::vector<char *> pointers;
    for (std::string &word : words) pointers.push_back(word.data());
    plan_t again;
    ASSERT_EQ(plan_read(&again, static_cast<int>(pointers.size()), pointers.data()), nullptr) << text;
    EXPECT_EQ(write_host_plan(again), text);
    EXPECT_EQ(simulate_host(again, {.trace = true}).trace, simulate_host(plan, {.trace = true}).trace);
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
  tide_policy_t policy;
  size_t lanes;
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

plan_t plan_of(const std::vector<Chain> &chains, const Setting &run, uint64_t seed) {
  std::vector<std::string> words{"policy=" + std::string(plan_policy(run.policy)),
                                 "seconds=" + std::to_string(run.duration / kMillisecond) + "e-3",
                                 "seed=" + std::to_string(seed),
                                 "spread_us=" + std::to_string(run.phasings > 1 ? 200'000 : 0),
                                 "dispatch_us=" + std::to_string(run.cost / 1000),
                                 "executor=main," + std::to_string(run.lanes),
                                 "group=all,reentrant",
                                 "group=mutex,exclusive"};
  std::vector<std::string> paths;
  for (const Chain &chain : chains) {
    const bool mutex = run.exclusive && (std::string(chain.name) == "c1" || std::string(chain.name) == "c2");
    std::string path = std::string("chain=") + chain.name + (chain.begins_with_c1 ? ",c1.0" : "");
    for (size_t index = 0; index < chain.callbacks.size(); index++) {
      const std::string name = chain.name + std::string(".") + std::to_string(index);
      const std::string execution = std::to_string(chain.callbacks[index].first * 1000);
      const bool timer = index == 0 && !chain.begins_with_c1;
      words.push_back("callback=" + name + ",main," + std::to_string(timer ? chain.period_ms * 1000 : 0) + "," +
                      std::to_string(chain.callbacks[index].second) + "," + execution + "," + execution +
                      (mutex ? ",mutex" : ",all"));
      path += "," + name;
    }
    paths.push_back(path);
  }
  words.insert(words.end(), paths.begin(), paths.end());
  std::vector<char *> pointers;
  for (std::string &word : words) pointers.push_back(word.data());
  plan_t plan;
  const char *wrong = plan_read(&plan, static_cast<int>(pointers.size()), pointers.data());
  EXPECT_EQ(wrong, nullptr) << wrong;
  return plan;
}

Responses play(const std::vector<Chain> &chains, const Setting &run) {
  Responses responses;
  for (uint64_t phasing = 0; phasing < run.phasings; phasing++) {
    Setting one = run;
    one.duration /= static_cast<Time>(run.phasings);
    const plan_t plan = plan_of(chains, one, phasing + 1);
    const HostResult result = simulate_host(plan, {});
    EXPECT_TRUE(result.violations.empty()) << result.violations.front();
    responses.updates.push_back(result.program->executors[0].counters.set_updates);
    responses.choices.push_back(result.program->executors[0].counters.rounds);
    for (size_t index = 0; index < plan.chain_count; index++) {
      const program_chain_t &chain = result.program->chains[index];
      std::vector<Time> &all = responses.chains[plan.chains[index].name];
      all.insert(all.end(), chain.responses_ns, chain.responses_ns + chain.completed);
    }
  }
  for (auto &[name, all] : responses.chains) std::sort(all.begin(), all.end());
  return responses;
}

TEST(SimHost, PriorityDrivenShortensAndNarrowsTheUrgentChainsOfTheCaseStudy) {
  for (const bool exclusive : {false, true}) {
    for (const size_t lanes : {size_t{2}, size_t{3}, size_t{4}}) {
      Setting run{TIDE_POLICY_READYSET, lanes, exclusive, 0, 100, 200 * kSecond};
      const Responses usual = play(kPicas, run);
      run.policy = TIDE_POLICY_TIDE;
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
        EXPECT_LT(driven.percentile_ms(chain, 99), 0.75 * usual.percentile_ms(chain, 99)) << where;
        EXPECT_LT(driven.deviation_ms(chain), 0.75 * usual.deviation_ms(chain)) << where;
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
  const Responses ours = play(kFour, {TIDE_POLICY_READYSET, 2, false, kCost});
  const Responses free = play(kFour, {TIDE_POLICY_READYSET, 2});
  for (size_t index = 0; index < kFour.size(); index++) {
    const char *chain = kFour[index].name;
    EXPECT_NEAR(ours.percentile_ms(chain, 50), multi_threaded[index][0], 0.05 * multi_threaded[index][0]) << chain;
    EXPECT_NEAR(ours.percentile_ms(chain, 99), multi_threaded[index][1], 0.05 * multi_threaded[index][1]) << chain;
    EXPECT_NEAR(ours.percentile_ms(chain, 100), multi_threaded[index][2], 0.1 * multi_threaded[index][2]) << chain;
    EXPECT_NEAR(free.percentile_ms(chain, 99), multi_threaded[index][1], 0.1 * multi_threaded[index][1]) << chain;
  }
  const Responses driven = play(kFour, {TIDE_POLICY_TIDE, 2});
  EXPECT_LE(driven.percentile_ms("c1", 99), 25) << "of a subclass of rclcpp's executor that takes the most urgent";
  EXPECT_LE(driven.percentile_ms("c2", 99), 38);
  EXPECT_LE(driven.percentile_ms("c1", 99), 0.6 * free.percentile_ms("c1", 99));
}

}  // namespace sim_host_test
}  // namespace tide::sim
