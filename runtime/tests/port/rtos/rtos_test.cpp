// SPDX-License-Identifier: Apache-2.0
// The port for kernels (runtime/port/rtos) with each adaptor, on the fake kernel: events, waits, lanes, locks,
// budgets and the link's task behave the same on FreeRTOS, Zephyr, NuttX and ThreadX.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <vector>

#include "../../../port/rtos/rtos.h"
#include "fake_kernel.h"
#include "seeds.h"

#if defined(TIDE_FREERTOS_H) || defined(TIDE_THREADX)
#ifdef TIDE_KERNEL_TICK_HZ
constexpr int64_t RESOLUTION_NS = 1'000'000'000 / int64_t{TIDE_KERNEL_TICK_HZ} + 1;
#else
[[maybe_unused]] constexpr int64_t RESOLUTION_NS = 0;
#endif
[[maybe_unused]] constexpr int64_t SLACK_NS =
    300'000;  // tolerance of budgets at both ends of a window: a step, and the delay of the budget keeper
#define RUNS_EVENTS 1
#elif defined(TIDE_ZEPHYR)
[[maybe_unused]] constexpr int64_t RESOLUTION_NS = 100'000 - 1;
[[maybe_unused]] constexpr int64_t SLACK_NS =
    600'000;  // because accounting is up to a tick late, and two ticks may pass until a lane is seen running
#define RUNS_EVENTS 1
#else
[[maybe_unused]] constexpr int64_t SLACK_NS = 2'200'000;  // two ticks, as docs/boards/nuttx.md promises, and two steps
#define RUNS_EVENTS 0  // the platform is the POSIX one
#endif

namespace {

[[maybe_unused]] constexpr int64_t MS = 1'000'000, STEP = 100'000;
[[maybe_unused]] constexpr int OWN = 3, LOW = 1, MIDDLE = 2, HIGH = 4, OTHER = 6;  // OWN: a stack of the test

tide_lane_t lane_of(tide_scheduling_t scheduling, int priority, size_t stack = 0) {
  tide_lane_t lane{};
  lane.settings.scheduling = scheduling;
  lane.settings.priority = priority;
  lane.settings.stack_bytes = stack;
  return lane;
}

class Rtos : public testing::Test {
 protected:
  FakeKernel machine;
  const tide_platform_t *platform = tide_port_platform();
  int64_t now() { return platform->now_ns(platform->context); }
  int wait(tide_event_t &event, int64_t deadline) { return platform->event_wait(platform->context, &event, deadline); }
  void set(tide_event_t &event) { platform->event_set(platform->context, &event); }
  tide_event_t fresh() {
    tide_event_t event{};
    platform->event_init(platform->context, &event);
    return event;
  }
  // An additional task, which the port does not know.
  void beside(int priority, std::function<void()> body) {
    FakeKernel::Task &task = machine.create(std::move(body), priority);
    machine.start(task);
    others.push_back(&task);
  }
  void join_others() {
    for (FakeKernel::Task *task : others) machine.join(*task);
  }
  std::vector<FakeKernel::Task *> others;

  template <size_t count> int run(std::array<tide_lane_t, count> &lanes, std::function<void(size_t)> function) {
    of_lanes = std::move(function);
    refused = 99;
    return tide_port_run_lanes(
        lanes.data(), count, [](void *context, size_t index) { static_cast<Rtos *>(context)->of_lanes(index); }, this,
        &refused);
  }
  std::function<void(size_t)> of_lanes;
  size_t refused = 99;
};

}  // namespace

#if RUNS_EVENTS

TEST_F(Rtos, SectionsNestInTasksAndInterrupts) {
  const auto twice = [&] {
    const uintptr_t outer = platform->critical_enter(platform->context);
    const uintptr_t inner = platform->critical_enter(platform->context);
    platform->critical_exit(platform->context, inner);
    EXPECT_GT(machine.masked, 0u) << "the inner exit ended the outer section";
    platform->critical_exit(platform->context, outer);
    EXPECT_EQ(machine.masked, 0u);
  };
  twice();
  machine.take(twice);
}

