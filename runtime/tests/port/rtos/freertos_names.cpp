// SPDX-License-Identifier: Apache-2.0
// The names of FreeRTOS on the fake kernel.
#include <gtest/gtest.h>

#include "../../../port/freertos/tide_freertos.h"
#include "fake_kernel.h"
#include "task.h"

namespace {
FakeKernel::Task &task_of(TaskHandle_t task) {
  return task == nullptr ? *fake->current : *static_cast<FakeKernel::Task *>(task);
}
uint64_t ticks() {
  return static_cast<uint64_t>(__extension__ static_cast<unsigned __int128>(fake->now_ns) * configTICK_RATE_HZ /
                               1'000'000'000u);
}
int64_t time_of_tick(uint64_t tick) {  // the first nanosecond of the tick
  return static_cast<int64_t>(
      (__extension__ static_cast<unsigned __int128>(tick) * 1'000'000'000u + configTICK_RATE_HZ - 1) /
      configTICK_RATE_HZ);
}
}  // namespace

extern "C" {
#if TIDE_FREERTOS_CLOCK
int64_t tide_freertos_clock_ns(void) { return fake->now_ns; }
#endif
#if TIDE_FREERTOS_ALARM
void tide_freertos_set_alarm(int64_t time_ns) {
  fake->alarm_ns = time_ns;
  fake->alarm = tide_freertos_alarm;
#if TIDE_FREERTOS_BUDGETS
  fake->on_switch = [](FakeKernel::Task &) {
    const bool before = fake->in_interrupt;
    fake->in_interrupt = true;  // as the kernel switches tasks in an interrupt
    tide_freertos_switched_in();
    fake->in_interrupt = before;
  };
#endif
}
#endif
BaseType_t xPortIsInsideInterrupt(void) { return fake->in_interrupt ? pdTRUE : pdFALSE; }
void vPortEnterCritical(void) {
  EXPECT_FALSE(fake->in_interrupt) << "the task's variant in an interrupt";
  fake->step();
  fake->masked++;
}
void vPortExitCritical(void) {
  EXPECT_FALSE(fake->in_interrupt);
  ASSERT_GT(fake->masked, 0u);
  if (--fake->masked > 0) return;
  fake->step();
  fake->choose();
}
UBaseType_t fake_mask_from_interrupt(void) {
  EXPECT_TRUE(fake->in_interrupt) << "the interrupt's variant in a task";
  return fake->masked++;
}
void fake_unmask_from_interrupt(UBaseType_t state) { fake->masked = static_cast<unsigned>(state); }
void fake_yield_from_interrupt(BaseType_t) {}
TickType_t xTaskGetTickCount(void) {
  EXPECT_FALSE(fake->in_interrupt);
  fake->step();
  return static_cast<TickType_t>(ticks());
}
TickType_t xTaskGetTickCountFromISR(void) {
  EXPECT_TRUE(fake->in_interrupt);
  return static_cast<TickType_t>(ticks());
}
TaskHandle_t xTaskGetCurrentTaskHandle(void) { return fake->current; }
UBaseType_t uxTaskPriorityGet(TaskHandle_t task) { return static_cast<UBaseType_t>(task_of(task).priority); }
void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority) {
  EXPECT_FALSE(fake->in_interrupt);
  EXPECT_EQ(fake->masked, 0u);
  task_of(task).priority = static_cast<int>(priority);
  fake->choose();
}
void vTaskSuspendAll(void) { fake->locked++; }
BaseType_t xTaskResumeAll(void) {
  fake->locked--;
  fake->choose();
  return pdFALSE;
}
void vTaskSuspend(TaskHandle_t task) {
  EXPECT_EQ(task, nullptr);
  EXPECT_EQ(fake->masked, 0u);
  fake->end_task();
}
BaseType_t xTaskCreate(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth, void *argument,
                       UBaseType_t priority, TaskHandle_t *handle) {
  if (fake->tasks.size() > fake->task_limit) return pdFALSE;
  FakeKernel::Task &task = fake->create([=] { function(argument); }, static_cast<int>(priority));
  task.name = name;
  task.stack_bytes = depth * sizeof(StackType_t);
  *handle = &task;
  fake->start(task);
  return pdPASS;
}
void vTaskDelete(TaskHandle_t task) {
  ASSERT_NE(task, nullptr) << "whoever started a task deletes it";
  fake->join(task_of(task));
  fake->deletions++;
}
BaseType_t xTaskNotifyGiveIndexed(TaskHandle_t task, UBaseType_t index) {
  EXPECT_FALSE(fake->in_interrupt);
  EXPECT_GT(fake->masked, 0u) << "the task may be gone when the section has ended";
  EXPECT_EQ(index, UBaseType_t{TIDE_FREERTOS_NOTIFICATION});
  task_of(task).notified++;
  fake->wake(task_of(task));
  return pdPASS;
}
void vTaskNotifyGiveIndexedFromISR(TaskHandle_t task, UBaseType_t, BaseType_t *woken) {
  EXPECT_TRUE(fake->in_interrupt);
  EXPECT_GT(fake->masked, 0u) << "the task may be gone when the section has ended";
  task_of(task).notified++;
  fake->wake(task_of(task));
  *woken = pdTRUE;
}
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t, BaseType_t clear, TickType_t count) {
  FakeKernel::Task &self = *fake->current;
  EXPECT_EQ(clear, pdTRUE);
  fake->step();
  if (self.notified == 0) fake->block(count == portMAX_DELAY ? INT64_MAX : time_of_tick(ticks() + count));
  const uint32_t taken = self.notified;
  self.notified = 0;
  fake->step();
  return taken;
}
}
