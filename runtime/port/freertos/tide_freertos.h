/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS 10.4 or later, on one core or several, and the FreeRTOS of ESP-IDF. docs/porting.md says how to build it.
 *
 * FreeRTOSConfig.h: configUSE_TASK_NOTIFICATIONS 1, configSUPPORT_DYNAMIC_ALLOCATION 1,
 * INCLUDE_xTaskGetCurrentTaskHandle 1, INCLUDE_vTaskDelete 1, INCLUDE_uxTaskPriorityGet 1, INCLUDE_vTaskSuspend 1.
 * Interrupts that call the runtime must be allowed to call the kernel (at or below
 * configMAX_SYSCALL_INTERRUPT_PRIORITY).
 *
 * The runtime is called from tasks, and only after vTaskStartScheduler. Before that, a critical section leaves
 * interrupts masked. A lane with TIDE_SCHEDULING_INHERIT has the priority of the task that spins; only lanes with a
 * priority of their own (FIFO, ROUND_ROBIN, SPORADIC) preempt each other. Lanes and the link are tasks with memory from
 * the kernel's heap, which is freed when the call that ends them returns. */
#ifndef TIDE_FREERTOS_H
#define TIDE_FREERTOS_H

#ifdef ESP_PLATFORM
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#else
#include "FreeRTOS.h"
#include "task.h"
#endif
#include "tide/port.h"

TIDE_EXTERN_C_BEGIN

/* Index of the task notification used by waits, reserved for the runtime. The kernel's stream and message buffers also
 * use index 0, so a task that waits for both needs another index here. */
#ifndef TIDE_FREERTOS_NOTIFICATION
#define TIDE_FREERTOS_NOTIFICATION 0
#endif

/* 1: the program defines int64_t tide_freertos_clock_ns(void), which is monotonic, finer than the tick, and callable
 * from any task or interrupt. 0: time is counted in ticks. The tick count must be read at least once per wrap of the
 * tick counter (49 days at 1 kHz and 32 bits); a session reads it every second. Tickless idle needs 1, because the tick
 * count lags when an interrupt ends the idle time. */
#ifndef TIDE_FREERTOS_CLOCK
#define TIDE_FREERTOS_CLOCK 0
#endif
/* 1: waits end at their time, not at a tick. The program defines void tide_freertos_set_alarm(int64_t time_ns). It must
 * call tide_freertos_alarm at that time of its clock, or at once if the time has passed. A new time replaces the
 * previous one. The function is called within a critical section. */
#ifndef TIDE_FREERTOS_ALARM
#define TIDE_FREERTOS_ALARM 0
#endif
#if TIDE_FREERTOS_CLOCK
int64_t tide_freertos_clock_ns(void);
#elif TIDE_FREERTOS_ALARM
#error "TIDE_FREERTOS_ALARM needs TIDE_FREERTOS_CLOCK"
#elif configUSE_TICKLESS_IDLE
#error "configUSE_TICKLESS_IDLE needs TIDE_FREERTOS_CLOCK: the tick count is late in the interrupt that ends a sleep"
#endif
#if TIDE_FREERTOS_ALARM
void tide_freertos_set_alarm(int64_t time_ns);
/* Called from the alarm's interrupt, or by a task in its place. Early and spurious calls are harmless. Cost: linear in
 * the tasks that it wakes. */
void tide_freertos_alarm(void);
#endif

/* Maximum number of lanes of one executor. */
#ifndef TIDE_FREERTOS_LANES
#define TIDE_FREERTOS_LANES 8
#endif

/* The task of the link: it polls the session and runs a custom transport, so that no other task has to. Its default
 * priority is above all lanes; tide_link_address_t.thread_priority chooses another. */
#ifndef TIDE_FREERTOS_LINK_STACK_BYTES
#define TIDE_FREERTOS_LINK_STACK_BYTES 2048u
#endif
#ifndef TIDE_FREERTOS_LINK_PRIORITY
#define TIDE_FREERTOS_LINK_PRIORITY (configMAX_PRIORITIES - 1)
#endif

/* Critical sections with a spinlock, for the multi-core FreeRTOS of ESP-IDF. */
#ifndef TIDE_FREERTOS_SPINLOCK
#ifdef ESP_PLATFORM
#define TIDE_FREERTOS_SPINLOCK 1
#else
#define TIDE_FREERTOS_SPINLOCK 0
#endif
#endif

/* Whether the caller is an interrupt. For kernel ports that cannot tell (POSIX, RISC-V) the program defines the
 * macro. */
#ifndef TIDE_FREERTOS_IN_INTERRUPT
#if defined(ESP_PLATFORM)
#define TIDE_FREERTOS_IN_INTERRUPT() (xPortInIsrContext() != 0)
#elif defined(portCHECK_IF_IN_ISR)
#define TIDE_FREERTOS_IN_INTERRUPT() (portCHECK_IF_IN_ISR() != 0)
#else
#define TIDE_FREERTOS_IN_INTERRUPT() (xPortIsInsideInterrupt() != pdFALSE)
#endif
#endif

/* Number of cores that run tasks: portNUM_PROCESSORS in ESP-IDF, configNUMBER_OF_CORES since kernel V11. */
#if defined(ESP_PLATFORM)
#define TIDE_FREERTOS_CORES portNUM_PROCESSORS
#elif defined(configNUMBER_OF_CORES)
#define TIDE_FREERTOS_CORES configNUMBER_OF_CORES
#else
#define TIDE_FREERTOS_CORES 1
#endif

/* 1: lanes with TIDE_SCHEDULING_SPORADIC. It needs the alarm, one core, INCLUDE_vTaskPrioritySet 1, and in
 * FreeRTOSConfig.h
 *
 *   void tide_freertos_switched_in(void);
 *   #define traceTASK_SWITCHED_IN() tide_freertos_switched_in()
 *
 * Time of interrupts is charged to the lane that they interrupt. Only one executor at a time may have such lanes. */
#ifndef TIDE_FREERTOS_BUDGETS
#define TIDE_FREERTOS_BUDGETS 0
#endif
#ifndef TIDE_FREERTOS_REPLENISHMENTS /* largest number of outstanding replenishments of a lane, 16 bytes each */
#define TIDE_FREERTOS_REPLENISHMENTS 8
#endif
#if TIDE_FREERTOS_BUDGETS
#if !TIDE_FREERTOS_ALARM || TIDE_FREERTOS_CORES > 1
#error "TIDE_FREERTOS_BUDGETS needs TIDE_FREERTOS_ALARM and one core"
#endif
void tide_freertos_switched_in(void);
#endif

TIDE_EXTERN_C_END

#endif
