// SPDX-License-Identifier: Apache-2.0
// Executors with one thread: bounds from busy windows. These bounds hold whether or not other chains meet their
// deadlines.
//
// The executor (model.h) must have one lane, with or without a budget, and no exclusive groups. The safe analyses are
// this project's own; the published ones are implemented as printed in the literature (docs/analysis/single_thread.md).
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
  Policy policy = Policy::any_order;  // policy of the executors for which the bound is proved
  Variant variant = Variant::safe;    // published bounds are kept for comparison
  std::optional<time_ns> (*bound)(const Executor &executor, size_t chain) = nullptr;
  bool exceeded = false;  // a published bound that real schedules can exceed
};

std::span<const SingleThreadAnalysis> single_thread_analyses();
const SingleThreadAnalysis *find_single_thread_analysis(std::string_view name);

// True if the executor has one lane and no groups.
bool is_single_thread(const Executor &executor);

// Applies one analysis to all chains. Results of published analyses have no parts, and `guaranteed` is false.
Result single_thread_result(const SingleThreadAnalysis &analysis, const Executor &executor);

// The least of all safe bounds that hold for the executor's policy; unset if there is no bound.
std::optional<time_ns> single_thread_bound(const Executor &executor, size_t chain);

// The least safe bound for each chain of the executor; unset if there is no bound, or if the executor has several
// threads. `work` is the remaining effort, which is counted down.
std::vector<ChainResult> single_thread_results(const Executor &executor, int64_t &work);

// Replaces a bound in `result`, which must come from a safe analysis, by the bound in `alone` if the latter is lower,
// or if the bound in `result` holds only while other chains meet their deadlines.
Result sharpened(const std::vector<ChainResult> &alone, Result result);
// As above, with `alone` from single_thread_results().
Result sharpened(const Executor &executor, Result result);

}  // namespace tide::analysis
