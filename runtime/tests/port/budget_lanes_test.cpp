// SPDX-License-Identifier: Apache-2.0
// Lanes of an executor under budgets: each changes its priority by its own budget, and reports when it waits.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "tide/budget_posix.h"
#include "tide/executor.h"
#include "tide/port.h"
#include "tide/status.h"

namespace budget_lanes_test {

constexpr int64_t kMillisecond = 1'000'000;
constexpr size_t kLanes = 2;

int own_priority() {
  int policy = 0;
  sched_param parameter{};
  pthread_getschedparam(pthread_self(), &policy, &parameter);
  return policy == SCHED_FIFO ? parameter.sched_priority : 0;
}

struct Program {
  tide_executor_t executor{};
  tide_lane_t lanes[kLanes]{};
  tide_timer_t timers[kLanes]{};
  tide_callback_t *callbacks[kLanes]{};
  tide_queue_entry_t *ready[kLanes * kLanes]{}, *expiries[kLanes * kLanes]{};
  std::atomic<size_t> finished = 0;
  std::atomic<int> runs[kLanes]{};
  tide_budget_counters_t counters[kLanes]{};

  explicit Program(void (*on_expiry)(tide_timer_t *, int64_t)) {
    for (size_t index = 0; index < kLanes; index++) {
      tide_lane_settings_t &settings = lanes[index].settings;
      settings.least_level = static_cast<uint8_t>(index * 2);
      settings.scheduling = TIDE_SCHEDULING_SPORADIC;
      settings.priority = 20 + static_cast<int>(index);
      settings.runtime_ns = (2 + static_cast<int64_t>(index)) * kMillisecond;
      settings.period_ns = 20 * kMillisecond;
    }
    tide_executor_config_t config{};
    config.platform = tide_port_platform();
    config.policy = TIDE_POLICY_TIDE;
    config.callbacks = callbacks;
    config.ready_storage = ready;
    config.timer_storage = expiries;
    config.callback_count = kLanes;
    config.lanes = lanes;
    config.lane_count = kLanes;
    config.context = this;
    EXPECT_EQ(tide_executor_init(&executor, &config), TIDE_OK);
    for (size_t index = 0; index < kLanes; index++) {
      timers[index].period_ns = 3 * kMillisecond;
      timers[index].on_expiry = on_expiry;
      timers[index].callback.priority = TIDE_PRIORITY(index * 2, 0);
      timers[index].callback.context = this;
      EXPECT_EQ(tide_executor_add_timer(&executor, &timers[index]), TIDE_OK);
    }
  }

  int run(size_t *refused = nullptr) {
    return tide_port_run_lanes(
        lanes, kLanes,
        [](void *context, size_t index) {
          auto *program = static_cast<Program *>(context);
          EXPECT_EQ(tide_executor_spin_lane(&program->executor, index), TIDE_OK);
        },
        this, refused);
  }

  void finish_one() {
    if (++finished == kLanes) tide_executor_stop(&executor);
  }
};

size_t index_of(const Program &program, const tide_timer_t *timer) {
  return static_cast<size_t>(timer - program.timers);
}

void fall_and_rise(tide_timer_t *timer, int64_t) {
  auto &program = *static_cast<Program *>(timer->callback.context);
  const size_t index = index_of(program, timer);
  if (program.runs[index]++ > 0) return;
  for (int round = 0; round < 3; round++) {
    while (own_priority() != 0) {}
    while (own_priority() != program.lanes[index].settings.priority) {}
  }
  program.finish_one();
}

TEST(BudgetLanes, EachFallsAndRisesWithItsOwnBudget) {
  Program program(fall_and_rise);
  const int status = program.run();
  if (status == TIDE_ERROR_NOT_PERMITTED) return;
  EXPECT_EQ(status, TIDE_OK);
  EXPECT_EQ(program.finished, kLanes);
}

// Short callbacks, each after a sleep, so that each of them is a separate activation.
void look(tide_timer_t *timer, int64_t) {
  auto &program = *static_cast<Program *>(timer->callback.context);
  const size_t index = index_of(program, timer);
  if (++program.runs[index] != 6) return;
  auto *budget = static_cast<tide_posix_budget_t *>(program.lanes[index].budget.context);
  EXPECT_EQ(tide_posix_budget_counters(budget, &program.counters[index]), TIDE_OK);
  program.finish_one();
}

TEST(BudgetLanes, EachWaitEndsAnActivation) {
  Program program(look);
  const int status = program.run();
  if (status == TIDE_ERROR_NOT_PERMITTED) return;
  EXPECT_EQ(status, TIDE_OK);
  for (size_t index = 0; index < kLanes; index++) {
    EXPECT_GE(program.counters[index].activations, 2u);
    EXPECT_EQ(program.lanes[index].budget.ready, nullptr) << "a hook outlived its budget";
  }
}

TEST(BudgetLanes, NothingRunsWithoutARightBudget) {
  const auto status_of = [](auto change, size_t expected) {
    Program program(look);
    change(program.lanes[1].settings);
    size_t refused = 99;
    const int status = program.run(&refused);
    EXPECT_EQ(program.runs[0] + program.runs[1], 0);
    if (status == TIDE_ERROR_ARGUMENT) {
      EXPECT_EQ(refused, expected);
    }
    return status == TIDE_ERROR_NOT_PERMITTED ? TIDE_ERROR_ARGUMENT : status;
  };
  EXPECT_EQ(status_of([](auto &lane) { lane.runtime_ns = 0; }, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status_of([](auto &lane) { lane.period_ns = lane.runtime_ns - 1; }, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status_of([](auto &lane) { lane.low_priority = lane.priority; }, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status_of([](auto &lane) { lane.priority = 0; }, 1), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status_of([](auto &lane) { lane.priority = 99; }, 0), TIDE_ERROR_ARGUMENT);  // no priority is left for the
                                                                                         // supervisor
}

}  // namespace budget_lanes_test
