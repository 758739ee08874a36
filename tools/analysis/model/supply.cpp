// SPDX-License-Identifier: Apache-2.0
#include "analysis/model/supply.h"

namespace tide::analysis {
namespace {

// The lane as a piece of a line: nothing for twice the gap, then budget and gap in turn.
Linear least_piece(const Lane &lane, time_ns window_ns) {
  if (lane.dedicated()) return {window_ns, 1, kNeverNs};
  const time_ns starved_ns = 2 * (lane.period_ns - lane.budget_ns);
  if (window_ns < starved_ns) return {0, 0, starved_ns};
  const time_ns rounds = (window_ns - starved_ns) / lane.period_ns;
  const time_ns rest_ns = (window_ns - starved_ns) % lane.period_ns;
  const time_ns before_ns = multiply(rounds, lane.budget_ns);
  if (rest_ns < lane.budget_ns) return {add(before_ns, rest_ns), 1, window_ns + lane.budget_ns - rest_ns};
  return {add(before_ns, lane.budget_ns), 0, window_ns + lane.period_ns - rest_ns};
}

}  // namespace

time_ns least_supply_ns(const Lane &lane, time_ns window_ns) { return least_piece(lane, window_ns).value; }

time_ns most_supply_ns(const Lane &lane, time_ns window_ns) {
  if (lane.dedicated() || window_ns <= 2 * lane.budget_ns) return window_ns;
  const time_ns later_ns = window_ns - 2 * lane.budget_ns;
  const time_ns part_ns = later_ns % lane.period_ns - (lane.period_ns - lane.budget_ns);
  return add(2 * lane.budget_ns + std::max<time_ns>(0, part_ns), multiply(later_ns / lane.period_ns, lane.budget_ns));
}

time_ns window_for_ns(const Lane &lane, time_ns supply_ns) {
  if (supply_ns <= 0) return 0;
  if (lane.dedicated()) return supply_ns;
  const time_ns rounds = (supply_ns - 1) / lane.budget_ns;
  return add(add(2 * (lane.period_ns - lane.budget_ns), multiply(rounds, lane.period_ns)),
             supply_ns - rounds * lane.budget_ns);
}

Supply::Supply(const std::vector<Lane> &lanes) : lanes_(lanes) {
  for (const Lane &lane : lanes_) {
    dedicated_ = dedicated_ && lane.dedicated();
    alike_ = alike_ && lane == lanes_.front();
  }
  alike_ = alike_ || dedicated_;
}

Linear Supply::least(time_ns window_ns) const {
  if (dedicated_) return {multiply(lanes(), window_ns), lanes(), kNeverNs};
  if (alike_) return scale(least_piece(lanes_.front(), window_ns), lanes());
  Linear sum;
  for (const Lane &lane : lanes_) sum = sum + least_piece(lane, window_ns);
  return sum;
}

time_ns Supply::window_for_ns(time_ns supply_ns) const {
  if (supply_ns <= 0) return 0;
  if (alike_) return analysis::window_for_ns(lanes_.front(), divide_up(supply_ns, lanes()));
  time_ns high_ns = kNeverNs;  // one lane alone gives it all by then
  for (const Lane &lane : lanes_) high_ns = std::min(high_ns, analysis::window_for_ns(lane, supply_ns));
  time_ns low_ns = 0;  // gives less
  while (high_ns - low_ns > 1) {
    const time_ns middle_ns = low_ns + (high_ns - low_ns) / 2;
    (least(middle_ns).value >= supply_ns ? high_ns : low_ns) = middle_ns;
  }
  return high_ns;
}

time_ns Supply::worst_window_for_ns(time_ns supply_ns) const {
  if (dedicated_) return std::max<time_ns>(supply_ns, 0);
  time_ns worst_ns = 0;
  for (const Lane &lane : lanes_) worst_ns = std::max(worst_ns, analysis::window_for_ns(lane, supply_ns));
  return worst_ns;
}

time_ns Supply::passing_ns(time_ns execution_ns) const {
  if (dedicated_) return multiply(lanes(), execution_ns);
  time_ns worst_ns = 0;
  for (size_t holder = 0; holder < lanes_.size(); ++holder) {
    const time_ns window_ns = add(1, analysis::window_for_ns(lanes_[holder], execution_ns - 1));
    time_ns passing_ns = execution_ns;
    for (size_t other = 0; other < lanes_.size(); ++other) {
      if (other != holder) passing_ns = add(passing_ns, most_supply_ns(lanes_[other], window_ns));
    }
    worst_ns = std::max(worst_ns, passing_ns);
  }
  return worst_ns;
}

}  // namespace tide::analysis
