// SPDX-License-Identifier: Apache-2.0
// A bounded form of the fuzzer in fuzz/: recorded frames damaged in random ways, and plain noise. Run it under
// sanitizers.
#include <gtest/gtest.h>

#include <random>

#include "dice.h"
#include "exercise.h"
#include "mutate.h"
#include "vectors.h"

namespace xrce_hostile_test {

std::vector<Bytes> recorded_messages() {
  std::vector<Bytes> messages;
  for (const std::string &file : all_vector_files())
    for (const Record &record : load_vectors(file)) messages.push_back(record.bytes);
  return messages;
}

TEST(Hostile, DamagedRecordings) {
  const uint64_t seed = tide::test::environment("TIDE_SEED", 1);
  SCOPED_TRACE("seed " + std::to_string(seed) + " (TIDE_SEED)");
  const std::vector<Bytes> recorded = recorded_messages();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 50000; ++i) {
    Bytes bytes = recorded[random() % recorded.size()];
    mutate(&bytes, recorded[random() % recorded.size()], random);
    exercise_wire(bytes.data(), bytes.size());
  }
}

TEST(Hostile, Noise) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(random() % 200);
    for (uint8_t &byte : bytes) byte = static_cast<uint8_t>(random() % 4 == 0 ? random() : random() % 10);
    exercise_wire(bytes.data(), bytes.size());
  }
}

// Every recorded frame, truncated at every length: each decoder must stop within it.
TEST(Hostile, CutRecordings) {
  for (const Bytes &bytes : recorded_messages()) {
    if (bytes.size() > 200) continue;
    for (size_t count = 0; count < bytes.size(); ++count) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
      exercise_message(cut.data(), cut.size());
    }
  }
}

}  // namespace xrce_hostile_test
