/* SPDX-License-Identifier: Apache-2.0 */
/* Execution times by the thread's processor clock, which excludes preemption. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "tide/port.h"

static uint64_t now(void *context) {
  (void)context;
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

const tide_measure_clock_t *tide_port_measure_clock(void) {
  static const tide_measure_clock_t clock = {.now = now, .mask = UINT64_MAX, .hertz = 1000000000u, .of_thread = true};
  return &clock;
}
