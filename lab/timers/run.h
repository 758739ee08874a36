/* SPDX-License-Identifier: Apache-2.0 */
/* A measurement in a thread of its own, and its samples. */
#ifndef TIDE_TIMERS_RUN_H
#define TIDE_TIMERS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "timers.h"

typedef struct timers_sample {
  int64_t measured_ns, reported_ns;
} timers_sample_t;

typedef struct timers_run {
  void (*spin)(void *context); /* in the thread; returns when all is measured, or soon after `stop` */
  void (*stop)(void *context); /* from another thread */
  void *context;
} timers_run_t;

/* Until it has ended, by itself or by SIGINT or SIGTERM, which are blocked from now on. `line` is printed when
 * the thread is there. A code of tide/status.h: why there was none. */
int timers_in_thread(const timers_run_t *run, const tide_posix_scheduling_t *scheduling, const char *line,
                     bool *interrupted);

/* The same as a measurement, with memory locked and the line `started`. TIMERS_DONE, or said why not. */
int timers_run(const timers_run_t *run, const timers_options_t *options, bool *interrupted);

/* Every page is there before the first expiry, locked or not; they stay as long as the program. Null: said why. */
timers_sample_t *timers_allocate(uint32_t repetitions);

/* False: said why. */
bool timers_write(const timers_sample_t *samples, uint32_t count, const char *path);

#endif
