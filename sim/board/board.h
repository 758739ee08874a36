// SPDX-License-Identifier: Apache-2.0
// A real binary in the simulated world: an image in QEMU takes the place of the simulated client, in lock-step. The
// image of a plan is built from sim/workloads/three_chains/mps2.
//
// QEMU derives time from the number of instructions (-icount), so the board's clock is exact and equals the world's
// clock. The board's line driver sends a request to the world when it begins to transmit, and at the time that the last
// answer named. Requests and answers go through two named pipes by semihosting, which takes the board no time. The
// world processes its events up to the time of the request. It answers with the bytes for the board and the time of its
// next event. Neither side therefore runs ahead of the other side's next possible action, and the load of the host
// machine has no influence.
//
// sim/mps2/world.h defines the structures that board and world exchange.
#pragma once

#include <string>
#include <vector>

#include "sim/board/system.h"

namespace tide::sim {

struct Board {
  std::string image;        // ELF
  std::string machine;      // name of QEMU's machine type
  bool is_program = false;  // run_program sets this
};

// Runs the plan. Throws std::invalid_argument if the plan needs features that the board's world lacks (faults, cuts,
// restarts), and std::runtime_error if the board does not end normally.
Result run_board(const Plan &plan, const Board &board);

// The result of any other program. Its image must contain sim/mps2/line.c, which connects the program to the simulated
// world.
struct ProgramResult {
  struct Sample {
    Time time;  // time at which the agent published it in ROS 2
    std::vector<uint8_t> payload;
  };
  std::vector<Sample> samples;
  int exit_code = 0;
};
// Runs until the program ends, or until `samples` samples of the topic have arrived. Each sample is also published on
// the topic `echo`, unless this name is empty. Of the plan, only the line and the agent are used.
ProgramResult run_program(const Plan &plan, const Board &board, const std::string &topic, const std::string &echo,
                          size_t samples);

}  // namespace tide::sim
