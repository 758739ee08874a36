// SPDX-License-Identifier: Apache-2.0
// Worked examples, limits, hostile numbers.
#include <gtest/gtest.h>

#include "budget_world.h"
#include "tide/status.h"

namespace budget_rules_test {

using namespace budget_world;

class BudgetRules : public testing::Test {
 protected:
  tide_budget_config_t config(int64_t budget, int64_t period, uint16_t places) {
    storage_.resize(places);
    return {.priority = kHigh,
            .low_priority = kLow,
            .budget_ns = budget,
            .period_ns = period,
            .replenishments = storage_.data(),
            .maximum_replenishments = places};
  }
  void init(int64_t budget, int64_t period, uint16_t places, int64_t now = 0) {
    const tide_budget_config_t wanted = config(budget, period, places);
    ASSERT_EQ(tide_budget_init(&lane_, &wanted, now), TIDE_OK);
  }
  int32_t priority() const { return tide_budget_priority(&lane_); }
  int64_t deadline() const { return tide_budget_deadline_ns(&lane_); }

  std::vector<tide_replenishment_t> storage_;
  tide_budget_t lane_{};
};

// The server in the paper's listing: 30 of every 100 ms.
TEST_F(BudgetRules, FallsWhenTheBudgetIsUsedAndRisesOnePeriodAfterTheActivation) {
  init(30, 100, 100, 1000);
  EXPECT_EQ(priority(), kHigh);
  EXPECT_EQ(deadline(), INT64_MAX);
  tide_budget_ready(&lane_, 1010);
  EXPECT_EQ(deadline(), INT64_MAX);
  tide_budget_run(&lane_, 1015);
  EXPECT_EQ(deadline(), 1045);
  tide_budget_preempt(&lane_, 10, 1025);
  EXPECT_EQ(deadline(), INT64_MAX);
  EXPECT_EQ(tide_budget_available_ns(&lane_), 20);
  tide_budget_run(&lane_, 1040);
  EXPECT_EQ(deadline(), 1060);
  tide_budget_account(&lane_, 20, 1060);
  EXPECT_EQ(priority(), kLow);
  EXPECT_EQ(deadline(), 1110);
  tide_budget_account(&lane_, 50, 1110);  // time at its low priority is not charged
  EXPECT_EQ(priority(), kHigh);
  EXPECT_EQ(deadline(), 1140);
  EXPECT_EQ(lane_.counters.exhaustions, 1u);
  EXPECT_EQ(lane_.counters.replenishments, 1u);
  EXPECT_EQ(lane_.counters.used_ns, 30u);
  EXPECT_EQ(lane_.counters.low_ns, 50u);
  EXPECT_EQ(lane_.counters.overrun_ns, 0u);
}

TEST_F(BudgetRules, EachActivationBringsBackWhatItUsed) {
  init(30, 100, 100);
  tide_budget_ready(&lane_, 0);
  tide_budget_run(&lane_, 0);
  tide_budget_block(&lane_, 10, 10);
  tide_budget_ready(&lane_, 40);
  tide_budget_run(&lane_, 40);
  EXPECT_EQ(tide_budget_available_ns(&lane_), 20);
  tide_budget_account(&lane_, 20, 60);
  EXPECT_EQ(priority(), kLow);
  EXPECT_EQ(deadline(), 100);
  tide_budget_account(&lane_, 0, 100);
  EXPECT_EQ(tide_budget_available_ns(&lane_), 10);
  tide_budget_account(&lane_, 10, 110);
  EXPECT_EQ(deadline(), 140);
  tide_budget_account(&lane_, 0, 140);
  EXPECT_EQ(tide_budget_available_ns(&lane_), 20);
}

TEST_F(BudgetRules, WithAllReplenishmentsOutstandingItHasItsLowPriorityAlthoughBudgetIsLeft) {
  init(30, 100, 1);
  tide_budget_ready(&lane_, 5);
  tide_budget_run(&lane_, 5);
  tide_budget_block(&lane_, 10, 15);
  EXPECT_EQ(priority(), kLow);
  EXPECT_EQ(lane_.counters.denied, 1u);
  EXPECT_EQ(deadline(), 105);
  tide_budget_ready(&lane_, 20);
  tide_budget_run(&lane_, 20);
  EXPECT_EQ(priority(), kLow);
  tide_budget_account(&lane_, 80, 105);
  EXPECT_EQ(priority(), kHigh);
  EXPECT_EQ(tide_budget_available_ns(&lane_), 30);
}

TEST_F(BudgetRules, RaisedWhileItSleeps) {
  init(30, 100, 4);
  tide_budget_ready(&lane_, 0);
  tide_budget_run(&lane_, 0);
  tide_budget_block(&lane_, 30, 30);
  EXPECT_EQ(priority(), kLow);
  EXPECT_EQ(deadline(), 100);
  tide_budget_account(&lane_, 0, 100);
  EXPECT_EQ(priority(), kHigh);
  EXPECT_EQ(deadline(), INT64_MAX);
  tide_budget_ready(&lane_, 170);
  tide_budget_run(&lane_, 170);
  tide_budget_account(&lane_, 30, 200);
  EXPECT_EQ(deadline(), 270);  // one period after the activation, not after the earliest start
}

TEST_F(BudgetRules, EventsThatDoNotFitChangeNothing) {
  init(30, 100, 4);
  tide_budget_block(&lane_, 0, 5);
  tide_budget_run(&lane_, 6);
  EXPECT_EQ(deadline(), INT64_MAX);
  tide_budget_ready(&lane_, 10);
  tide_budget_run(&lane_, 10);
  tide_budget_ready(&lane_, 15);
  tide_budget_account(&lane_, -5, 3);
  EXPECT_EQ(lane_.counters.activations, 1u);
  EXPECT_EQ(deadline(), 45);  // its use is not accounted yet
  tide_budget_account(&lane_, 30, 40);
  EXPECT_EQ(deadline(), 110);
}

TEST_F(BudgetRules, RefusesWhatIsNoBudget) {
  const auto refused = [this](auto change) {
    tide_budget_config_t wanted = config(30, 100, 4);
    change(wanted);
    return tide_budget_init(&lane_, &wanted, 0) == TIDE_ERROR_ARGUMENT;
  };
  EXPECT_FALSE(refused([](auto &) {}));
  EXPECT_TRUE(refused([](auto &c) { c.budget_ns = 0; }));
  EXPECT_TRUE(refused([](auto &c) { c.budget_ns = -1; }));
  EXPECT_TRUE(refused([](auto &c) { c.budget_ns = 101; }));
  EXPECT_TRUE(refused([](auto &c) { c.period_ns = TIDE_BUDGET_PERIOD_MAXIMUM_NS + 1; }));
  EXPECT_TRUE(refused([](auto &c) { c.low_priority = c.priority; }));
  EXPECT_TRUE(refused([](auto &c) { c.replenishments = nullptr; }));
  EXPECT_TRUE(refused([](auto &c) { c.maximum_replenishments = 0; }));
  EXPECT_EQ(tide_budget_init(nullptr, nullptr, 0), TIDE_ERROR_ARGUMENT);
}

// Any numbers in any order: there is no undefined behaviour, and the machine recovers by its deadline.
TEST_F(BudgetRules, HostileNumbers) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    std::mt19937_64 random(seed);
    const int64_t period = 1 + static_cast<int64_t>(random() % TIDE_BUDGET_PERIOD_MAXIMUM_NS);
    init(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(period)), period, 1 + random() % 4,
         static_cast<int64_t>(random()));
    for (int step = 0; step < 400; step++) {
      const auto wild = [&] { return static_cast<int64_t>(random()) >> (random() % 64); };
      const int64_t consumed = wild(), now = wild();
      switch (random() % 5) {
        case 0: tide_budget_ready(&lane_, now); break;
        case 1: tide_budget_run(&lane_, now); break;
        case 2: tide_budget_account(&lane_, consumed, now); break;
        case 3: tide_budget_preempt(&lane_, consumed, now); break;
        default: tide_budget_block(&lane_, consumed, now); break;
      }
      ASSERT_LE(tide_budget_available_ns(&lane_), lane_.config.budget_ns) << "seed " << seed;
      ASSERT_GE(tide_budget_available_ns(&lane_), 0) << "seed " << seed;
      ASSERT_LE(lane_.count, lane_.config.maximum_replenishments) << "seed " << seed;
      ASSERT_TRUE(lane_.high || deadline() > lane_.now_ns) << "seed " << seed << ", step " << step;
    }
  }
}

