/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of tide-timers. Each part prints lines on standard output, each of them a JSON object, and errors on
 * standard error. It returns the exit code. */
#pragma once

#include <stdint.h>

#include "tide/posix_thread.h"

enum { TIMERS_DONE = 0, TIMERS_FAILED = 1, TIMERS_USAGE = 2 };

typedef struct timers_options {
  tide_posix_scheduling_t scheduling;
  const char *policy_name;
  int64_t period_ns;
  int64_t start_ns; /* measure: the first expiry is a period after this time (CLOCK_MONOTONIC) or after the start */
  int64_t lead_ns;  /* measure: limit of the wake-up lead (tide/posix.h); negative: the default */
  uint32_t repetitions;
  const char *out;
  const char *agent_port; /* rclc: UDP port of an agent on this machine */
} timers_options_t;

/* Measures one periodic timer in one executor with one lane. For each expiry, in order, it writes two int64 to the
 * file: the measured latency (clock at the start of the callback minus the expiry on a grid computed here) and the
 * reported latency (tide_callback_t: start_ns - ready_ns). SIGINT and SIGTERM end it early; the file then contains the
 * measurements so far. It prints the lines `started` and `done`. */
int timers_measure(const timers_options_t *options);

/* Measures rclc's timer in a micro-ROS program that has a session with the agent at agent_port. Both the expiry and the
 * reported latency come from rcl_timer_get_time_until_next_call, as in such a program. It fails if the session is lost.
 * It prints the lines `started` and `done`. */
int timers_rclc(const timers_options_t *options);
