// SPDX-License-Identifier: Apache-2.0
// Budgets of lanes on Zephyr (runtime/port/zephyr/budgets.c), on a kernel of a few lines: a lane and other threads, at
// random, tick by tick, and how much the lane had at its priority.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <vector>

#include "fake_zephyr.h"
#include "seeds.h"
#include "tide/budget.h"
#include "tide/status.h"
#include "tide_zephyr.h"

extern "C" {
#include "tide/port.h"
}

namespace {
constexpr int HIGH = 10, LOW = 3, OTHER = 12;  // priorities, larger for the more urgent
constexpr int64_t TICK = FakeZephyr::TICK_NS;
// Ticks, at both ends of a window: a look is up to one late, and the grain before a lane is seen to run has two.
constexpr int64_t SLACK = 6;
constexpr size_t LANE = 0;

int as_zephyr_counts(int priority) { return CONFIG_NUM_PREEMPT_PRIORITIES - priority; }

class ZephyrBudgets : public testing::Test {
 protected:
  ZephyrBudgets() {
    lanes[LANE].settings.scheduling = TIDE_SCHEDULING_SPORADIC;
    lanes[LANE].settings.priority = HIGH;
    lanes[LANE].settings.low_priority = LOW;
    lanes[LANE].settings.runtime_ns = 5 * TICK;
    lanes[LANE].settings.period_ns = 20 * TICK;
    lanes[1].settings.scheduling = TIDE_SCHEDULING_FIFO;
    lanes[1].settings.priority = OTHER;
  }

  int run(std::function<void()> function) {
    body = std::move(function);
    return tide_port_run_lanes(
        lanes.data(), lanes.size(),
        [](void *context, size_t index) {
          if (index == LANE) static_cast<ZephyrBudgets *>(context)->body();
        },
        this, &refused);
  }

  void ready() { lanes[LANE].budget.ready(lanes[LANE].budget.context); }
  void block() { lanes[LANE].budget.block(lanes[LANE].budget.context); }
  FakeZephyr::Thread &thread() {  // the one behind that of the budgets
    return machine.threads.at(1);
  }
  bool is_high() { return thread().priority == as_zephyr_counts(HIGH); }
  void work_for_a_tick() {
    thread().cycles += TICK / 1000;
    machine.tick();
  }

  FakeZephyr machine;
  std::array<tide_lane_t, 2> lanes{};
  std::function<void()> body;
  size_t refused = 99;
};
}  // namespace

TEST_F(ZephyrBudgets, ALaneFallsWhenItsBudgetIsUsedUpAndRisesAPeriodAfterItBegan) {
  std::vector<int> high;
  ASSERT_EQ(run([&] {
              for (int tick = 0; tick < 60; tick++) {
                if (is_high()) high.push_back(tick);
                work_for_a_tick();
              }
            }),
            TIDE_OK);
  EXPECT_EQ(high, (std::vector<int>{0, 1, 2, 3, 4, 20, 21, 22, 23, 24, 40, 41, 42, 43, 44}));
  const tide_budget_t *budget = tide_zephyr_lane_budget(LANE);
  ASSERT_NE(budget, nullptr);
  EXPECT_EQ(budget->counters.exhaustions, 3u);
  EXPECT_EQ(budget->counters.used_ns, static_cast<uint64_t>(15 * TICK));
  EXPECT_EQ(budget->counters.overrun_ns, 0u);
  EXPECT_EQ(tide_zephyr_lane_budget(1), nullptr);
}

TEST_F(ZephyrBudgets, WhoWaitsHasItsBudgetWhenItIsWokenByAnInterrupt) {
  ASSERT_EQ(run([&] {
              while (is_high()) work_for_a_tick();
              block();
              for (int tick = 0; tick < 30; tick++) machine.tick();
              EXPECT_TRUE(is_high()) << "its budget is back";
              machine.in_interrupt = true;
              ready();
              machine.in_interrupt = false;
              int used = 0;
              while (is_high()) {
                work_for_a_tick();
                used++;
              }
              EXPECT_EQ(used, 5);
            }),
            TIDE_OK);
}

