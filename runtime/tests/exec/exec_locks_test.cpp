// SPDX-License-Identifier: Apache-2.0
// Locks between callbacks: each misuse has its code, and lanes on threads get a lock in the order of their requests.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "threads.h"
#include "tide/lock.h"
#include "tide/status.h"

namespace exec_locks_test {

// A port whose caller and priority the test sets; with `by_thread` each thread is a lane.
struct Port {
  bool by_thread = false;
  const void *who = this;
  int raised = 0, depth = 0, refuses = TIDE_OK;
  const tide_lane_t *lane = nullptr;
  tide_lock_port_t port{};

  Port() {
    port.context = this;
    port.current = [](void *context) -> const void * {
      static thread_local char here;
      auto *self = static_cast<Port *>(context);
      return self->by_thread ? &here : self->who;
    };
    port.raise = [](void *context, const tide_lane_t *ceiling, uintptr_t *before) {
      auto *self = static_cast<Port *>(context);
      if (self->by_thread) return int{TIDE_OK};
      *before = 7;
      self->lane = ceiling;
      if (self->refuses == TIDE_OK) self->depth++;
      self->raised++;
      return self->refuses;
    };
    port.restore = [](void *context, uintptr_t before) {
      auto *self = static_cast<Port *>(context);
      if (self->by_thread) return;
      EXPECT_EQ(before, 7u);
      self->depth--;
    };
    port.may_wait = true;
  }
};

template <size_t count> struct Program : tide::test::LanesOfLevels<count> {
  using tide::test::LanesOfLevels<count>::executor, tide::test::LanesOfLevels<count>::callbacks;
  tide::test::Threads host;
  Port port;
  tide_lock_t other{};

  explicit Program(tide_scheduling_t scheduling = TIDE_SCHEDULING_INHERIT) {
    this->init(&host.platform, &port.port, scheduling);
    EXPECT_EQ(tide_lock_init(&other, &this->set), TIDE_OK);
  }

  // The callback runs once, in this thread.
  void run(size_t index, std::function<void()> body) {
    bool ran = false;
    this->bodies[index] = [&] {
      body();
      ran = true;
      tide_executor_stop(&executor);
    };
    tide_executor_notify(&callbacks[index]);
    tide_executor_spin_lane(&executor, index);
    EXPECT_TRUE(ran);
  }
};

TEST(Locks, TakesAndGivesAtTheCeilingOfItsMostUrgentCallback) {
  Program<3> program;
  ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[2]), TIDE_OK);
  ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[0]), TIDE_OK);
  program.run(0, [&] {
    EXPECT_EQ(tide_lock_take(&program.lock, &program.callbacks[0]), TIDE_OK);
    EXPECT_EQ(program.port.lane, &program.lanes[2]);
    EXPECT_EQ(program.port.depth, 1);
    EXPECT_EQ(tide_lock_give(&program.lock), TIDE_OK);
    EXPECT_EQ(program.port.depth, 0);
  });
  EXPECT_EQ(program.lock.takes, 1u);
  EXPECT_EQ(program.lock.waits, 0u);
}

TEST(Locks, EachMisuseHasItsCodeAndChangesNothing) {
  Program<3> program;
  ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[1]), TIDE_OK);
  ASSERT_EQ(tide_lock_allow(&program.other, &program.callbacks[1]), TIDE_OK);
  const tide_callback_t *const callback = &program.callbacks[1];
  EXPECT_EQ(tide_lock_take(&program.lock, callback), TIDE_ERROR_LOCK_CONTEXT) << "it does not run";
  EXPECT_EQ(tide_lock_give(&program.lock), TIDE_ERROR_STATE) << "nobody has it";
  program.run(1, [&] {
    program.port.who = nullptr;
    EXPECT_EQ(tide_lock_take(&program.lock, callback), TIDE_ERROR_LOCK_CONTEXT) << "an interrupt";
    program.port.who = &program;
    ASSERT_EQ(tide_lock_take(&program.lock, callback), TIDE_OK);
    EXPECT_EQ(tide_lock_take(&program.lock, callback), TIDE_ERROR_LOCK_HELD) << "twice";
    EXPECT_EQ(tide_lock_take(&program.other, callback), TIDE_ERROR_LOCK_HELD) << "a second one";
    program.port.who = &program.lock;
    EXPECT_EQ(tide_lock_give(&program.lock), TIDE_ERROR_LOCK_OWNER);
    program.port.port.may_wait = false;
    EXPECT_EQ(tide_lock_take(&program.lock, callback), TIDE_ERROR_LOCK_CEILING) << "taken although lanes cannot wait";
    EXPECT_EQ(program.port.depth, 1);
    program.port.who = &program;
    EXPECT_EQ(tide_lock_give(&program.lock), TIDE_OK);
    EXPECT_EQ(tide_lock_give(&program.lock), TIDE_ERROR_STATE);
    program.port.refuses = TIDE_ERROR_NOT_PERMITTED;
    EXPECT_EQ(tide_lock_take(&program.lock, callback), TIDE_ERROR_NOT_PERMITTED);
    EXPECT_EQ(program.lock.owner, nullptr);
  });
  EXPECT_EQ(program.port.depth, 0);
}

