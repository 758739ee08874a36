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
  void (*spin)(void *context); /* is called in the thread; returns after the last sample, or soon after `stop` */
  void (*stop)(void *context); /* is called from another thread */
  void *context;
} timers_run_t;

/* Runs the measurement until it ends, by itself or by SIGINT or SIGTERM, which are blocked from now on. `line` is
 * printed when the thread exists. Returns a code of tide/status.h if the thread could not start. */
int timers_in_thread(const timers_run_t *run, const tide_posix_scheduling_t *scheduling, const char *line,
                     bool *interrupted);

/* Runs a measurement by timers_in_thread with memory locked, and prints `started`. Returns TIMERS_DONE, or prints the
 * reason and returns another code. */
int timers_run(const timers_run_t *run, const timers_options_t *options, bool *interrupted);

/* All pages are mapped before the first expiry, whether locked or not, and stay mapped until the program ends. Returns
 * null after printing the reason if this fails. */
timers_sample_t *timers_allocate(uint32_t repetitions);

/* Returns false after printing the reason if this fails. */
bool timers_write(const timers_sample_t *samples, uint32_t count, const char *path);

#endif