TEST_F(ZephyrBudgets, ALaneWithoutBudgetIsNeverAsLowAsTheIdleThread) {
  lanes[LANE].settings.low_priority = 0;
  ASSERT_EQ(run([&] {
              while (is_high()) work_for_a_tick();
              EXPECT_EQ(thread().priority, K_LOWEST_APPLICATION_THREAD_PRIO);
            }),
            TIDE_OK);
}

TEST_F(ZephyrBudgets, NumbersThatAreNoBudgetAreRefusedAndNothingRuns) {
  struct Case {
    int priority, low;
    int64_t budget_ns, period_ns;
    uint16_t replenishments;
    int status;
  };
  const auto refuse = [&](const Case &each) {
    tide_lane_settings_t &settings = lanes[LANE].settings;
    settings.priority = each.priority;
    settings.low_priority = each.low;
    settings.runtime_ns = each.budget_ns;
    settings.period_ns = each.period_ns;
    settings.maximum_replenishments = each.replenishments;
    refused = 99;
    EXPECT_EQ(run([] { FAIL() << "it runs"; }), each.status);
    EXPECT_EQ(refused, LANE);
    EXPECT_TRUE(machine.threads.empty());
  };
  refuse({CONFIG_NUM_PREEMPT_PRIORITIES + 1, 3, 1, 2, 0, TIDE_ERROR_ARGUMENT});
  refuse({10, 10, 1, 2, 0, TIDE_ERROR_ARGUMENT});
  refuse({1, 0, 1, 2, 0, TIDE_ERROR_ARGUMENT});
  refuse({10, -1, 1, 2, 0, TIDE_ERROR_ARGUMENT});
  refuse({10, 3, 0, 2, 0, TIDE_ERROR_ARGUMENT});
  refuse({10, 3, 3, 2, 0, TIDE_ERROR_ARGUMENT});
  refuse({10, 3, 1, 2, CONFIG_TIDE_REPLENISHMENTS + 1, TIDE_ERROR_FULL});
}

// In any window at most one budget more than the periods in it; never low while a budget has not been used within a
// period.
TEST_F(ZephyrBudgets, WhateverElseRunsALaneHasItsBudgetAndNoMore) {
  const unsigned first = tide::test::seed_of_run();
  for (unsigned round = 0; round < 40; round++) {
    SCOPED_TRACE(tide::test::replay_of(first + round));
    std::mt19937 random(first + round);
    const auto between = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random()) % (high - low + 1);
    };
    const int64_t period = between(12, 60), budget = between(8, period);
    lanes[LANE].settings.runtime_ns = budget * TICK;
    lanes[LANE].settings.period_ns = period * TICK;
    machine.threads.clear();
    std::vector<int64_t> used{0};  // at its priority, up to each tick
    bool wants = true;
    int64_t other_until = 0, low_at = -1;
    ASSERT_EQ(run([&] {
                for (int64_t tick = 0; tick < 1500; tick++) {
                  const bool other = tick < other_until;
                  const bool high = is_high();
                  const bool runs = wants && !other;
                  used.push_back(used.back() + (runs && high ? 1 : 0));
                  const bool denied = tide_zephyr_lane_budget(LANE)->counters.denied > 0;  // places ran out
                  if (wants && !high && !denied && low_at < 0) {
                    const int64_t since = std::max<int64_t>(0, tick - period - SLACK);
                    if (used.back() - used.at(static_cast<size_t>(since)) < budget - SLACK) low_at = tick;
                  }
                  if (runs) {
                    work_for_a_tick();
                  } else {
                    machine.tick();
                  }
                  if (between(0, 30) == 0) other_until = tick + between(0, 15);
                  if (runs && between(0, 12) == 0) {
                    wants = false;
                    block();
                  } else if (!wants && between(0, 8) == 0) {
                    wants = true;
                    ready();
                  }
                }
              }),
              TIDE_OK);
    EXPECT_EQ(low_at, -1) << "low with budget at tick " << low_at << ": " << budget << " in " << period;
    const auto count = static_cast<int64_t>(used.size());
    for (int64_t periods = 1; periods * period < count; periods++) {
      for (int64_t begin = 0; begin + periods * period < count; begin++) {
        const int64_t had =
            used.at(static_cast<size_t>(begin + periods * period)) - used.at(static_cast<size_t>(begin));
        ASSERT_LE(had, budget * (periods + 1) + SLACK) << budget << " in " << period << " from " << begin;
      }
    }
  }
}
