// SPDX-License-Identifier: Apache-2.0
// A kernel of a few lines for the tests of ports: one processor, tasks by fixed priority, time that advances only while
// a task works or all of them sleep, and interrupts at any place chosen by a test. Tasks are threads, of which only one
// runs at a time. The names of FreeRTOS, Zephyr, NuttX and ThreadX are implemented on this kernel (*_names.cpp).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class FakeKernel {
 public:
  struct Task {
    std::function<void()> body;
    int priority = 3;  // a larger number is more urgent
    std::string name;
    size_t stack_bytes = 0;
    int policy = 0, processor = -1;  // as passed to the kernel's functions
    bool ready = true, ended = false;
    int64_t until_ns = INT64_MAX;  // end of its sleep
    int64_t used_ns = 0;
    uint32_t notified = 0;
    Task *joiner = nullptr;
    std::thread thread;
  };

  FakeKernel();
  ~FakeKernel();
  FakeKernel(const FakeKernel &) = delete;
  FakeKernel &operator=(const FakeKernel &) = delete;

  int64_t now_ns;
  unsigned masked = 0, locked = 0;  // depth of masking, for interrupts and for the scheduler
  bool in_interrupt = false;
  std::vector<std::unique_ptr<Task>> tasks;  // the first task is the test itself, with priority 3
  Task *current;
  size_t task_limit = 100;
  int deletions = 0;

  // The interrupt occurs at this step of the port, or as soon as interrupts are enabled.
  int steps = 0, interrupt_at_step = -1;
  std::function<void()> interrupt;
  void step();
  void take(const std::function<void()> &handler);   // an interrupt occurs now
  std::multimap<int64_t, std::function<void()>> at;  // interrupts that occur at a given time

  int64_t alarm_ns = INT64_MAX;
  std::function<void()> alarm;
  int alarms = 0;
  std::function<void(Task &before)> on_switch;  // called when `current` has got the processor

  void work(int64_t duration_ns);  // the running task uses the processor for this time
  Task &create(std::function<void()> body, int priority);
  void start(Task &task) { wake(task), choose(); }
  void wake(Task &task);
  void block(int64_t until_ns);  // blocks the running task until it is woken, or until that time
  void choose();                 // the most urgent ready task continues, if interrupts and the scheduler permit it
  void join(Task &task);
  [[noreturn]] void end_task();  // ends the running task by leaving its function
  Task &named(const std::string &name);

 private:
  void fire();
  Task &best_in_time();  // time advances until a task is ready
  void switch_to(Task &self, Task &next);
  void pass_on(Task &next);
  Task *best();

  Task idle_;
  bool pending_ = false;
  Task *turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

extern FakeKernel *fake;
