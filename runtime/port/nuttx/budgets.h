/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of lanes (tide/budget.h) on NuttX: between lanes.c, the kernel's note of each switch, and the thread that
 * keeps them. */
#ifndef TIDE_NUTTX_BUDGETS_H
#define TIDE_NUTTX_BUDGETS_H

#include "tide/port.h"

#ifndef TIDE_NUTTX_LANES
#define TIDE_NUTTX_LANES 8
#endif

#ifdef CONFIG_TIDE_BUDGETS
/* Before the first lane of a run. TIDE_ERROR_STATE: of another executor; TIDE_ERROR_FULL: no thread, or no place for
 * another driver of notes (CONFIG_DRIVERS_NOTE_MAX); TIDE_ERROR_UNSUPPORTED: nobody has set the chip's counter going
 * (CONFIG_ARCH_PERF_EVENTS). */
int tide_nuttx_budgets_start(void);
/* A lane with a budget, before its thread is made. TIDE_ERROR_ARGUMENT: a value outside its range; TIDE_ERROR_FULL:
 * more replenishments than CONFIG_TIDE_REPLENISHMENTS. */
int tide_nuttx_budgets_add(tide_lane_t *lane, size_t index);
/* From the lane's own thread, around its run. */
void tide_nuttx_budgets_begin(size_t index);
void tide_nuttx_budgets_end(size_t index);
/* After the last lane has ended. The counters stay. */
void tide_nuttx_budgets_stop(void);
/* What the thread above all lanes does each time that it is woken: sets the priorities, and when to look next. */
void tide_nuttx_budgets_look(void);
#endif

#endif
