// SPDX-License-Identifier: Apache-2.0
// Exact time: integer nanoseconds, with sums and products that stop at `kNeverNs` instead of overflowing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tide::analysis {

using time_ns = int64_t;

// Larger than every time a model may contain; two of them can still be added.
inline constexpr time_ns kNeverNs = std::numeric_limits<time_ns>::max() / 4;

inline time_ns add(time_ns left, time_ns right) { return std::min(left + right, kNeverNs); }

inline time_ns multiply(time_ns left, time_ns right) {
  time_ns product = 0;
  return __builtin_mul_overflow(left, right, &product) ? kNeverNs : std::min(product, kNeverNs);
}

// For a dividend that is not negative and a positive divisor.
inline time_ns divide_up(time_ns dividend, time_ns divisor) { return (dividend + divisor - 1) / divisor; }

}  // namespace tide::analysis
