// SPDX-License-Identifier: Apache-2.0
// A function of the window length, seen from one point: its value there, its slope, and how far both hold.
//
// Demand and supply are piecewise linear. Knowing the piece lets the solver go from corner to corner, where stepping
// from one candidate to the next would advance a nanosecond at a time when demand grows as fast as supply.
#pragma once

#include "analysis/model/time.h"

namespace tide::analysis {

struct Linear {
  time_ns value = 0;
  time_ns slope = 0;
  time_ns until_ns = kNeverNs;  // the last window for which value + slope * (window - here) is exact
};

inline Linear operator+(const Linear &left, const Linear &right) {
  return {add(left.value, right.value), add(left.slope, right.slope), std::min(left.until_ns, right.until_ns)};
}

inline Linear operator-(const Linear &left, const Linear &right) {
  return {left.value - right.value, left.slope - right.slope, std::min(left.until_ns, right.until_ns)};
}

// The product of two functions is only needed where both stand still, or one is a number.
inline Linear scale(const Linear &function, time_ns factor) {
  return {multiply(function.value, factor), multiply(function.slope, factor), function.until_ns};
}

inline Linear constant(time_ns value) { return {value, 0, kNeverNs}; }

// The lower envelope of two functions, at the window `here_ns`.
inline Linear lesser(const Linear &left, const Linear &right, time_ns here_ns) {
  const bool left_wins = left.value < right.value || (left.value == right.value && left.slope <= right.slope);
  const Linear &low = left_wins ? left : right;
  const Linear &high = left_wins ? right : left;
  time_ns until_ns = std::min(low.until_ns, high.until_ns);
  if (low.slope > high.slope) {
    until_ns = std::min(until_ns, add(here_ns, (high.value - low.value) / (low.slope - high.slope)));
  }
  return {low.value, low.slope, until_ns};
}

// ceil((window + offset) / period): a stair.
inline Linear stair(time_ns window_ns, time_ns offset_ns, time_ns period_ns) {
  const time_ns count = divide_up(window_ns + offset_ns, period_ns);
  return {count, 0, multiply(count, period_ns) - offset_ns};
}

}  // namespace tide::analysis
