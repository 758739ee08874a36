// SPDX-License-Identifier: Apache-2.0
// Executors with one thread: examples computed by hand, and published ones. The comparison with schedules is in
// analysis_hunt_test.
#include "analysis/single.h"

#include <gtest/gtest.h>

#include "analysis/random_system.h"
#include "analysis/trials.h"

namespace tide::analysis {
namespace analysis_single_thread_test {

Executor one_thread(Policy policy, std::vector<Chain> chains, Lane lane = {1, 1}) {
  return {"one", policy, {lane}, std::move(chains)};
}

time_ns bound_of(const char *name, const Executor &executor, size_t chain) {
  const auto bound_ns = find_single_thread_analysis(name)->bound(executor, chain);
  EXPECT_TRUE(bound_ns) << name;
  return bound_ns.value_or(-1);
}

TEST(SingleThread, ByHand) {
  const std::vector<Chain> chains{make_chain({2, 1}, 20, 20, 2), make_chain({4, 3}, 50, 50, 1)};
  const Executor priority = one_thread(Policy::priority, chains);
  EXPECT_EQ(bound_of("single-priority", priority, 0), 3 + 3);  // blocked for 3, because 1 of the blocking callback's 4
                                                               // has been executed
  EXPECT_EQ(bound_of("single-priority", priority, 1), 7 + 3);  // no chain is less important
  const Executor any = one_thread(Policy::ready_set, chains);
  EXPECT_EQ(bound_of("single-any-order", any, 0), 3 + 7);
  EXPECT_EQ(bound_of("single-ready-sets", any, 1), 7 + 3);  // a busy window of 10 contains one instance of the other
                                                            // chain
}

TEST(SingleThread, AFrequentChainIsInEachReadySetOnce) {
  // The callbacks of the other chains become ready five and four times, but a chain of one callback waits for only two
  // sets.
  const Executor executor = one_thread(
      Policy::ready_set, {make_chain({1}, 100, 100, 3), make_chain({3}, 7, 100, 2), make_chain({4}, 8, 100, 1)});
  EXPECT_EQ(bound_of("single-any-order", executor, 0), 5 * 3 + 4 * 4 + 1);
  EXPECT_EQ(bound_of("single-ready-sets", executor, 0), 2 * (3 + 4) + 1);
  EXPECT_EQ(single_thread_bound(executor, 0), 15);
}

// The second chain's callback has started when the first chain is released. In the following set, a cached timer runs
// once, and a live timer as often as it has expired.
TEST(SingleThread, ALiveTimerRunsManyTimesInAReadySet) {
  std::vector<Chain> chains{make_chain({1, 1}, 100, 100, 3), make_chain({1}, 4, 100, 2), make_chain({16}, 100, 100, 1)};
  for (Chain &chain : chains) chain.timer = true;
  Scenario scenario;
  scenario.releases = {{{1, {}}}, {}, {{0, {}}}};
  for (time_ns at_ns = 1; at_ns < 60; at_ns += 4) scenario.releases[1].push_back({at_ns, {}});
  const Executor cached = one_thread(Policy::wait_set, chains), live = one_thread(Policy::ready_set, chains);
  const time_ns cached_ns = bound_of("single-wait-sets", cached, 0), live_ns = bound_of("single-ready-sets", live, 0);
  EXPECT_LE(run_schedule(cached, scenario).worst_ns(0), cached_ns);
  EXPECT_GT(run_schedule(live, scenario).worst_ns(0), cached_ns);
  EXPECT_LE(run_schedule(live, scenario).worst_ns(0), live_ns);
}

// A bound is used only for executors that have the order for which it is proved.
TEST(SingleThread, ABoundIsUsedWhereItHolds) {
  const std::vector<Policy> policies{Policy::any_order, Policy::ready_set, Policy::wait_set, Policy::fifo,
                                     Policy::priority};
  const bool holds[5][5] = {{true, true, true, true, true},
                            {false, true, true, false, false},
                            {false, false, true, false, false},
                            {false, false, false, true, false},
                            {false, false, false, false, true}};
  for (size_t proved = 0; proved < policies.size(); ++proved) {
    for (size_t used = 0; used < policies.size(); ++used)
      EXPECT_EQ(holds_for(policies[proved], policies[used]), holds[proved][used]) << proved << ", " << used;
  }
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    RandomSystem random(seed);
    for (const Policy policy : policies) {
      const Executor drawn = random.executor(policy, Deadlines::constrained, false, false, 3);
      const Executor executor = one_thread(policy, drawn.chains());
      int64_t work = 1'000'000'000;
      for (const ChainResult &one : single_thread_results(executor, work))
        EXPECT_TRUE(holds_for(one.proved_for, policy)) << seed << ", " << one.analysis;
    }
  }
}

// The parts of a bound add up to the whole demand.
TEST(SingleThread, PartsAreTheWholeDemand) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomSystem random(seed);
    for (const Policy policy :
         {Policy::any_order, Policy::ready_set, Policy::wait_set, Policy::fifo, Policy::priority}) {
      const Executor drawn = random.executor(policy, Deadlines::arbitrary, false, false, 3);
      const Executor executor = one_thread(policy, drawn.chains());
      int64_t work = 1'000'000'000;
      const auto results = single_thread_results(executor, work);
      for (size_t chain = 0; chain < results.size(); ++chain) {
        const ChainResult &one = results[chain];
        if (!one.response_ns) continue;
        const Breakdown &parts = one.breakdown;
        time_ns sum_ns = parts.precedence_ns + parts.own_ns + parts.blocking_ns;
        for (const time_ns share_ns : parts.interference_ns) sum_ns += share_ns;
        EXPECT_EQ(sum_ns, parts.demand_ns);
        EXPECT_EQ(parts.window_ns + parts.finish_ns, *one.response_ns);
        EXPECT_EQ(parts.finish_ns, executor.chains()[chain].last_ns) << seed;
        // On a dedicated core, the demand equals the window plus the time from the start of the busy window to the
        // release of the instance.
        EXPECT_GE(sum_ns, parts.window_ns) << seed << ", " << one.analysis;
      }
    }
  }
}

