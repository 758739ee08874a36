// SPDX-License-Identifier: Apache-2.0
// The names of Zephyr on the fake kernel. Unlocking interrupts is not a scheduling point.
#include "zephyr_names.h"

#include <gtest/gtest.h>

#include <algorithm>

std::function<void()> while_spinning;
bool a_wait_was_limited;

namespace {
FakeKernel::Task &task_of(const k_thread *thread) { return *static_cast<FakeKernel::Task *>(thread->task); }
// The kernel's handle of a task that the test has not created itself.
k_tid_t name_of(FakeKernel::Task *task) {
  static std::map<FakeKernel::Task *, k_thread> names;
  k_thread &name = names[task];
  name.task = task;
  return &name;
}
}  // namespace

extern "C" {
k_ticks_t k_uptime_ticks(void) { return fake->now_ns / ZEPHYR_TICK_NS; }
uint64_t k_ticks_to_ns_floor64(uint64_t ticks) { return ticks * ZEPHYR_TICK_NS; }
uint64_t k_ns_to_ticks_ceil64(uint64_t time_ns) { return (time_ns + ZEPHYR_TICK_NS - 1) / ZEPHYR_TICK_NS; }
uint64_t k_cyc_to_ns_floor64(uint64_t cycles) { return cycles * 1000; }
uint32_t k_cycle_get_32(void) { return 0; }
int sys_clock_hw_cycles_per_sec(void) { return 1000000; }
unsigned int irq_lock(void) {
  fake->step();
  return fake->masked++;
}
void irq_unlock(unsigned int key) {
  fake->masked = key;
  fake->step();
}
k_spinlock_key_t k_spin_lock(k_spinlock *lock) {
  fake->step();
  const k_spinlock_key_t key = {static_cast<int>(fake->masked++)};
  while (lock->held) {
    if (!while_spinning) {
      ADD_FAILURE() << "nobody will ever give the lock";
      break;
    }
    while_spinning();
  }
  lock->held = true;
  return key;
}
void k_spin_unlock(k_spinlock *lock, k_spinlock_key_t key) {
  EXPECT_TRUE(lock->held);
  lock->held = false;
  fake->masked = static_cast<unsigned>(key.key);
  fake->step();
}
bool k_is_in_isr(void) { return fake->in_interrupt; }
void k_sched_lock(void) {
  EXPECT_FALSE(fake->in_interrupt);
  fake->locked++;
}
void k_sched_unlock(void) {
  ASSERT_GT(fake->locked, 0u);
  fake->locked--;
  fake->choose();
}
int k_sem_init(k_sem *semaphore, unsigned int count, unsigned int) {
  *semaphore = {count, nullptr};
  return 0;
}
void k_sem_give(k_sem *semaphore) {
  semaphore->count = 1;
  if (semaphore->waiter != nullptr) fake->wake(*static_cast<FakeKernel::Task *>(semaphore->waiter));
  fake->choose();
}
int k_sem_take(k_sem *semaphore, k_timeout_t timeout) {
  fake->step();
  a_wait_was_limited = a_wait_was_limited || timeout.ticks != k_ticks_t{-1};
  semaphore->waiter = fake->current;
  const int64_t until = timeout.ticks < -1 ? (-2 - timeout.ticks) * ZEPHYR_TICK_NS : INT64_MAX;
  if (semaphore->count == 0) fake->block(until);
  semaphore->waiter = nullptr;
  const bool taken = semaphore->count > 0;
  semaphore->count = 0;
  fake->step();
  return taken ? 0 : -1;
}
void k_timer_start(k_timer *timer, k_timeout_t duration, k_timeout_t period) {
  ASSERT_LT(duration.ticks, -1) << "not an absolute time";
  EXPECT_EQ(period.ticks, 0);
  fake->alarm_ns = std::max(-2 - duration.ticks, k_uptime_ticks() + 1) * ZEPHYR_TICK_NS;
  fake->alarm = [timer] { timer->expired(timer); };
}
k_tid_t k_current_get(void) { return name_of(fake->current); }
int k_thread_priority_get(k_tid_t thread) { return CONFIG_NUM_PREEMPT_PRIORITIES - task_of(thread).priority; }
void k_thread_priority_set(k_tid_t thread, int priority) {
  EXPECT_EQ(fake->masked, 0u);
  task_of(thread).priority = CONFIG_NUM_PREEMPT_PRIORITIES - priority;
  fake->choose();
}
int k_thread_runtime_stats_get(k_tid_t thread, k_thread_runtime_stats_t *statistics) {
  statistics->execution_cycles = static_cast<uint64_t>(task_of(thread).used_ns) / 1000;
  return 0;
}
k_tid_t k_thread_create(k_thread *thread, k_thread_stack_t *, size_t bytes, void (*entry)(void *, void *, void *),
                        void *one, void *, void *, int priority, uint32_t, k_timeout_t delay) {
  EXPECT_EQ(delay.ticks, k_ticks_t{-1});
  FakeKernel::Task &task =
      fake->create([=] { entry(one, nullptr, nullptr); }, CONFIG_NUM_PREEMPT_PRIORITIES - priority);
  task.stack_bytes = bytes;
  thread->task = &task;
  return name_of(&task);
}
int k_thread_name_set(k_tid_t thread, const char *name) {
  task_of(thread).name = name;
  return 0;
}
void k_thread_start(k_tid_t thread) { fake->start(task_of(thread)); }
int k_thread_cpu_pin(k_tid_t thread, int cpu) {
  EXPECT_FALSE(task_of(thread).ready) << "the kernel refuses it";
  task_of(thread).processor = cpu;
  return 0;
}
int k_thread_join(k_thread *thread, k_timeout_t) {
  fake->join(task_of(thread));
  return 0;
}
}
