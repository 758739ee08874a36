// SPDX-License-Identifier: Apache-2.0
// The worked examples of the documentation, exact to the nanosecond.
#include <gtest/gtest.h>

#include "analysis/threads.h"
#include "analysis/trials.h"

namespace tide::analysis {
namespace analysis_theorem_test {

constexpr time_ns kNone = -1;

std::vector<time_ns> responses(const Result &result) {
  std::vector<time_ns> all;
  for (const ChainResult &chain : result.chains) all.push_back(chain.response_ns.value_or(kNone));
  return all;
}

std::vector<time_ns> bounds(std::string_view name, const Executor &executor, const Options &options = {}) {
  const Analysis *analysis = find_analysis(name);
  if (analysis == nullptr) {
    ADD_FAILURE() << "no analysis " << name;
    return {};
  }
  const Result result = analyse(*analysis, executor, options);
  EXPECT_EQ(result.error, "") << name;
  return responses(result);
}

std::vector<Lane> cores(size_t count) { return std::vector<Lane>(count); }

// Chain A with execution times 1 and 2, and the less important chain B with 3 and 4. With `lock`, the first callbacks
// of both are in one group.
Executor two_chains(std::vector<Lane> lanes, time_ns period_ns = 20, bool lock = false) {
  std::vector<Chain> chains{make_chain({1, 2}, period_ns, period_ns, 2), make_chain({3, 4}, period_ns, period_ns, 1)};
  if (lock) {
    for (Chain &chain : chains) chain.callbacks[0].group = 0;
    return {"e", Policy::priority, std::move(lanes), std::move(chains), {"lock"}};
  }
  return {"e", Policy::priority, std::move(lanes), std::move(chains)};
}

using Pair = std::vector<time_ns>;

struct Row {
  const char *theorem;
  size_t lanes;
  Pair published;
  Pair safe;        // safe bounds with Options::whole_instances
  Pair safe_sharp;  // safe bounds without it; empty: not compared
};

TEST(Theorems, ReentrantExample) {
  const std::vector<Row> rows{
      {"theorem1", 1, {17, 13}, {17, 13}, {17, 13}}, {"theorem1", 2, {6, 10}, {6, 10}, {6, 10}},
      {"theorem2", 1, {6, 13}, {6, 13}, {6, 13}},    {"theorem2", 2, {4, 10}, {4, 10}, {4, 10}},
      {"theorem3", 1, {20, 20}, {20, 20}, {}},       {"theorem3", 2, {8, 10}, {8, 13}, {6, 10}},
      {"theorem4", 1, {9, 20}, {9, 20}, {}},         {"theorem4", 2, {4, 10}, {9, 13}, {4, 10}},
  };
  Options whole;
  whole.whole_instances = true;
  for (const Row &row : rows) {
    const Executor executor = two_chains(cores(row.lanes));
    const std::string name = row.theorem;
    EXPECT_EQ(bounds(name + "-published", executor), row.published) << name << ", lanes " << row.lanes;
    EXPECT_EQ(bounds(name + "-safe", executor, whole), row.safe) << name << ", lanes " << row.lanes;
    if (row.safe_sharp.empty()) continue;
    EXPECT_EQ(bounds(name + "-safe", executor), row.safe_sharp) << name << ", lanes " << row.lanes;
  }
}

TEST(Theorems, ExampleWithAGroup) {
  const std::vector<Row> rows{
      {"theorem5-constrained", 1, {23, 15}, {23, 15}, {}}, {"theorem5-constrained", 2, {16, 12}, {16, 12}, {}},
      {"theorem5-arbitrary", 1, {39, 22}, {41, 26}, {}},   {"theorem5-arbitrary", 2, {17, 15}, {18, 18}, {}},
      {"theorem6-constrained", 1, {6, 15}, {8, 15}, {}},   {"theorem6-constrained", 2, {4, 12}, {6, 12}, {}},
      {"theorem6-arbitrary", 1, {9, 22}, {12, 26}, {}},    {"theorem6-arbitrary", 2, {4, 15}, {12, 18}, {}},
  };
  Options whole;
  whole.whole_instances = true;
  for (const Row &row : rows) {
    const Executor executor = two_chains(cores(row.lanes), 20, true);
    const std::string name = row.theorem;
    EXPECT_EQ(bounds(name + "-published", executor), row.published) << name << ", lanes " << row.lanes;
    EXPECT_EQ(bounds(name + "-safe", executor, whole), row.safe) << name << ", lanes " << row.lanes;
  }
}

TEST(Theorems, RefinedExample) {
  Options refine;
  refine.refine = true;
  EXPECT_EQ(bounds("theorem1-safe", two_chains(cores(1)), refine), (Pair{10, 10}));
  EXPECT_EQ(bounds("theorem1-safe", two_chains(cores(2)), refine), (Pair{5, 8}));
  EXPECT_EQ(bounds("theorem2-safe", two_chains(cores(1)), refine), (Pair{6, 10}));
  EXPECT_EQ(bounds("theorem2-safe", two_chains(cores(2)), refine), (Pair{4, 8}));
}

TEST(Theorems, ReservationExample) {
  const std::vector<Lane> one{{4, 5}};
  const std::vector<Lane> two{{4, 5}, {4, 5}};
  const std::vector<Lane> mixed{{1, 2}, {1, 1}};
  EXPECT_EQ(bounds("theorem1-published", two_chains(one, 60)), (Pair{24, 19}));
  EXPECT_EQ(bounds("theorem2-published", two_chains(one, 60)), (Pair{11, 19}));
  EXPECT_EQ(bounds("theorem1-safe", two_chains(one, 60)), (Pair{24, 19}));
  EXPECT_EQ(bounds("theorem2-safe", two_chains(one, 60)), (Pair{11, 19}));
  EXPECT_EQ(bounds("theorem1-published", two_chains(two, 60)), (Pair{12, 15}));
  EXPECT_EQ(bounds("theorem2-published", two_chains(two, 60)), (Pair{8, 15}));
  EXPECT_EQ(bounds("theorem1-safe", two_chains(two, 60)), (Pair{12, 16}));
  EXPECT_EQ(bounds("theorem2-safe", two_chains(two, 60)), (Pair{11, 16}));
  EXPECT_EQ(bounds("theorem1-published", two_chains(mixed, 60)), (Pair{10, 16}));
  EXPECT_EQ(bounds("theorem2-published", two_chains(mixed, 60)), (Pair{8, 16}));
  EXPECT_EQ(bounds("theorem1-safe", two_chains(mixed, 60)), (Pair{10, 18}));
  EXPECT_EQ(bounds("theorem2-safe", two_chains(mixed, 60)), (Pair{10, 18}));
}

TEST(Theorems, WorkedByHand) {
  // A's first callback takes 1. In A's window of 16, lengthened by B's slack of 13, two instances of B execute for 3 +
  // 4 each.
  const Result result = analyse(*find_analysis("theorem1-published"), two_chains(cores(1)));
  const Breakdown &a = result.chains[0].breakdown;
  EXPECT_EQ(a.window_ns, 16);
  EXPECT_EQ(a.finish_ns, 1);
  EXPECT_EQ(a.precedence_ns, 1);
  EXPECT_EQ(a.interference_ns, (std::vector<time_ns>{0, 14}));
  EXPECT_EQ(a.demand_ns, 15);
}

TEST(Theorems, VerdictsSayWhatTheyDependOn) {
  const Executor executor = two_chains(cores(2));
  const Result by_priority = analyse(*find_analysis("theorem2-safe"), executor);
  ASSERT_EQ(by_priority.chains[0].depends_on.size(), 1U);
  EXPECT_EQ(by_priority.chains[0].depends_on[0].chain, 1U);
  EXPECT_EQ(by_priority.chains[0].depends_on[0].reason, Reason::blocking);
  EXPECT_EQ(by_priority.chains[1].depends_on[0].reason, Reason::interference);
  EXPECT_TRUE(by_priority.chains[1].guaranteed);
  EXPECT_FALSE(analyse(*find_analysis("theorem2-published"), executor).chains[1].guaranteed);
}

// The less important chain is far too late, so no bound may rely on its deadline. On the default executor, where every
// bound relies on all chains, no chain is guaranteed.
TEST(Theorems, ALateChainTakesTheGuaranteeOfThoseThatDependOnIt) {
  const std::vector<Chain> chains{make_chain({1, 2}, 40, 40, 2), make_chain({3, 30}, 40, 30, 1)};
  const Executor executor("e", Policy::priority, cores(3), chains);
  const Result by_default = analyse(*find_analysis("theorem1-safe"), executor);
  EXPECT_TRUE(by_default.chains[0].met);
  EXPECT_FALSE(by_default.chains[0].guaranteed);
  const Result by_priority = analyse(*find_analysis("theorem2-safe"), executor);
  EXPECT_TRUE(by_priority.chains[0].guaranteed);
  EXPECT_TRUE(by_priority.chains[0].depends_on.empty());
  EXPECT_EQ(by_priority.chains[0].breakdown.blocking_ns, 3 * 29);  // one instance of the late chain on each lane
  EXPECT_FALSE(by_priority.chains[1].guaranteed);
}

TEST(Theorems, SayWhyTheyDoNotApply) {
  const Executor grouped = two_chains(cores(2), 20, true);
  EXPECT_EQ(analyse(*find_analysis("theorem2-safe"), grouped).error,
            "theorem2-safe does not know mutually exclusive groups");
  Chain late = make_chain({1}, 10, 11, 1);
  late.name = "late";
  EXPECT_EQ(analyse(*find_analysis("theorem1-safe"), Executor("e", Policy::ready_set, cores(1), {late})).error,
            "theorem1-safe needs deadlines within periods, but that of chain 'late' exceeds its period");
  EXPECT_EQ(analyse(*find_analysis("theorem4-safe"), Executor("e", Policy::ready_set, cores(1), {late})).error,
            "theorem4-safe needs an executor that always takes the most important callback");
}

TEST(Theorems, TheRegistryHasAFittingOneForEachExecutor) {
  EXPECT_EQ(analyses().size(), 16U);
  EXPECT_EQ(find_analysis("theorem7-safe"), nullptr);
  EXPECT_EQ(fitting_analysis(two_chains(cores(2))).name, "theorem2-safe");
  EXPECT_EQ(fitting_analysis(two_chains(cores(2), 20, true)).name, "theorem6-constrained-safe");
  const Executor late("e", Policy::ready_set, cores(1), {make_chain({1}, 10, 11, 1)});
  EXPECT_EQ(fitting_analysis(late).name, "theorem3-safe");
}

TEST(Theorems, OverloadHasNoBound) {
  const std::vector<Chain> chains{make_chain({10}, 10, 10, 2), make_chain({5}, 10, 10, 1)};
  const Executor executor("e", Policy::priority, cores(1), chains);
  EXPECT_EQ(bounds("theorem2-safe", executor)[1], kNone);
  EXPECT_EQ(bounds("theorem1-safe", executor)[1], kNone);
}

// Whatever options are used, a guaranteed chain set is still guaranteed with deadlines twice as long.
TEST(Theorems, LongerDeadlinesRefuseNothing) {
  Options tight;
  tight.refine = tight.joint = tight.cap_running = true;
  Options refined;
  refined.refine = true;
  int met = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Recipe recipe;
    recipe.utilisation = seed % 2 == 0 ? 1.2 : 1.8;
    const Executor constrained = generate(recipe, seed);
    recipe.deadline_periods = 2;
    const Executor arbitrary = generate(recipe, seed);
    for (const Options &options : {refined, tight}) {
      for (const auto &[near, far] :
           {std::pair{"theorem1-safe", "theorem3-safe"}, {"theorem2-safe", "theorem4-safe"}}) {
        if (!analyse(*find_analysis(near), constrained, options).met) continue;
        ++met;
        EXPECT_TRUE(analyse(*find_analysis(far), arbitrary, options).met) << far << ", seed " << seed;
      }
    }
  }
  EXPECT_GT(met, 150);
}

// Long times in nanoseconds, with a demand that grows as fast as the supply: steps of 1 ns would take hours.
TEST(Theorems, FullLoadIsSolvedByCorners) {
  constexpr time_ns kMs = 1'000'000;
  const std::vector<Chain> chains{make_chain({3 * kMs, 30 * kMs}, 100 * kMs, 100 * kMs, 3),
                                  make_chain({30 * kMs, 3 * kMs}, 101 * kMs, 101 * kMs, 2),
                                  make_chain({33 * kMs}, 1000 * kMs, 1000 * kMs, 1)};
  const Executor executor("e", Policy::priority, cores(1), chains);
  EXPECT_EQ(bounds("theorem2-safe", executor), (Pair{66 * kMs - 1, 132 * kMs - 1, 165 * kMs}));
}

// A less important member of the group began at least 1 ns before the release, so a member that takes 1 ns has ended
// and does not block.
TEST(Theorems, ALessImportantGroupMateOfOneUnitHoldsNothing) {
  const auto bound_ns = [](time_ns mate_ns) {
    std::vector<Chain> chains{make_chain({2, 3}, 100, 100, 3), make_chain({mate_ns}, 100, 100, 2),
                              make_chain({5}, 100, 100, 1)};
    chains[0].callbacks[1].group = chains[1].callbacks[0].group = 0;
    const Executor executor("e", Policy::priority, cores(2), std::move(chains), {"lock"});
    return *analyse(*find_analysis("theorem6-constrained-safe"), executor).chains[0].response_ns;
  };
  const auto without = [] {
    const Executor executor(
        "e", Policy::priority, cores(2),
        {make_chain({2, 3}, 100, 100, 3), make_chain({1}, 100, 100, 2), make_chain({5}, 100, 100, 1)});
    return *analyse(*find_analysis("theorem2-safe"), executor).chains[0].response_ns;
  };
  EXPECT_EQ(bound_ns(1), without());
  EXPECT_GT(bound_ns(2), bound_ns(1));
}

}  // namespace analysis_theorem_test
}  // namespace tide::analysis
