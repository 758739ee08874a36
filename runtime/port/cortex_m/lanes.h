/* SPDX-License-Identifier: Apache-2.0 */
/* Preemptive lanes on one stack, without an operating system.
 *
 * A lane is an interrupt that software pends when a callback is ready for it, or its next timer is due. The handler
 * runs one round of the lane (at most one callback) and returns. If there is more work, it pends its own interrupt
 * again. So a more urgent lane preempts a callback at any instruction, and a less urgent lane never does. All lanes,
 * the link and the main program use the main stack. Its depth is the sum of the deepest handler of each priority in
 * use, which `tide footprint` computes. (The idea is that of Super-Simple Tasker, QuantumLeaps.)
 *
 * Priorities. TIDE_SCHEDULING_FIFO: ordered by settings.priority (larger is more urgent), and among equals by
 * least_level. Only the order counts. TIDE_SCHEDULING_INHERIT: below all FIFO lanes, ordered by least_level.
 * TIDE_ERROR_FULL: more than TIDE_SOFTWARE_INTERRUPTS - 1 lanes, or more than ten priorities, of which a lane with a
 * budget takes two. TIDE_ERROR_UNSUPPORTED: another scheduling policy, two lanes of the same least_level (useless on
 * one processor), or TIDE_SINGLE_CONTEXT.
 *
 * TIDE_SCHEDULING_SPORADIC: a budget (tide/budget.h), enforced by the wake-up timer. A lane that exhausts its budget
 * continues at low_priority from the next instruction, even within a callback, and rises when the budget is
 * replenished. ARMv7-M allows changing the priority of an active interrupt. But with one stack, lanes that the callback
 * has preempted cannot continue before it returns. If one of them is more urgent than low_priority, the callback
 * continues at the priority of that lane, and its further time is charged to the exhausted lane's next portions. So in
 * the long run the lane gets only its budget, and yields late by at most one callback. If a lane rises while a less
 * urgent callback is above it on the stack, the lane waits for the end of that callback, which meanwhile has the lane's
 * priority. Time of interrupts is charged to the lane that they interrupt; an activation begins when the lane gets the
 * processor.
 *
 * A callback must not wait for a less urgent lane. Any other wait (a reliable publish into full pools) also blocks all
 * less urgent lanes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/budget.h"

/* Memory of budgets: a program with sporadic lanes defines it (TIDE_ERROR_FULL otherwise), for up to `lanes` such lanes
 * with `replenishments` outstanding each:
 *
 *   TIDE_DEFINE_LANE_BUDGETS(2, 8);
 *
 * 16 bytes for each replenishment, about 160 for each lane. */
typedef struct tide_lane_budget {
  tide_budget_t budget;
  size_t lane;
  int64_t look_ns; /* time of the budget's next exhaustion or replenishment */
  bool borrowing;  /* continues without budget, because it blocks a more urgent lane below it on the stack */
  int64_t borrowed_ns;
} tide_lane_budget_t;

typedef struct tide_lane_budgets {
  tide_lane_budget_t *budgets;
  size_t count;
  tide_replenishment_t *replenishments;
  uint16_t each;
} tide_lane_budgets_t;

extern const tide_lane_budgets_t tide_lane_budgets __attribute__((weak));

#define TIDE_DEFINE_LANE_BUDGETS(lanes, replenishments)                                                    \
  static tide_lane_budget_t tide_lane_budget_places[lanes];                                                \
  static tide_replenishment_t tide_lane_replenishments[(lanes) * (replenishments)];                        \
  const tide_lane_budgets_t tide_lane_budgets = {tide_lane_budget_places, lanes, tide_lane_replenishments, \
                                                 replenishments}