#if TIDE_KERNEL_LANES_LOCK
TEST_F(Rtos, LanesAreKeptOutByTheSchedulerAndInterruptsComeIn) {
  const uintptr_t outer = platform->lanes_enter(platform->context);
  const uintptr_t inner = platform->lanes_enter(platform->context);
  EXPECT_EQ(machine.locked, 2u);
  EXPECT_EQ(machine.masked, 0u) << "interrupts are kept out";
  machine.take([&] {
    const uintptr_t state = platform->lanes_enter(platform->context);
    EXPECT_EQ(machine.locked, 2u) << "an interrupt called the scheduler";
    platform->lanes_exit(platform->context, state);
  });
  platform->lanes_exit(platform->context, inner);
  EXPECT_EQ(machine.locked, 1u);
  platform->lanes_exit(platform->context, outer);
  EXPECT_EQ(machine.locked, 0u);
}
#endif

TEST_F(Rtos, NoWakeUpIsLostWhereverTheInterruptComes) {
  for (int step = 0;; step++) {
    tide_event_t event = fresh();
    int64_t came_ns = 0;
    machine.steps = 0;
    machine.interrupt_at_step = step;
    machine.interrupt = [&] {
      came_ns = machine.now_ns;
      set(event);
    };
    const int64_t deadline = now() + 50 * MS;
    const int status = wait(event, deadline);
    if (came_ns == 0 || came_ns >= deadline) {
      EXPECT_GE(step, 4) << "few steps to come in between";
      machine.interrupt_at_step = -1;
      return;
    }
    EXPECT_EQ(status, 1) << step;
    EXPECT_EQ(machine.now_ns, came_ns) << "slept through the interrupt of step " << step;
    EXPECT_EQ(event.state, 0u);
    EXPECT_EQ(event.port, nullptr) << "the next set would wake somebody who does not wait";
  }
}

TEST_F(Rtos, SetBeforeTheWaitEndsItAtOnceAndIsConsumed) {
  tide_event_t event = fresh();
  const int64_t before = machine.now_ns;
  set(event);
  set(event);
  EXPECT_EQ(wait(event, TIDE_FOREVER), 1);
  EXPECT_EQ(machine.now_ns, before);
  EXPECT_EQ(wait(event, now()), 0);
  set(event);
  EXPECT_EQ(wait(event, 0), 1) << "a deadline in the past polls";
}

TEST_F(Rtos, AWaitEndsAtTheFirstTickThatIsNotEarly) {
  for (const int64_t delay : {int64_t{1}, STEP - 1, STEP, 10 * MS, 10 * MS + 2, int64_t{123'456'789}}) {
    tide_event_t event = fresh();
    const int64_t deadline = now() + delay;
    EXPECT_EQ(wait(event, deadline), 0);
    EXPECT_GE(now(), deadline);
    EXPECT_LE(now(), deadline + RESOLUTION_NS) << delay;
  }
}

TEST_F(Rtos, AWaitLongerThanTheKernelCanSleepGoesOn) {
  tide_event_t event = fresh();
  const int64_t time = machine.now_ns + 40 * MS;
  machine.at.emplace(time, [&] { set(event); });
  EXPECT_EQ(wait(event, now() + INT64_MAX / 4), 1);
  EXPECT_EQ(machine.now_ns, time);
}

TEST_F(Rtos, WaitsOfSeveralTasksEndInTheirOrder) {
  std::vector<int64_t> ends;
  const int64_t begin = now();
  const auto sleep_ms = [&](int64_t ms) {
    tide_event_t event = fresh();
    EXPECT_EQ(wait(event, begin + ms * MS), 0);
    EXPECT_LE(now(), begin + ms * MS + RESOLUTION_NS);
    ends.push_back(ms);
  };
  beside(OTHER, [&] { sleep_ms(5); });
  beside(HIGH, [&] { sleep_ms(2); });
  sleep_ms(9);
  join_others();
  EXPECT_EQ(ends, (std::vector<int64_t>{2, 5, 9}));
}

