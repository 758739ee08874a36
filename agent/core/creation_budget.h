// SPDX-License-Identifier: Apache-2.0
// How often a client may have DDS make something: each costs a discovery in every participant of the domain, so one
// client that creates and deletes without end would take the processor from all. A burst is free, as a program that
// starts needs it; then one in each period. What comes sooner waits in its stream, nothing is refused.
#pragma once

#include <algorithm>

#include "core/limits.h"

namespace tide::agent {

class CreationBudget {
 public:
  // False: not before next_ns().
  bool take(const Limits &limits, Time now) {
    const Time burst = static_cast<Time>(limits.creations_at_once) * limits.creation_period_ns;
    const Time spent = std::max(spent_until_, now) + limits.creation_period_ns;
    next_ns_ = spent - burst;
    if (next_ns_ > now) return false;
    spent_until_ = spent;
    return true;
  }
  Time next_ns() const { return next_ns_; }  // of the last take

 private:
  Time spent_until_ = 0;
  Time next_ns_ = 0;
};

}  // namespace tide::agent
