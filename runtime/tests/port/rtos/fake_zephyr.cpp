// SPDX-License-Identifier: Apache-2.0
#include "fake_zephyr.h"

#include <gtest/gtest.h>

#include <algorithm>

FakeZephyr *fake_zephyr;

namespace {
int64_t ticks_of_all;  // the port's clock never goes back, from test to test
}

FakeZephyr::FakeZephyr() : ticks(ticks_of_all) { fake_zephyr = this; }

FakeZephyr::~FakeZephyr() {
  ticks_of_all = ticks;
  EXPECT_FALSE(beside.joinable()) << "the cooperative thread is still there";
  if (beside.joinable()) beside.detach();
}

void FakeZephyr::tick() {
  ticks++;
  if (timer == nullptr || ticks < timer_tick) return;
  k_timer *const due = timer;
  timer = nullptr;
  in_interrupt = true;
  due->expired(due);
  in_interrupt = false;
  choose();
}

void FakeZephyr::choose() {
  if (!beside.joinable() || is_beside() || in_interrupt || locked > 0 || scheduler_locked > 0) return;
  while (!ended && (waits_for == nullptr || waits_for->count > 0)) run_beside();
}

void FakeZephyr::run_beside() {
  std::unique_lock<std::mutex> lock(mutex);
  turn_of_beside = true;
  changed.notify_all();
  changed.wait(lock, [this] { return !turn_of_beside; });
}

void FakeZephyr::sleep_beside(k_sem *semaphore) {
  std::unique_lock<std::mutex> lock(mutex);
  waits_for = semaphore;
  turn_of_beside = false;
  changed.notify_all();
  changed.wait(lock, [this] { return turn_of_beside; });
  waits_for = nullptr;
}

void FakeZephyr::begin_beside(size_t index) {
  const Thread thread = threads.at(index);
  ended = false;
  waits_for = nullptr;
  beside = std::thread([this, thread] {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [this] { return turn_of_beside; });
    }
    thread.entry(thread.one, nullptr, nullptr);
    const std::scoped_lock<std::mutex> lock(mutex);
    ended = true;
    turn_of_beside = false;
    changed.notify_all();
  });
  choose();
}

void FakeZephyr::join_beside() {
  choose();
  ASSERT_TRUE(ended) << "it is joined, and nothing wakes it";
  beside.join();
}

int FakeZephyr::take(k_sem *semaphore, k_timeout_t timeout) {
  EXPECT_EQ(locked, 0u) << "sleeps with interrupts locked";
  if (is_beside()) {
    while (semaphore->count == 0) sleep_beside(semaphore);
    semaphore->count = 0;
    return 0;
  }
  const int64_t end = timeout.ticks < -1 ? -2 - timeout.ticks : timeout.ticks < 0 ? -1 : ticks + timeout.ticks;
  limited = timeout.ticks != -1;
  if (while_sleeping && semaphore->count == 0) while_sleeping();
  while (end < 0 && semaphore->count == 0 && timer != nullptr) tick();
  if (semaphore->count == 0) {
    EXPECT_GE(end, 0) << "nothing will ever end this sleep";
    ticks = std::max(ticks, end);
    return -1;
  }
  semaphore->count = 0;
  return 0;
}

