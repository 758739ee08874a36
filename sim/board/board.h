// SPDX-License-Identifier: Apache-2.0
// The real binary in the simulated world: sim/workloads/three_chains/mps2 in QEMU instead of the simulated client, in
// lock-step.
//
// QEMU counts instructions as time (-icount), so the board's clock is exact and equals the world's clock. The board's
// line asks the world when it begins to send, and at the time named in the last answer; it does so over two named pipes
// by semihosting, which takes the board no time. The world processes its own events until that time, and answers with
// the bytes for the board and the time of its next event. Thus neither side runs ahead of the other side's next
// possible action, and the load of the host machine has no influence.
//
// sim/mps2/world.h defines the structures that both exchange.
#pragma once

#include <string>
#include <vector>

#include "sim/board/system.h"

namespace tide::sim {

struct Board {
  std::string image;        // ELF
  std::string machine;      // of QEMU
  bool is_program = false;  // run_program sets this
};

// Runs the plan. Throws std::invalid_argument if the plan needs features that the board's world lacks (faults, cuts,
// restarts), and std::runtime_error if the board does not end normally.
Result run_board(const Plan &plan, const Board &board);

// The result of any other program. Its image must contain sim/mps2/line.c, which connects it to the simulated world if
// there is one.
struct ProgramResult {
  struct Sample {
    Time time;  // time at which the agent passed it on
    std::vector<uint8_t> payload;
  };
  std::vector<Sample> samples;
  int exit_code = 0;
};
// Runs until the program ends, or until `samples` samples of the topic have arrived. `echo` is the topic to which each
// sample is published; empty: none. Only the line and the agent of the plan are used.
ProgramResult run_program(const Plan &plan, const Board &board, const std::string &topic, const std::string &echo,
                          size_t samples);

}  // namespace tide::sim
