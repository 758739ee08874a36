/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a run: a program on a real board would have these numbers compiled in (`tide generate`). Here they are
 * read by semihosting from the file "plan" in the folder given to the emulator: words and values, then a line for each
 * chain. */
#ifndef TIDE_FIRMWARE_PLAN_H
#define TIDE_FIRMWARE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#ifndef PLAN_CHAINS
#define PLAN_CHAINS 16
#endif
#define PLAN_NAME_BYTES 64
#ifndef PLAN_PAYLOAD_BYTES
#define PLAN_PAYLOAD_BYTES 4096
#endif

typedef struct plan_chain {
  char name[PLAN_NAME_BYTES], topic[PLAN_NAME_BYTES], reply_topic[PLAN_NAME_BYTES];
  uint8_t level;
  int64_t period_ns, offset_ns;        /* offset: its first release after that of the system */
  int64_t sample_ns, act_ns;           /* execution times of its two callbacks here */
  uint32_t payload_bytes, reply_bytes; /* as serialised */
  bool reliable, reply_reliable;
  bool hold; /* nothing less urgent is sent while a message of it waits for its acknowledgment */
} plan_chain_t;

typedef enum plan_send {
  PLAN_SEND_ASYNCHRONOUS,
  PLAN_SEND_STOCK,
  PLAN_SEND_BLOCKING,
  PLAN_SEND_ANSWERED /* reliable: until the HEARTBEAT is answered, as the paper's baseline (sim/README.md) */
} plan_send_t;

typedef struct plan {
  bool batch, lanes, batch_waits;
  plan_send_t send;
  uint32_t baud, periods, instruction_ns;
  int64_t heartbeat_delay_ns;
  int64_t budget_ns, budget_period_ns; /* of each lane; 0: none */
  uint32_t count;
  plan_chain_t chains[PLAN_CHAINS];
} plan_t;

/* False: there is no plan, or it contains unknown words. */
bool plan_read(const char *text, plan_t *plan);

#endif