TEST_F(Rtos, WhoeverIsWokenWithinASectionIsChosenWhenItEnds) {
  tide_event_t event = fresh();
  bool ran = false;
  beside(OTHER, [&] {
    EXPECT_EQ(wait(event, TIDE_FOREVER), 1);
    ran = true;
  });
  const uintptr_t outer = platform->critical_enter(platform->context);
  set(event);
  EXPECT_FALSE(ran) << "within the section of the caller";
  platform->critical_exit(platform->context, outer);
  EXPECT_TRUE(ran) << "an urgent task waits for the next tick";
  join_others();
}

TEST_F(Rtos, WhoeverAnInterruptWakesIsChosenAtItsEnd) {
  tide_event_t event = fresh();
  bool ran = false;
  beside(OTHER, [&] {
    EXPECT_EQ(wait(event, TIDE_FOREVER), 1);
    ran = true;
  });
  machine.take([&] {
    set(event);
    EXPECT_FALSE(ran);
  });
  EXPECT_TRUE(ran);
  join_others();
}

#if TIDE_KERNEL_ALARM
TEST_F(Rtos, AnAlarmThatComesEarlyIsSetAgain) {
  tide_event_t event = fresh();
  const int64_t deadline = now() + 5 * MS;
  machine.at.emplace(machine.now_ns + MS, tide_rtos_alarm);  // as from a timer that cannot count to the deadline
  EXPECT_EQ(wait(event, deadline), 0);
  EXPECT_LE(now(), deadline + RESOLUTION_NS);
}

TEST_F(Rtos, WhoIsWokenByItsEventLeavesNoAlarmBehind) {
  tide_event_t event = fresh();
  machine.at.emplace(machine.now_ns + MS, [&] { set(event); });
  EXPECT_EQ(wait(event, now() + 2 * MS), 1);
  machine.now_ns += 5 * MS;
  const uint32_t before = machine.current->notified;
  machine.take(tide_rtos_alarm);
  EXPECT_EQ(machine.current->notified, before) << "woke a task that does not wait any more";
}
#endif

namespace {
tide_event_t link_work;
}

extern "C" {
int tide_custom_link_open(tide_custom_link_t *link, tide_session_t *, const tide_custom_transport_t *, uint8_t *,
                          size_t) {
  link->wakes = true;
  link_work = {};
  return TIDE_OK;
}
void tide_custom_link_close(tide_custom_link_t *) {}
void tide_custom_link_wake(tide_custom_link_t *) { tide_port_platform()->event_set(nullptr, &link_work); }
void tide_custom_link_run(void *, int64_t until_ns) {
  (void)tide_port_platform()->event_wait(nullptr, &link_work, until_ns);
}
int64_t tide_session_poll(tide_session_t *) { return TIDE_FOREVER; }
}

TEST_F(Rtos, TheLinkHasATaskFromOpenToClose) {
  static tide_session_t session;
  static const tide_custom_transport_t transport{};
  std::array<uint8_t, 16> storage{};
  tide_link_address_t address{};
  tide_link_counters_t counters;
  address.kind = TIDE_LINK_CUSTOM;
  address.custom = &transport;
  address.storage = storage.data();
  address.storage_bytes = storage.size();
  for (const auto &[wanted, expected] :
       {std::pair{0, TIDE_KERNEL_PRIORITY_LINK}, std::pair{TIDE_LINK_PRIORITY_INHERIT, OWN}, std::pair{1, 1}}) {
    address.thread_priority = wanted;
    ASSERT_EQ(tide_port_open_link(&session, &address), TIDE_OK);
    const FakeKernel::Task &task = *machine.tasks.back();
    EXPECT_EQ(task.priority, expected);
    EXPECT_EQ(task.stack_bytes, size_t{TIDE_KERNEL_LINK_STACK_BYTES});
    EXPECT_EQ(tide_port_open_link(&session, &address), TIDE_ERROR_EXISTS);
    EXPECT_EQ(tide_port_link_counters(&session, &counters), TIDE_OK);
    tide_port_close_link(&session);
    EXPECT_TRUE(task.ended);
    EXPECT_EQ(tide_port_link_counters(&session, &counters), TIDE_ERROR_NOT_FOUND);
  }
  address.thread_priority = TIDE_KERNEL_PRIORITY_MOST + 1;
  EXPECT_EQ(tide_port_open_link(&session, &address), TIDE_ERROR_ARGUMENT);
}

