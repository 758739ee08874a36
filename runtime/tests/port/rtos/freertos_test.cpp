// SPDX-License-Identifier: Apache-2.0
// The logic of runtime/port/freertos on a kernel of a few lines: one processor, time by ticks, and interrupts wherever
// a test wants one: before or after any step that the port takes.
#include <gtest/gtest.h>

#include <array>
#include <csetjmp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../../../port/freertos/tide_freertos.h"
#include "../../../port/rtos/link_task.h"
#include "task.h"
#include "tide/lock.h"
#include "tide/status.h"

namespace {

struct Task {
  TaskFunction_t function;
  void *argument;
  UBaseType_t priority;
  std::string name;
  uint32_t stack_words;
  bool deleted;
};

struct Kernel {
  TickType_t ticks = 0;
  UBaseType_t masked = 0;  // BASEPRI, so to speak
  UBaseType_t depth = 0;   // of the running task's critical sections
  int suspended = 0;
  bool in_interrupt = false;
  uint32_t notified = 0;
  int steps = 0, interrupt_at_step = -1;
  int yields = 0, deletions = 0;
  std::function<void()> interrupt;
  std::multimap<TickType_t, std::function<void()>> at_ticks;
  std::vector<Task> tasks;
  size_t task_limit = 100;
  UBaseType_t priority = 3;  // of the running task

  // Every call of the port passes here: the interrupt may come, unless it is masked; then it comes as soon as it may.
  void step() {
    if (!in_interrupt && steps++ == interrupt_at_step) pending = true;
    if (pending && masked == 0 && !in_interrupt) {
      pending = false;
      take(interrupt);
    }
  }
  void take(const std::function<void()> &handler) {
    in_interrupt = true;
    handler();
    in_interrupt = false;
  }
  // Lanes run in turn, most urgent first, each to its end.
  bool run_a_task() {
    Task *best = nullptr;
    for (Task &task : tasks)
      if (!task.deleted && (best == nullptr || task.priority > best->priority)) best = &task;
    if (best == nullptr) return false;
    best->deleted = true;
    enter(best->function, best->argument);
    return true;
  }
  void enter(TaskFunction_t function, void *argument) {
    if (setjmp(parked) == 0) function(argument);
  }
  std::jmp_buf parked; /* where a task that suspends itself for good comes out */
  bool pending = false;
};
Kernel *kernel;

int64_t time_of(uint64_t ticks) {
  return static_cast<int64_t>(__extension__ static_cast<unsigned __int128>(ticks) * 1000000000u / configTICK_RATE_HZ);
}

class FreeRtos : public testing::Test {
 protected:
  FreeRtos() { kernel = &machine; }
  Kernel machine;
  const tide_platform_t *platform = tide_port_platform();
  int64_t now() { return platform->now_ns(platform->context); }
  int wait(tide_event_t &event, int64_t deadline) { return platform->event_wait(platform->context, &event, deadline); }
  void set(tide_event_t &event) { platform->event_set(platform->context, &event); }
  tide_event_t fresh() {
    tide_event_t event{};
    platform->event_init(platform->context, &event);
    return event;
  }
};

}  // namespace