TEST(SingleThread, AnInstanceComesNoFurtherThanACallbackInEachReadySet) {
  const Executor executor =
      one_thread(Policy::ready_set, {make_chain({1}, 100, 100, 2), make_chain({2, 3, 4, 2}, 100, 100, 1)});
  EXPECT_EQ(bound_of("single-any-order", executor, 0), 11 + 1);
  EXPECT_EQ(bound_of("single-ready-sets", executor, 0), 3 + 4 + 1);  // the rest of one set: 3; the next: 4 + 1
}

// In a queue, a frequent chain goes ahead of another only with what has entered before. In any order, it goes ahead as
// often as it is released.
TEST(SingleThread, AQueueTakesWhatEnteredBefore) {
  const std::vector<Chain> frequent{make_chain({1}, 100, 100, 3), make_chain({3}, 7, 100, 2),
                                    make_chain({4}, 8, 100, 1)};
  const Executor queue = one_thread(Policy::fifo, frequent);
  EXPECT_EQ(bound_of("single-fifo", queue, 0), 1 + 3 + 4);  // all three released at once
  EXPECT_EQ(bound_of("single-any-order", queue, 0), 5 * 3 + 4 * 4 + 1);
  EXPECT_EQ(single_thread_bound(queue, 0), 8);
  // The other chain has started a callback and published for the next one when the first chain is released.
  const Executor chain =
      one_thread(Policy::fifo, {make_chain({1}, 100, 100, 2), make_chain({2, 3, 4, 2}, 100, 100, 1)});
  EXPECT_EQ(bound_of("single-fifo", chain, 0), 3 + 4 + 1);
  Scenario scenario;
  scenario.releases = {{{3, {}}}, {{0, {}}}};
  scenario.publishes_first = true;
  EXPECT_EQ(run_schedule(chain, scenario).worst_ns(0), 2 + 4 + 1);
  scenario.publishes_first = false;
  EXPECT_EQ(run_schedule(chain, scenario).worst_ns(0), 2 + 1);
}