#endif

// ---- lanes ----

TEST_F(Rtos, EveryLaneGetsATaskAndTheCallerWaitsForAll) {
  std::array<tide_lane_t, 3> lanes{lane_of(TIDE_SCHEDULING_FIFO, 2, 800), lane_of(TIDE_SCHEDULING_FIFO, 6),
                                   lane_of(TIDE_SCHEDULING_INHERIT, 0)};
  lanes[1].settings.name = "urgent";
  std::vector<size_t> ran;
  EXPECT_EQ(run(lanes,
                [&](size_t index) {
                  EXPECT_EQ(machine.tasks.size(), 4u) << "it runs before all are there";
                  ran.push_back(index);
                }),
            TIDE_OK);
  EXPECT_EQ(ran, (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(machine.tasks[1]->priority, 2);
  EXPECT_GE(machine.tasks[1]->stack_bytes, 800u);
  EXPECT_EQ(machine.tasks[2]->priority, 6);
  EXPECT_EQ(machine.tasks[3]->priority, OWN) << "that of the caller";
  for (size_t index = 1; index < machine.tasks.size(); index++) EXPECT_TRUE(machine.tasks[index]->ended);
}

TEST_F(Rtos, WhenOneLaneCannotBeNoneRuns) {
  const auto refusal = [&](const tide_lane_t &second) {
    std::array<tide_lane_t, 2> lanes{lane_of(TIDE_SCHEDULING_FIFO, 1), second};
    const int status = run(lanes, [](size_t) { ADD_FAILURE() << "it runs"; });
    EXPECT_EQ(refused, 1u);
    return status;
  };
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, TIDE_KERNEL_PRIORITY_MOST + 1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, -1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_DEADLINE, 1)), TIDE_ERROR_UNSUPPORTED);
#if !TIDE_KERNEL_BUDGETS
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_SPORADIC, 1)), TIDE_ERROR_UNSUPPORTED);
#endif
  tide_lane_t elsewhere = lane_of(TIDE_SCHEDULING_FIFO, 1);
  elsewhere.settings.processor = TIDE_ON_PROCESSOR(7);
  EXPECT_LT(refusal(elsewhere), 0);
#if !TIDE_KERNEL_ONE_SET
  machine.task_limit = machine.tasks.size();
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, 2)), TIDE_ERROR_FULL);
#else  // stacks are static
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, 2, 4097)), TIDE_ERROR_UNSUPPORTED);
#endif
  std::array<tide_lane_t, TIDE_KERNEL_LANES + 1> many{};
  EXPECT_EQ(run(many, [](size_t) { ADD_FAILURE() << "it runs"; }), TIDE_ERROR_FULL);
}

#if defined(TIDE_THREADX)
TEST_F(Rtos, LanesInRoundRobinHaveTimeSlices) {
  std::array<tide_lane_t, 2> lanes{lane_of(TIDE_SCHEDULING_FIFO, 2), lane_of(TIDE_SCHEDULING_ROUND_ROBIN, 2)};
  EXPECT_EQ(run(lanes, [](size_t) {}), TIDE_OK);
  EXPECT_EQ(machine.tasks[1]->policy, 0);
  EXPECT_EQ(machine.tasks[2]->policy, 1);
}
#endif

