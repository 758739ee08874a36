/* SPDX-License-Identifier: Apache-2.0 */
/* What the program measures of itself beside latencies: execution times of its callbacks, as `tide measured` reads
 * them, and what became of the budgets of its lanes. */
#ifndef THREE_CHAINS_MEASURES_H
#define THREE_CHAINS_MEASURES_H

#include <rclc/executor.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tide/executor.h>

#include "plan.h"

/* What callbacks of the calling thread have executed. */
typedef struct measures_clock {
  int64_t (*now_ns)(void);
} measures_clock_t;

/* Before all others; clock: outlives the program. */
void measures_begin(measures_clock_t *clock);
/* The times of a callback, told as CHAIN/CALLBACK. After it was added to the executor; number: its place in the plan.
 */
void measures_times_of(rclc_executor_t *executor, size_t number, const plan_t *plan, tide_callback_t *callback);
/* A line for each callback on standard output, after the executor has come to its end. */
void measures_print_times(void);

/* Put the calling thread under a budget at this SCHED_FIFO priority; without budget it shares as normal threads do.
 * Where it waits it is taken for one that waits for the processor (tide/budget_posix.h). False, with one line on
 * standard error, when the system refuses. */
bool measures_take_budget(int priority, int64_t budget_ns, int64_t period_ns);
/* Keep the counters of that, or of all lanes of the executor while they run. */
void measures_note_budgets(rclc_executor_t *executor);
/* A list of JSON. */
void measures_print_budgets(void);

#endif
