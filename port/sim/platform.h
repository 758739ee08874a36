// SPDX-License-Identifier: Apache-2.0
// A machine of the simulated world: one core, and the platform that the runtime sees of it.
//
// Critical sections need no lock, as a task is only preempted where it executes, waits or leaves the outermost section;
// there a more urgent task that was made ready meanwhile goes first, as it would on a real core.
#pragma once

#include "sim/engine.h"
#include "tide/platform.h"

namespace tide::sim {

class Machine {
 public:
  explicit Machine(Engine &engine);
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  const tide_platform_t *platform() const { return &platform_; }
  Engine &engine() { return engine_; }
  Core &core() { return core_; }
  unsigned sections_open() const { return sections_; }

 private:
  static int64_t now_ns(void *context);
  static uintptr_t critical_enter(void *context);
  static void critical_exit(void *context, uintptr_t state);
  static void event_init(void *context, tide_event_t *event);
  static void event_set(void *context, tide_event_t *event);
  static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns);

  Engine &engine_;
  Core &core_;
  unsigned sections_ = 0;
  tide_platform_t platform_;
};

}  // namespace tide::sim
