/* SPDX-License-Identifier: Apache-2.0 */
/* How the system schedules a lane of an executor: a thread on POSIX and on RTOSes, a task in the
 * simulator. A zeroed structure is a lane for all levels with the scheduling of the thread that starts it. */
#ifndef TIDE_LANE_H
#define TIDE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tide_scheduling {
  TIDE_SCHEDULING_INHERIT,     /* the scheduling of the thread that starts the lanes */
  TIDE_SCHEDULING_NORMAL,      /* shares the processor with all other threads; priority is not used */
  TIDE_SCHEDULING_FIFO,        /* fixed priority; no time slices among equal priorities */
  TIDE_SCHEDULING_ROUND_ROBIN, /* fixed priority, in turns with threads of the same priority */
  TIDE_SCHEDULING_DEADLINE,    /* earliest deadline first with a bandwidth: runtime_ns in every period_ns */
  TIDE_SCHEDULING_SPORADIC     /* fixed priority while it has budget, runtime_ns in every period_ns (tide/budget.h) */
} tide_scheduling_t;

#define TIDE_ON_PROCESSOR(number) ((uint16_t)((number) + 1)) /* processors are counted from 0, as in the system */

typedef struct tide_lane_settings {
  const char *name; /* thread name for debuggers; null: "tide lane". Must outlive the lane. */
  /* The lane serves callbacks and frames from this level (TIDE_PRIORITY_LEVEL) up to, but not including, the next
   * higher least_level of its executor. Lanes of the same least_level share their ready callbacks. The lowest lane of
   * an executor also serves the levels below it. */
  uint8_t least_level;
  tide_scheduling_t scheduling;
  int priority; /* for FIFO, round robin and sporadic scheduling, in the system's numbers: 1..99 on Linux */
  int64_t runtime_ns, deadline_ns, period_ns; /* for deadline and sporadic scheduling; deadline_ns 0: the period */
  int low_priority;                /* for sporadic scheduling: priority without budget, below `priority`. POSIX, Zephyr:
                                      0 means NORMAL */
  uint16_t maximum_replenishments; /* for sporadic scheduling: largest number of outstanding replenishments; 0: 16 */
  uint16_t processor;              /* TIDE_ON_PROCESSOR(number); 0: any, as deadline scheduling requires */
  size_t stack_bytes;              /* 0: the system's default */
  /* Applies when the system refuses the scheduling to this user. False: no lane runs, and the error is
   * TIDE_ERROR_NOT_PERMITTED. True: the lane runs with normal scheduling and no budget. Lanes on one processor then
   * share the processor instead of preempting each other, so less urgent callbacks delay urgent ones. */
  bool may_run_normally;
} tide_lane_settings_t;

#endif
