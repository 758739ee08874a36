/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of tide-timers. Each prints one JSON object per line on standard output and errors on standard error, and
 * returns the exit code. */
#ifndef TIDE_TIMERS_H
#define TIDE_TIMERS_H

#include <stdint.h>

#include "tide/posix_thread.h"

#define TIMERS_CPUS_MAXIMUM 256

enum { TIMERS_DONE = 0, TIMERS_FAILED = 1, TIMERS_USAGE = 2, TIMERS_NOT_PERMITTED = 3 };

typedef struct timers_options {
  tide_posix_scheduling_t scheduling;
  const char *policy_name;
  int64_t period_ns;
  int64_t start_ns; /* measure: the first expiry is a period after this time on CLOCK_MONOTONIC, or after now */
  int64_t lead_ns;  /* measure: limit of the wake-up lead (tide/posix.h); negative: its default */
  uint32_t repetitions;
  const char *out;
  const char *agent_port; /* rclc: UDP port of an agent on this machine */
  int percent;            /* load */
  int cpus[TIMERS_CPUS_MAXIMUM];
  int cpu_count;
  int thread; /* schedule: the thread's id */
} timers_options_t;

/* One periodic timer in one executor with one lane. Writes two int64 for each expiry to the file, in order: measured
 * latency (clock at the start of the callback minus the expiry on a grid computed here) and reported latency
 * (tide_callback_t: start_ns - ready_ns). SIGINT and SIGTERM end it early; the file then has the measurements so far.
 * Lines: started, done. */
int timers_measure(const timers_options_t *options);

/* Measures rclc's timer in a micro-ROS program with a session to the agent at agent_port. Both the expiry and the
 * reported latency come from rcl_timer_get_time_until_next_call, as in such a program. Fails if the session is lost.
 * Lines: started, done. */
int timers_rclc(const timers_options_t *options);

/* Uses `percent` of each of the processors, by one normal thread on each, until SIGINT or SIGTERM. Lines: started, load
 * (twice a second: processor time consumed by each thread since the start). */
int timers_load(const timers_options_t *options);

/* Tests whether a thread may have this scheduling, with an idle thread. */
int timers_check(const timers_options_t *options);

/* Gives SCHED_DEADLINE to a thread of another process, because cyclictest cannot set it itself. */
int timers_schedule(const timers_options_t *options);

#endif
