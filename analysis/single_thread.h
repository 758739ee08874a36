// SPDX-License-Identifier: Apache-2.0
// Executors with one thread: bounds that look at busy windows, and so depend on no other chain's deadline.
//
// They have the shape of the literature on single-threaded executors (docs/analysis/single_thread.md says which and
// how they differ), for the model of analysis/model.h: one lane, with or without a budget, no exclusive groups.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/model.h"

namespace tide::analysis {

struct SingleThreadAnalysis {
  std::string_view name;
  std::string_view title;
  Policy policy = Policy::ready_set;  // of the executors that it is for; what holds for any order serves both
  std::optional<time_ns> (*bound)(const Executor &executor, std::size_t chain) = nullptr;
};

std::span<const SingleThreadAnalysis> single_thread_analyses();
const SingleThreadAnalysis *find_single_thread_analysis(std::string_view name);

// One lane and no groups.
bool is_single_thread(const Executor &executor);

// The least bound of all that apply; none: no bound.
std::optional<time_ns> single_thread_bound(const Executor &executor, std::size_t chain);

// A safe result in which every bound that a busy window can lower is lowered.
Result sharpened(const Executor &executor, Result result);

}  // namespace tide::analysis
