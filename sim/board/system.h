// SPDX-License-Identifier: Apache-2.0
// One run, from the plan to the result: boards, their lines and agents, and ROS 2 nodes that answer, on one bus.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/board/plan.h"
#include "sim/engine/line.h"
#include "tide/executor.h"
#include "tide/session.h"

namespace tide::sim {

// Of an instance of a path; end -1: it did not come so far.
struct Recorded {
  Time release, start, end;
};

struct ChainResult {
  std::string name;
  unsigned level = 0;
  Time deadline = 0;
  std::vector<Time> latencies;  // as the plan says where they begin, to completion of the last callback, by period
  uint32_t lost = 0;            // released, but never completed
  Time worst_response = -1;     // from a release on the timer's grid to completion; -1: none was completed
  std::vector<Recorded> recorded = {};  // if the plan says so
};

struct LaneBudget {
  unsigned level = 0;  // the least of the lane
  uint64_t exhaustions = 0, used = 0, low = 0, overrun = 0;
};

// By callback its runs {timer, instance, start, end}, by message when it came to ROS 2 {timer, instance, time}.
struct Records {
  std::vector<std::vector<std::array<Time, 4>>> runs;
  std::vector<std::vector<std::array<Time, 3>>> crossings;
};

struct Result {
  std::vector<ChainResult> chains;  // one for each path
  Records records;                  // if the plan says so
  std::vector<std::string> violations;
  std::string trace;
  uint64_t trace_hash = 0;  // of the trace, whether it was kept or not
  Time simulated = 0;
  uint64_t events = 0;
  uint32_t publish_failures = 0;
  uint32_t publish_waits = 0;  // reliable ones that found no node
  unsigned agent_restarts = 0;
  uint32_t masked_maximum = 0, stack_bytes = 0;  // of a board: instructions, bytes; 0: not measured
  std::vector<std::string> execution_times;      // of a board: lines of tide_measurement_line
  std::vector<LaneBudget> budgets;               // of a board
  LineCounters up, down;
  tide_transmitter_counters_t transmitter{};
  tide_receiver_counters_t receiver{};
  tide_session_counters_t session{};
};

struct Summary {
  size_t samples = 0;
  Time minimum = 0, p50 = 0, p99 = 0, maximum = 0, mean = 0, deviation = 0;
  size_t deadline_misses = 0;
};
Summary summarise(const ChainResult &chain);

// Throws std::invalid_argument when the plan makes no sense.
Result simulate(const Plan &plan);

}  // namespace tide::sim
