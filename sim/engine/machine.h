// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "sim/engine/engine.h"
#include "tide/budget.h"
#include "tide/lock.h"
#include "tide/platform.h"
#include "tide/status.h"

namespace tide::sim {

// A machine of the simulated world: its cores, and the platform (tide/platform.h) that the runtime uses on it.
//
// Critical sections need no lock, because another task runs only while the current one executes, waits, or leaves its
// outermost section. When a task leaves its outermost section, a more urgent task that has become ready runs first, as
// on a real core.

class Machine {
 public:
  explicit Machine(Engine &engine, size_t cores = 1);
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  const tide_platform_t *platform() const { return &platform_; }
  Engine &engine() { return engine_; }
  size_t core_count() const { return cores_.size(); }
  Core &core(size_t index = 0) { return *cores_[index]; }
  unsigned sections_open() const { return sections_; }

  // Called when a task has left its outermost critical section. The function may call Task::execute, so that other
  // cores run in between. May be empty.
  std::function<void()> on_section_end;
  // Called at the first critical section after rest(). Until this call, data that critical sections guard are unchanged
  // since rest(). May be empty.
  std::function<void()> on_change;
  void rest() { changed_ = false; }

 private:
  static int64_t now_ns(void *context);
  static uintptr_t critical_enter(void *context);
  static void critical_exit(void *context, uintptr_t state);
  static void event_init(void *context, tide_event_t *event);
  static void event_set(void *context, tide_event_t *event);
  static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns);

  void let_others_go();

  Engine &engine_;
  std::vector<Core *> cores_;
  unsigned sections_ = 0;
  bool changed_ = false;
  tide_platform_t platform_;
};

// A budget in virtual time: sets the priority of a task exactly when the shipped tide_budget_t demands it.

// The task must outlive the budget.
class Budget : private TaskObserver {
 public:
  // Sets config.replenishments itself. Throws std::invalid_argument if `config` is not a valid budget.
  Budget(Task &task, tide_budget_config_t config);
  ~Budget() override;
  Budget(const Budget &) = delete;
  Budget &operator=(const Budget &) = delete;

  // The state of the budget, with all execution up to now.
  const tide_budget_t &state();

 private:
  void on_ready() override;
  void on_run() override;
  void on_stop() override;
  void on_block() override;
  Time take_consumed();
  void look();
  void settle();

  Task &task_;
  Engine &engine_;
  std::vector<tide_replenishment_t> storage_;
  tide_budget_t budget_{};
  bool runs_ = false;
  Time accounted_ = 0;  // the execution up to this time is counted
  Time deadline_ = kForever;
  std::shared_ptr<Budget *> self_;  // for events that occur after the budget was destroyed
};

// The lock port (tide/lock.h) of a simulated machine: gives the running task, and raises and restores its priority.

class Locks {
 public:
  // `priority_of` returns the priority of the task that runs a lane. Leave it empty if each lane has its own core, so
  // that no lane is ever preempted.
  explicit Locks(std::function<int(const tide_lane_t &lane)> priority_of = {})
      : priority_of_(std::move(priority_of)),
        port_{.context = this, .current = current, .raise = raise, .restore = restore, .may_wait = true} {}
  Locks(const Locks &) = delete;
  Locks &operator=(const Locks &) = delete;

  const tide_lock_port_t *port() const { return &port_; }

 private:
  static const void *current(void *) { return Task::current(); }

  static int raise(void *context, const tide_lane_t *lane, uintptr_t *before) {
    Task &task = *Task::current();
    *before = static_cast<uintptr_t>(task.priority());
    const auto &priority_of = static_cast<Locks *>(context)->priority_of_;
    if (priority_of && priority_of(*lane) > task.priority()) task.set_priority(priority_of(*lane));
    return TIDE_OK;
  }

  static void restore(void *, uintptr_t before) {
    Task &task = *Task::current();
    if (task.priority() == static_cast<int>(before)) return;
    task.set_priority(static_cast<int>(before));
    task.give_way();
  }

  std::function<int(const tide_lane_t &lane)> priority_of_;
  tide_lock_port_t port_;
};

}  // namespace tide::sim
