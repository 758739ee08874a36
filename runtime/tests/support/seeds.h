// SPDX-License-Identifier: Apache-2.0
// Seeds of property tests: a new one in each run, or the one in TIDE_SEED; failures print the seed.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace tide::test {

inline unsigned seed_of_run() {
  const char *given = std::getenv("TIDE_SEED");
  return given == nullptr ? std::random_device{}() : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}
inline std::string replay_of(unsigned seed) { return "replay with TIDE_SEED=" + std::to_string(seed); }

}  // namespace tide::test
