// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tide_rclcpp {

namespace {

constexpr std::size_t kLongestChain = 256;

bool matches(const Callback &pattern, const Found &found) {
  if (pattern.kind != found.kind || (pattern.node != "*" && pattern.node != found.node)) return false;
  if (found.kind == Kind::kTimer) return pattern.period.count() == 0 || pattern.period == found.period;
  return pattern.name == found.name;
}

}  // namespace

Plan::Plan(std::vector<Chain> chains) : chains_(std::move(chains)) {
  for (const Chain &chain : chains_) {
    if (chain.level < 1 || chain.level > TIDE_LEVEL_MAXIMUM || chain.callbacks.size() > kLongestChain) {
      throw std::invalid_argument("chain " + chain.name +
                                  ": its level has to be 1 to 126, and its callbacks at most 256");
    }
  }
}

tide_priority_t Plan::priority_of(const Found &found) const {
  tide_priority_t highest = 0;
  for (const Chain &chain : chains_) {
    for (std::size_t position = 0; position < chain.callbacks.size(); position++) {
      if (matches(chain.callbacks[position], found)) {
        const tide_priority_t own = chain.callbacks[position].priority;
        highest = std::max<tide_priority_t>(highest, own > 0 ? own : TIDE_PRIORITY(chain.level, position));
      }
    }
  }
  return highest;
}

std::vector<std::string> Plan::names_of(const Found &found) const {
  std::vector<std::string> names;
  for (const Chain &chain : chains_) {
    for (std::size_t position = 0; position < chain.callbacks.size(); position++) {
      if (matches(chain.callbacks[position], found)) names.push_back(name_of(chain, position));
    }
  }
  return names;
}

std::vector<std::string> Plan::unmatched(const std::vector<Found> &found) const {
  std::vector<std::string> lines;
  for (const Chain &chain : chains_) {
    for (const Callback &callback : chain.callbacks) {
      const bool there =
          callback.kind == Kind::kRemote ||
          std::any_of(found.begin(), found.end(), [&](const Found &one) { return matches(callback, one); });
      if (!there) lines.push_back("chain " + chain.name + ": " + to_string(callback));
    }
  }
  return lines;
}

}  // namespace tide_rclcpp
