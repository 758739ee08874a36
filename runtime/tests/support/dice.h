// SPDX-License-Identifier: Apache-2.0
// Random numbers by seed, and numbers from the environment.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace tide::test {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937_64 engine;
};

inline uint64_t environment(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

}  // namespace tide::test
