/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS 10.4 or later. The program links this folder's files, runtime/port/cortex_m/uart.c as the link, a driver for
 * its UART (runtime/port/stm32 or its own, see runtime/port/cortex_m/uart.h), and its kernel: cmake
 * -DFREERTOS_KERNEL_PATH=... -D FREERTOS_CONFIG_PATH=... (docs/porting.md).
 *
 * FreeRTOSConfig.h: configUSE_TASK_NOTIFICATIONS 1, INCLUDE_xTaskGetCurrentTaskHandle 1, INCLUDE_vTaskDelete 1,
 * INCLUDE_uxTaskPriorityGet 1, INCLUDE_vTaskSuspend 1. Interrupts that call the runtime must be allowed to call the
 * kernel (at or below configMAX_SYSCALL_INTERRUPT_PRIORITY). */
#ifndef TIDE_FREERTOS_PLATFORM_H
#define TIDE_FREERTOS_PLATFORM_H

#include "FreeRTOS.h"
#include "task.h"
#include "tide/port.h"

/* Which of a task's notifications its waits sleep on; the program leaves that one to the runtime. */
#ifndef TIDE_FREERTOS_NOTIFICATION
#define TIDE_FREERTOS_NOTIFICATION 0
#endif

/* 1: the program defines int64_t tide_freertos_clock_ns(void), monotonic, from any task or interrupt, finer than the
 * tick. 0: time goes by ticks; somebody must ask for it once in a round of the tick counter (49 days at 1 kHz and 32
 * bits), which a session does every second. */
#ifndef TIDE_FREERTOS_CLOCK
#define TIDE_FREERTOS_CLOCK 0
#endif
#if TIDE_FREERTOS_CLOCK
int64_t tide_freertos_clock_ns(void);
#endif

/* Lanes of one executor at most. */
#ifndef TIDE_FREERTOS_LANES
#define TIDE_FREERTOS_LANES 8
#endif

#define TIDE_TICK_NS (INT64_C(1000000000) / (int64_t)configTICK_RATE_HZ)

#endif
