// SPDX-License-Identifier: Apache-2.0
// Executors with one thread: bounds that look at busy windows, and so depend on no other chain's deadline.
//
// For the model of tools/analysis/model.h: one lane, with or without a budget, no exclusive groups. The safe ones are our own
// formulations, the published ones are those of the literature (docs/analysis/single_thread.md).
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
  Policy policy = Policy::ready_set;  // of the executors that it is for
  Variant variant = Variant::safe;    // a published bound is kept for comparison
  std::optional<time_ns> (*bound)(const Executor &executor, std::size_t chain) = nullptr;
  bool exceeded = false;  // a published bound that real schedules are known to exceed
};

std::span<const SingleThreadAnalysis> single_thread_analyses();
const SingleThreadAnalysis *find_single_thread_analysis(std::string_view name);

// One lane and no groups.
bool is_single_thread(const Executor &executor);

// All chains by one analysis; of a breakdown there is only the whole. Only a safe analysis guarantees something.
Result single_thread_result(const SingleThreadAnalysis &analysis, const Executor &executor);

// The least bound of all safe ones that apply; none: no bound.
std::optional<time_ns> single_thread_bound(const Executor &executor, std::size_t chain);

// A safe result in which every bound that a busy window can lower is lowered.
Result sharpened(const Executor &executor, Result result);

}  // namespace tide::analysis
