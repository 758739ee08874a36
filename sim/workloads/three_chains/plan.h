/* SPDX-License-Identifier: Apache-2.0 */
/* The plan file that `tide run` writes from system.toml: a microcontroller program would have these numbers compiled
 * in. One line a chain, most urgent first, fields separated by blanks, lines that begin with # are comments:
 *
 *   name level period_ns offset_ns sample_ns act_ns payload_bytes reply_bytes topic reply_topic reliable|best_effort
 */
#ifndef THREE_CHAINS_PLAN_H
#define THREE_CHAINS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_CHAINS 16
#define PLAN_NAME_BYTES 64
#define PLAN_PAYLOAD_BYTES 4096
#define PLAN_INDEX_DIGITS 5
/* A std_msgs/String of n characters takes 4 bytes for the length, n for the characters and one for the NUL. */
#define PLAN_STRING_OVERHEAD_BYTES 5

typedef struct plan_chain {
  char name[PLAN_NAME_BYTES];
  char topic[PLAN_NAME_BYTES], reply_topic[PLAN_NAME_BYTES];
  uint8_t level;
  int64_t period_ns;
  int64_t offset_ns;         /* from the first release of the program to the first expiry of its timer */
  int64_t sample_ns, act_ns; /* execution times of the two callbacks of this program */
  size_t payload_bytes, reply_bytes;
  bool reliable;
} plan_chain_t;

typedef struct plan {
  plan_chain_t chains[PLAN_CHAINS];
  size_t count;
} plan_t;

/* False, with one line on standard error that names the line of the file, when the plan cannot be used. */
bool plan_read(const char *path, plan_t *plan);

#endif
