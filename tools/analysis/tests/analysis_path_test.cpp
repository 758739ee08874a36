// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/random_system.h"
#include "analysis/system.h"

namespace tide::analysis {
namespace analysis_path_test {

// Two executors with one core each. A path goes from the first to the second, which also has a local chain.
Description two_executors(time_ns upstream_ns, time_ns delay_ns) {
  Description description;
  description.executors = {{"first", Policy::priority, {{1, 1}}}, {"second", Policy::priority, {{1, 1}}}};
  description.chains = {{"sense", "first", {{"a", 5, ""}, {"b", 3, ""}}, 100, 60, 0, 2, false},
                        {"noise", "first", {{"n", upstream_ns, ""}}, 100, 90, 0, 1, false},
                        {"act", "second", {{"c", 5, ""}}, 100, 20, 0, 2, false},
                        {"local", "second", {{"d", 3, ""}, {"e", 3, ""}}, 100, 100, 0, 1, false}};
  description.paths = {{"all", {"sense", "act"}, {delay_ns}, 90}};
  return description;
}

SystemResult analysed(const Description &description, bool refine = true) {
  const Built built = System::build(description);
  EXPECT_TRUE(built.system.has_value()) << (built.errors.empty() ? "" : built.errors.front());
  Options options;
  options.refine = refine;
  return analyse_system(*built.system, options);
}

TEST(Path, AddsBoundsAndDelays) {
  const SystemResult result = analysed(two_executors(10, 4));
  ASSERT_TRUE(result.settled);
  const PathResult &path = result.paths[0];
  // sense: blocked for 9, then its own 8. act: blocked for 2 by a local callback, then its own 5.
  EXPECT_EQ(path.segments_ns[0], 17);
  EXPECT_EQ(path.segments_ns[1], 7);
  EXPECT_EQ(path.response_ns, 17 + 4 + 7);
  EXPECT_EQ(path.jitter_ns, (std::vector<time_ns>{0, 21}));
  EXPECT_TRUE(path.guaranteed);
  EXPECT_TRUE(result.guaranteed);
}

TEST(Path, JitterReachesTheChainsBelow) {
  // If the jitter of the path's second segment is long enough, two of its releases fall into the window of the local
  // chain.
  const time_ns calm = *analysed(two_executors(10, 4)).executors[1].chains[1].response_ns;
  const time_ns late = *analysed(two_executors(10, 70)).executors[1].chains[1].response_ns;
  EXPECT_EQ(calm, 11);
  const SystemResult result = analysed(two_executors(10, 80));
  EXPECT_EQ(result.paths[0].jitter_ns[1], 97);
  EXPECT_EQ(result.executors[1].analysis->name, "theorem4-safe");  // the theorem for arbitrary deadlines
  EXPECT_GT(*result.executors[1].chains[1].response_ns, calm);
  EXPECT_LE(calm, late);
}

TEST(Path, NoBoundUpstreamTakesTheGuaranteeDownstream) {
  Description description = two_executors(10, 4);
  description.chains[1].priority = 3;
  description.chains[1].callbacks[0].execution_ns = 100;  // the core is full
  const SystemResult result = analysed(description);
  EXPECT_FALSE(result.settled);
  EXPECT_FALSE(result.paths[0].response_ns.has_value());
  EXPECT_FALSE(result.guaranteed);
  EXPECT_FALSE(result.executors[1].chains[1].response_ns);
  EXPECT_FALSE(result.executors[1].chains[1].guaranteed);
  // The path and the local chain have the same root cause: the overloaded executor.
  for (const auto &why : {result.paths[0].why, result.why[1][1]}) {
    ASSERT_TRUE(why);
    EXPECT_EQ(why->kind, Shortfall::Kind::overload);
    EXPECT_EQ(why->executor, 0U);
  }
}

TEST(Path, ABoundUpstreamThatMissesItsDeadlineIsABound) {
  Description description = two_executors(10, 4);
  const SystemResult in_time = analysed(description);
  description.chains[0].deadline_ns = 10;  // so the path has a bound, but misses its deadline
  const SystemResult result = analysed(description);
  EXPECT_TRUE(result.settled);
  EXPECT_FALSE(result.guaranteed);
  EXPECT_FALSE(result.executors[0].chains[0].met);
  EXPECT_EQ(result.executors[0].chains[0].response_ns, in_time.executors[0].chains[0].response_ns);
  EXPECT_TRUE(result.executors[1].chains[1].guaranteed);
  EXPECT_EQ(result.paths[0].response_ns, in_time.paths[0].response_ns);
}

TEST(Path, ARingOfExecutorsEndsOneWayOrTheOther) {
  // Each path makes the other one late: the jitters grow until there is no bound.
  Description description;
  description.executors = {{"x", Policy::ready_set, {{1, 1}}}, {"y", Policy::ready_set, {{1, 1}}}};
  description.chains = {{"p1", "x", {{"a", 45, ""}}, 100, 100, 0, 1, false},
                        {"p2", "y", {{"b", 45, ""}}, 100, 100, 0, 1, false},
                        {"q1", "y", {{"c", 45, ""}}, 100, 100, 0, 2, false},
                        {"q2", "x", {{"d", 45, ""}}, 100, 100, 0, 2, false}};
  description.paths = {{"p", {"p1", "p2"}, {0}, 400}, {"q", {"q1", "q2"}, {0}, 400}};
  const SystemResult heavy = analysed(description);
  EXPECT_FALSE(heavy.guaranteed);
  EXPECT_FALSE(heavy.settled);
  for (const PathResult &path : heavy.paths) {
    ASSERT_TRUE(path.why);
    EXPECT_FALSE(path.response_ns);
    EXPECT_GT(path.why->reached_ns, path.why->limit_ns);
  }
  for (ChainEntry &chain : description.chains) chain.callbacks[0].execution_ns = 5;
  const SystemResult light = analysed(description);
  EXPECT_TRUE(light.settled);
  EXPECT_TRUE(light.guaranteed);
  EXPECT_EQ(light.paths[0].response_ns, 20);
}

TEST(Path, WhatTheShortestRunsTakeIsNoJitter) {
  Description description = two_executors(10, 4);
  for (CallbackEntry &callback : description.chains[0].callbacks) callback.least_ns = callback.execution_ns - 1;
  const SystemResult result = analysed(description);
  EXPECT_EQ(result.paths[0].jitter_ns, (std::vector<time_ns>{0, 21 - (4 + 2)}));
  EXPECT_EQ(result.paths[0].response_ns, 17 + 4 + 7);
  description.chains[0].callbacks[0].least_ns = 6;
  EXPECT_EQ(System::build(description).errors,
            std::vector<std::string>{"chain 'sense', callback 'a': least_ns must be from 0 to its execution_ns"});
}

// If a long execution precedes a short one, the next segment has two releases that are closer together than a period.
TEST(Path, ALongRunBeforeAShortOneIsMet) {
  Description description;
  description.executors = {{"first", Policy::priority, {{1, 1}}}, {"second", Policy::priority, {{1, 1}}}};
  description.chains = {{"sense", "first", {{"a", 10, ""}}, 20, 20, 0, 1, false},
                        {"act", "second", {{"b", 5, ""}}, 20, 20, 0, 2, false},
                        {"local", "second", {{"c", 5, ""}, {"d", 8, ""}}, 100, 100, 0, 1, false}};
  description.paths = {{"path", {"sense", "act"}, {0}, 40}};
  for (const time_ns least_ns : {0, 4, 5, 10}) {
    description.chains[0].callbacks[0].least_ns = least_ns;
    const System system = *System::build(description).system;
    const Executor &second = system.executors()[1];
    // The first execution takes 10, the second one least_ns. The local chain is released at the end of the first
    // execution.
    const Scenario played{{{{10, {}}, {20 + least_ns, {}}}, {{10, {}}}}, {}, {}};
    const time_ns bound_ns = *analysed(description).executors[1].chains[1].response_ns;
    const time_ns observed_ns = run_schedule(second, played).worst_ns(1);
    EXPECT_EQ(observed_ns, least_ns == 0 ? 23 : 18);
    EXPECT_GE(bound_ns, observed_ns) << least_ns;
    if (least_ns == 10) {
      EXPECT_EQ(bound_ns, 18);
    }
  }
}

TEST(Path, ARingSettlesWhereRunsAreNeverShort) {
  Description description;
  description.executors = {{"x", Policy::ready_set, {{1, 1}}}, {"y", Policy::ready_set, {{1, 1}}}};
  description.chains = {{"p1", "x", {{"a", 24, ""}}, 100, 100, 0, 1, false},
                        {"p2", "y", {{"b", 24, ""}}, 100, 100, 0, 1, false},
                        {"q1", "y", {{"c", 24, ""}}, 100, 100, 0, 2, false},
                        {"q2", "x", {{"d", 24, ""}}, 100, 100, 0, 2, false}};
  description.paths = {{"p", {"p1", "p2"}, {0}, 400}, {"q", {"q1", "q2"}, {0}, 400}};
  EXPECT_TRUE(analysed(description).settled);
  for (int execution_ns = 24;; ++execution_ns) {
    ASSERT_LT(execution_ns, 50);
    for (ChainEntry &chain : description.chains) chain.callbacks[0] = {"a", execution_ns, "", 0, 0};
    if (analysed(description).settled) continue;
    for (ChainEntry &chain : description.chains) chain.callbacks[0].least_ns = execution_ns;
    EXPECT_TRUE(analysed(description).settled) << execution_ns;
    break;
  }
}

// The schedules of the two executors are computed one after the other: the ends in the first are the releases in the
// second.
TEST(Path, NoScheduleExceedsItsBound) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomSystem random(seed);
    const bool never_short = random.chance(50);
    const time_ns period = random.within(30, 60);
    const time_ns delay = random.within(0, 30);
    Description description;
    description.executors = {{"first", Policy::priority, std::vector<Lane>(random.chance(50) ? 1U : 2U)},
                             {"second", Policy::priority, std::vector<Lane>(random.chance(50) ? 1U : 2U)}};
    for (const char *executor : {"first", "second"}) {
      for (int index = 0; index < 3; ++index) {
        const time_ns own = index == 1 ? period : random.within(30, 60);
        ChainEntry chain{executor + std::to_string(index), executor, {}, own, own, 0, index, false};
        for (time_ns callback = random.within(1, 3); callback > 0; --callback) {
          const time_ns execution_ns = random.within(1, 6);
          chain.callbacks.push_back({"c", execution_ns, "", 0, never_short ? random.within(0, execution_ns) : 0});
        }
        description.chains.push_back(chain);
      }
    }
    description.paths = {{"path", {"first1", "second1"}, {delay}, 500}};
    const System system = *System::build(description).system;
    Options options;
    options.refine = true;
    const SystemResult result = analyse_system(system, options);
    if (!result.guaranteed) continue;
    Scenario first = random.scenario(system.executors()[0], 600);
    for (Release &release : first.releases[1]) {
      for (size_t place = 0; place < release.execution_ns.size(); ++place) {
        const time_ns least_ns = system.executors()[0].chains()[1].callbacks[place].least_ns;
        release.execution_ns[place] = std::max(release.execution_ns[place], least_ns);
      }
    }
    const Schedule upstream = run_schedule(system.executors()[0], first);
    Scenario second = random.scenario(system.executors()[1], 600);
    second.releases[1].clear();
    for (size_t instance = 0; instance < first.releases[1].size(); ++instance) {
      const time_ns end = first.releases[1][instance].at_ns + upstream.response_ns[1][instance];
      second.releases[1].push_back({end + random.within(0, delay), {}});
    }
    std::sort(second.releases[1].begin(), second.releases[1].end(),
              [](const Release &left, const Release &right) { return left.at_ns < right.at_ns; });
    const Schedule downstream = run_schedule(system.executors()[1], second);
    for (size_t chain = 0; chain < 3; ++chain) {
      ++checked;
      ASSERT_LE(downstream.worst_ns(chain), *result.executors[1].chains[chain].response_ns) << "seed " << seed;
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace analysis_path_test
}  // namespace tide::analysis
