// SPDX-License-Identifier: Apache-2.0
// Chain-aware priorities of callbacks (Sobhani, Choi and Kim, Algorithm 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tide::analysis {

struct PrioritisedChain {
  std::int64_t priority = 0;           // larger is more important
  std::vector<std::string> callbacks;  // names in order; a name may occur in several chains
};

// Gives every callback its priority, larger is more important: each callback of a more important chain beats each of a
// less important one, and within a chain the later beats the earlier. A callback of several chains gets the highest of
// the priorities it would receive. Chains of equal priority keep their order.
std::map<std::string, std::int64_t> assign_callback_priorities(const std::vector<PrioritisedChain> &chains);

}  // namespace tide::analysis
