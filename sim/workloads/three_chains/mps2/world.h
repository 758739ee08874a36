/* SPDX-License-Identifier: Apache-2.0 */
/* Connection to the program that started the emulator, by semihosting, which takes only the virtual time of the call's
 * instructions: files in the folder named on the command line. "up" takes messages, "down" returns answers
 * (sim/board/board.h). */
#ifndef TIDE_FIRMWARE_WORLD_H
#define TIDE_FIRMWARE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum world_kind {
  WORLD_TRANSMIT = 1, /* bytes begin to be sent; answered */
  WORLD_EVENT,        /* the time in the last answer is reached; answered with received bytes */
  WORLD_READY,        /* everything is set up; answered when the chains may begin */
  WORLD_BEGIN,        /* at the time in the header */
  WORLD_SAMPLED,      /* world_execution_t */
  WORLD_ACTED,        /* world_execution_t */
  WORLD_END,          /* world_ending_t */
  WORLD_TIMES,        /* a line of tide_measurement_line, for each callback, before the end */
  WORLD_BUDGET        /* world_budget_t, for each lane with a budget, before the end */
} world_kind_t;

typedef struct world_answer {
  int64_t next_ns; /* of the world's next event */
  uint32_t bytes;  /* number of following bytes: world_read */
  uint32_t zero;
} world_answer_t;

typedef struct world_execution {
  uint32_t chain, index;
  int64_t start_ns, end_ns;
} world_execution_t;

typedef struct world_ending {
  uint32_t publish_failures, strangers, masked_maximum, stack_bytes;
} world_ending_t;

typedef struct world_budget {
  uint32_t level, zero;                              /* lowest level of the lane */
  uint64_t exhaustions, used_ns, low_ns, overrun_ns; /* as in tide_budget_counters_t */
} world_budget_t;

/* The plan's text; null without a world: then the board has its own UART. May be called again. */
const char *world_open(void);
void world_tell(world_kind_t kind, int64_t time_ns, const void *bytes, size_t count);
world_answer_t world_ask(world_kind_t kind, int64_t time_ns, const void *bytes, size_t count);
void world_read(uint8_t *place, size_t count);

#endif
