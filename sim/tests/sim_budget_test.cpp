// SPDX-License-Identifier: Apache-2.0
// Budgets in virtual time are exact: tests of the shares of many lanes.
#include <gtest/gtest.h>

#include "sim/engine/machine.h"

namespace sim_budget_test {

using namespace tide::sim;

tide_budget_config_t budget_of(Time budget, Time period, int32_t priority) {
  tide_budget_config_t config{};
  config.priority = priority;
  config.low_priority = 1;
  config.budget_ns = budget;
  config.period_ns = period;
  config.maximum_replenishments = 10;
  return config;
}

struct Burner {
  std::unique_ptr<Task> task;
  std::unique_ptr<Budget> budget;
  Time used = 0;
};

// Executes slice after slice, for ever.
void burn_forever(Burner &burner, Core &core, int priority, Time slice) {
  burner.task = std::make_unique<Task>(core, "burner", priority, [&burner, slice] {
    for (;;) {
      burner.task->execute(slice);
      burner.used += slice;
    }
  });
}

// Eight lanes, and a task between their two priorities that takes all the remaining time. Each lane must get its
// budget, within 1 %.
TEST(SimBudget, EightLanesUnderFullLoad) {
  const Time budgets[8] = {2, 4, 6, 8, 10, 12, 14, 30};
  const Time periods[8] = {100, 90, 80, 70, 100, 110, 120, 130};
  Engine engine;
  Core &core = engine.add_core();
  Burner rest;
  burn_forever(rest, core, 5, kMillisecond);
  std::vector<std::unique_ptr<Burner>> lanes;
  for (int index = 0; index < 8; index++) {
    lanes.push_back(std::make_unique<Burner>());
    Burner &lane = *lanes.back();
    burn_forever(lane, core, 10 + index, 77'000);
    lane.budget = std::make_unique<Budget>(
        *lane.task, budget_of(budgets[index] * kMillisecond, periods[index] * kMillisecond, 10 + index));
  }
  engine.run_until(40 * kSecond);
  for (size_t index = 0; index < 8; index++) {
    const double wanted = static_cast<double>(budgets[index]) / static_cast<double>(periods[index]);
    EXPECT_NEAR(static_cast<double>(lanes[index]->used) / (40.0 * kSecond) / wanted, 1.0, 0.01) << "lane " << index;
    EXPECT_EQ(lanes[index]->budget->state().counters.low_ns, 0u) << "lane " << index;
    EXPECT_EQ(lanes[index]->budget->state().counters.overrun_ns, 0u) << "lane " << index;
  }
  EXPECT_GT(rest.used, 0);
}

TEST(SimBudget, EndsBeforeItsEvents) {
  Engine engine;
  Core &core = engine.add_core();
  Burner lane;
  burn_forever(lane, core, 10, kMillisecond);
  lane.budget = std::make_unique<Budget>(*lane.task, budget_of(3, 10, 10));
  engine.run_until(5);
  lane.budget.reset();
  engine.run_until(kSecond);
  EXPECT_EQ(lane.task->priority(), 1);
  EXPECT_THROW(Budget(*lane.task, budget_of(0, 10, 10)), std::invalid_argument);
}

}  // namespace sim_budget_test
