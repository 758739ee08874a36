// SPDX-License-Identifier: Apache-2.0
// How much processor time a lane, or all lanes of an executor together, can and must give within a window.
#pragma once

#include <vector>

#include "analysis/model/linear.h"
#include "analysis/model/model.h"

namespace tide::analysis {

// The least supply of a lane in any window of this length (Shin and Lee).
time_ns least_supply_ns(const Lane &lane, time_ns window_ns);
// The most supply of a lane in any window of this length.
time_ns most_supply_ns(const Lane &lane, time_ns window_ns);
// The shortest window that is certain to give this much.
time_ns window_for_ns(const Lane &lane, time_ns supply_ns);

// All lanes of an executor. Keeps a reference to them.
class Supply {
 public:
  explicit Supply(const std::vector<Lane> &lanes);

  time_ns lanes() const { return static_cast<time_ns>(lanes_.size()); }
  bool dedicated() const { return dedicated_; }
  // The sum of the least supplies: valid for lanes that do not know of each other.
  Linear least(time_ns window_ns) const;
  time_ns window_for_ns(time_ns supply_ns) const;
  // The same for the worst single lane: what a callback that has started may have to wait.
  time_ns worst_window_for_ns(time_ns supply_ns) const;
  // The most supply of all lanes that can pass while one of them executes a callback of this length: the lane that
  // holds it may be out of budget while the others are not.
  time_ns passing_ns(time_ns execution_ns) const;

 private:
  const std::vector<Lane> &lanes_;
  bool dedicated_ = true;
  bool alike_ = true;
};

}  // namespace tide::analysis
