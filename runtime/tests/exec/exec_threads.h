// SPDX-License-Identifier: Apache-2.0
// What random programs on real threads are made of: a platform, dice, and seeds that replay.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include "threads.h"

namespace exec_threads {

using Host = tide::test::Threads;

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine(seed) {}
  int between(int low, int high) { return low + static_cast<int>(engine() % static_cast<uint64_t>(high - low + 1)); }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine;
};

inline uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

}  // namespace exec_threads