TEST_F(Rtos, ALaneThatMayRunNormallyRuns) {
  std::array<tide_lane_t, 1> lanes{lane_of(TIDE_SCHEDULING_DEADLINE, 1)};
  lanes[0].settings.may_run_normally = true;
  int runs = 0;
  EXPECT_EQ(run(lanes, [&](size_t) { runs++; }), TIDE_OK);
  EXPECT_EQ(runs, 1);
}

#if TIDE_KERNEL_ONE_SET
TEST_F(Rtos, ASecondSetOfLanesIsRefusedWhileTheFirstRuns) {
  std::array<tide_lane_t, 1> lanes{}, more{};
  const auto nothing = [](void *, size_t) {};
  EXPECT_EQ(run(lanes,
                [&](size_t) {
                  EXPECT_EQ(tide_port_run_lanes(more.data(), 1, nothing, nullptr, nullptr), TIDE_ERROR_STATE)
                      << "its threads would be made over running ones";
                }),
            TIDE_OK);
  EXPECT_EQ(run(lanes, [](size_t) {}), TIDE_OK) << "they have ended";
}
#endif

// ---- locks ----

TEST_F(Rtos, ALockRaisesToItsLaneAndNeverLowers) {
  const tide_lock_port_t *locks = tide_port_locks();
  struct Case {
    tide_scheduling_t scheduling;
    int ceiling, within;
  };
  for (const Case &each : {Case{TIDE_SCHEDULING_FIFO, 5, 5}, Case{TIDE_SCHEDULING_ROUND_ROBIN, 5, 5},
                           Case{TIDE_SCHEDULING_FIFO, OWN, OWN}, Case{TIDE_SCHEDULING_FIFO, 2, OWN},
                           Case{TIDE_SCHEDULING_INHERIT, 0, OWN}, Case{TIDE_SCHEDULING_NORMAL, 0, OWN}}) {
    const tide_lane_t lane = lane_of(each.scheduling, each.ceiling);
    uintptr_t before = 0;
    EXPECT_EQ(locks->raise(locks->context, &lane, &before), TIDE_OK);
    EXPECT_EQ(machine.current->priority, each.within) << each.ceiling;
    locks->restore(locks->context, before);
    EXPECT_EQ(machine.current->priority, OWN) << each.ceiling;
  }
}

TEST_F(Rtos, AnInterruptOwnsNoLock) {
  const tide_lock_port_t *locks = tide_port_locks();
  EXPECT_TRUE(locks->may_wait);
  EXPECT_NE(locks->current(locks->context), nullptr);
  machine.take([&] { EXPECT_EQ(locks->current(locks->context), nullptr); });
}

// ---- budgets ----

#if TIDE_KERNEL_BUDGETS
namespace {

class RtosBudgets : public Rtos {
 protected:
  static tide_lane_t lane_with(int priority, int64_t budget_ns, int64_t period_ns) {
    tide_lane_t lane = lane_of(TIDE_SCHEDULING_SPORADIC, priority);
    lane.settings.low_priority = LOW;
    lane.settings.runtime_ns = budget_ns;
    lane.settings.period_ns = period_ns;
    return lane;
  }
  static void ready(const tide_lane_t &lane) { lane.budget.ready(lane.budget.context); }
  static void block(const tide_lane_t &lane) { lane.budget.block(lane.budget.context); }
  int priority() const { return machine.current->priority; }
  void sleep_until(int64_t time_ns) {
    tide_event_t event = fresh();
    while (wait(event, time_ns) != 0) {}
  }
  const tide_budget_counters_t &counters(size_t lane) const { return tide_port_lane_budget(lane)->counters; }
};

}  // namespace

