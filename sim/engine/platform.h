// SPDX-License-Identifier: Apache-2.0
// A machine of the simulated world: its cores, and the platform that the runtime sees of it.
//
// Critical sections need no lock, as a task is only preempted where it executes, waits or leaves the outermost section;
// there a more urgent task that was made ready meanwhile goes first, as it would on a real core.
#pragma once

#include <functional>
#include <vector>

#include "sim/engine/engine.h"
#include "tide/platform.h"

namespace tide::sim {

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

  // Runs when a task has left its outermost critical section; it may execute, which lets other cores get in between.
  // May be empty.
  std::function<void()> on_section_end;
  // Runs when a critical section is entered for the first time since `rest`: until then what they guard is as it was.
  // May be empty.
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

}  // namespace tide::sim
