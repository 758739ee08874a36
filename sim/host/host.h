// SPDX-License-Identifier: Apache-2.0
// Without a board: sim/workloads/host_chains, chains on executors of one process, with a core for each lane.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/workloads/host_chains/program.h"

namespace tide::sim {

// A completed instance of a chain: its expiry, the start of its first callback, the end of its last.
struct HostInstance {
  Time release, start, end;
};

struct HostResult {
  struct Deleter {
    void operator()(program_t *ended) const {
      program_free(ended);
      delete ended;
    }
  };
  std::unique_ptr<program_t, Deleter> program;  // with its responses and counters; refers to the plan
  std::vector<std::string> violations;
  std::string trace;  // a line for each run of a callback, if requested
  uint64_t events = 0;
  std::vector<std::vector<HostInstance>> recorded = {};  // by chain, in order of completion, if requested
};

struct HostOptions {
  // Lanes pause between two critical sections, by the plan's seed, so that others can run in between.
  bool hesitate = false;
  bool trace = false;
  bool record = false;
};

// The plan must outlive the result. Throws std::runtime_error if the executors refuse it.
HostResult simulate_host(const plan_t &plan, const HostOptions &options);

// A random system, determined by the seed.
plan_t draw_host_plan(uint64_t seed);
std::string write_host_plan(const plan_t &plan);

}  // namespace tide::sim
