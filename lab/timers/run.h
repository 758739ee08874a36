/* SPDX-License-Identifier: Apache-2.0 */
/* A measurement in a thread of its own, and its samples. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "timers.h"

typedef struct timers_sample {
  int64_t measured_ns, reported_ns;
} timers_sample_t;

typedef struct timers_run {
  void (*spin)(void *context); /* runs in the thread; returns after the last sample or soon after `stop` */
  void (*stop)(void *context); /* called by another thread */
  void *context;
} timers_run_t;

/* Runs the measurement until it ends by itself, or until SIGINT or SIGTERM ends it (*interrupted is then true). These
 * signals stay blocked after the call. `line` is printed when the thread exists. Returns TIDE_OK, or another code of
 * tide/status.h if the thread could not be started. */
int timers_in_thread(const timers_run_t *run, const tide_posix_scheduling_t *scheduling, const char *line,
                     bool *interrupted);

/* Locks the memory, runs the measurement with timers_in_thread, and prints the line `started`. Returns TIMERS_DONE, or
 * prints the reason and returns another code. */
int timers_run(const timers_run_t *run, const timers_options_t *options, bool *interrupted);

/* Allocates samples that are never freed. Their pages are mapped before this returns, even if memory cannot be locked.
 * If this fails, it prints the reason and returns null. */
timers_sample_t *timers_allocate(uint32_t repetitions);

/* Writes the samples to the file. If this fails, it prints the reason and returns false. */
bool timers_write(const timers_sample_t *samples, uint32_t count, const char *path);
