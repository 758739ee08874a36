/* SPDX-License-Identifier: Apache-2.0 */
/* Connection to the simulated world, the program that started the emulator: files in the folder that the command line
 * names, accessed by semihosting, which takes only the virtual time of the call's instructions. "plan" contains what to
 * run, "up" takes messages to the world, and "down" returns answers (sim/board/board.h). The structures have the same
 * layout on both sides. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_NAME_BYTES 64

typedef enum world_send {
  WORLD_SEND_ASYNCHRONOUS,
  WORLD_SEND_STOCK,
  WORLD_SEND_BLOCKING,
  WORLD_SEND_ANSWERED /* a reliable publish waits for the answer to its HEARTBEAT (sim/README.md) */
} world_send_t;

/* A program on a real board would have these numbers compiled in (`tide generate`). */
typedef struct world_chain {
  char name[WORLD_NAME_BYTES];  /* also the topic of its samples; that of the answers is NAME_reply */
  int64_t period_ns, offset_ns; /* offset_ns: from the system's first release to the first release of this chain */
  int64_t sample_ns, act_ns;    /* execution times of the chain's two callbacks on the board */
  uint32_t payload_bytes, reply_bytes; /* sizes of the serialised messages */
  uint8_t level;
  bool reliable, reply_reliable;
  bool hold; /* while a message of the chain waits for its acknowledgment, nothing less urgent is sent */
  uint32_t zero;
} world_chain_t;

/* The file "plan": this header, then the chains. */
typedef struct world_plan {
  uint32_t bytes; /* size of the whole file */
  uint32_t chain_count, baud, periods, instruction_ns;
  bool batch, lanes, batch_waits;
  uint8_t send; /* a world_send_t */
  int64_t heartbeat_delay_ns;
  int64_t budget_ns, budget_period_ns; /* of each lane; budget_ns 0: no budgets */
} world_plan_t;

typedef struct world_header {
  uint32_t kind, bytes;
  int64_t time_ns;
} world_header_t;

typedef enum world_kind {
  WORLD_TRANSMIT = 1, /* the board begins to send the bytes that follow; answered with a world_answer_t */
  WORLD_EVENT,   /* the time in the last answer is reached; answered with a world_answer_t and the received bytes */
  WORLD_READY,   /* the board is set up; answered when the chains may begin */
  WORLD_BEGIN,   /* the chains begin at the time in the header */
  WORLD_SAMPLED, /* a world_execution_t follows */
  WORLD_ACTED,   /* a world_execution_t follows */
  WORLD_END,     /* a world_ending_t follows */
  WORLD_TIMES,   /* before the end, once for each callback: a line of tide_measurement_line */
  WORLD_BUDGET   /* before the end, once for each lane with a budget: a world_budget_t */
} world_kind_t;

typedef struct world_answer {
  int64_t next_ns; /* time of the next event in the world */
  uint32_t bytes;  /* number of received bytes that follow; read them with world_read */
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

/* Returns the plan; null if there is no world, in which case the board uses its own UART. May be called repeatedly. */
const world_plan_t *world_open(void);
void world_tell(world_kind_t kind, int64_t time_ns, const void *bytes, size_t count);
world_answer_t world_ask(world_kind_t kind, int64_t time_ns, const void *bytes, size_t count);
void world_read(uint8_t *place, size_t count);
