// SPDX-License-Identifier: Apache-2.0
// Virtual time: an event queue with times in integer nanoseconds, and cores that run tasks by preemptive fixed
// priorities.
//
// A task is a fiber. Its code takes no time except in execute(), where more urgent tasks and interrupts can preempt it.
// An interrupt handler runs at its time or, if earlier handlers of the core are still busy, after them; its cost delays
// the running task. Events with the same time occur in the order in which they were requested. Everything runs in one
// thread of the real machine, so that the same input gives the same run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tide::sim {

using Time = int64_t;
constexpr Time kForever = INT64_MAX;
constexpr Time kMicrosecond = 1000;
constexpr Time kMillisecond = 1'000'000;
constexpr Time kSecond = 1'000'000'000;

class Core;
class Fiber;

class Engine {
 public:
  using Action = std::function<void()>;

  Engine();
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  Time now() const { return now_; }
  // Requests an event. A time before now counts as now.
  void at(Time time, Action action);
  void after(Time delay, Action action) { at(now_ + delay, std::move(action)); }
  Core &add_core();

  // Runs the next event if it is not later than `limit`. Returns false if there is none; the time is then `limit`.
  bool step(Time limit);
  void run_until(Time limit) {
    while (step(limit)) {}
  }
  // True while step() processes an event or runs tasks.
  bool is_stepping() const { return stepping_; }
  uint64_t event_count() const { return events_; }
  // Time of the next event; kForever if there is none.
  Time next_time() const { return queue_.empty() ? kForever : queue_.front().time; }

  // Called after each event, when all cores have settled. May be empty.
  Action on_step;

 private:
  friend class Core;
  struct Event {
    Time time;
    uint64_t sequence;
    Action action;
  };
  static bool later(const Event &left, const Event &right);
  void settle();
  // Index of the first core, from index `from` on, that may have work; the number of cores if there is none.
  size_t next_dirty(size_t from) const;

  bool step_within(Time limit);

  Time now_ = 0;
  uint64_t sequence_ = 0, events_ = 0;
  bool stepping_ = false;
  std::vector<Event> queue_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<uint64_t> dirty_;  // a bit for each core that may have work, so that a step need not check every core of
                                 // a hundred boards
};

// Is notified of a core's actions on a task. The calls come while the core acts, so they may only change priorities and
// request events.
class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  virtual void on_ready() {}
  virtual void on_run() {}   // the core has begun to execute the task
  virtual void on_stop() {}  // the task was preempted, or its execution has ended
  virtual void on_block() {}
};

// A thread of a core. Larger priorities run first; tasks of equal priority run in the order in which they became ready.
class Task {
 public:
  Task(Core &core, std::string name, int priority, std::function<void()> body);
  ~Task();
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;

  // The task whose code is running; null while an event or an interrupt runs.
  static Task *current();

  // Called from the task: uses the core for this much time.
  void execute(Time duration);
  // Called from the task: sleeps until wake or until the deadline; returns true if it was woken.
  bool block(Time deadline);
  // Called from the task: lets more urgent tasks of the core run first.
  void give_way();
  // Called from anywhere: wakes the task if it is blocked.
  void wake();
  // Called from anywhere: changes the priority; the task is then last among those with the new priority.
  void set_priority(int priority);
  // Sets the observer; null: none.
  void observe(TaskObserver *observer) { observer_ = observer; }

  Core &core() { return core_; }
  const std::string &name() const { return name_; }
  int priority() const { return priority_; }
  bool is_finished() const { return state_ == State::kFinished; }
  bool is_ready() const { return state_ == State::kReady; }

 private:
  friend class Core;
  enum class State { kReady, kBlocked, kFinished };
  void leave();
  void become_ready();
  static void entry(void *context);

  Core &core_;
  std::string name_;
  int priority_;
  std::function<void()> body_;
  State state_ = State::kReady;
  bool woken_ = false;
  Time remaining_ = 0;
  uint64_t ready_order_ = 0, wait_ = 0;
  TaskObserver *observer_ = nullptr;
  std::unique_ptr<Fiber> fiber_;
};

class Core {
 public:
  Core(Engine &engine, size_t index) : engine_(engine), index_(index) {}

  Engine &engine() { return engine_; }
  // Requests an interrupt. Its handler runs now, or after the pending handlers of this core, and keeps the core busy
  // for `cost`.
  void interrupt(Time cost, Engine::Action handler);

 private:
  friend class Engine;
  friend class Task;
  struct Interrupt {
    Time cost;
    Engine::Action handler;
  };
  bool settle();  // does what there is to do now; returns true if a handler or a task ran
  Task *most_urgent() const;
  void put_down();  // stops the running task and accounts for its time
  void pick_up(Task &task);
  bool take_interrupt();
  void mark() { engine_.dirty_[index_ / 64] |= uint64_t{1} << index_ % 64; }
  void unmark() { engine_.dirty_[index_ / 64] &= ~(uint64_t{1} << index_ % 64); }

  Engine &engine_;
  size_t index_;
  std::vector<Task *> tasks_;
  std::deque<Interrupt> interrupts_;
  Time interrupted_until_ = 0;
  Task *running_ = nullptr;
  Time started_ = 0;
  bool burning_ = false;  // true while a task is in execute(), so that its time is counted
  uint64_t generation_ = 0, order_ = 0;
};

}  // namespace tide::sim
