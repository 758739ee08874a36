// SPDX-License-Identifier: Apache-2.0
#include "core/signals.h"

namespace tide::agent {

void SignalQueue::push(const std::shared_ptr<Signal> &signal) {
  if (signal->queued.exchange(true)) return;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = signals_.empty();
    signals_.push_back(signal);
  }
  if (first && wake_) wake_();
}

void SignalQueue::take(std::vector<std::shared_ptr<Signal>> &signals) {
  const std::lock_guard lock(mutex_);
  signals.swap(signals_);
}

}  // namespace tide::agent
