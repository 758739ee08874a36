// SPDX-License-Identifier: Apache-2.0
#include "analysis/single/busy_window.h"

namespace tide::analysis {

time_ns longest_window_ns(const Executor &executor) {
  time_ns longest_ns = 0, sum_ns = 0;
  for (const Chain &chain : executor.chains()) {
    longest_ns = std::max(longest_ns, add(chain.deadline_ns, chain.jitter_ns));
    sum_ns = add(sum_ns, chain.execution_ns);
  }
  return add(sum_ns, 4 * longest_ns);
}

}  // namespace tide::analysis