extern "C" {
BaseType_t xPortIsInsideInterrupt(void) { return kernel->in_interrupt ? pdTRUE : pdFALSE; }
void vPortEnterCritical(void) {
  EXPECT_FALSE(kernel->in_interrupt) << "the task's variant in an interrupt";
  kernel->step();
  kernel->masked = 1;
  kernel->depth++;
}
void vPortExitCritical(void) {
  EXPECT_FALSE(kernel->in_interrupt);
  ASSERT_GT(kernel->depth, 0u);
  if (--kernel->depth == 0) kernel->masked = 0;
  kernel->step();
}
UBaseType_t fake_mask_from_interrupt(void) {
  EXPECT_TRUE(kernel->in_interrupt) << "the interrupt's variant in a task";
  const UBaseType_t before = kernel->masked;
  kernel->masked = 1;
  return before;
}
void fake_unmask_from_interrupt(UBaseType_t state) { kernel->masked = state; }
void fake_yield_from_interrupt(BaseType_t woken) { kernel->yields += woken != pdFALSE ? 1 : 0; }
TickType_t xTaskGetTickCount(void) {
  EXPECT_FALSE(kernel->in_interrupt);
  kernel->step();
  return kernel->ticks;
}
TickType_t xTaskGetTickCountFromISR(void) {
  EXPECT_TRUE(kernel->in_interrupt);
  return kernel->ticks;
}
TaskHandle_t xTaskGetCurrentTaskHandle(void) { return kernel; }
UBaseType_t uxTaskPriorityGet(TaskHandle_t) { return kernel->priority; }
void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority) {
  EXPECT_EQ(task, nullptr);
  EXPECT_EQ(kernel->masked, 0u);
  EXPECT_FALSE(kernel->in_interrupt);
  kernel->priority = priority;
}
void vTaskSuspendAll(void) { kernel->suspended++; }
void vTaskSuspend(TaskHandle_t task) {
  EXPECT_EQ(task, nullptr);
  EXPECT_EQ(kernel->depth, 0u);
  std::longjmp(kernel->parked, 1);
}
BaseType_t xTaskResumeAll(void) {
  kernel->suspended--;
  return pdFALSE;
}
BaseType_t xTaskCreate(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth, void *argument,
                       UBaseType_t priority, TaskHandle_t *task) {
  if (kernel->tasks.size() == kernel->task_limit) return pdFALSE;
  kernel->tasks.push_back({function, argument, priority, name, depth, false});
  *task = reinterpret_cast<TaskHandle_t>(kernel->tasks.size());
  return pdPASS;
}
void vTaskDelete(TaskHandle_t task) {
  ASSERT_NE(task, nullptr) << "whoever started a task deletes it";
  kernel->tasks.at(reinterpret_cast<size_t>(task) - 1).deleted = true;
  kernel->deletions++;
}
BaseType_t xTaskNotifyGiveIndexed(TaskHandle_t task, UBaseType_t index) {
  EXPECT_FALSE(kernel->in_interrupt);
  EXPECT_GT(kernel->depth, 0u) << "the task may be gone when the section has ended";
  EXPECT_EQ(task, kernel);
  EXPECT_EQ(index, UBaseType_t{TIDE_FREERTOS_NOTIFICATION});
  kernel->notified++;
  return pdPASS;
}
void vTaskNotifyGiveIndexedFromISR(TaskHandle_t task, UBaseType_t, BaseType_t *woken) {
  EXPECT_TRUE(kernel->in_interrupt);
  EXPECT_EQ(kernel->masked, 1u) << "the task may be gone when the section has ended";
  EXPECT_EQ(task, kernel);
  kernel->notified++;
  *woken = pdTRUE;
}
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t, BaseType_t clear, TickType_t ticks) {
  EXPECT_EQ(kernel->depth, 0u) << "sleeps in a critical section";
  EXPECT_EQ(clear, pdTRUE);
  kernel->step();
  for (TickType_t slept = 0; kernel->notified == 0 && slept < ticks; slept++) {
    if (kernel->run_a_task()) continue;
    if (ticks == portMAX_DELAY && kernel->at_ticks.empty()) {
      ADD_FAILURE() << "nothing will ever end this sleep";
      kernel->notified = 1;
      kernel->take([] {});
      break;
    }
    kernel->ticks++;
    const auto due = kernel->at_ticks.extract(kernel->ticks);
    if (!due.empty()) kernel->take(due.mapped());
  }
  const uint32_t count = kernel->notified;
  kernel->notified = 0;
  kernel->step();
  return count;
}
}

TEST_F(FreeRtos, TheClockCountsTheRoundsOfTheTickCounter) {
  const uint64_t round = now() == 0 ? 0 : static_cast<uint64_t>(now()) * configTICK_RATE_HZ / 1000000000u >> 32;
  const auto at = [&](uint64_t more_rounds, uint64_t ticks) { return time_of(((round + more_rounds) << 32) + ticks); };
  machine.ticks = 0xFFFFFFFE;
  EXPECT_EQ(now(), at(0, 0xFFFFFFFE));
  machine.ticks = 3;
  EXPECT_EQ(now(), at(1, 3));
  machine.take([&] { EXPECT_EQ(now(), at(1, 3)); });
  machine.ticks = 0xFFFFFFFF;
  EXPECT_EQ(now(), at(1, 0xFFFFFFFF));
  machine.ticks = 2;
  int64_t in_interrupt = 0;
  machine.take([&] { in_interrupt = now(); });  // who sees the end of a round first may be an interrupt
  EXPECT_EQ(in_interrupt, at(2, 2));
  EXPECT_EQ(now(), in_interrupt);
}

