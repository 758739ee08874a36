/* SPDX-License-Identifier: Apache-2.0 */
/* ThreadX 6 on one core: settings, and the definitions for runtime/port/rtos/rtos.h.
 *
 * Threads call the runtime, after tx_kernel_enter, and so do interrupts that ThreadX masks. Priorities are those of
 * lanes: larger is more urgent, so priority p is ThreadX's TX_MAX_PRIORITIES - 1 - p. Stacks are static, so only one
 * executor at a time may have lanes. Budgets are not supported. */
#ifndef TIDE_KERNEL_H
#define TIDE_KERNEL_H

#include "tide/port.h"
#include "tx_api.h"

TIDE_EXTERN_C_BEGIN

#ifndef TIDE_THREADX_LANES /* maximum number of lanes of one executor */
#define TIDE_THREADX_LANES 8
#endif
#ifndef TIDE_THREADX_LANE_STACK_BYTES /* stack of each lane */
#define TIDE_THREADX_LANE_STACK_BYTES 4096u
#endif
#ifndef TIDE_THREADX_LINK_STACK_BYTES
#define TIDE_THREADX_LINK_STACK_BYTES 2048u
#endif
#ifndef TIDE_THREADX_LINK_PRIORITY /* of the link's thread; the default is above all lanes */
#define TIDE_THREADX_LINK_PRIORITY (TX_MAX_PRIORITIES - 1)
#endif
#ifndef TIDE_THREADX_SLICE_TICKS /* time slice of lanes with TIDE_SCHEDULING_ROUND_ROBIN */
#define TIDE_THREADX_SLICE_TICKS 1u
#endif

/* 0: time is counted in ticks, and waits end at a tick. The tick count must be read at least once per wrap of ThreadX's
 * counter (49 days at 1 kHz); a session reads it every second.
 * 1: the program defines the following clock, which is monotonic and callable from any context, and an alarm. At that
 * time of its clock, or at once if the time has passed, the alarm must call tide_threadx_alarm, from an interrupt or a
 * thread. A new time replaces the previous one. Early and spurious calls are harmless. */
#ifndef TIDE_THREADX_ALARM
#define TIDE_THREADX_ALARM 0
#endif
int64_t tide_threadx_clock_ns(void);
void tide_threadx_set_alarm(int64_t time_ns); /* called within a critical section */
void tide_threadx_alarm(void);                /* cost: linear in the threads that it wakes */

#define TIDE_KERNEL_LANES TIDE_THREADX_LANES
#define TIDE_KERNEL_ONE_SET 1
#define TIDE_KERNEL_LANES_LOCK 1
#define TIDE_KERNEL_ALARM TIDE_THREADX_ALARM
#define TIDE_KERNEL_SETS_PRIORITY 1
#define TIDE_KERNEL_BUDGETS 0
#define TIDE_KERNEL_LINK_STACK_BYTES TIDE_THREADX_LINK_STACK_BYTES
#define TIDE_KERNEL_PRIORITY_LEAST 0
#define TIDE_KERNEL_PRIORITY_MOST (TX_MAX_PRIORITIES - 1)
#define TIDE_KERNEL_PRIORITY_NORMAL 0
#define TIDE_KERNEL_PRIORITY_LINK TIDE_THREADX_LINK_PRIORITY
#if !TIDE_THREADX_ALARM
#define TIDE_KERNEL_TICK_HZ TX_TIMER_TICKS_PER_SECOND
#define TIDE_KERNEL_TICK_MAXIMUM ((ULONG)-1)
#endif

typedef struct tide_kernel_task {
  TX_THREAD thread;
  tide_event_t ended;
} tide_kernel_task_t;
typedef int64_t tide_kernel_stamp_t;

TIDE_EXTERN_C_END
#endif
