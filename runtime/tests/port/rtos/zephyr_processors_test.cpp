// SPDX-License-Identifier: Apache-2.0
// Behaviour of runtime/port/zephyr specific to several processors. The test simulates them in turns.
#include <gtest/gtest.h>

#include <array>

#include "tide/status.h"
#include "zephyr_names.h"

extern "C" {
#include "tide/port.h"
}

namespace {

class ZephyrProcessors : public testing::Test {
 protected:
  ZephyrProcessors() = default;
  ~ZephyrProcessors() override {
    while_spinning = nullptr;
    if (machine.current == &second) change();
  }
  ZephyrProcessors(const ZephyrProcessors &) = delete;
  ZephyrProcessors &operator=(const ZephyrProcessors &) = delete;
  // The actions that follow happen on the other processor.
  void change() {
    std::swap(machine.current, other);
    std::swap(machine.masked, other_masked);
    machine.locked = machine.current == &second ? 1 : 0;  // the fake has one processor: it must not choose here
  }
  uintptr_t enter() { return platform->critical_enter(platform->context); }
  void leave(uintptr_t state) { platform->critical_exit(platform->context, state); }

  FakeKernel machine;
  FakeKernel::Task second{}, *other = &second;
  unsigned other_masked = 0;
  const tide_platform_t *platform = tide_port_platform();
};

TEST_F(ZephyrProcessors, ASectionWaitsForThatOfAnotherProcessorAndNests) {
  const uintptr_t outer = enter(), inner = enter();
  change();
  int spins = 0;
  while_spinning = [&] {
    change();
    leave(spins++ == 0 ? inner : outer);
    change();
  };
  const uintptr_t state = enter();
  EXPECT_EQ(spins, 2) << "both were inside";
  EXPECT_GT(machine.masked, 0u);
  leave(state);
  EXPECT_EQ(machine.masked, 0u);
  change();
  EXPECT_EQ(machine.masked, 0u);
}

// If a task is switched out on one processor after a wake-up, a section on the other processor is not affected.
TEST_F(ZephyrProcessors, ASectionIsNoLockOfTheKernels) {
  const uintptr_t state = enter();
  change();
  irq_unlock(irq_lock());
  int spins = 0;
  while_spinning = [&] {
    spins++;
    change();
    leave(state);
    change();
  };
  leave(enter());
  EXPECT_EQ(spins, 1);
}

TEST_F(ZephyrProcessors, AnInterruptOfAnotherProcessorWaits) {
  const uintptr_t state = enter();
  change();
  machine.in_interrupt = true;
  int spins = 0;
  while_spinning = [&] {
    spins++;
    change();
    machine.in_interrupt = false;
    leave(state);
    machine.in_interrupt = true;
    change();
  };
  leave(enter());
  EXPECT_EQ(spins, 1);
}

// The kernel's clock while another processor announces ticks.
TEST_F(ZephyrProcessors, TheClockDoesNotGoBack) {
  machine.now_ns += 5 * ZEPHYR_TICK_NS;
  const int64_t before_ns = platform->now_ns(platform->context);
  machine.now_ns -= 3 * ZEPHYR_TICK_NS;
  EXPECT_EQ(platform->now_ns(platform->context), before_ns);
  machine.now_ns += 4 * ZEPHYR_TICK_NS;
  EXPECT_EQ(platform->now_ns(platform->context), before_ns + ZEPHYR_TICK_NS);
}

// The time limit of an earlier wait may end the thread's next wait, which is for another object.
TEST_F(ZephyrProcessors, NoWaitHasALimitOfTheKernels) {
  tide_event_t first{};
  platform->event_init(platform->context, &first);
  a_wait_was_limited = false;
  const int64_t begin_ns = platform->now_ns(platform->context);
  EXPECT_EQ(platform->event_wait(platform->context, &first, begin_ns + 3 * ZEPHYR_TICK_NS), 0);
  EXPECT_EQ(platform->now_ns(platform->context), begin_ns + 3 * ZEPHYR_TICK_NS);
  EXPECT_FALSE(a_wait_was_limited);
}

// A locked scheduler holds back only the threads of its own processor.
TEST_F(ZephyrProcessors, TheSectionIsForLanesToo) {
  EXPECT_EQ(platform->lanes_enter, nullptr);
  EXPECT_EQ(platform->lanes_exit, nullptr);
}

TEST_F(ZephyrProcessors, ALaneStaysOnItsProcessor) {
  const auto run = [](void *, size_t) {};
  std::array<tide_lane_t, 3> lanes{};
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(0);
  lanes[2].settings.processor = TIDE_ON_PROCESSOR(1);
  ASSERT_EQ(tide_port_run_lanes(lanes.data(), 3, run, nullptr, nullptr), TIDE_OK);
  for (size_t index = 0; index < 3; index++)
    EXPECT_EQ(machine.tasks.at(index + 1)->processor, static_cast<int>(index) - 1);
  size_t refused = 9;
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(2);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 3, run, nullptr, &refused), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refused, 1u);
}

}  // namespace
