// SPDX-License-Identifier: Apache-2.0
// Tests of costs that headers promise, over a number of objects. Branches are counted, because the tested code is
// compiled with -fsanitize-coverage=trace-pc; every run on any machine therefore gives the same count.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace tide::test {

inline uint64_t branches = 0;

inline uint64_t cost_of(const std::function<void()> &call) {
  const uint64_t before = branches;
  call();
  return branches - before;
}

// If the number doubles, so does the cost, within a tenth and a constant; a quadratic cost would be four times as high.
inline void expect_linear(const char *name, const std::function<uint64_t(size_t)> &cost) {
  uint64_t before = cost(8), first = before;
  for (size_t number = 16; number <= 256; number *= 2) {
    const uint64_t now = cost(number);
    EXPECT_LE(double(now), 2.2 * double(before) + 64) << name << ": " << number << ", before " << before;
    before = now;
  }
  EXPECT_GT(before, first) << name << ": nothing is counted";
}

// If the number doubles, the cost grows by a few steps.
inline void expect_logarithmic(const char *name, const std::function<uint64_t(size_t)> &cost) {
  uint64_t before = cost(8);
  EXPECT_GT(before, 0u) << name << ": nothing is counted";
  for (size_t number = 16; number <= 512; number *= 2) {
    const uint64_t now = cost(number);
    EXPECT_LE(now, before + 16) << name << ": " << number;
    before = now;
  }
}

// Expects the same cost for any number.
inline void expect_constant(const char *name, const std::function<uint64_t(size_t)> &cost) {
  const uint64_t first = cost(8);
  EXPECT_GT(first, 0u) << name << ": nothing is counted";
  for (size_t number = 16; number <= 512; number *= 2) EXPECT_LE(cost(number), first) << name << ": " << number;
}

}  // namespace tide::test
