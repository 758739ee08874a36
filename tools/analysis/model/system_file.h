// SPDX-License-Identifier: Apache-2.0
// A system as JSON.
//
//   {"executors": [{"name": "main", "policy": "priority", "threads": 2}],
//    "groups":    [{"name": "lock", "executor": "main"}],
//    "chains":    [{"name": "steer", "executor": "main", "priority": 2, "period_ns": 20000000,
//                   "deadline_ns": 20000000, "jitter_ns": 0, "timer": true,
//                   "callbacks": [{"name": "read", "execution_ns": 1000000, "least_ns": 0,
//                                  "group": "lock"}]}],
//    "paths":     [{"name": "all", "segments": ["steer", "show"], "delays_ns": [500000], "deadline_ns": 50000000}]}
//
// An executor has either "threads" on cores of their own or "lanes": [{"budget_ns": 4, "period_ns": 5}]; its policy is
// "priority", "default" (ready sets, timers live), "wait_set" (ready sets, timers cached) or "any_order". Groups,
// paths, jitter, timer, and of a callback its group and least_ns, may be absent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/model/json.h"
#include "analysis/model/model.h"

namespace tide::analysis {

struct SystemFile {
  Description description;
  std::vector<std::string> errors;  // what is not understood, with the entry; build() finds what is impossible
};

SystemFile read_system(Json json);
SystemFile read_system(std::string_view text);

}  // namespace tide::analysis
