// SPDX-License-Identifier: Apache-2.0
// Executors whose callbacks have priorities that do not come from their chains (Callback::priority).
//
// Each chain is bounded in an order of its own: whatever is not below all of its callbacks may go first. What is below
// all of them can only have begun before it, so a chain that has such callbacks and others stands there as two, each
// with its own execution and the whole chain's deadline: either half executes within the response of the chain.
#pragma once

#include <vector>

#include "analysis/model/model.h"

namespace tide::analysis {

// An executor as one of its chains sees it. Chains and callbacks have no names there.
struct View {
  Executor executor;
  std::vector<size_t> origin;  // of each of its chains
  size_t subject = 0;          // the chain that sees
};

// One for each chain.
std::vector<View> own_order_views(const Executor &executor);

// Whether some callback of `other` may go before one of `chain`.
bool goes_before(const Executor &executor, size_t other, size_t chain);
// What an instance of `other` may execute before `chain`.
time_ns before_ns(const Executor &executor, size_t other, size_t chain);

}  // namespace tide::analysis
