// SPDX-License-Identifier: Apache-2.0
// Executors with one thread: examples by hand, a hunt on exact schedules, and bounds that forget something.
#include "analysis/single_thread.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "hunt/random_system.h"

namespace tide::analysis {
namespace {

Executor one_thread(Policy policy, std::vector<Chain> chains, Lane lane = {1, 1}) {
  return {"one", policy, {lane}, std::move(chains)};
}

time_ns bound_of(const char *name, const Executor &executor, std::size_t chain) {
  const auto bound_ns = find_single_thread_analysis(name)->bound(executor, chain);
  EXPECT_TRUE(bound_ns) << name;
  return bound_ns.value_or(-1);
}

TEST(SingleThread, ByHand) {
  const std::vector<Chain> chains{make_chain({2, 1}, 20, 20, 2), make_chain({4, 3}, 50, 50, 1)};
  const Executor priority = one_thread(Policy::priority, chains);
  EXPECT_EQ(bound_of("single-priority", priority, 0), 3 + 3);  // 4 - 1 have begun
  EXPECT_EQ(bound_of("single-priority", priority, 1), 7 + 3);  // nothing is less important
  const Executor any = one_thread(Policy::ready_set, chains);
  EXPECT_EQ(bound_of("single-any-order", any, 0), 3 + 7);
  EXPECT_EQ(bound_of("single-ready-sets", any, 1), 7 + 3);  // one instance of the other in a busy window of 10
}

TEST(SingleThread, AFrequentChainIsInEachReadySetOnce) {
  // The others run five and four times before the executor has time, but a chain of one callback sees two sets.
  const Executor executor = one_thread(
      Policy::ready_set, {make_chain({1}, 100, 100, 3), make_chain({3}, 7, 100, 2), make_chain({4}, 8, 100, 1)});
  EXPECT_EQ(bound_of("single-any-order", executor, 0), 5 * 3 + 4 * 4 + 1);
  EXPECT_EQ(bound_of("single-ready-sets", executor, 0), 2 * (3 + 4) + 1);
  EXPECT_EQ(single_thread_bound(executor, 0), 15);
}

TEST(SingleThread, ABudgetDelays) {
  const Executor executor = one_thread(Policy::priority, {make_chain({3}, 100, 100, 1)}, {2, 5});
  EXPECT_EQ(bound_of("single-priority", executor, 0), 2 * 3 + 2 + 3 + 1);
}

TEST(SingleThread, LaterInstancesOfABusyWindowCount) {
  // Pushed by what is not preempted, the second instance of the chain is slower than the first (Davis et al. 2007).
  const Executor executor =
      one_thread(Policy::priority,
                 {make_chain({100}, 250, 250, 3), make_chain({100}, 350, 325, 2), make_chain({100}, 350, 350, 1)});
  EXPECT_EQ(bound_of("single-priority", executor, 2), 350);  // the first one: 300
}

TEST(SingleThread, OverloadHasNoBound) {
  const Executor executor = one_thread(Policy::ready_set, {make_chain({9}, 10, 10, 2), make_chain({9}, 10, 10, 1)});
  for (const SingleThreadAnalysis &one : single_thread_analyses()) {
    if (one.policy == Policy::ready_set) {
      EXPECT_FALSE(one.bound(executor, 0)) << one.name;
    }
  }
}

TEST(SingleThread, SharpenedIsNeverHigherAndNeedsNoOther) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomSystem random(seed);
    const Executor drawn = random.executor(Policy::priority, Deadlines::constrained, false, false, 3);
    const Executor executor = one_thread(Policy::priority, drawn.chains());
    const Result plain = analyse(*find_analysis("theorem2-safe"), executor);
    const Result sharp = sharpened(executor, plain);
    for (std::size_t chain = 0; chain < executor.chains().size(); ++chain) {
      EXPECT_TRUE(!plain.chains[chain].guaranteed || sharp.chains[chain].guaranteed) << seed;
      if (!plain.chains[chain].guaranteed) continue;
      EXPECT_LE(*sharp.chains[chain].response_ns, *plain.chains[chain].response_ns) << seed;
    }
  }
}

std::uint64_t seeds_of(std::uint64_t usual) {
  const char *wanted = std::getenv("TIDE_HUNT_SEEDS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

struct Catch {
  int checked = 0, exceeded = 0;
  std::string first;
};

// forget: how much too low a broken bound is.
Catch hunt(const SingleThreadAnalysis &analysis, std::uint64_t seeds,
           time_ns (*forget)(const Executor &executor, std::size_t chain)) {
  Catch found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RandomSystem random(seed);
    const Deadlines deadlines = seed % 2 == 0 ? Deadlines::constrained : Deadlines::arbitrary;
    const Executor drawn = random.executor(analysis.policy, deadlines, false, seed % 3 == 0, 2);
    const Executor executor = one_thread(analysis.policy, drawn.chains(), drawn.lanes()[0]);
    std::vector<std::optional<time_ns>> bounds;
    for (std::size_t chain = 0; chain < executor.chains().size(); ++chain) {
      bounds.push_back(analysis.bound(executor, chain));
      if (bounds.back()) *bounds.back() -= forget(executor, chain);
    }
    for (int round = 0; round < 8; ++round) {
      const Schedule schedule = run_schedule(executor, random.scenario(executor, 500));
      for (std::size_t chain = 0; chain < bounds.size(); ++chain) {
        if (!bounds[chain]) continue;
        ++found.checked;
        if (schedule.worst_ns(chain) <= *bounds[chain]) continue;
        ++found.exceeded;
        if (found.first.empty())
          found.first = std::string(analysis.name) + ", seed " + std::to_string(seed) + ", round " +
                        std::to_string(round) + ", chain " + std::to_string(chain);
      }
    }
  }
  return found;
}

TEST(SingleThreadHunt, NothingExceedsABound) {
  for (const SingleThreadAnalysis &analysis : single_thread_analyses()) {
    const Catch found = hunt(analysis, seeds_of(300), [](const Executor &, std::size_t) { return time_ns{0}; });
    EXPECT_EQ(found.exceeded, 0) << found.first;
    EXPECT_GT(found.checked, 500) << analysis.name;
  }
}

time_ns shortest_other(const Executor &executor, std::size_t chain) {
  time_ns shortest_ns = never_ns;
  for (std::size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != chain) shortest_ns = std::min(shortest_ns, executor.chains()[other].execution_ns);
  }
  return shortest_ns;
}

time_ns blocking(const Executor &executor, std::size_t chain) {
  time_ns longest_ns = 0;
  for (std::size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != chain && !executor.above(other, chain))
      longest_ns = std::max(longest_ns, executor.chains()[other].longest_ns - 1);
  }
  return longest_ns;
}

// One set fewer.
time_ns all_others(const Executor &executor, std::size_t chain) {
  time_ns sum_ns = 0;
  for (std::size_t other = 0; other < executor.chains().size(); ++other) {
    if (other != chain) sum_ns += executor.chains()[other].execution_ns;
  }
  return sum_ns;
}

TEST(SingleThreadHunt, CatchesABoundThatForgets) {
  EXPECT_GT(hunt(*find_single_thread_analysis("single-any-order"), 300, shortest_other).exceeded, 0);
  EXPECT_GT(hunt(*find_single_thread_analysis("single-priority"), 300, blocking).exceeded, 0);
  EXPECT_GT(hunt(*find_single_thread_analysis("single-ready-sets"), 300, all_others).exceeded, 0);
}

}  // namespace
}  // namespace tide::analysis
