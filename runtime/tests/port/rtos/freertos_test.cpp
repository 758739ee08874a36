// SPDX-License-Identifier: Apache-2.0
// The parts of runtime/port/freertos specific to FreeRTOS: the tick clock, and memory of tasks. The other tests of the
// port are in rtos_test.cpp.
#include <gtest/gtest.h>

#include <array>

#include "../../../port/rtos/rtos.h"
#include "fake_kernel.h"
#include "task.h"

namespace {

class FreeRtos : public testing::Test {
 protected:
  FakeKernel machine;
  const tide_platform_t *platform = tide_port_platform();
  int64_t now() { return platform->now_ns(platform->context); }
};

constexpr uint64_t ROUND = UINT64_C(1) << 32;  // wrap-around of the tick counter

int64_t time_of(uint64_t ticks) {
  const auto wide = __extension__ static_cast<unsigned __int128>(ticks) * 1000000000u;
  return static_cast<int64_t>(wide / configTICK_RATE_HZ);
}
int64_t first_in(uint64_t tick) {
  return time_of(tick) + (time_of(tick) * configTICK_RATE_HZ % 1000000000 != 0 ? 1 : 0);
}

}  // namespace

TEST_F(FreeRtos, TheClockCountsTheRoundsOfTheTickCounterWithoutDrift) {
  uint64_t tick = static_cast<uint64_t>(machine.now_ns / 1000000000) * configTICK_RATE_HZ;
  for (const uint64_t more : {uint64_t{100}, ROUND - 1, uint64_t{3}, ROUND - 4, uint64_t{5}}) {
    tick += more;
    machine.now_ns = first_in(tick);
    int64_t in_interrupt = 0;
    if (more % 2 == 1)
      machine.take([&] { in_interrupt = now(); });  // the first code to see the wrap-around may be an interrupt
    EXPECT_EQ(now(), time_of(tick)) << tick;
    if (more % 2 == 1) EXPECT_EQ(in_interrupt, now());
  }
}

TEST_F(FreeRtos, AnInterruptBetweenTheReadingsOfATaskDoesNotCountARoundTwice) {
  for (int step = 0; step < 4; step++) {
    const uint64_t tick = (static_cast<uint64_t>(now() / 1000) * configTICK_RATE_HZ / 1000000 / ROUND + 1) * ROUND;
    machine.now_ns = first_in(tick - 1);
    EXPECT_EQ(now(), time_of(tick - 1));
    machine.now_ns = first_in(tick);
    machine.steps = 0;
    machine.interrupt_at_step = step;
    machine.interrupt = [&] { EXPECT_EQ(now(), time_of(tick)); };
    EXPECT_EQ(now(), time_of(tick)) << step;
    EXPECT_EQ(now(), time_of(tick)) << step;
  }
}

TEST_F(FreeRtos, TheMemoryOfTasksIsFreeAtOnceAndTheOneProcessorIsTheOnlyOne) {
  std::array<tide_lane_t, 2> lanes{};
  const auto run = [](void *, size_t) {};
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(1);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 2, run, nullptr, nullptr), TIDE_ERROR_ARGUMENT);
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(0);
  EXPECT_EQ(machine.deletions, 1);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 2, run, nullptr, nullptr), TIDE_OK);
  EXPECT_EQ(machine.deletions, 3) << "their memory waits for the idle task";
}
