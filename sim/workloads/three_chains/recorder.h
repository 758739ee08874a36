/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the callbacks measured and prints it from a thread of its own, so that the real-time thread neither
 * formats nor writes. Each finished chain instance is one line of JSON on standard output. */
#ifndef THREE_CHAINS_RECORDER_H
#define THREE_CHAINS_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One instance of a chain, on CLOCK_MONOTONIC; 0 where it did not get to. */
typedef struct record {
  int64_t release_ns; /* the nominal expiry of its timer */
  int64_t sample_start_ns, sample_end_ns, sample_cpu_ns;
  int64_t act_start_ns, act_end_ns, act_cpu_ns; /* cpu: processor time of the callback */
} record_t;

/* Starts the printing thread. Call before the program raises its own priority, which threads inherit. */
bool recorder_start(size_t chain_count, const char *const *names, uint32_t instances);
record_t *recorder_at(size_t chain, uint32_t index);
/* The instance is finished; its record does not change any more. From a real-time thread, any
 * number of them. */
void recorder_finish(size_t chain, uint32_t index);
size_t recorder_finished(void);
/* Prints the rest, then a line for each instance that never finished (lost) or never started, because its timer had no
 * chance to run in its period (skipped), and ends the thread. */
void recorder_stop(uint32_t released);

#endif
