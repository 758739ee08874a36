// SPDX-License-Identifier: Apache-2.0
// Damage to recorded messages, by seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

inline void mutate(std::vector<uint8_t> *bytes, const std::vector<uint8_t> &other, std::mt19937_64 &random) {
  static const uint8_t interesting[] = {0x00, 0x01, 0x02, 0x7D, 0x7E, 0x7F, 0x80, 0xFE, 0xFF};
  for (uint64_t times = 1 + random() % 6; times > 0; --times) {
    if (bytes->empty()) bytes->push_back(0);
    const size_t at = random() % bytes->size();
    const auto place = bytes->begin() + static_cast<ptrdiff_t>(at);
    switch (random() % 7) {
      case 0: (*bytes)[at] ^= static_cast<uint8_t>(1u << random() % 8); break;
      case 1: (*bytes)[at] = interesting[random() % sizeof interesting]; break;
      case 2: (*bytes)[at] = static_cast<uint8_t>(random()); break;
      case 3: bytes->resize(at); break;
      case 4: bytes->insert(place, static_cast<uint8_t>(random())); break;
      case 5: bytes->erase(place); break;
      default: bytes->insert(place, other.begin(), other.begin() + static_cast<ptrdiff_t>(random() % other.size()));
    }
  }
}
