/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the callbacks measured and prints it from a thread of its own, so that the real-time thread neither
 * formats nor writes. What a board does of a chain's instance is one line of JSON on standard output. */
#ifndef THREE_CHAINS_RECORDER_H
#define THREE_CHAINS_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

/* One run of a callback, on CLOCK_MONOTONIC; 0: it did not get to. cpu: its processor time. */
typedef struct record {
  int64_t start_ns, end_ns, cpu_ns;
} record_t;

/* Starts the printing thread. Call before the program raises its own priority, which threads inherit. The plan must
 * outlive the recorder. */
bool recorder_start(const plan_t *plan);
/* Nominal expiries count from here. */
void recorder_begin(int64_t first_release_ns);
record_t *recorder_at(const plan_callback_t *callback, uint32_t index);
/* The last callback of the instance on this board has ended; its records do not change any more. From a real-time
 * thread, any number of them. */
void recorder_finish(size_t chain, uint32_t index);
/* All instances of all chains that begin here. */
bool recorder_is_complete(void);
/* Prints the rest, then of the chains that begin here a line for each instance that did not finish (lost) or never
 * started, because its timer had no chance to run in its period (skipped), and ends the thread. Instances that were not
 * released until now do not count. */
void recorder_stop(int64_t now_ns);

#endif
