// SPDX-License-Identifier: Apache-2.0
// What is different in runtime/port/zephyr with several processors. The test plays them in turns.
#include <gtest/gtest.h>
#include <zephyr/kernel.h>

#include <array>

#include "fake_zephyr.h"
#include "tide/status.h"

extern "C" {
#include "tide/port.h"
}

namespace {

class ZephyrProcessors : public testing::Test {
 protected:
  struct Processor {
    k_tid_t thread;
    unsigned locked;
  };
  // What happens next happens on the other processor.
  void change() {
    const Processor here = {machine.current, machine.locked};
    machine.current = other.thread;
    machine.locked = other.locked;
    other = here;
  }
  uintptr_t enter() { return platform->critical_enter(platform->context); }
  void leave(uintptr_t state) { platform->critical_exit(platform->context, state); }

  FakeZephyr machine;
  k_thread second{};
  Processor other = {&second, 0};
  const tide_platform_t *platform = tide_port_platform();
};

TEST_F(ZephyrProcessors, ASectionWaitsForThatOfAnotherProcessorAndNests) {
  const uintptr_t outer = enter(), inner = enter();
  change();
  int spins = 0;
  machine.while_spinning = [&] {
    change();
    leave(spins++ == 0 ? inner : outer);
    change();
  };
  const uintptr_t state = enter();
  EXPECT_EQ(spins, 2) << "both were inside";
  EXPECT_GT(machine.locked, 0u);
  leave(state);
  EXPECT_EQ(machine.locked, 0u);
  change();
  EXPECT_EQ(machine.locked, 0u);
}

// Whoever is switched away on one processor, by the choice that follows a wake, leaves the other's section alone.
TEST_F(ZephyrProcessors, ASectionIsNoLockOfTheKernels) {
  const uintptr_t state = enter();
  change();
  irq_unlock(irq_lock());
  int spins = 0;
  machine.while_spinning = [&] {
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
  machine.while_spinning = [&] {
    spins++;
    change();
    machine.in_interrupt = false;
    leave(state);
    machine.in_interrupt = true;
    change();
  };
  leave(enter());
  EXPECT_EQ(spins, 1);
  EXPECT_EQ(machine.choices, 0);
}

// What the kernel's clock tells while another processor announces ticks.
TEST_F(ZephyrProcessors, TheClockDoesNotGoBack) {
  machine.ticks += 5;
  const int64_t before_ns = platform->now_ns(platform->context);
  machine.ticks -= 3;
  EXPECT_EQ(platform->now_ns(platform->context), before_ns);
  machine.ticks += 4;
  EXPECT_EQ(platform->now_ns(platform->context), before_ns + FakeZephyr::TICK_NS);
}

// The kernel may end a wait with a limit of its own when its thread waits for something else already.
TEST_F(ZephyrProcessors, NoWaitHasALimitOfTheKernels) {
  tide_event_t first{};
  platform->event_init(platform->context, &first);
  bool limited = false;
  machine.while_sleeping = [&] { limited = limited || machine.limited; };
  const int64_t begin_ns = platform->now_ns(platform->context);
  EXPECT_EQ(platform->event_wait(platform->context, &first, begin_ns + 3 * FakeZephyr::TICK_NS), 0);
  EXPECT_EQ(platform->now_ns(platform->context), begin_ns + 3 * FakeZephyr::TICK_NS);
  EXPECT_FALSE(limited);
}

// One timer for all: the earliest of those that still wait.
TEST_F(ZephyrProcessors, WaitsOfSeveralProcessorsEndInTheirOrder) {
  tide_event_t early{}, late{};
  platform->event_init(platform->context, &early);
  platform->event_init(platform->context, &late);
  const int64_t begin_ns = platform->now_ns(platform->context), tick_ns = FakeZephyr::TICK_NS;
  int nested = 0;
  machine.while_sleeping = [&] {
    if (nested++ > 0) return;
    change();
    EXPECT_EQ(platform->event_wait(platform->context, &early, begin_ns + 2 * tick_ns), 0);
    EXPECT_EQ(platform->now_ns(platform->context), begin_ns + 2 * tick_ns);
    change();
  };
  EXPECT_EQ(platform->event_wait(platform->context, &late, begin_ns + 5 * tick_ns), 0);
  EXPECT_EQ(platform->now_ns(platform->context), begin_ns + 5 * tick_ns);
}

// A locked scheduler keeps out the threads of its own processor alone.
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
    EXPECT_EQ(machine.threads.at(index).processor, static_cast<int>(index) - 1);
  size_t refused = 9;
  lanes[1].settings.processor = TIDE_ON_PROCESSOR(2);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 3, run, nullptr, &refused), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refused, 1u);
}

}  // namespace
