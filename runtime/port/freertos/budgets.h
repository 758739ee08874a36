/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets of lanes (tide/budget.h) on FreeRTOS: between lanes.c, the alarm of platform.c and the kernel's hook. */
#ifndef TIDE_FREERTOS_BUDGETS_H
#define TIDE_FREERTOS_BUDGETS_H

#include "tide_freertos.h"

/* Of budgets.c. A task above all lanes that looks when a budget is used up or comes back. */
int tide_freertos_budgets_start(void);
/* A lane with its task, before it runs. */
int tide_freertos_budgets_add(tide_lane_t *lane, size_t index, TaskHandle_t task);
void tide_freertos_budgets_stop(void);

/* Of platform.c, in a critical section: set the event at that time; TIDE_FOREVER: not. */
void tide_freertos_look_at_locked(tide_event_t *event, int64_t time_ns);

#endif