TEST_F(RtosBudgets, ALaneFallsWhenItsBudgetIsUsedUpAndRisesAPeriodAfterItBegan) {
  std::array<tide_lane_t, 2> lanes{lane_with(HIGH, 5 * MS, 20 * MS), lane_of(TIDE_SCHEDULING_FIFO, OTHER)};
  std::vector<int> high;
  ASSERT_EQ(run(lanes,
                [&](size_t index) {
                  if (index != 0) return;
                  machine.work(MS / 2);  // between two ticks
                  for (int ms = 0; ms < 60; ms++) {
                    if (priority() == HIGH) high.push_back(ms);
                    machine.work(MS);
                  }
                }),
            TIDE_OK);
  ASSERT_GE(high.size(), 13u);
  for (const int ms : high) EXPECT_LE(ms % 20, 5 + SLACK_NS / MS) << ms;
  EXPECT_EQ(counters(0).exhaustions, 3u);
  EXPECT_NEAR(static_cast<double>(counters(0).used_ns), 15.5e6, static_cast<double>(SLACK_NS));
  EXPECT_EQ(tide_port_lane_budget(1), nullptr);
  EXPECT_EQ(lanes[0].budget.ready, nullptr) << "no hooks stay";
}

TEST_F(RtosBudgets, TwoLanesAtOnceHaveTheirSharesAndTheRestIsOthers) {
  std::array<tide_lane_t, 3> lanes{lane_with(HIGH, 20 * MS, 100 * MS), lane_with(HIGH + 1, 30 * MS, 100 * MS),
                                   lane_of(TIDE_SCHEDULING_FIFO, MIDDLE)};
  const int64_t end_ns = machine.now_ns + 1000 * MS;
  std::array<int64_t, 3> used{};
  ASSERT_EQ(run(lanes,
                [&](size_t index) {
                  while (machine.now_ns < end_ns) machine.work(STEP);
                  used.at(index) = machine.current->used_ns;
                }),
            TIDE_OK);
  EXPECT_NEAR(static_cast<double>(used[0]), 200e6, 10.0 * static_cast<double>(SLACK_NS));
  EXPECT_NEAR(static_cast<double>(used[1]), 300e6, 10.0 * static_cast<double>(SLACK_NS));
  for (size_t lane = 0; lane < 2; lane++) {
    EXPECT_NEAR(static_cast<double>(counters(lane).used_ns), static_cast<double>(used.at(lane)),
                static_cast<double>(SLACK_NS));
    EXPECT_EQ(counters(lane).exhaustions, 10u);
  }
  EXPECT_LE(machine.alarms, 150) << "looks without need";
}

TEST_F(RtosBudgets, AWaitIsNotChargedAndWhoWaitsHasItsBudgetWhenAnInterruptWakesIt) {
  std::array<tide_lane_t, 1> lanes{lane_with(HIGH, 5 * MS, 20 * MS)};
  ASSERT_EQ(run(lanes,
                [&](size_t) {
                  for (int activation = 0; activation < 100; activation++) {  // 0.3 of 4 ms
                    machine.work(3 * STEP);
                    block(lanes[0]);
                    sleep_until(machine.now_ns + 37 * STEP);
                    machine.take([&] { ready(lanes[0]); });
                    EXPECT_EQ(priority(), HIGH);
                  }
                  EXPECT_EQ(counters(0).exhaustions + counters(0).denied, 0u);
                  while (priority() == HIGH) machine.work(STEP);  // for 3.8 ms: the rest of the budget is not back yet
                  block(lanes[0]);
                  sleep_until(machine.now_ns + 30 * MS);
                  EXPECT_EQ(priority(), HIGH) << "its budget is back";
                  ready(lanes[0]);
                  const int64_t begin_ns = machine.now_ns;
                  while (priority() == HIGH) machine.work(STEP);
                  EXPECT_NEAR(static_cast<double>(machine.now_ns - begin_ns), 5e6, static_cast<double>(SLACK_NS));
                }),
            TIDE_OK);
  EXPECT_NEAR(static_cast<double>(counters(0).used_ns), 100 * 3 * STEP + 8.8e6, static_cast<double>(2 * SLACK_NS));
}

