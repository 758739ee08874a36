// SPDX-License-Identifier: Apache-2.0
// The names of ThreadX on the fake kernel.
#include <gtest/gtest.h>

#include "../../../port/rtos/rtos.h"
#include "fake_kernel.h"

namespace {
constexpr int64_t TICK_NS = 1'000'000'000 / int64_t{TX_TIMER_TICKS_PER_SECOND};
FakeKernel::Task &task_of(TX_THREAD *thread) { return *static_cast<FakeKernel::Task *>(thread->task); }
}  // namespace

extern "C" {
#if TIDE_THREADX_ALARM
int64_t tide_threadx_clock_ns(void) { return fake->now_ns; }
void tide_threadx_set_alarm(int64_t time_ns) {
  fake->alarm_ns = time_ns;
  fake->alarm = tide_threadx_alarm;
}
#endif
UINT fake_disable(VOID) {
  fake->step();
  return fake->masked++;
}
VOID fake_restore(UINT posture) {
  fake->masked = posture;
  fake->step();
}
ULONG fake_system_state(VOID) { return fake->in_interrupt ? 1 : 0; }
UINT *fake_preempt_disable(VOID) { return &fake->locked; }
VOID _tx_thread_system_preempt_check(VOID) { fake->choose(); }
ULONG tx_time_get(VOID) {
  fake->step();
  return static_cast<ULONG>(fake->now_ns / TICK_NS);
}
UINT tx_semaphore_create(TX_SEMAPHORE *semaphore, CHAR *, ULONG count) {
  *semaphore = {nullptr, count};
  return TX_SUCCESS;
}
UINT tx_semaphore_delete(TX_SEMAPHORE *semaphore) {
  EXPECT_EQ(semaphore->waiter, nullptr);
  return TX_SUCCESS;
}
UINT tx_semaphore_put(TX_SEMAPHORE *semaphore) {
  EXPECT_GT(fake->locked, 0u) << "ThreadX would enable interrupts and switch threads";
  semaphore->count++;
  if (semaphore->waiter != nullptr) fake->wake(*static_cast<FakeKernel::Task *>(semaphore->waiter));
  return TX_SUCCESS;
}
UINT tx_semaphore_get(TX_SEMAPHORE *semaphore, ULONG ticks) {
  fake->step();
  semaphore->waiter = fake->current;
  const int64_t until = (fake->now_ns / TICK_NS + static_cast<int64_t>(ticks)) * TICK_NS;
  if (semaphore->count == 0) fake->block(ticks == TX_WAIT_FOREVER ? INT64_MAX : until);
  semaphore->waiter = nullptr;
  const bool taken = semaphore->count > 0;
  if (taken) semaphore->count--;
  fake->step();
  return taken ? TX_SUCCESS : 1;
}
UINT tx_thread_create(TX_THREAD *thread, CHAR *, VOID (*entry)(ULONG), ULONG argument, VOID *, ULONG bytes,
                      UINT priority, UINT threshold, ULONG slice, UINT) {
  EXPECT_EQ(threshold, priority);
  FakeKernel::Task &task = fake->create([=] { entry(argument); }, TX_MAX_PRIORITIES - 1 - static_cast<int>(priority));
  task.stack_bytes = bytes;
  task.policy = slice == TX_NO_TIME_SLICE ? 0 : 1;
  thread->task = &task;
  fake->start(task);
  return TX_SUCCESS;
}
UINT tx_thread_terminate(TX_THREAD *thread) {
  fake->join(task_of(thread));
  return TX_SUCCESS;
}
UINT tx_thread_delete(TX_THREAD *) {
  fake->deletions++;
  return TX_SUCCESS;
}
UINT tx_thread_priority_change(TX_THREAD *thread, UINT priority, UINT *before) {
  EXPECT_EQ(fake->masked, 0u);
  *before = thread->tx_thread_user_priority;
  task_of(thread).priority = TX_MAX_PRIORITIES - 1 - static_cast<int>(priority);
  fake->choose();
  return TX_SUCCESS;
}
TX_THREAD *tx_thread_identify(VOID) {
  static std::map<FakeKernel::Task *, TX_THREAD> names;
  TX_THREAD &name = names[fake->current];
  name = {fake->current, static_cast<UINT>(TX_MAX_PRIORITIES - 1 - fake->current->priority)};
  return &name;
}
}