TEST(Locks, RefusesWhoIsMoreUrgentThanItsCeiling) {
  Program<3> program;
  program.run(2, [&] {
    EXPECT_EQ(tide_lock_take(&program.lock, &program.callbacks[2]), TIDE_ERROR_LOCK_CEILING) << "nobody was allowed";
    ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[1]), TIDE_OK);
    EXPECT_EQ(tide_lock_take(&program.lock, &program.callbacks[2]), TIDE_ERROR_LOCK_CEILING);
    EXPECT_EQ(program.port.raised, 0);
    ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[2]), TIDE_OK);
    EXPECT_EQ(tide_lock_take(&program.lock, &program.callbacks[2]), TIDE_OK);
    EXPECT_EQ(tide_lock_give(&program.lock), TIDE_OK);
  });
}

TEST(Locks, RefusesArgumentsAndLanesWhoseBudgetMayEnd) {
  Program<2> program(TIDE_SCHEDULING_SPORADIC);
  tide_callback_t stranger{};
  EXPECT_EQ(tide_lock_allow(&program.lock, &program.callbacks[0]), TIDE_ERROR_UNSUPPORTED);
  EXPECT_EQ(tide_lock_allow(&program.lock, &stranger), TIDE_ERROR_STATE);
  EXPECT_EQ(tide_lock_allow(&program.lock, nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_lock_take(nullptr, &stranger), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_lock_give(nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_lock_init(&program.lock, nullptr), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(tide_lock_set_init(&program.set, nullptr, &program.port.port), TIDE_ERROR_ARGUMENT);
  for (const int code : {TIDE_ERROR_LOCK_CONTEXT, TIDE_ERROR_LOCK_HELD, TIDE_ERROR_LOCK_OWNER, TIDE_ERROR_LOCK_CEILING})
    EXPECT_STRNE(tide_lock_text(code), tide_status_text(code));
  EXPECT_STREQ(tide_lock_text(TIDE_ERROR_STATE), tide_status_text(TIDE_ERROR_STATE));
}

// A lane that requests the lock while others wait gets it after them.
TEST(Locks, ServesInTheOrderInWhichTheyCame) {
  constexpr size_t kLanes = 4;
  Program<kLanes> program;
  program.port.by_thread = true;
  std::vector<size_t> served;
  std::atomic<bool> held{false};
  std::atomic<size_t> ended{0};
  for (size_t index = 0; index < kLanes; index++) {
    ASSERT_EQ(tide_lock_allow(&program.lock, &program.callbacks[index]), TIDE_OK);
    program.bodies[index] = [&, index] {
      ASSERT_EQ(tide_lock_take(&program.lock, &program.callbacks[index]), TIDE_OK);
      served.push_back(index);
      held = true;
      // The first lane keeps the lock until all others wait.
      const auto waiting = [&] {
        program.host.platform.critical_enter(&program.host);
        const uint32_t waits = program.lock.waits;
        program.host.platform.critical_exit(&program.host, 0);
        return waits;
      };
      while (index == 1 && waiting() < kLanes - 1) std::this_thread::yield();
      ASSERT_EQ(tide_lock_give(&program.lock), TIDE_OK);
      if (++ended == kLanes) tide_executor_stop(&program.executor);
    };
  }
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < kLanes; lane++)
    threads.emplace_back([&, lane] { tide_executor_spin_lane(&program.executor, lane); });
  tide_executor_notify(&program.callbacks[1]);
  while (!held) std::this_thread::yield();
  uint32_t before = 0;
  for (const size_t next : {3u, 0u, 2u}) {
    tide_executor_notify(&program.callbacks[next]);
    for (uint32_t waits = before; waits == before;) {
      std::this_thread::yield();
      program.host.platform.critical_enter(&program.host);
      waits = program.lock.waits;
      program.host.platform.critical_exit(&program.host, 0);
    }
    before++;
  }
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(served, (std::vector<size_t>{1, 3, 0, 2}));
}

}  // namespace exec_locks_test
