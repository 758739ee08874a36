/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of lanes (tide/budget.h) on Zephyr: between lanes.c and the thread that keeps them. */
#ifndef TIDE_ZEPHYR_BUDGETS_H
#define TIDE_ZEPHYR_BUDGETS_H

#include <zephyr/kernel.h>

#include "tide/port.h"

/* The least urgent thread is no lane of the idle thread's: without budget 0 is as NORMAL. */
static inline int tide_zephyr_priority(int priority) {
  return CONFIG_NUM_PREEMPT_PRIORITIES - (priority < 1 ? 1 : priority);
}

#ifdef CONFIG_TIDE_BUDGETS
/* Begins anew: no lane has a budget. */
void tide_zephyr_budgets_clear(void);
/* A lane with a budget, before its thread is made. TIDE_ERROR_ARGUMENT: a value outside its range; TIDE_ERROR_FULL:
 * more replenishments than CONFIG_TIDE_REPLENISHMENTS. */
int tide_zephyr_budgets_add(tide_lane_t *lane, size_t index);
/* Its thread, before it runs; nothing for a lane without a budget. */
void tide_zephyr_budgets_bind(size_t index, k_tid_t thread);
/* Around the run of the lanes. */
void tide_zephyr_budgets_start(void);
void tide_zephyr_budgets_stop(void);
#else
static inline void tide_zephyr_budgets_bind(size_t index, k_tid_t thread) {
  ARG_UNUSED(index);
  ARG_UNUSED(thread);
}
static inline void tide_zephyr_budgets_start(void) {}
static inline void tide_zephyr_budgets_stop(void) {}
#endif

#endif
