// SPDX-License-Identifier: Apache-2.0
// Every analysis that applies to an executor, side by side.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/threads/analysis.h"

namespace tide::analysis {

struct Compared {
  std::string_view analysis;
  Result result;
};

// Published ones included, by theorem, then those for one thread. The executor is taken for itself: what comes in from
// others is in its jitters.
std::vector<Compared> compare(const Executor &executor, const Options &options = {});

}  // namespace tide::analysis
