// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/single/busy_window.h"
#include "analysis/single/single_thread_published.h"

namespace tide::analysis {
namespace {

// In a busy window nothing is pending at its begin, so what comes in at a callback in it comes from activations of its
// chain in it: the curve of the chain, without the response times of the callbacks before it (their Definition 4).
struct Polled {
  const Chain *chain = nullptr;
  time_ns execution_ns = 0;
  time_ns response_ns = 0;
  bool timer = false;

  time_ns activations(time_ns window_ns) const { return arrivals(*chain, window_ns); }
};

class BusyWindowAware {
 public:
  explicit BusyWindowAware(const Executor &executor)
      : executor_(executor), supply_(executor.lanes()), most_ns_(longest_window_ns(executor)) {
    for (const Chain &chain : executor.chains()) {
      first_.push_back(callbacks_.size());
      for (size_t place = 0; place < chain.callbacks.size(); ++place) {
        const time_ns execution_ns = chain.callbacks[place].execution_ns;
        callbacks_.push_back({&chain, execution_ns, execution_ns, chain.timer && place == 0});
      }
    }
    first_.push_back(callbacks_.size());
  }

  std::optional<time_ns> bound(size_t chain) {
    if (!settle()) return std::nullopt;
    return response(first_[chain], first_[chain + 1]);
  }

 private:
  // Polling points are counted by the response of each callback by itself.
  bool settle() {
    for (int round = 0; round < kMostRounds; ++round) {
      bool changed = false;
      for (size_t callback = 0; callback < callbacks_.size(); ++callback) {
        const auto found_ns = response(callback, callback + 1);
        if (!found_ns || *found_ns > most_ns_) return false;
        changed = changed || *found_ns > callbacks_[callback].response_ns;
        callbacks_[callback].response_ns = std::max(callbacks_[callback].response_ns, *found_ns);
      }
      if (!changed) return true;
    }
    return false;
  }

  // Of the callbacks first to last - 1 in a row, over all offsets at which the last of them may be activated.
  std::optional<time_ns> response(size_t first, size_t last) const {
    time_ns points = 0;
    for (size_t callback = first; callback < last; ++callback)
      points = add(points, callbacks_[callback].activations(callbacks_[callback].response_ns));
    const Polled &end = callbacks_[last - 1];
    const auto longest_ns = supplied_window(supply_, most_ns_, [&](time_ns window_ns) {
      return add(multiply(end.activations(window_ns), end.execution_ns),
                 add(1, others_ns(last - 1, window_ns, window_ns, points)));
    });
    if (!longest_ns) return std::nullopt;
    time_ns worst_ns = 0;
    const std::vector<time_ns> tried_ns = offsets(*end.chain, *longest_ns);
    if (tried_ns.size() > kMostWindowSteps) return std::nullopt;
    for (const time_ns offset_ns : tried_ns) {
      const time_ns before_ns = multiply(end.activations(offset_ns + 1) - 1, end.execution_ns);
      const auto started_ns = supplied_window(supply_, add(most_ns_, offset_ns), [&](time_ns window_ns) {
        return add(1, add(before_ns, others_ns(last - 1, window_ns, offset_ns, points)));
      });
      if (!started_ns) return std::nullopt;
      const time_ns ended_ns = supply_.window_for_ns(add(supply_.least(*started_ns).value - 1, end.execution_ns));
      // Where a chain's own activation is in the window is not known; of one callback it is the offset.
      worst_ns = std::max(worst_ns, last - first == 1 ? ended_ns - offset_ns : ended_ns);
    }
    return worst_ns;
  }

  // Their Definition 5: what is activated in the window, and not more often than once for each activation before the
  // offset, each polling point behind it and the rest of the set.
  time_ns others_ns(size_t but, time_ns window_ns, time_ns offset_ns, time_ns points) const {
    time_ns sum_ns = 0;
    for (size_t other = 0; other < callbacks_.size(); ++other) {
      if (other == but) continue;
      const Polled &one = callbacks_[other];
      const time_ns activations = one.activations(window_ns);
      const time_ns runs =
          one.timer ? activations : std::min(activations, add(add(one.activations(offset_ns), points), 1));
      sum_ns = add(sum_ns, multiply(runs, one.execution_ns));
    }
    return sum_ns;
  }

  // Where one of the numbers of activations changes.
  std::vector<time_ns> offsets(const Chain &own, time_ns until_ns) const {
    std::vector<time_ns> all{0};
    if (until_ns > 1) all.push_back(1);  // what is activated at the begin of the window is before it
    for (const Chain &chain : executor_.chains()) {
      for (time_ns at_ns = chain.period_ns - chain.jitter_ns; at_ns < until_ns; at_ns += chain.period_ns) {
        if (at_ns < 0) continue;
        if (&chain == &own) all.push_back(at_ns);
        if (at_ns + 1 < until_ns) all.push_back(at_ns + 1);
        if (all.size() > 3 * kMostWindowSteps) return all;
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  static constexpr int kMostRounds = 1000;
  const Executor &executor_;
  Supply supply_;
  time_ns most_ns_;
  std::vector<Polled> callbacks_;
  std::vector<size_t> first_;  // callback of each chain, and one behind the last
};

}  // namespace

std::optional<time_ns> blass_theorem3(const Executor &executor, size_t chain) {
  return BusyWindowAware(executor).bound(chain);
}

}  // namespace tide::analysis