TEST_F(FreeRtos, TheClockDoesNotDriftWhereATickIsNoWholeNumberOfNanoseconds) {
  const int64_t begin = now();
  machine.ticks += configTICK_RATE_HZ * 100000u;  // 27 hours
  EXPECT_EQ(now() - begin, INT64_C(100000) * 1000000000);
}

TEST_F(FreeRtos, AnInterruptBetweenTheReadingOfTwoTasksDoesNotCountARoundTwice) {
  machine.ticks = 0xFFFFFFFF;
  const int64_t before = now();
  machine.ticks = 0;
  for (int step = 0; step < 4; step++) {
    machine.steps = 0;
    machine.interrupt_at_step = step;
    machine.interrupt = [&] { EXPECT_LE(now() - before, TIDE_TICK_NS + 1); };
    EXPECT_LE(now() - before, TIDE_TICK_NS + 1) << step;
    EXPECT_GE(now() - before, TIDE_TICK_NS) << step;
  }
}

TEST_F(FreeRtos, CriticalSectionsNestInTasksAndInterrupts) {
  const uintptr_t outer = platform->critical_enter(platform->context);
  const uintptr_t inner = platform->critical_enter(platform->context);
  platform->critical_exit(platform->context, inner);
  EXPECT_EQ(machine.masked, 1u) << "the inner exit ended the outer section";
  platform->critical_exit(platform->context, outer);
  EXPECT_EQ(machine.masked, 0u);
  machine.take([&] {
    const uintptr_t first = platform->critical_enter(platform->context);
    const uintptr_t second = platform->critical_enter(platform->context);
    platform->critical_exit(platform->context, second);
    EXPECT_EQ(machine.masked, 1u);
    platform->critical_exit(platform->context, first);
    EXPECT_EQ(machine.masked, 0u);
  });
}

TEST_F(FreeRtos, NoWakeUpIsLostWhereverTheInterruptComes) {
  for (int step = 0; step < 12; step++) {
    tide_event_t event = fresh();
    machine.notified = 0;
    machine.steps = 0;
    machine.interrupt_at_step = step;
    machine.interrupt = [&] { set(event); };
    const TickType_t before = machine.ticks;
    EXPECT_EQ(wait(event, now() + 50 * TIDE_TICK_NS), 1) << step;
    ASSERT_GT(machine.steps, step) << "the interrupt never came";
    EXPECT_EQ(machine.ticks, before) << "slept through the interrupt of step " << step;
    EXPECT_EQ(event.state, 0u);
    EXPECT_EQ(event.port, nullptr) << "the next set would wake somebody who does not wait";
  }
  EXPECT_GT(machine.yields, 0);
}

TEST_F(FreeRtos, SetBeforeTheWaitEndsItAtOnceAndIsConsumed) {
  tide_event_t event = fresh();
  set(event);
  set(event);
  EXPECT_EQ(wait(event, TIDE_FOREVER), 1);
  EXPECT_EQ(machine.ticks, 0u);
  EXPECT_EQ(wait(event, now()), 0);
  set(event);
  EXPECT_EQ(wait(event, 0), 1) << "a deadline in the past polls";
}

// A deadline between two ticks has come at the second one, and at a tick has come then.
TEST_F(FreeRtos, AWaitEndsAtTheFirstTickThatIsNotEarly) {
  for (const TickType_t start : {TickType_t{0}, TickType_t{17}, TickType_t{0xFFFFFFFC}}) {
    for (const int64_t delay : {int64_t{1}, TIDE_TICK_NS - 1, TIDE_TICK_NS, TIDE_TICK_NS + 2, 10 * TIDE_TICK_NS}) {
      machine.ticks = start;
      tide_event_t event = fresh();
      machine.notified = 2;  // of an earlier wait: must not end this one
      const int64_t begin = now();
      EXPECT_EQ(wait(event, begin + delay), 0);
      EXPECT_GE(now(), begin + delay);
      EXPECT_LE(now(), begin + delay + TIDE_TICK_NS) << start << " " << delay;
      const auto slept = static_cast<TickType_t>(machine.ticks - start);
      EXPECT_EQ(slept, static_cast<TickType_t>((delay * configTICK_RATE_HZ + 999999999) / 1000000000)) << delay;
    }
  }
}

