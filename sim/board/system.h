// SPDX-License-Identifier: Apache-2.0
// One run, from the plan to the result: boards, their lines and agents, and ROS 2 nodes on a common bus.
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

// Times of one instance of a path. An `end` of -1 means that the instance did not reach the end of the path.
struct Recorded {
  Time release, start, end;
};

struct ChainResult {
  std::string name;
  unsigned level = 0;
  Time deadline = 0;
  std::vector<Time> latencies;  // of each completed instance: from the plan's latency_from to the completion of the
                                // last callback
  uint32_t lost = 0;            // number of instances that were released but never completed
  Time worst_response = -1;     // from the release of an instance to its completion; -1 if none was completed
  int64_t worst_index = -1;     // number of the instance with the worst response
  std::vector<Recorded> recorded = {};  // only if the plan requests it
  uint64_t skipped = 0;                 // on a shipped executor: number of expiries that its timer skipped
};

// How often a shipped executor of the host updated its set of ready callbacks (updates), chose the next callback
// (choices) and ran a callback (runs).
struct ExecutorResult {
  std::string name;
  uint64_t updates = 0, choices = 0, runs = 0;
};

struct LaneBudget {
  unsigned level = 0;  // the lowest level of the lane
  uint64_t exhaustions = 0, used = 0, low = 0, overrun = 0;
};

// runs: by callback, each as {timer, instance, start, end}. crossings: by message, each arrival in ROS 2 as {timer,
// instance, time}.
struct Records {
  std::vector<std::vector<std::array<Time, 4>>> runs;
  std::vector<std::vector<std::array<Time, 3>>> crossings;
};

struct Result {
  std::vector<ChainResult> chains;  // one for each path
  Records records;                  // only if the plan requests it
  std::vector<std::string> violations;
  std::vector<std::string> full;  // memory of boards without an agent that did not suffice
  std::string trace;
  uint64_t trace_hash = 0;  // hash of the trace, even if it is not kept
  Time simulated = 0;
  uint64_t events = 0;
  uint32_t publish_failures = 0;
  uint32_t publish_waits = 0;  // number of reliable publishes that found no free node in the pool
  unsigned agent_restarts = 0;
  uint32_t masked_maximum = 0, stack_bytes = 0;  // of an image in QEMU: longest time with interrupts masked, in
                                                 // instructions, and the depth of the stack; 0: not measured
  std::vector<std::string> execution_times;      // of an image in QEMU: lines of tide_measurement_line
  std::vector<LaneBudget> budgets;               // one for each lane with a budget
  std::vector<ExecutorResult> executors;         // the shipped executors of the host
  std::vector<uint64_t> dropped, skipped;        // losses of these executors, by callback: dropped messages, and
                                                 // skipped expiries of late timers
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

// Throws std::invalid_argument if the plan is invalid.
Result simulate(const Plan &plan);

}  // namespace tide::sim
