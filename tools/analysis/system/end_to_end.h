// SPDX-License-Identifier: Apache-2.0
// All executors of a system, and the paths that lead through several of them.
#pragma once

#include <optional>
#include <vector>

#include "analysis/system/confirmed.h"
#include "analysis/threads/analysis.h"

namespace tide::analysis {

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

}  // namespace tide::analysis