// overrun_ns counts time used beyond the budget, and forgiven_ns budget that was never used.
TEST(BudgetCounters, OverrunAndForgiven) {
  tide_replenishment_t storage[4];
  const tide_budget_config_t config = {.priority = kHigh,
                                       .low_priority = kLow,
                                       .budget_ns = 10,
                                       .period_ns = 100,
                                       .replenishments = storage,
                                       .maximum_replenishments = 4};
  tide_budget_t lane;
  ASSERT_EQ(tide_budget_init(&lane, &config, 0), TIDE_OK);
  tide_budget_ready(&lane, 0);
  tide_budget_run(&lane, 350);
  EXPECT_EQ(lane.counters.forgiven, 1u);
  tide_budget_preempt(&lane, 5, 355);
  tide_budget_run(&lane, 355);  // it continues the activation, so there is no new wait
  EXPECT_EQ(lane.counters.forgiven, 1u);
  tide_budget_account(&lane, 5, 360);  // its portion has been usable since 250, and is usable again from 350
  EXPECT_EQ(tide_budget_priority(&lane), kHigh);
  tide_budget_account(&lane, 13, 373);
  EXPECT_EQ(lane.counters.overrun_ns, 3u);
  EXPECT_EQ(tide_budget_deadline_ns(&lane), 450);
  tide_budget_account(&lane, 0, 450);
  EXPECT_EQ(tide_budget_deadline_ns(&lane), 457);  // 3 of the 10 are already used
}

}  // namespace budget_rules_test
