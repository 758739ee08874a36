// SPDX-License-Identifier: Apache-2.0
// What must hold when chains run on executors of several lanes, whatever the order in which the lanes get there.
//
// A callback never overlaps itself, but in a reentrant group; those of an exclusive group never overlap each other.
// Each callback runs once for each message of the one before it, except those that a full queue let go; timers run on
// their grid. Of the callbacks that may run, a lane takes the most urgent one (tide); a timer goes before everything
// else (readyset). No lane sleeps while something may run. No response is shorter than its chain's executions. At the
// end everything that was released has come to its end.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/workloads/host_chains/program.h"

namespace tide::sim {

class HostChecks {
 public:
  HostChecks(const plan_t &plan, const program_t &program);

  void begin(size_t callback, Time release, Time now);
  void end(size_t callback, Time release);
  // A task has left a critical section: what has a lane taken in it?
  void section_end(Time now);
  // Every core has settled and no task stands still between two sections.
  void settled(Time now);
  void at_end(Time now);

  // Empty: all is well. The first few only.
  const std::vector<std::string> &violations() const { return violations_; }

 private:
  struct State {
    size_t inside = 0;
    std::deque<Time> expected;  // messages that were sent and have not begun
    Time last_release = -1;
    std::map<Time, size_t> ended;  // of one that waits for several: those that have ended, by instance
  };
  const tide_callback_t &core(size_t index) const { return program_.callbacks[index].timer.callback; }
  bool sleeps(size_t executor) const;  // one of its lanes does
  bool may_run(size_t index) const;
  bool is_first_of_group(size_t index) const;
  void check_choice(size_t executor, const tide_callback_t &taken, Time now);
  void violate(Time now, const std::string &what, size_t callback);

  const plan_t &plan_;
  const program_t &program_;
  std::vector<State> states_;
  // What the plan says, by executor, by group and by callback.
  std::vector<std::vector<size_t>> of_executor_, of_group_, successors_;
  std::vector<size_t> groups_inside_;
  struct Lane {
    size_t executor;
    const tide_lane_t *lane;
    const tide_callback_t *seen_running;
  };
  std::vector<Lane> lanes_;
  std::vector<std::string> violations_;
};

}  // namespace tide::sim