// The bound for ready sets does not hold for a queue, which may contain a callback several times.
TEST(SingleThread, AQueueMayContainACallbackTwice) {
  const std::vector<Chain> chains{make_chain({1}, 100, 100, 3), make_chain({3}, 10, 100, 2),
                                  make_chain({20}, 100, 100, 1)};
  Scenario scenario;
  scenario.releases = {{{20, {}}}, {{1, {}}, {11, {}}}, {{0, {}}}};
  const time_ns worst_ns = run_schedule(one_thread(Policy::fifo, chains), scenario).worst_ns(0);
  EXPECT_EQ(worst_ns, 3 + 3 + 1);
  EXPECT_LE(worst_ns, bound_of("single-fifo", one_thread(Policy::fifo, chains), 0));
}

TEST(SingleThread, InstancesThatArePendingAtTheReleaseCount) {
  // In a busy window of 38, the second chain runs twice. It may also run twice in a window of 21, because an instance
  // that is pending at the beginning was released up to 10 earlier, where 10 is the chain's bound.
  const Executor executor =
      one_thread(Policy::ready_set, {make_chain({1, 1, 1, 1}, 100, 100, 3), make_chain({2}, 30, 30, 2),
                                     make_chain(std::vector<time_ns>(10, 3), 100, 100, 1)});
  EXPECT_EQ(bound_of("single-ready-sets", executor, 1), 2 + 6 + 2);
  EXPECT_EQ(bound_of("single-ready-sets", executor, 0), 5 * 3 + 2 * 2 + 4);
}

TEST(SingleThread, ABudgetDelays) {
  const Executor executor = one_thread(Policy::priority, {make_chain({3}, 100, 100, 1)}, {2, 5});
  EXPECT_EQ(bound_of("single-priority", executor, 0), 2 * 3 + 2 + 3 + 1);
}

TEST(SingleThread, LaterInstancesOfABusyWindowCount) {
  // A callback that is not preempted delays the first instance, and so the second instance takes longer than the first
  // (Davis et al. 2007).
  const Executor executor =
      one_thread(Policy::priority,
                 {make_chain({100}, 250, 250, 3), make_chain({100}, 350, 325, 2), make_chain({100}, 350, 350, 1)});
  EXPECT_EQ(bound_of("single-priority", executor, 2), 350);  // the first instance takes 300
}

TEST(SingleThread, OverloadHasNoBound) {
  const Executor executor = one_thread(Policy::ready_set, {make_chain({9}, 10, 10, 2), make_chain({9}, 10, 10, 1)});
  for (const SingleThreadAnalysis &one : single_thread_analyses()) {
    if (one.policy == Policy::ready_set) {
      EXPECT_FALSE(one.bound(executor, 0)) << one.name;
    }
  }
}

Chain with_jitter(Chain chain, time_ns jitter_ns) {
  chain.jitter_ns = jitter_ns;
  return chain;
}

// Examples that come with an author's program (docs/analysis/single_thread.md).
TEST(SingleThread, PublishedExamples) {
  const Executor budget =
      one_thread(Policy::ready_set,
                 {make_chain({1, 2, 3}, 25, 250, 3), with_jitter(make_chain({1, 1, 1}, 20, 200, 2), 25),
                  with_jitter(make_chain({2, 1}, 20, 200, 1), 25)},
                 {3, 5});
  EXPECT_EQ(bound_of("casini2019-published", budget, 0), 72);
  const Executor polled = one_thread(
      Policy::ready_set,
      {make_chain({10}, 100, 10'000, 3), make_chain({230}, 10'000, 10'000, 2), make_chain({190}, 1000, 10'000, 1)});
  EXPECT_EQ(bound_of("blass2021-published", polled, 0), 10 * 10 + 190 + 230 + 10);
  EXPECT_EQ(bound_of("blass2021-published", polled, 1), 10 + 10 + 190 + 230);
  EXPECT_EQ(bound_of("blass2021-published", polled, 2), 10 + 10 + 230 + 190);
  EXPECT_EQ(bound_of("blass2021-busy-published", polled, 0), 190 + 230 + 10);
  EXPECT_EQ(bound_of("blass2021-busy-published", polled, 1), 3 * 10 + 190 + 230 - 1);
  EXPECT_EQ(bound_of("blass2021-busy-published", polled, 2), 3 * 10 + 190 + 230 - 1);
}

