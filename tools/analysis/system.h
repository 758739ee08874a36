// SPDX-License-Identifier: Apache-2.0
// All executors of a system, and the paths that lead through several of them; every analysis of one executor beside the
// others.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/threads.h"

namespace tide::analysis {

// No bound is looked for beyond so many times the longer of deadline and period.
inline constexpr time_ns kMostTimesLate = 10;

// What fails first.
struct Shortfall {
  // overload: more is asked of the executor than its lanes give. too_long: nothing below the limit is enough.
  // unsettled: a chain is released later and later, beyond the limit. effort: it was given up.
  enum class Kind { overload, too_long, unsettled, effort };
  Kind kind = Kind::too_long;
  size_t executor = 0, chain = 0;        // of overload the least important chain that is counted
  time_ns reached_ns = 0, limit_ns = 0;  // but for overload
  int64_t asked_permille = 0;            // of one core, for overload; rounded up
  int64_t given_permille = 0;            // rounded down
  std::string_view part{};               // the largest one of what was reached; empty: none is known
  time_ns part_ns = 0;
  std::optional<size_t> part_chain{};  // whose it is
};
const char *name_of(Shortfall::Kind kind);

struct PathResult {
  // From the release of the first segment to the end of the last: the bounds of the segments and the delays between.
  std::optional<time_ns> response_ns;
  bool met = false;
  bool guaranteed = false;
  std::vector<std::optional<time_ns>> segments_ns;
  std::vector<time_ns> jitter_ns;  // with which each segment is released
  std::optional<Shortfall> why;    // there is no bound
};

struct SystemResult {
  std::vector<Result> executors;  // in the order of the system; bounds hold whether or not deadlines are met
  std::vector<std::vector<std::optional<Shortfall>>> why;  // by executor and chain: why there is no bound
  std::vector<PathResult> paths;
  bool settled = true;      // false: of some segment nobody knows how late it may be released
  bool guaranteed = false;  // every chain and every path is
};

// Applies to each executor its fitting safe analysis. A segment is released when the one before it ends, so its jitter
// is all the time that may have passed until then; as bounds depend on jitter and jitter on bounds, this is repeated
// from no jitter upwards until nothing changes, the path is later than makes sense (kMostTimesLate), or too much has
// been looked at: a second at most.
SystemResult analyse_system(const System &system, const Options &options = {});

// The same of one executor by itself. work: shares of chains that may be looked at.
Result analyse_executor(const Executor &executor, const Options &options, int64_t work);

struct Compared {
  std::string_view analysis;
  Result result;
};

// Published ones included, by theorem, then those for one thread. The executor is taken for itself: what comes in from
// others is in its jitters.
std::vector<Compared> compare(const Executor &executor, const Options &options = {});

}  // namespace tide::analysis
