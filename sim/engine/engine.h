// SPDX-License-Identifier: Apache-2.0
// Virtual time: an event queue in integer nanoseconds, and cores that run tasks by preemptive fixed priorities.
//
// A task is a fiber. Its code takes no time except in execute(), where it is preempted by more urgent tasks and by
// interrupts. An interrupt's handler runs at its time, or when the core's earlier handlers have ended; what it costs is
// taken from whatever task runs. Events of the same time happen in the order in which they were asked for. Everything
// is one thread of the real machine: same input, same run.
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
  // Not before now.
  void at(Time time, Action action);
  void after(Time delay, Action action) { at(now_ + delay, std::move(action)); }
  Core &add_core();

  // The next event, if there is one not later than limit; false: there is none, and time is now `limit`.
  bool step(Time limit);
  void run_until(Time limit) {
    while (step(limit)) {
    }
  }
  // Code runs that an event or a core has called.
  bool is_stepping() const { return stepping_; }
  uint64_t event_count() const { return events_; }
  // Of the next event; kForever: there is none.
  Time next_time() const { return queue_.empty() ? kForever : queue_.front().time; }

  // Runs after each event, when every core has settled. May be empty.
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
  // The first core from this one on that may have something to do; as many as there are cores: none.
  size_t next_dirty(size_t from) const;

  bool step_within(Time limit);

  Time now_ = 0;
  uint64_t sequence_ = 0, events_ = 0;
  bool stepping_ = false;
  std::vector<Event> queue_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<uint64_t> dirty_;  // a bit for each core, so that a step of one of a hundred boards does not ask all
};

// Told what the core does with a task, in the midst of it: it may change priorities and ask for events, nothing else.
class TaskObserver {
 public:
  virtual ~TaskObserver() = default;
  virtual void on_ready() {}
  virtual void on_run() {}   // its time runs from now
  virtual void on_stop() {}  // preempted, or its execution has ended
  virtual void on_block() {}
};

// A thread of a core. Larger priorities run first; equal ones in the order in which they became ready.
class Task {
 public:
  Task(Core &core, std::string name, int priority, std::function<void()> body);
  ~Task();
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;

  // The task whose code is running, or null (an event or an interrupt is).
  static Task *current();

  // From the task itself: spend so much time of the core.
  void execute(Time duration);
  // From the task itself: sleep until wake or the deadline; true: woken.
  bool block(Time deadline);
  // From the task itself: let more urgent tasks of the core go first.
  void give_way();
  // From anywhere. Wakes it if it is blocked.
  void wake();
  // From anywhere. It becomes the last of those that have its new priority.
  void set_priority(int priority);
  // Null: nobody.
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
  // The handler runs now, or after the handlers that are ahead of it; the core is busy with it for `cost`.
  void interrupt(Time cost, Engine::Action handler);

 private:
  friend class Engine;
  friend class Task;
  struct Interrupt {
    Time cost;
    Engine::Action handler;
  };
  bool settle();  // of one that is dirty; true: something ran
  Task *most_urgent() const;
  void put_down();  // the running task: account for what it has used
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
  bool burning_ = false;  // a task's execute is being timed
  uint64_t generation_ = 0, order_ = 0;
};

}  // namespace tide::sim