// Computed by hand: the sum of blocking, execution, and the more important work that arrives meanwhile. If this sum
// exceeds the period, the published bound adds one period.
TEST(SingleThread, PublishedWithPriorities) {
  const Executor executor = one_thread(
      Policy::priority, {make_chain({2, 1}, 10, 10, 3), make_chain({2, 2}, 20, 20, 2), make_chain({1, 4}, 25, 25, 1)});
  EXPECT_EQ(bound_of("picas2021-published", executor, 0), 4 + 3);
  EXPECT_EQ(bound_of("picas2021-published", executor, 1), 4 + 4 + 2 * 3);
  EXPECT_EQ(bound_of("picas2021-published", executor, 2), 5 + 2 * 3 + 4);
  EXPECT_FALSE(find_single_thread_analysis("picas2021-published")
                   ->bound(one_thread(Policy::priority, {with_jitter(make_chain({1}, 10, 10, 1), 1)}), 0));
}

// The published bound counts one instance of the chain and adds a period. At a load of 98 %, more instances than that
// accumulate, so the bound is exceeded.
TEST(SingleThread, ThePublishedBoundWithPrioritiesIsExceeded) {
  const Executor executor = one_thread(
      Policy::priority, {make_chain({9}, 16, 16, 3), make_chain({11}, 40, 40, 2), make_chain({1}, 7, 50, 1)});
  Scenario scenario;
  for (const Chain &chain : executor.chains()) {
    scenario.releases.emplace_back();
    for (time_ns at_ns = 0; at_ns < 200; at_ns += chain.period_ns) scenario.releases.back().push_back({at_ns, {}});
  }
  const time_ns worst_ns = run_schedule(executor, scenario).worst_ns(2);
  EXPECT_EQ(bound_of("picas2021-published", executor, 2), 30 + 7);
  EXPECT_EQ(worst_ns, 41);
  EXPECT_GE(bound_of("single-priority", executor, 2), worst_ns);
}

// The safe bound counts later instances of the chain without their last callback, because instances pass each callback
// in order.
TEST(SingleThread, NoBoundForAnyOrderIsAboveThePublishedOne) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomSystem random(seed);
    const Executor drawn = random.executor(Policy::ready_set, Deadlines::arbitrary, false, seed % 2 == 0, 2);
    const Executor executor = one_thread(Policy::ready_set, drawn.chains(), drawn.lanes()[0]);
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
      const auto ours_ns = find_single_thread_analysis("single-any-order")->bound(executor, chain);
      const auto theirs_ns = find_single_thread_analysis("casini2019-published")->bound(executor, chain);
      ASSERT_EQ(ours_ns.has_value(), theirs_ns.has_value()) << seed;
      EXPECT_LE(ours_ns, theirs_ns) << seed << ", chain " << chain;
    }
  }
}

TEST(SingleThread, SharpenedIsNeverHigherAndNeedsNoOther) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomSystem random(seed);
    const Executor drawn = random.executor(Policy::priority, Deadlines::constrained, false, false, 3);
    const Executor executor = one_thread(Policy::priority, drawn.chains());
    const Result plain = analyse(*find_analysis("theorem2-safe"), executor);
    const Result sharp = sharpened(executor, plain);
    for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
      EXPECT_TRUE(!plain.chains[chain].guaranteed || sharp.chains[chain].guaranteed) << seed;
      if (!plain.chains[chain].guaranteed) continue;
      EXPECT_LE(*sharp.chains[chain].response_ns, *plain.chains[chain].response_ns) << seed;
    }
  }
}

}  // namespace analysis_single_thread_test
}  // namespace tide::analysis
