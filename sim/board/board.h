// SPDX-License-Identifier: Apache-2.0
// The real binary in the simulated world: sim/workloads/three_chains/mps2 in QEMU instead of the simulated client, in
// lock-step.
//
// QEMU counts instructions as time (-icount), so the board's clock is exact and is the world's clock. The board's line
// queries the world (over two named pipes by semihosting, which takes the board no time) when it begins to send, and at
// the time named in the last answer. The world processes its own events until that time, and answers with the received
// bytes and the time of its next event. So neither runs ahead of the other's next possible action, and the load of the
// host machine has no influence.
//
// sim/mps2/world.h has the structures that both exchange.
#pragma once

#include <string>
#include <vector>

#include "sim/board/system.h"

namespace tide::sim {

struct Board {
  std::string image;        // ELF
  std::string machine;      // of QEMU
  bool is_program = false;  // run_program sets it
};

// A run of the plan. Throws std::invalid_argument if the plan needs features that the board's world lacks (faults,
// cuts, restarts), std::runtime_error if the board does not end normally.
Result run_board(const Plan &plan, const Board &board);

// Any other program whose image contains sim/mps2/line.c, which uses the world if there is one.
struct ProgramResult {
  struct Sample {
    Time time;  // time at which the agent passed it on
    std::vector<uint8_t> payload;
  };
  std::vector<Sample> samples;
  int exit_code = 0;
};
// Runs until the program ends or `samples` of the topic have arrived. echo: topic to which each is published; empty:
// none. Only the plan's line and agent are used.
ProgramResult run_program(const Plan &plan, const Board &board, const std::string &topic, const std::string &echo,
                          size_t samples);

}  // namespace tide::sim
