// SPDX-License-Identifier: Apache-2.0
// A Zephyr kernel of a few lines: what runtime/port/zephyr asks of one. Threads run when they are joined, one after the
// other; but a cooperative one runs beside the test, in turns with it: whenever it is not asleep and the kernel could
// choose. It is the thread that keeps budgets.
#ifndef TIDE_FAKE_ZEPHYR_H
#define TIDE_FAKE_ZEPHYR_H

#include <zephyr/kernel.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class FakeZephyr {
 public:
  struct Thread {
    void (*entry)(void *, void *, void *);
    void *one;
    int priority;
    bool started;
    uint64_t cycles;
    int processor;  // that it is pinned to; -1: none
  };

  FakeZephyr();
  ~FakeZephyr();
  FakeZephyr(const FakeZephyr &) = delete;
  FakeZephyr &operator=(const FakeZephyr &) = delete;

  static constexpr int64_t TICK_NS = 100'000;

  int64_t ticks;
  unsigned locked = 0, scheduler_locked = 0;
  int choices = 0;  // times the scheduler could choose with interrupts let in
  bool in_interrupt = false;
  k_thread running{};
  k_tid_t current = &running;            // on the processor that the test plays
  std::function<void()> while_spinning;  // for a lock that another processor has
  int priority = 9;                      // of the running thread
  std::vector<Thread> threads;
  std::function<void()> while_sleeping;
  bool limited = false;      // the wait that begins has a time limit
  k_timer *timer = nullptr;  // that runs
  int64_t timer_tick = 0;

  // One tick goes by: its interrupt, and whoever it wakes.
  void tick();

  // What the kernel's functions do.
  void choose();
  int take(k_sem *semaphore, k_timeout_t timeout);
  void begin_beside(size_t index);
  void join_beside();
  [[nodiscard]] bool is_beside() const { return std::this_thread::get_id() == beside.get_id(); }

 private:
  void sleep_beside(k_sem *semaphore);
  void run_beside();

  std::thread beside;
  std::mutex mutex;
  std::condition_variable changed;
  bool turn_of_beside = false, ended = false;
  k_sem *waits_for = nullptr;
};

extern FakeZephyr *fake_zephyr;

#endif