TEST_F(FreeRtos, LanesAreKeptOutByTheSchedulerAndInterruptsComeIn) {
  ASSERT_NE(platform->lanes_enter, nullptr);
  const uintptr_t outer = platform->lanes_enter(platform->context);
  const uintptr_t inner = platform->lanes_enter(platform->context);
  EXPECT_EQ(machine.suspended, 2);
  EXPECT_EQ(machine.masked, 0u) << "interrupts are kept out";
  machine.take([&] {
    const uintptr_t state = platform->lanes_enter(platform->context);
    EXPECT_EQ(machine.suspended, 2) << "an interrupt called the scheduler";
    platform->lanes_exit(platform->context, state);
  });
  platform->lanes_exit(platform->context, inner);
  EXPECT_EQ(machine.suspended, 1);
  platform->lanes_exit(platform->context, outer);
  EXPECT_EQ(machine.suspended, 0);
}

TEST_F(FreeRtos, AWaitLongerThanTheKernelCanSleepGoesOn) {
  machine.ticks = 0;
  tide_event_t event = fresh();
  machine.at_ticks.emplace(40, [&] { set(event); });
  EXPECT_EQ(wait(event, now() + INT64_MAX / 2), 1);
  EXPECT_EQ(machine.ticks, 40u);
}

namespace {
struct Lanes {
  std::vector<size_t> ran;
  static void run(void *context, size_t index) { static_cast<Lanes *>(context)->ran.push_back(index); }
};
tide_lane_t lane_of(tide_scheduling_t scheduling, int priority, size_t stack = 0) {
  tide_lane_t lane{};
  lane.settings.scheduling = scheduling;
  lane.settings.priority = priority;
  lane.settings.stack_bytes = stack;
  return lane;
}
}  // namespace

TEST_F(FreeRtos, EveryLaneGetsATaskAndTheCallerWaitsForAll) {
  std::array<tide_lane_t, 3> lanes{lane_of(TIDE_SCHEDULING_FIFO, 2, 800), lane_of(TIDE_SCHEDULING_FIFO, 6),
                                   lane_of(TIDE_SCHEDULING_INHERIT, 0)};
  lanes[1].settings.name = "urgent";
  Lanes lanes_ran;
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), lanes.size(), Lanes::run, &lanes_ran, nullptr), TIDE_OK);
  EXPECT_EQ(lanes_ran.ran, (std::vector<size_t>{1, 2, 0}));
  ASSERT_EQ(machine.tasks.size(), 3u);
  EXPECT_EQ(machine.tasks[0].priority, 2u);
  EXPECT_EQ(machine.tasks[0].stack_words, 200u);
  EXPECT_EQ(machine.tasks[1].name, "urgent");
  EXPECT_EQ(machine.tasks[2].priority, 3u) << "that of the caller";
  EXPECT_EQ(machine.deletions, 3) << "their memory waits for the idle task";
  EXPECT_EQ(machine.suspended, 0);
}

TEST_F(FreeRtos, WhenOneLaneCannotBeNoneRuns) {
  const auto refusal = [&](tide_lane_t second) {
    std::array<tide_lane_t, 2> lanes{lane_of(TIDE_SCHEDULING_FIFO, 1), second};
    Lanes lanes_ran;
    size_t refused = 99;
    const int status = tide_port_run_lanes(lanes.data(), lanes.size(), Lanes::run, &lanes_ran, &refused);
    EXPECT_EQ(refused, 1u);
    EXPECT_TRUE(lanes_ran.ran.empty());
    while (machine.run_a_task()) {
    }
    EXPECT_TRUE(lanes_ran.ran.empty()) << "a task of refused lanes was left behind";
    EXPECT_EQ(machine.suspended, 0);
    return status;
  };
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, configMAX_PRIORITIES)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, -1)), TIDE_ERROR_ARGUMENT);
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_SPORADIC, 1)), TIDE_ERROR_UNSUPPORTED);
  machine.task_limit = machine.tasks.size() + 1;
  EXPECT_EQ(refusal(lane_of(TIDE_SCHEDULING_FIFO, 2)), TIDE_ERROR_FULL);
}

