// SPDX-License-Identifier: Apache-2.0
// A system over a serial line as JSON, and its bounds as JSON.
//
//   {"client": {"name": "client", "policy": "tide", "submit_ns": 268000, "process_ns": 268000},
//    "line": {"baud": 115200, "agent_ns": 1480000},
//    "protocol": {"acknowledges": "always", "losses": 0},
//    "hosts": [{"name": "ros2", "lanes": 1}],
//    "chains": [{"name": "brake", "priority": 3, "period_ns": 500000000, "deadline_ns": 60000000,
//                "uplink_reliable": false, "downlink_reliable": false,
//                "callbacks": [{"name": "sample", "executor": "client", "execution_ns": 10000000, "payload_bytes": 96},
//                              {"name": "decide", "executor": "ros2", "execution_ns": 0, "payload_bytes": 6},
//                              {"name": "act", "executor": "client", "execution_ns": 10000000}]}]}
//
// The members are those of tools/analysis/link/system.h, and have the names of system.toml with `_ns` for `_ms`;
// whatever is absent has the value that stands there. A callback without an executor is on the client.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/link/bound.h"
#include "analysis/model/json.h"

namespace tide::analysis {

struct LinkFile {
  LinkSystem system;
  std::vector<std::string> errors;  // what is not understood or impossible, with the entry
};

LinkFile read_link_system(Json json);
LinkFile read_link_system(std::string_view text);

std::string write_link_results(const LinkSystem &system, const LinkResults &results);

// The same for every executor of the client and way of sending: {"tide": {...}, "lanes": {...}, "batch": {...}, ...}.
std::string write_link_comparison(const LinkSystem &system);

}  // namespace tide::analysis
