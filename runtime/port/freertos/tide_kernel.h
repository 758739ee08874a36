/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS's definitions for runtime/port/rtos/rtos.h. */
#ifndef TIDE_KERNEL_H
#define TIDE_KERNEL_H

#include "tide_freertos.h"

#define TIDE_KERNEL_LANES TIDE_FREERTOS_LANES
#define TIDE_KERNEL_ONE_SET 0
#define TIDE_KERNEL_LANES_LOCK (TIDE_FREERTOS_CORES == 1)
#define TIDE_KERNEL_ALARM TIDE_FREERTOS_ALARM
#define TIDE_KERNEL_BUDGETS TIDE_FREERTOS_BUDGETS
#define TIDE_KERNEL_REPLENISHMENTS TIDE_FREERTOS_REPLENISHMENTS
#define TIDE_KERNEL_SWITCHES 1
#define TIDE_KERNEL_ARMS_IN_SWITCH 1
#define TIDE_KERNEL_LINK_STACK_BYTES TIDE_FREERTOS_LINK_STACK_BYTES

#if INCLUDE_vTaskPrioritySet
#define TIDE_KERNEL_SETS_PRIORITY 1
#else
#define TIDE_KERNEL_SETS_PRIORITY 0
#endif

#define TIDE_KERNEL_PRIORITY_LEAST 0
#define TIDE_KERNEL_PRIORITY_MOST ((int)configMAX_PRIORITIES - 1)
#define TIDE_KERNEL_PRIORITY_NORMAL ((int)tskIDLE_PRIORITY + 1)
#define TIDE_KERNEL_PRIORITY_LINK ((int)TIDE_FREERTOS_LINK_PRIORITY)
#define TIDE_KERNEL_PRIORITY_KEEPER TIDE_KERNEL_PRIORITY_LINK
#define TIDE_KERNEL_PRIORITY_BUDGET (TIDE_KERNEL_PRIORITY_KEEPER - 1)

typedef struct tide_kernel_task {
  TaskHandle_t handle;
  tide_event_t ended;
} tide_kernel_task_t;
typedef int64_t tide_kernel_stamp_t;
#define tide_kernel_prepare_budgets() TIDE_OK

#endif
