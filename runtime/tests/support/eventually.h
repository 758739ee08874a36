// SPDX-License-Identifier: Apache-2.0
// Waiting without a clock, for tests of real threads and sockets: a wait ends with an event, or fails when this process
// has used a certain processor time. Other load of the machine has no effect, and the time limit of the test stage
// detects hangs.
#pragma once

#include <ctime>
#include <thread>

namespace tide::test {

inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Returns false if it gave up.
template <typename Condition> bool eventually(Condition condition, double patience_s = 20) {
  const double begin_s = processor_seconds();
  while (!condition()) {
    if (processor_seconds() - begin_s > patience_s) return false;
    std::this_thread::yield();
  }
  return true;
}

// Yields the processor this number of times.
inline void let_others_run(unsigned long turns) {
  for (; turns > 0; turns--) std::this_thread::yield();
}

}  // namespace tide::test
