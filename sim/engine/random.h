// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine: xoshiro256**, seeded by splitmix64. Distributions of the standard
// library are not used, because their results differ between implementations.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tide::sim {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t &word : state_) word = split(seed);
  }
  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  // In 0..bound-1; 0 if bound is 0.
  uint64_t below(uint64_t bound) {
    return bound == 0 ? 0 : static_cast<uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  // Both ends are included.
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(below(static_cast<uint64_t>(most - least) + 1));
  }
  bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability; }

 private:
  __extension__ typedef unsigned __int128 Wide;
  static uint64_t rotate(uint64_t value, int count) { return value << count | value >> (64 - count); }
  static uint64_t split(uint64_t &seed) {
    seed += 0x9E3779B97F4A7C15u;
    uint64_t mixed = seed;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 31;
  }
  uint64_t state_[4];
};

}  // namespace tide::sim
