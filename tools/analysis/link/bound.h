// SPDX-License-Identifier: Apache-2.0
// Bounds of chains between a microcontroller and ROS 2 over a serial line (docs/analysis/link.md has the argument).
//
// Unpublished: the TIDE executor, cooperative or with preemptive lanes, with the daemon that sends for it; and the
// batch executor with its ways of sending, for comparison.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/link/system.h"

namespace tide::analysis {

// What a bound is made of. Everything but `lateness_ns` adds up to the bound.
struct LinkParts {
  time_ns jitter_ns = 0;                        // from the nominal expiry of its timer to the release
  time_ns execution_ns = 0;                     // the chain's own callbacks on the client, with their costs
  time_ns line_ns = 0;                          // its own frames
  time_ns host_ns = 0;                          // agent, DDS and the chain's callbacks on the host
  std::vector<time_ns> client_interference_ns;  // by chain: callbacks that go first
  std::vector<time_ns> line_interference_ns;    // by chain: frames that go first, or keep the line for themselves
  time_ns client_blocking_ns = 0;               // less urgent callbacks that have started
  time_ns new_data_ns = 0;                      // batch: samples that came during a publish, until the next timer
  time_ns lock_blocking_ns = 0;                 // critical sections of less urgent callbacks
  time_ns line_blocking_ns = 0;                 // less urgent frames that have started
  time_ns control_ns = 0;                       // acknowledgments, HEARTBEATs, signs of life
  time_ns window_ns = 0;                        // until a full window of its stream takes its frames
  time_ns interrupts_ns = 0;
  time_ns host_wait_ns = 0;  // other callbacks of the host executors
  time_ns losses_ns = 0;     // until what was lost has been sent again
  time_ns lateness_ns = 0;   // that part of the interference which is there because others may be late
  time_ns total_ns() const;
};

// What one direction holds of a chain at the same time, at most: instances whose messages are queued, under way or not
// yet acknowledged, and frames without an acknowledgment of the stream that it uses, whoever else does.
struct StreamUse {
  int64_t instances = 0, frames = 0;
};

struct LinkResult {
  std::optional<time_ns> response_ns;  // from the nominal expiry to the end of the last callback; none: no bound
  StreamUse up, down;                  // of a chain that has a bound
  bool met = false;
  LinkParts parts;
  bool hidden = false;  // the way over the line is hidden behind callbacks that run meanwhile
  // Without a bound: the chain that failed first, which may be this one; how long that would take at least, no more
  // than what may be; and what most of it is made of, as parts of that chain. reached_ns 0: it was not looked at.
  size_t root = 0;
  time_ns reached_ns = 0, limit_ns = 0;
  LinkParts reached_parts;
  std::string reason;              // the same in words
  std::vector<size_t> depends_on;  // chains that the bound needs to be over within their periods
};

// What the bounds take for granted, so that a run can answer it: `id` is one of those in docs/analysis/link.md, the
// values have the names of system.toml or of what they limit.
struct Assumption {
  std::string id, text;
  std::vector<std::pair<std::string, int64_t>> values;
};

struct LinkResults {
  std::vector<LinkResult> chains;
  bool met = false;
  std::vector<Assumption> assumptions;
};

// The system must have passed check().
LinkResults bound_link(const LinkSystem &system);

}  // namespace tide::analysis
