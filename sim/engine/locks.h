// SPDX-License-Identifier: Apache-2.0
// What locks of callbacks ask of a simulated machine (tide/lock.h): the task that runs, and its priority.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/engine/engine.h"
#include "tide/lock.h"
#include "tide/status.h"

namespace tide::sim {

class Locks {
 public:
  // Of the task that runs a lane. Empty: each lane has a core of its own, so that nobody preempts it.
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