TEST_F(RtosBudgets, ALaneWithoutBudgetIsNoLowerThanTheLeastUrgentLane) {
  std::array<tide_lane_t, 1> lanes{lane_with(HIGH, 5 * MS, 20 * MS)};
  lanes[0].settings.low_priority = 0;
  ASSERT_EQ(run(lanes,
                [&](size_t) {
                  while (priority() == HIGH) machine.work(STEP);
                  EXPECT_EQ(priority(), TIDE_KERNEL_PRIORITY_LEAST);
                }),
            TIDE_OK);
}

TEST_F(RtosBudgets, NumbersThatAreNoBudgetAreRefusedAndNothingRuns) {
  struct Case {
    int priority, low;
    int64_t budget_ns, period_ns;
    uint16_t replenishments;
    int status;
  };
  for (const Case &each :
       {Case{TIDE_KERNEL_PRIORITY_BUDGET + 1, 3, 1, 2, 0, TIDE_ERROR_ARGUMENT},
        Case{5, 5, 1, 2, 0, TIDE_ERROR_ARGUMENT}, Case{5, -1, 1, 2, 0, TIDE_ERROR_ARGUMENT},
        Case{TIDE_KERNEL_PRIORITY_LEAST, 0, 1, 2, 0, TIDE_ERROR_ARGUMENT}, Case{5, 3, 0, 2, 0, TIDE_ERROR_ARGUMENT},
        Case{5, 3, 3, 2, 0, TIDE_ERROR_ARGUMENT}, Case{5, 3, 1, 2, TIDE_KERNEL_REPLENISHMENTS + 1, TIDE_ERROR_FULL}}) {
    std::array<tide_lane_t, 2> lanes{tide_lane_t{}, lane_with(each.priority, each.budget_ns, each.period_ns)};
    lanes[1].settings.low_priority = each.low;
    lanes[1].settings.maximum_replenishments = each.replenishments;
    EXPECT_EQ(run(lanes, [](size_t) { ADD_FAILURE() << "it runs"; }), each.status);
    EXPECT_EQ(refused, 1u);
  }
}

#if !TIDE_KERNEL_ONE_SET
TEST_F(RtosBudgets, ASecondExecutorWithBudgetsIsRefused) {
  std::array<tide_lane_t, 1> lanes{lane_with(HIGH, MS, 2 * MS)}, more{lane_with(HIGH, MS, 2 * MS)};
  const auto nothing = [](void *, size_t) {};
  for (int time = 0; time < 2; time++) {
    ASSERT_EQ(run(lanes,
                  [&](size_t) {
                    EXPECT_EQ(tide_port_run_lanes(more.data(), 1, nothing, nullptr, nullptr), TIDE_ERROR_STATE);
                    machine.work(STEP);
                    EXPECT_NE(lanes[0].budget.block, nullptr) << "the refusal stopped the first";
                  }),
              TIDE_OK);
    EXPECT_EQ(counters(0).used_ns, static_cast<uint64_t>(STEP));
  }
}
#endif

TEST_F(RtosBudgets, ALaneThatGetsALittleInEachIntervalDoesNotMakeUpForIt) {
  std::array<tide_lane_t, 2> lanes{lane_with(HIGH, 5 * MS, 20 * MS), lane_of(TIDE_SCHEDULING_FIFO, OTHER)};
  const int64_t begin_ns = machine.now_ns, alone_ns = begin_ns + 300 * MS;
  int64_t high_ns = 0;
  ASSERT_EQ(run(lanes,
                [&](size_t index) {
                  for (; index == 1 && machine.now_ns < alone_ns; sleep_until(machine.now_ns + STEP)) {
                    machine.work(9 * STEP);
                  }
                  while (index == 0 && machine.now_ns < alone_ns + 60 * MS) {
                    const bool counts = machine.now_ns >= alone_ns && priority() == HIGH;
                    machine.work(STEP);
                    high_ns += counts ? STEP : 0;
                  }
                }),
            TIDE_OK);
  EXPECT_LE(high_ns, 4 * 5 * MS + SLACK_NS) << "in three periods";
}

