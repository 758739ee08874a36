// SPDX-License-Identifier: Apache-2.0
// The parts of runtime/port/nuttx/nuttx.c specific to NuttX: policies, the system's sporadic server, and with budgets
// of the runtime the counter, the driver of notes and inherited priorities. The other tests of the port are in
// rtos_test.cpp.
#include <gtest/gtest.h>

#include <climits>
#include <vector>

#include "../../../port/rtos/rtos.h"
#include "nuttx_names.h"

namespace {

[[maybe_unused]] constexpr int64_t MS = 1'000'000;

class NuttxLanes : public testing::Test {
 protected:
  NuttxLanes() { nuttx = {}; }
  FakeKernel machine;
  static tide_lane_t lane_of(tide_scheduling_t scheduling, int priority) {
    tide_lane_t lane{};
    lane.settings.scheduling = scheduling;
    lane.settings.priority = priority;
    return lane;
  }
  static tide_lane_t sporadic(int priority, int low, int64_t budget_ns, int64_t period_ns) {
    tide_lane_t lane = lane_of(TIDE_SCHEDULING_SPORADIC, priority);
    lane.settings.low_priority = low;
    lane.settings.runtime_ns = budget_ns;
    lane.settings.period_ns = period_ns;
    return lane;
  }
  int run(std::vector<tide_lane_t> lanes, std::function<void()> body) {
    function = std::move(body);
    return tide_port_run_lanes(
        lanes.data(), lanes.size(), [](void *self, size_t) { static_cast<NuttxLanes *>(self)->function(); }, this,
        nullptr);
  }
  std::function<void()> function;
};

}  // namespace

#if TIDE_KERNEL_BUDGETS

// This test comes first, because a driver of notes stays registered.
TEST_F(NuttxLanes, WithoutAPlaceForNotesOrACounterThereAreNoBudgets) {
  const auto status = [&] { return run({sporadic(4, 1, MS, 2 * MS)}, [] { ADD_FAILURE() << "it runs"; }); };
  nuttx.is_full = true;
  EXPECT_EQ(status(), TIDE_ERROR_FULL);
  for (const unsigned long frequency : {0ul, ULONG_MAX}) {
    nuttx.frequency = frequency;
    EXPECT_EQ(status(), TIDE_ERROR_UNSUPPORTED);
  }
}

TEST_F(NuttxLanes, WhatTheKernelHasLentToALaneStays) {
  ASSERT_EQ(run({sporadic(4, 1, 5 * MS, 20 * MS)},
                [&] {
                  tcb_s &tcb = tcb_of(*machine.current);
                  tcb.sched_priority = 11;
                  machine.work(8 * MS);
                  EXPECT_EQ(tcb.sched_priority, 11);
                  EXPECT_EQ(tcb.base_priority, 1) << "where it goes when it gives back what others wait for";
                }),
            TIDE_OK);
}

TEST_F(NuttxLanes, ACounterOf32BitsIsReadOftenEnough) {
  ASSERT_EQ(run({sporadic(4, 1, 7000 * MS, 9000 * MS)}, [&] { machine.work(8000 * MS); }), TIDE_OK);
  EXPECT_GE(machine.alarms, 7);
}

#else

TEST_F(NuttxLanes, ABudgetIsTheSystemsSporadicServer) {
  ASSERT_EQ(run({sporadic(50, 20, 2500000, 1000000001), lane_of(TIDE_SCHEDULING_FIFO, 60)}, [] {}), TIDE_OK);
  ASSERT_EQ(nuttx.asked.size(), 2u);
  const nuttx_sched_param &parameters = nuttx.asked[0].parameters;
  EXPECT_EQ(nuttx.asked[0].policy, SCHED_SPORADIC);
  EXPECT_EQ(parameters.sched_priority, 50);
  EXPECT_EQ(parameters.sched_ss_low_priority, 20);
  EXPECT_EQ(parameters.sched_ss_max_repl, 16);
  EXPECT_EQ(parameters.sched_ss_init_budget.tv_nsec, 2500000);
  EXPECT_EQ(parameters.sched_ss_repl_period.tv_sec, 1);
  EXPECT_EQ(parameters.sched_ss_repl_period.tv_nsec, 1);
  EXPECT_EQ(nuttx.asked[1].policy, SCHED_FIFO);
  ASSERT_EQ(nuttx.own.size(), 1u) << "a sporadic thread that ends stops NuttX";
  EXPECT_EQ(nuttx.own[0].policy, SCHED_FIFO);
  EXPECT_EQ(nuttx.own[0].parameters.sched_priority, 1);
}

TEST_F(NuttxLanes, NumbersThatAreNoBudgetAreRefused) {
  const auto status = [&](const tide_lane_t &lane) { return run({lane}, [] { ADD_FAILURE() << "it runs"; }); };
  EXPECT_EQ(status(sporadic(10, 10, 1, 1)), TIDE_ERROR_ARGUMENT) << "without budget it would be as urgent as with";
  EXPECT_EQ(status(sporadic(10, 5, 2, 1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(status(sporadic(10, 0, 1, 2)), TIDE_ERROR_ARGUMENT);
}

#endif
