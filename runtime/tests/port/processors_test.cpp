// SPDX-License-Identifier: Apache-2.0
// The program for testing boards with several processors, on threads of this machine.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "../../port/processors/tide_processors.h"
#include "eventually.h"

namespace processors_test {

std::array<std::thread, TIDE_PROCESSORS_THREADS> threads;

void busy_us(uint32_t us) {
  std::atomic<uint32_t> turns{100 * us};  // atomic, so that the compiler keeps the loop
  while (turns-- > 0) continue;
}

void sleep_ms(uint32_t ms) { tide::test::let_others_run(500 * ms); }

bool start_thread(unsigned index, void (*run)(void *), void *argument, bool) {
  if (threads[index].joinable()) threads[index].join();
  threads[index] = std::thread(run, argument);
  return true;
}

TEST(Processors, KeepOutOfEachOthersWay) {
  tide_processors_board_t board{};
  board.runs = 5000;
  board.busy_us = busy_us;
  board.sleep_ms = sleep_ms;
  board.start_thread = start_thread;
  tide_processors_found_t found{};
  EXPECT_TRUE(tide_processors(&board, &found));
  EXPECT_EQ(found.wrong, 0u);
  for (std::thread &thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace processors_test
