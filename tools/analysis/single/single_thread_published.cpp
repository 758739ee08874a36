// SPDX-License-Identifier: Apache-2.0
#include "analysis/single/single_thread_published.h"

#include "analysis/single/busy_window.h"

namespace tide::analysis {
namespace {

// What all chains but one, or all chains, may execute in a window.
time_ns requested_ns(const Executor &executor, time_ns window_ns, size_t but) {
  time_ns sum_ns = 0;
  for (size_t chain = 0; chain < executor.chains().size(); ++chain) {
    const Chain &one = executor.chains()[chain];
    if (chain != but) sum_ns = add(sum_ns, multiply(arrivals(one, window_ns), one.execution_ns));
  }
  return sum_ns;
}

// A callback in the words of the round-robin-aware analysis.
struct Polled {
  time_ns period_ns = 0, jitter_ns = 0;  // of its activations
  time_ns execution_ns = 0;
  time_ns response_ns = 0;
  bool timer = false;

  time_ns activations(time_ns window_ns) const {
    return window_ns <= 0 ? 0 : divide_up(add(window_ns, jitter_ns), period_ns);
  }
};

class RoundRobin {
 public:
  explicit RoundRobin(const Executor &executor) : supply_(executor.lanes()), most_ns_(longest_window_ns(executor)) {
    for (const Chain &chain : executor.chains()) {
      first_.push_back(callbacks_.size());
      for (size_t place = 0; place < chain.callbacks.size(); ++place) {
        const time_ns execution_ns = chain.callbacks[place].execution_ns;
        callbacks_.push_back({chain.period_ns, chain.jitter_ns, execution_ns, execution_ns, chain.timer && place == 0});
      }
    }
    first_.push_back(callbacks_.size());
  }

  std::optional<time_ns> bound(size_t chain) {
    if (!settle()) return std::nullopt;
    return response(first_[chain], first_[chain + 1]);
  }

 private:
  // The response of each callback by itself; an activation is as late as the response of the one before it.
  bool settle() {
    for (int round = 0; round < kMostRounds; ++round) {
      carry_jitter();
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

  void carry_jitter() {
    for (size_t chain = 0; chain + 1 < first_.size(); ++chain) {
      for (size_t callback = first_[chain] + 1; callback < first_[chain + 1]; ++callback) {
        const Polled &before = callbacks_[callback - 1];
        callbacks_[callback].jitter_ns = add(before.jitter_ns, before.response_ns);
      }
    }
  }

  // Of the callbacks first to last - 1 in a row.
  std::optional<time_ns> response(size_t first, size_t last) const {
    time_ns points = 0;
    for (size_t callback = first; callback < last; ++callback)
      points = add(points, callbacks_[callback].activations(callbacks_[callback].response_ns));
    const Polled &end = callbacks_[last - 1];
    const auto demand = [&](time_ns window_ns) {
      time_ns sum_ns = 1;
      for (size_t other = 0; other < callbacks_.size(); ++other) {
        const Polled &one = callbacks_[other];
        const time_ns activations = one.activations(add(window_ns, one.response_ns) - 1);
        const time_ns runs = other == last - 1 ? activations - 1
                             : one.timer       ? activations
                                               : std::min(activations, points + 1);
        sum_ns = add(sum_ns, multiply(std::max<time_ns>(0, runs), one.execution_ns));
      }
      return sum_ns;
    };
    const auto started_ns = supplied_window(supply_, most_ns_, demand);
    if (!started_ns) return std::nullopt;
    return supply_.window_for_ns(add(supply_.least(*started_ns).value - 1, end.execution_ns));
  }

  static constexpr int kMostRounds = 1000;
  Supply supply_;
  time_ns most_ns_;
  std::vector<Polled> callbacks_;
  std::vector<size_t> first_;  // callback of each chain, and one behind the last
};

}  // namespace

std::optional<time_ns> casini_lemma8(const Executor &executor, size_t index) {
  constexpr size_t kNobody = static_cast<size_t>(-1);
  const Chain &chain = executor.chains()[index];
  const Supply supply(executor.lanes());
  const time_ns most_ns = longest_window_ns(executor);
  const auto busy_ns =
      supplied_window(supply, most_ns, [&](time_ns window_ns) { return requested_ns(executor, window_ns, kNobody); });
  if (!busy_ns) return std::nullopt;
  const time_ns prefix_ns = chain.execution_ns - chain.last_ns;
  time_ns worst_ns = 0;
  time_ns offset_ns = 0;
  for (int step = 0; offset_ns <= *busy_ns; ++step) {
    if (step > kMostWindowSteps) return std::nullopt;
    const auto demand = [&](time_ns response_ns) {
      const time_ns before_ns = offset_ns + std::max<time_ns>(0, response_ns - chain.last_ns) + 1;
      return add(multiply(arrivals(chain, offset_ns + 1), chain.last_ns),
                 add(multiply(arrivals(chain, before_ns), prefix_ns), requested_ns(executor, before_ns, index)));
    };
    const auto found_ns = supplied_window(supply, add(most_ns, offset_ns), [&](time_ns window_ns) {
      return demand(std::max<time_ns>(1, window_ns - offset_ns));
    });
    if (!found_ns) return std::nullopt;
    worst_ns = std::max(worst_ns, *found_ns - offset_ns);
    offset_ns = arrivals(chain, offset_ns + 1) * chain.period_ns - chain.jitter_ns;  // where the next may be released
  }
  return worst_ns;
}

std::optional<time_ns> blass_theorem2(const Executor &executor, size_t chain) {
  return RoundRobin(executor).bound(chain);
}

std::optional<time_ns> picas_theorem1(const Executor &executor, size_t index) {
  if (!executor.dedicated()) return std::nullopt;
  const Chain &chain = executor.chains()[index];
  time_ns blocking_ns = 0;
  for (size_t other = 0; other < executor.chains().size(); ++other) {
    const Chain &one = executor.chains()[other];
    if (one.jitter_ns != 0) return std::nullopt;
    if (other != index && !executor.above(other, index)) blocking_ns = std::max(blocking_ns, one.longest_ns);
  }
  const auto demand = [&](time_ns window_ns) {
    time_ns sum_ns = add(blocking_ns, chain.execution_ns);
    for (size_t other = 0; other < executor.chains().size(); ++other) {
      const Chain &one = executor.chains()[other];
      if (other == index || !executor.above(other, index)) continue;
      const time_ns apart_ns = std::max(one.period_ns, one.execution_ns);
      sum_ns = add(sum_ns, multiply(divide_up(window_ns, apart_ns), one.execution_ns));
    }
    return sum_ns;
  };
  const auto response_ns = supplied_window(Supply(executor.lanes()), longest_window_ns(executor), demand);
  if (!response_ns || *response_ns <= chain.period_ns) return response_ns;
  return add(*response_ns, chain.period_ns);
}

}  // namespace tide::analysis
