// SPDX-License-Identifier: Apache-2.0
// runtime/port/freertos with a clock and an alarm of the program: waits end at their time. Time goes on where tasks
// sleep, from one alarm to the next.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "../../../port/freertos/tide_freertos.h"
#include "task.h"

namespace {
struct Machine {
  int64_t now_ns = 1000, alarm_ns = INT64_MAX, cost_ns = 0;
  int current = 0, sleeps = 0, in_interrupt = 0;
  std::vector<uint32_t> notified = std::vector<uint32_t>(8);
  std::function<void()> another; /* task, which gets the processor when the current one sleeps */
};
Machine *machine;

class FreeRtosAlarm : public testing::Test {
 protected:
  FreeRtosAlarm() { machine = &state; }
  Machine state;
  const tide_platform_t *platform = tide_port_platform();
  int wait(int64_t deadline_ns, tide_event_t *event = nullptr) {
    tide_event_t nobody{};
    return platform->event_wait(platform->context, event != nullptr ? event : &nobody, deadline_ns);
  }
};
}  // namespace

extern "C" {
int64_t tide_freertos_clock_ns(void) { return machine->now_ns; }
void tide_freertos_set_alarm(int64_t time_ns) { machine->alarm_ns = time_ns; }
BaseType_t xPortIsInsideInterrupt(void) { return machine->in_interrupt; }
void vPortEnterCritical(void) {}
void vPortExitCritical(void) {}
UBaseType_t fake_mask_from_interrupt(void) { return 0; }
void fake_unmask_from_interrupt(UBaseType_t) {}
void fake_yield_from_interrupt(BaseType_t) {}
void vTaskSuspendAll(void) {}
BaseType_t xTaskResumeAll(void) { return pdFALSE; }
TaskHandle_t xTaskGetCurrentTaskHandle(void) { return &machine->notified.at(static_cast<size_t>(machine->current)); }
BaseType_t xTaskNotifyGiveIndexed(TaskHandle_t task, UBaseType_t) {
  ++*static_cast<uint32_t *>(task);
  return pdPASS;
}
void vTaskNotifyGiveIndexedFromISR(TaskHandle_t task, UBaseType_t, BaseType_t *) { ++*static_cast<uint32_t *>(task); }
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t, BaseType_t, TickType_t ticks) {
  const int self = machine->current;
  uint32_t &mine = machine->notified.at(static_cast<size_t>(self));
  machine->sleeps++;
  EXPECT_EQ(ticks, portMAX_DELAY) << "sleeps by ticks";
  if (machine->another) {
    const std::function<void()> task = std::exchange(machine->another, nullptr);
    machine->current = self + 1;
    task();
    machine->current = self;
  }
  while (mine == 0) {
    if (machine->alarm_ns == INT64_MAX) {
      ADD_FAILURE() << "nothing will ever end this sleep";
      break;
    }
    if (machine->alarm_ns > machine->now_ns) machine->now_ns = machine->alarm_ns;
    machine->now_ns += machine->cost_ns;
    machine->alarm_ns = INT64_MAX;
    machine->in_interrupt = 1;
    tide_freertos_alarm();
    machine->in_interrupt = 0;
  }
  mine = 0;
  return 1;
}
}

TEST_F(FreeRtosAlarm, AWaitEndsAtItsTimeWhateverTheTick) {
  for (const int64_t delay_ns : {1, 999, 50'000, 999'999, 1'000'000, 123'456'789}) {
    const int64_t deadline_ns = state.now_ns + delay_ns;
    EXPECT_EQ(wait(deadline_ns), 0);
    EXPECT_EQ(state.now_ns, deadline_ns);
  }
  state.cost_ns = 700;  // until the interrupt looks
  const int64_t deadline_ns = state.now_ns + 5000;
  EXPECT_EQ(wait(deadline_ns), 0);
  EXPECT_EQ(state.now_ns, deadline_ns + 700);
}

TEST_F(FreeRtosAlarm, TheEarliestOfSeveralSleepersIsWokenFirst) {
  const int64_t begin_ns = state.now_ns;
  int64_t woken_ns[3] = {};
  state.another = [&] {
    state.another = [&] {
      EXPECT_EQ(wait(begin_ns + 2000), 0);
      woken_ns[2] = state.now_ns;
    };
    EXPECT_EQ(wait(begin_ns + 5000), 0);
    woken_ns[1] = state.now_ns;
  };
  EXPECT_EQ(wait(begin_ns + 9000), 0);
  woken_ns[0] = state.now_ns;
  EXPECT_EQ(woken_ns[2], begin_ns + 2000);
  EXPECT_EQ(woken_ns[1], begin_ns + 5000);
  EXPECT_EQ(woken_ns[0], begin_ns + 9000);
}

TEST_F(FreeRtosAlarm, AnAlarmThatComesEarlyIsSetAgain) {
  const int64_t deadline_ns = state.now_ns + 5000;
  state.another = [&] { state.alarm_ns = state.now_ns + 10; };  // a timer that cannot count so far
  EXPECT_EQ(wait(deadline_ns), 0);
  EXPECT_EQ(state.now_ns, deadline_ns);
}

TEST_F(FreeRtosAlarm, WhoIsWokenByItsEventLeavesNoAlarmBehind) {
  tide_event_t event{};
  platform->event_init(platform->context, &event);
  state.another = [&] { platform->event_set(platform->context, &event); };
  EXPECT_EQ(wait(state.now_ns + 1000, &event), 1);
  state.now_ns += 5000;
  tide_freertos_alarm();
  EXPECT_EQ(state.notified.at(0), 0u) << "woke a task that does not wait any more";
  EXPECT_EQ(wait(state.now_ns), 0);
}
