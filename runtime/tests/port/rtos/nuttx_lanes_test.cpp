// SPDX-License-Identifier: Apache-2.0
// The parts of runtime/port/nuttx/nuttx.c specific to NuttX: the counter of budgets, the driver of notes and inherited
// priorities. The other tests of the port are in rtos_test.cpp.
#include <gtest/gtest.h>

#include <climits>
#include <vector>

#include "../../../port/rtos/rtos.h"
#include "nuttx_names.h"

namespace {

constexpr int64_t MS = 1'000'000;

class NuttxLanes : public testing::Test {
 protected:
  NuttxLanes() { nuttx = {}; }
  FakeKernel machine;
  static tide_lane_t sporadic(int priority, int low, int64_t budget_ns, int64_t period_ns) {
    tide_lane_t lane{};
    lane.settings.scheduling = TIDE_SCHEDULING_SPORADIC;
    lane.settings.priority = priority;
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
