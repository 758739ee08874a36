// SPDX-License-Identifier: Apache-2.0
// The real binary in the simulated world: sim/workloads/three_chains/mps2 in QEMU instead of the simulated client, in
// lock-step.
//
// QEMU counts instructions as time (-icount), so the board's clock is exact and is the world's clock. The board's line
// asks the world, over two named pipes and by semihosting, which takes the board no time: when it begins to send, and
// when the time has come that the last answer named. The world lets its own events happen until that time, and answers
// with the bytes that have arrived and with the time of its next event. So neither is ever ahead of what the other may
// still do, and the load of the machine below changes nothing.
//
// Messages of the board are {u32 kind, u32 bytes, i64 time} and the bytes; answers {i64 next time, u32 bytes, u32 0}
// and the bytes. sim/workloads/three_chains/mps2/world.h has the kinds.
#pragma once

#include <string>
#include <vector>

#include "sim/board/system.h"

namespace tide::sim {

struct Board {
  std::string image;        // ELF
  std::string machine;      // of QEMU
  std::string trace;        // file that receives what an image records that is built with TIDE_TRACE; empty: nowhere
  bool is_program = false;  // run_program sets it
};

// A run of the plan. Throws std::invalid_argument when the plan needs what the board's world has not (faults, cuts,
// restarts), std::runtime_error when the board does not end as it should.
Result run_board(const Plan &plan, const Board &board);

// Any other program, whose image has the line of three_chains (line.c), which asks the world wherever there is one.
struct ProgramResult {
  struct Sample {
    Time time;  // when the agent handed it on
    std::vector<uint8_t> payload;
  };
  std::vector<Sample> samples;
  int exit_code = 0;
};
// Until the program ends or `samples` of the topic have come. echo: each is published there; empty: nowhere. Of the
// plan the line and the agent count.
ProgramResult run_program(const Plan &plan, const Board &board, const std::string &topic, const std::string &echo,
                          size_t samples);

}  // namespace tide::sim
