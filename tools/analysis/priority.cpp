// SPDX-License-Identifier: Apache-2.0
#include "analysis/priority.h"

#include <algorithm>

namespace tide::analysis {

std::map<std::string, std::int64_t> assign_callback_priorities(const std::vector<PrioritisedChain> &chains) {
  std::vector<const PrioritisedChain *> order;
  std::int64_t next = 0;
  for (const PrioritisedChain &chain : chains) {
    order.push_back(&chain);
    next += static_cast<std::int64_t>(chain.callbacks.size());
  }
  std::stable_sort(order.begin(), order.end(), [](const PrioritisedChain *left, const PrioritisedChain *right) {
    return left->priority > right->priority;
  });
  std::map<std::string, std::int64_t> priorities;
  for (const PrioritisedChain *chain : order) {
    for (auto name = chain->callbacks.rbegin(); name != chain->callbacks.rend(); ++name) {
      priorities.try_emplace(*name, next--);  // the first one given is the highest
    }
  }
  return priorities;
}

}  // namespace tide::analysis
