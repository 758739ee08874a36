// SPDX-License-Identifier: Apache-2.0
#include "analysis/system/compare.h"

#include "analysis/single/single_thread.h"

namespace tide::analysis {

std::vector<Compared> compare(const Executor &executor, const Options &options) {
  std::vector<Compared> all;
  for (const Analysis &analysis : analyses()) {
    Result result = analyse(analysis, executor, options);
    if (result.error.empty()) all.push_back({analysis.name, std::move(result)});
  }
  if (!is_single_thread(executor)) return all;
  for (const SingleThreadAnalysis &analysis : single_thread_analyses()) {
    if (holds_for(analysis.policy, executor.policy()))
      all.push_back({analysis.name, single_thread_result(analysis, executor)});
  }
  return all;
}

}  // namespace tide::analysis