TEST_F(FreeRtos, TheOneProcessorIsTheOnlyOneToChoose) {
  std::array<tide_lane_t, 1> lanes{lane_of(TIDE_SCHEDULING_FIFO, 2)};
  Lanes lanes_ran;
  lanes[0].settings.processor = TIDE_ON_PROCESSOR(1);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 1, Lanes::run, &lanes_ran, nullptr), TIDE_ERROR_ARGUMENT);
  lanes[0].settings.processor = TIDE_ON_PROCESSOR(0);
  EXPECT_EQ(tide_port_run_lanes(lanes.data(), 1, Lanes::run, &lanes_ran, nullptr), TIDE_OK);
}

namespace {
int link_runs;
void count_link_run() { link_runs++; }
}  // namespace

TEST_F(FreeRtos, TheLinkHasATaskFromOpenToCloseAndItsMemoryIsFreeAtOnce) {
  link_runs = 0;
  ASSERT_EQ(tide_link_task_start(count_link_run, 0), TIDE_OK);
  EXPECT_EQ(machine.tasks.at(0).priority, UBaseType_t{configMAX_PRIORITIES - 1}) << "above all lanes";
  EXPECT_EQ(machine.tasks.at(0).stack_words, TIDE_FREERTOS_LINK_STACK_BYTES / sizeof(StackType_t));
  EXPECT_EQ(link_runs, 0);
  tide_link_task_join();
  EXPECT_EQ(link_runs, 1);
  EXPECT_EQ(machine.deletions, 1);
  ASSERT_EQ(tide_link_task_start(count_link_run, 5), TIDE_OK);
  EXPECT_EQ(machine.tasks.at(1).priority, 5u);
  tide_link_task_join();
  ASSERT_EQ(tide_link_task_start(count_link_run, TIDE_LINK_PRIORITY_INHERIT), TIDE_OK);
  EXPECT_EQ(machine.tasks.at(2).priority, 3u);
  tide_link_task_join();
  EXPECT_EQ(tide_link_task_start(count_link_run, configMAX_PRIORITIES), TIDE_ERROR_ARGUMENT);
  machine.task_limit = machine.tasks.size();
  EXPECT_EQ(tide_link_task_start(count_link_run, 0), TIDE_ERROR_FULL);
}

// The ceiling of each lane, and what the running task has within the section: larger is more urgent.
TEST_F(FreeRtos, ALockRaisesToItsLaneAndNeverLowers) {
  const tide_lock_port_t *locks = tide_port_locks();
  struct Case {
    tide_scheduling_t scheduling;
    int ceiling;
    UBaseType_t within;
  };
  for (const Case &each :
       {Case{TIDE_SCHEDULING_FIFO, 5, 5u}, Case{TIDE_SCHEDULING_ROUND_ROBIN, 5, 5u}, Case{TIDE_SCHEDULING_FIFO, 3, 3u},
        Case{TIDE_SCHEDULING_FIFO, 2, 3u}, Case{TIDE_SCHEDULING_INHERIT, 0, 3u}, Case{TIDE_SCHEDULING_NORMAL, 0, 3u}}) {
    tide_lane_t lane{};
    lane.settings.scheduling = each.scheduling;
    lane.settings.priority = each.ceiling;
    uintptr_t before = 0;
    EXPECT_EQ(locks->raise(locks->context, &lane, &before), TIDE_OK);
    EXPECT_EQ(machine.priority, each.within) << each.ceiling;
    locks->restore(locks->context, before);
    EXPECT_EQ(machine.priority, 3u) << each.ceiling;
  }
}

TEST_F(FreeRtos, AnInterruptOwnsNoLock) {
  const tide_lock_port_t *locks = tide_port_locks();
  EXPECT_TRUE(locks->may_wait);
  EXPECT_NE(locks->current(locks->context), nullptr);
  machine.in_interrupt = true;
  EXPECT_EQ(locks->current(locks->context), nullptr);
  machine.in_interrupt = false;
}