extern "C" {
k_ticks_t k_uptime_ticks(void) { return fake_zephyr->ticks; }
uint64_t k_ticks_to_ns_floor64(uint64_t ticks) { return ticks * FakeZephyr::TICK_NS; }
uint64_t k_ns_to_ticks_ceil64(uint64_t time_ns) { return (time_ns + FakeZephyr::TICK_NS - 1) / FakeZephyr::TICK_NS; }
uint64_t k_cyc_to_ns_floor64(uint64_t cycles) { return cycles * 1000; }
uint32_t k_cycle_get_32(void) { return 0; }
int sys_clock_hw_cycles_per_sec(void) { return 1000000; }
unsigned int irq_lock(void) { return fake_zephyr->locked++; }
void irq_unlock(unsigned int key) { fake_zephyr->locked = key; }
k_spinlock_key_t k_spin_lock(k_spinlock *lock) {
  const k_spinlock_key_t key = {static_cast<int>(fake_zephyr->locked++)};
  while (lock->held) {
    if (!fake_zephyr->while_spinning) {
      ADD_FAILURE() << "nobody will ever give the lock";
      break;
    }
    fake_zephyr->while_spinning();
  }
  lock->held = true;
  return key;
}
void k_spin_unlock(k_spinlock *lock, k_spinlock_key_t key) {
  EXPECT_TRUE(lock->held);
  lock->held = false;
  fake_zephyr->locked = static_cast<unsigned>(key.key);
}
bool k_is_in_isr(void) { return fake_zephyr->in_interrupt; }
void k_sched_lock(void) {
  EXPECT_FALSE(fake_zephyr->in_interrupt);
  fake_zephyr->scheduler_locked++;
}
void k_sched_unlock(void) {
  ASSERT_GT(fake_zephyr->scheduler_locked, 0u);
  if (--fake_zephyr->scheduler_locked > 0 || fake_zephyr->locked > 0) return;
  fake_zephyr->choices++;
  fake_zephyr->choose();
}
int32_t k_msleep(int32_t) { return 0; }
int k_sem_init(k_sem *semaphore, unsigned int count, unsigned int) {
  semaphore->count = count;
  return 0;
}
void k_sem_give(k_sem *semaphore) { semaphore->count = 1; }
int k_sem_take(k_sem *semaphore, k_timeout_t timeout) { return fake_zephyr->take(semaphore, timeout); }
void k_timer_init(k_timer *timer, void (*expired)(k_timer *), void (*)(k_timer *)) { timer->expired = expired; }
void k_timer_start(k_timer *timer, k_timeout_t duration, k_timeout_t period) {
  ASSERT_LT(duration.ticks, -1) << "not an absolute time";
  EXPECT_EQ(period.ticks, 0);
  fake_zephyr->timer = timer;
  fake_zephyr->timer_tick = std::max(-2 - duration.ticks, fake_zephyr->ticks + 1);
}
void k_timer_stop(k_timer *) { fake_zephyr->timer = nullptr; }
k_tid_t k_current_get(void) { return fake_zephyr->current; }
int k_thread_priority_get(k_tid_t) { return fake_zephyr->priority; }
void k_thread_priority_set(k_tid_t thread, int priority) {
  EXPECT_EQ(fake_zephyr->locked, 0u);
  if (thread == &fake_zephyr->running) {
    fake_zephyr->priority = priority;
  } else {
    fake_zephyr->threads.at(static_cast<size_t>(thread->unused)).priority = priority;
  }
}
int k_thread_runtime_stats_get(k_tid_t thread, k_thread_runtime_stats_t *statistics) {
  statistics->execution_cycles = fake_zephyr->threads.at(static_cast<size_t>(thread->unused)).cycles;
  return 0;
}
k_tid_t k_thread_create(k_thread *thread, k_thread_stack_t *, size_t, void (*entry)(void *, void *, void *), void *one,
                        void *, void *, int priority, uint32_t, k_timeout_t delay) {
  const size_t index = fake_zephyr->threads.size();
  thread->unused = static_cast<int>(index);
  fake_zephyr->threads.push_back({entry, one, priority, delay.ticks == 0, 0, -1});
  if (priority < 0) fake_zephyr->begin_beside(index);
  return thread;
}
int k_thread_name_set(k_tid_t, const char *) { return 0; }
void k_thread_start(k_tid_t thread) { fake_zephyr->threads.at(static_cast<size_t>(thread->unused)).started = true; }
int k_thread_cpu_pin(k_tid_t thread, int cpu) {
  FakeZephyr::Thread &pinned = fake_zephyr->threads.at(static_cast<size_t>(thread->unused));
  EXPECT_FALSE(pinned.started) << "the kernel refuses it";
  pinned.processor = cpu;
  return 0;
}
int k_thread_join(k_thread *thread, k_timeout_t) {
  const FakeZephyr::Thread joined = fake_zephyr->threads.at(static_cast<size_t>(thread->unused));
  EXPECT_TRUE(joined.started);
  if (joined.priority < 0) {
    fake_zephyr->join_beside();
  } else {
    joined.entry(joined.one, nullptr, nullptr);
  }
  return 0;
}
}
