// SPDX-License-Identifier: Apache-2.0
#include "analysis/model.h"

#include <gtest/gtest.h>

namespace tide::analysis {
namespace analysis_model_test {

Description two_chains() {
  Description description;
  description.executors = {{"main", Policy::priority, {{1, 1}, {3, 5}}}, {"other", Policy::ready_set, {{1, 1}}}};
  description.groups = {{"lock", "main"}};
  description.chains = {{"steer", "main", {{"read", 2, "lock"}, {"act", 3, ""}}, 20, 15, 1, 7, true},
                        {"log", "main", {{"write", 9, "lock"}}, 100, 100, 0, 9, false},
                        {"far", "other", {{"show", 4, ""}}, 20, 20, 0, 1, false}};
  description.paths = {{"all", {"steer", "far"}, {2}, 60}};
  return description;
}

// Applies one change to a correct description and returns the one error that results.
template <class Change> std::string error_of(Change change) {
  Description description = two_chains();
  change(description);
  const Built built = System::build(description);
  EXPECT_FALSE(built.system.has_value());
  EXPECT_EQ(built.errors.size(), 1U);
  return built.errors.empty() ? "" : built.errors.front();
}

TEST(Model, BuildsWhatWasDescribed) {
  const Built built = System::build(two_chains());
  ASSERT_TRUE(built.system.has_value()) << (built.errors.empty() ? "" : built.errors.front());
  const Executor &executor = built.system->executors()[0];
  EXPECT_EQ(executor.chains()[0].execution_ns, 5);
  EXPECT_EQ(executor.chains()[0].longest_ns, 3);
  EXPECT_EQ(executor.chains()[0].last_ns, 3);
  EXPECT_FALSE(executor.dedicated());
  EXPECT_TRUE(executor.has_groups());
  ASSERT_EQ(executor.members()[0].size(), 2U);
  EXPECT_EQ(executor.members()[0][1].chain, 1U);
  EXPECT_TRUE(executor.above(1, 0));
  EXPECT_EQ(executor.order(), (std::vector<size_t>{1, 0}));
  EXPECT_FALSE(built.system->executors()[1].has_groups());
  EXPECT_EQ(built.system->paths()[0].segments[1].executor, 1U);
  EXPECT_EQ(executor.with_jitter({4, 5}).chains()[1].jitter_ns, 5);
}

TEST(Model, ErrorsNameTheEntry) {
  EXPECT_EQ(error_of([](Description &d) {
              d.paths.clear();
              d.chains[0].period_ns = 0;
            }),
            "chain 'steer': period_ns is 0, but must be at least 1");
  EXPECT_EQ(error_of([](Description &d) { d.chains[0].callbacks[1].execution_ns = -3; }),
            "chain 'steer', callback 'act': execution_ns is -3, but must be at least 1");
  EXPECT_EQ(error_of([](Description &d) { d.chains[1].deadline_ns = kLongestTimeNs + 1; }),
            "chain 'log': deadline_ns is 1000000000000001, but must be at most 1000000000000000");
  EXPECT_EQ(error_of([](Description &d) { d.chains[1].priority = 7; }),
            "chain 'log': has the same priority as chain 'steer' on executor 'main'; priorities must be distinct");
  EXPECT_EQ(error_of([](Description &d) { d.executors[0].lanes[1].budget_ns = 6; }),
            "executor 'main', lane 2: budget_ns is larger than period_ns");
  EXPECT_EQ(error_of([](Description &d) { d.chains[2].callbacks[0].group = "lock"; }),
            "chain 'far', callback 'show': group 'lock' belongs to executor 'main'");
  EXPECT_EQ(error_of([](Description &d) { d.chains[1].callbacks[0].group = "luck"; }),
            "chain 'log', callback 'write': group 'luck' is unknown");
  EXPECT_EQ(error_of([](Description &d) {
              d.paths.clear();
              d.chains[1].name = "steer";
            }),
            "chain 'steer': the name is used twice");
  EXPECT_EQ(error_of([](Description &d) { d.chains[1].callbacks.clear(); }), "chain 'log': has no callback");
  EXPECT_EQ(error_of([](Description &d) { d.chains[2].executor = "none"; }), "chain 'far': executor 'none' is unknown");
  EXPECT_EQ(error_of([](Description &d) { d.paths[0].delays_ns.clear(); }),
            "path 'all': needs one delay between each two segments");
  EXPECT_EQ(error_of([](Description &d) { d.paths[0].segments[1] = "fur"; }), "path 'all': chain 'fur' is unknown");
  EXPECT_EQ(error_of([](Description &d) { d.chains[2].period_ns = 21; }),
            "path 'all': segments 'steer' and 'far' have different periods");
  EXPECT_EQ(error_of([](Description &d) { d.chains[2].jitter_ns = 1; }),
            "path 'all': segment 'far' states a jitter, but it follows from the segments before it");
  EXPECT_EQ(error_of([](Description &d) {
              d.groups[0].executor = "x";
              d.chains[0].callbacks[0].group.clear();
              d.chains[1].callbacks[0].group.clear();
            }),
            "group 'lock': executor 'x' is unknown");
}

TEST(Model, AllErrorsAreReportedTogether) {
  Description description = two_chains();
  description.chains[0].period_ns = 0;
  description.chains[1].deadline_ns = 0;
  description.executors[1].lanes.clear();
  EXPECT_EQ(System::build(description).errors.size(), 4U);  // the fourth error: the segments of the path now have
                                                            // different periods
  EXPECT_EQ(System::build({}).errors.size(), 2U);
}

}  // namespace analysis_model_test
}  // namespace tide::analysis
