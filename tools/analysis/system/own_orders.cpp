// SPDX-License-Identifier: Apache-2.0
#include "analysis/system/own_orders.h"

#include <algorithm>

namespace tide::analysis {
namespace {

constexpr int64_t kBeside = int64_t{1} << 40, kAbove = int64_t{1} << 41;

int64_t lowest(const Chain &chain) {
  int64_t least = chain.callbacks.front().priority;
  for (const Callback &callback : chain.callbacks) least = std::min(least, callback.priority);
  return least;
}

View view_of(const Executor &executor, size_t subject) {
  const int64_t least = lowest(executor.chains()[subject]);
  std::vector<Chain> chains;
  std::vector<size_t> origin;
  size_t place = 0;
  for (size_t index = 0; index < executor.chains().size(); ++index) {
    const Chain &chain = executor.chains()[index];
    for (const bool upper : {true, false}) {
      Chain part{{}, {}, chain.period_ns, chain.deadline_ns, chain.jitter_ns, 0, false};
      int64_t highest = 0;
      for (size_t number = 0; number < chain.callbacks.size(); ++number) {
        const Callback &callback = chain.callbacks[number];
        if ((index == subject || callback.priority >= least) != upper) continue;
        if (number == 0) part.timer = chain.timer;
        highest = std::max(highest, callback.priority);
        part.callbacks.push_back({{}, callback.execution_ns, callback.group, callback.priority});
      }
      if (part.callbacks.empty()) continue;
      part.priority = highest + (index == subject ? kBeside : upper ? kAbove : 0);
      if (index == subject) place = chains.size();
      chains.push_back(std::move(part));
      origin.push_back(index);
    }
  }
  return {Executor({}, executor.policy(), executor.lanes(), std::move(chains), executor.groups()), std::move(origin),
          place};
}

}  // namespace

std::vector<View> own_order_views(const Executor &executor) {
  std::vector<View> views;
  for (size_t chain = 0; chain < executor.chains().size(); ++chain) views.push_back(view_of(executor, chain));
  return views;
}

bool goes_before(const Executor &executor, size_t other, size_t chain) { return before_ns(executor, other, chain) > 0; }

time_ns before_ns(const Executor &executor, size_t other, size_t chain) {
  const Chain &entry = executor.chains()[other];
  if (other == chain || executor.policy() != Policy::priority) return entry.execution_ns;
  if (!executor.own_priorities()) return executor.above(other, chain) ? entry.execution_ns : 0;
  const int64_t least = lowest(executor.chains()[chain]);
  time_ns sum_ns = 0;
  for (const Callback &callback : entry.callbacks) sum_ns += callback.priority >= least ? callback.execution_ns : 0;
  return sum_ns;
}

}  // namespace tide::analysis
