// SPDX-License-Identifier: Apache-2.0
// Executors with one thread: bounds from busy windows, which depend on no other chain's deadline.
//
// For the model of model.h: one lane, with or without a budget, no exclusive groups. The safe ones
// are our own formulations, the published ones are those of the literature (docs/analysis/single_thread.md).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/threads.h"

namespace tide::analysis {

struct SingleThreadAnalysis {
  std::string_view name;
  std::string_view title;
  Policy policy = Policy::any_order;  // policy of the executors for which it is proved
  Variant variant = Variant::safe;    // a published bound is kept for comparison
  std::optional<time_ns> (*bound)(const Executor &executor, size_t chain) = nullptr;
  bool exceeded = false;  // a published bound that real schedules exceed
};

std::span<const SingleThreadAnalysis> single_thread_analyses();
const SingleThreadAnalysis *find_single_thread_analysis(std::string_view name);

// One lane and no groups.
bool is_single_thread(const Executor &executor);

// All chains by one analysis. Only a safe analysis gives guarantees and the parts of its bound.
Result single_thread_result(const SingleThreadAnalysis &analysis, const Executor &executor);

// The least bound of all safe ones that hold for the executor's policy; none: no bound.
std::optional<time_ns> single_thread_bound(const Executor &executor, size_t chain);

// The least safe bound for each chain of the executor; none if there is no bound, or the executor has several threads.
// work: remaining effort; counted down.
std::vector<ChainResult> single_thread_results(const Executor &executor, int64_t &work);

// A safe result in which bounds of one thread replace higher ones, and those that hold only if others are in time.
Result sharpened(const std::vector<ChainResult> &alone, Result result);
// A safe result in which every bound that a busy window can lower is lowered.
Result sharpened(const Executor &executor, Result result);

}  // namespace tide::analysis
