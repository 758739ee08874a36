// SPDX-License-Identifier: Apache-2.0
// Analysis of a whole system: all its executors, and the paths that lead through several executors. Also the comparison
// of all analyses for one executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/threads.h"

namespace tide::analysis {

// Bounds are searched up to this multiple of the longer of deadline and period.
inline constexpr time_ns kMostTimesLate = 10;

// The first failure that an analysis found.
struct Shortfall {
  // overload: the demand exceeds the executor's supply. too_long: no window below the limit suffices. unsettled: the
  // release jitter of a chain grows beyond the limit. effort: the permitted effort was spent before the search ended.
  enum class Kind { overload, too_long, unsettled, effort };
  Kind kind = Kind::too_long;
  size_t executor = 0, chain = 0;        // `chain`, for overload: the least important chain whose demand is counted
  time_ns reached_ns = 0, limit_ns = 0;  // value at which the search ended, and its limit; 0 for overload
  int64_t asked_permille = 0;            // for overload: demand in thousandths of one core, rounded up
  int64_t given_permille = 0;            // for overload: supply in the same unit, rounded down
  std::string_view part{};               // name of the largest part of `reached_ns`; empty if unknown
  time_ns part_ns = 0;
  std::optional<size_t> part_chain{};  // chain to which this largest part belongs
};
const char *name_of(Shortfall::Kind kind);

struct PathResult {
  // Bound from the release of the first segment to the end of the last: the sum of the segments' bounds and the delays
  // between them.
  std::optional<time_ns> response_ns;
  bool met = false;
  bool guaranteed = false;
  std::vector<std::optional<time_ns>> segments_ns;
  std::vector<time_ns> jitter_ns;  // release jitter of each segment
  std::optional<Shortfall> why;    // reason if there is no bound
};

struct SystemResult {
  std::vector<Result> executors;  // in the order of the system; the bounds hold whether or not deadlines are met
  std::vector<std::vector<std::optional<Shortfall>>> why;  // by executor and chain: the reason if there is no bound
  std::vector<PathResult> paths;
  bool settled = true;      // every path has a bound
  bool guaranteed = false;  // every chain and every path is guaranteed
};

// Applies to each executor the safe analysis that fits it. A segment is released when the preceding segment ends, so
// the bounds of a path's earlier segments determine the jitter of its later ones, and jitters in turn raise bounds.
// Both are therefore iterated, from no jitter upwards, until nothing changes, a path is too late (kMostTimesLate), or a
// fixed number of steps is used up.
SystemResult analyse_system(const System &system, const Options &options = {});

// Like analyse_system, for one executor alone. `work` is the effort that may be spent, in the unit of
// Options::most_work.
Result analyse_executor(const Executor &executor, const Options &options, int64_t work);

struct Compared {
  std::string_view analysis;
  Result result;
};

// Bounds of all analyses that apply to the executor, including the published ones: first those of analyses(), in the
// order of their theorems, then the analyses for one thread. The executor is analysed alone; other executors influence
// it only through the jitters of its chains.
std::vector<Compared> compare(const Executor &executor, const Options &options = {});

}  // namespace tide::analysis