// In any window, a lane uses at most one budget more than there are periods in it. It is never lowered before it has
// used a whole budget within a period, unless more replenishments were outstanding than there is room for, which is
// counted.
TEST_F(RtosBudgets, WhateverElseRunsALaneHasItsBudgetAndNoMore) {
  const unsigned first = tide::test::seed_of_run();
  for (unsigned round = 0; round < 10; round++) {
    SCOPED_TRACE(tide::test::replay_of(first + round));
    std::mt19937 random(first + round);
    const auto between = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random()) % (high - low + 1);
    };
    std::array<tide_lane_t, 4> lanes{};
    for (int lane = 0; lane < 2; lane++) {
      const int64_t period = between(30, 80);
      lanes.at(lane) = lane_with(HIGH + lane, between(6, period / 3) * MS, period * MS);
    }
    lanes[2] = lane_of(TIDE_SCHEDULING_FIFO, OTHER);
    lanes[3] = lane_of(TIDE_SCHEDULING_FIFO, MIDDLE);
    const int64_t end_ns = machine.now_ns + 600 * MS;
    struct Use {
      int64_t time_ns, high_ns;  // time of the event, and all time at its priority until then
    };
    std::array<std::vector<Use>, 2> uses;
    ASSERT_EQ(run(lanes,
                  [&](size_t index) {
                    while (machine.now_ns < end_ns) {
                      if (index >= 2) {
                        machine.work(between(1, 60) * STEP);
                        sleep_until(machine.now_ns + between(1, index == 2 ? 400 : 100) * STEP);
                        continue;
                      }
                      const tide_lane_settings_t &settings = lanes.at(index).settings;
                      std::vector<Use> &own = uses.at(index);
                      const bool high = priority() == settings.priority;
                      if (!high && counters(index).denied == 0) {  // otherwise it ran out of replenishments
                        const int64_t since_ns = machine.now_ns - settings.period_ns - SLACK_NS;
                        const auto at = std::find_if(own.rbegin(), own.rend(),
                                                     [&](const Use &one) { return one.time_ns <= since_ns; });
                        const int64_t before_ns = at == own.rend() ? 0 : at->high_ns;
                        EXPECT_GE(own.empty() ? 0 : own.back().high_ns - before_ns, settings.runtime_ns - SLACK_NS)
                            << "lane " << index << " is low with budget";
                      }
                      machine.work(STEP);
                      own.push_back({machine.now_ns, (own.empty() ? 0 : own.back().high_ns) + (high ? STEP : 0)});
                      if (between(0, 150) != 0) continue;
                      block(lanes.at(index));
                      sleep_until(machine.now_ns + between(1, 200) * STEP);
                      ready(lanes.at(index));
                    }
                  }),
              TIDE_OK);
    for (size_t lane = 0; lane < 2; lane++) {
      const int64_t period = lanes.at(lane).settings.period_ns, budget = lanes.at(lane).settings.runtime_ns;
      const std::vector<Use> &own = uses.at(lane);
      for (const Use &begin : own) {
        for (int64_t periods = 1; begin.time_ns + periods * period < end_ns; periods++) {
          const auto end = std::upper_bound(own.begin(), own.end(), begin.time_ns + periods * period,
                                            [](int64_t time_ns, const Use &one) { return time_ns < one.time_ns; });
          ASSERT_LE(std::prev(end)->high_ns - begin.high_ns, budget * (periods + 1) + SLACK_NS)
              << budget << " in " << period << " from " << begin.time_ns;
        }
      }
    }
  }
}
#endif
