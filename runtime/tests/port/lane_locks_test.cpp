// SPDX-License-Identifier: Apache-2.0
// Locks on threads of this machine: a lane with a fixed priority rises to the ceiling and returns, and lanes on the
// port's own platform exclude each other.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>

#include "threads.h"
#include "tide/port.h"

namespace lane_locks_test {

constexpr size_t kLanes = 3;

struct Program : tide::test::LanesOfLevels<kLanes> {
  explicit Program(tide_scheduling_t scheduling) { init(tide_port_platform(), tide_port_locks(), scheduling); }

  void run() {
    const auto spin = [](void *context, size_t index) {
      tide_executor_spin_lane(static_cast<tide_executor_t *>(context), index);
    };
    ASSERT_EQ(tide_port_run_lanes(lanes.data(), kLanes, spin, &executor, nullptr), TIDE_OK);
  }
};

struct Scheduling {
  int policy = -1, priority = -1;
};

Scheduling own() {
  Scheduling found;
  sched_param parameters{};
  pthread_getschedparam(pthread_self(), &found.policy, &parameters);
  found.priority = parameters.sched_priority;
  return found;
}

// The lane's priority is 10, then that of the ceiling, 20, then 10 again; without permission for fixed priorities it
// does not change.
TEST(LaneLocks, ALaneRisesToTheCeilingAndComesBack) {
  Program program(TIDE_SCHEDULING_FIFO);
  Scheduling before, within, after;
  for (const size_t index : {0u, 1u}) ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[index]), TIDE_OK);
  program.bodies[0] = [&] {
    before = own();
    EXPECT_EQ(tide_lock_take(&program.lock, &program.callbacks[0]), TIDE_OK);
    within = own();
    EXPECT_EQ(tide_lock_give(&program.lock), TIDE_OK);
    after = own();
    tide_executor_stop(&program.executor);
  };
  tide_executor_notify(&program.callbacks[0]);
  program.run();
  const bool fixed = before.policy == SCHED_FIFO;
  EXPECT_EQ(before.priority, fixed ? 10 : 0);
  EXPECT_EQ(within.priority, fixed ? 20 : 0);
  EXPECT_EQ(within.policy, before.policy);
  EXPECT_EQ(after.priority, before.priority);
}

TEST(LaneLocks, LanesExcludeEachOther) {
  for (const tide_scheduling_t scheduling : {TIDE_SCHEDULING_INHERIT, TIDE_SCHEDULING_FIFO}) {
    Program program(scheduling);
    constexpr uint64_t kRuns = 5000;
    uint64_t guarded = 0;
    std::array<uint64_t, kLanes> runs{};
    std::atomic<size_t> left{kLanes};
    for (size_t index = 0; index < kLanes; index++) {
      ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[index]), TIDE_OK);
      program.bodies[index] = [&, index] {
        ASSERT_EQ(tide_lock_take(&program.lock, &program.callbacks[index]), TIDE_OK);
        const uint64_t before = guarded;
        if (before % 64 == 0) sched_yield();
        guarded = before + 1;
        ASSERT_EQ(tide_lock_give(&program.lock), TIDE_OK);
        if (++runs[index] < kRuns) {
          tide_executor_notify(&program.callbacks[index]);
        } else if (--left == 0) {
          tide_executor_stop(&program.executor);
        }
      };
      tide_executor_notify(&program.callbacks[index]);
    }
    program.run();
    EXPECT_EQ(guarded, kLanes * kRuns);
    EXPECT_EQ(program.lock.takes, kLanes * kRuns);
    EXPECT_EQ(program.lock.owner, nullptr);
    EXPECT_EQ(program.lock.first_waiter, nullptr);
  }
}

}  // namespace lane_locks_test
