/* SPDX-License-Identifier: Apache-2.0 */
/* The port for kernels with tasks: what a kernel has to provide, and what the port provides in return.
 *
 *   platform.c   events, waits that end at their time   FreeRTOS, Zephyr; NuttX has the portable form of port/posix
 *   lanes.c      a task for each lane, locks, budgets   all three
 *   link.c       a task that polls the session          FreeRTOS, Zephyr; NuttX has two threads on a device
 *
 * A kernel has a folder beside this one with its adaptor (freertos.c, zephyr.c, nuttx.c), which defines the functions
 * below, and a header tide_kernel.h, which defines:
 *
 *   TIDE_KERNEL_LANES             lanes of one executor at most
 *   TIDE_KERNEL_ONE_SET           1: stacks are static, so lanes of one executor at a time
 *   TIDE_KERNEL_LANES_LOCK        1: one processor, and the scheduler can be locked (tide_platform_t.lanes_enter)
 *   TIDE_KERNEL_ALARM             1: waits end by tide_kernel_set_alarm_locked; 0: by the kernel's own time limits
 *   TIDE_KERNEL_SETS_PRIORITY     0: the kernel cannot change priorities, so there are no locks
 *   TIDE_KERNEL_PRIORITY_*        LEAST and MOST of lanes, NORMAL (TIDE_SCHEDULING_NORMAL), LINK (of its task)
 *   TIDE_KERNEL_HAS_SPORADIC      1: TIDE_SCHEDULING_SPORADIC is the kernel's own
 *   TIDE_KERNEL_BUDGETS           1: lanes with TIDE_SCHEDULING_SPORADIC, on one processor; then also
 *   TIDE_KERNEL_REPLENISHMENTS    outstanding of a lane at most
 *   TIDE_KERNEL_SWITCHES          1: the kernel reports switches of tasks; 0: it counts the time of each task
 *   TIDE_KERNEL_ARMS_IN_SWITCH    1: ... and the alarm can be set from that report
 *   TIDE_KERNEL_LOOK_NS           longest time between two looks at a lane that wants the processor; none: any
 *   TIDE_KERNEL_PRIORITY_KEEPER   of the task that keeps budgets, above all lanes with one (.._PRIORITY_BUDGET at most)
 *   tide_kernel_task_t            the kernel's part of a task
 *   tide_kernel_stamp_t           up to where a task's time is charged
 *
 * Priorities count as those of lanes: larger is more urgent. An adaptor converts them where its kernel counts
 * downwards. Functions that end in _locked are called in the section of tide_kernel_enter. */
#ifndef TIDE_RTOS_H
#define TIDE_RTOS_H

#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"
#include "tide_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- platform.c needs ---- */

/* As the members of tide_platform_t; from tasks and interrupts. Sections nest; a task that was woken within one gets
 * the processor when the outermost ends. */
int64_t tide_kernel_now_ns(void *context);
uintptr_t tide_kernel_enter(void *context);
void tide_kernel_exit(void *context, uintptr_t state);
uintptr_t tide_kernel_lanes_enter(void *context); /* TIDE_KERNEL_LANES_LOCK */
void tide_kernel_lanes_exit(void *context, uintptr_t state);

/* Calls tide_rtos_wait with what the calling task sleeps on. */
int tide_kernel_event_wait(void *context, tide_event_t *event, int64_t deadline_ns);
/* Sleep until the waiter is woken or that time has come. May end early. A wake that comes first ends the sleep. */
void tide_kernel_sleep(void *waiter, int64_t until_ns);
void tide_kernel_wake_locked(void *waiter);
/* Call tide_rtos_alarm at that time, or at once when it has passed, in place of the time set before. */
void tide_kernel_set_alarm_locked(int64_t time_ns);

/* ---- lanes.c and link.c need ---- */

typedef struct tide_rtos_task {
  void (*run)(void *argument); /* these two are set before the start */
  void *argument;
  tide_kernel_task_t kernel;
} tide_rtos_task_t;

/* Tasks beside the lanes, whose slots are their indexes. */
enum { TIDE_RTOS_LINK = TIDE_KERNEL_LANES, TIDE_RTOS_KEEPER };

/* A task that calls run(argument) once. Its priority is given apart, as it may be another than that of the settings.
 * TIDE_ERROR_ARGUMENT: there is no such processor. TIDE_ERROR_FULL: no memory. */
int tide_kernel_start(tide_rtos_task_t *task, size_t slot, const tide_lane_settings_t *settings, int priority);
/* Until run has returned and the task's memory is free: at once, not when an idle task runs. */
void tide_kernel_join(tide_rtos_task_t *task);
void *tide_kernel_self(void); /* the running task */
int tide_kernel_priority(void);
void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority); /* null: the running task */

/* Budgets. Time that a task has used since the stamp, which then stands for now; of a kernel that reports switches,
 * since the stamp whoever ran. */
int64_t tide_kernel_consumed_ns(tide_kernel_stamp_t *stamp, void *task);
#ifndef tide_kernel_prepare_budgets
int tide_kernel_prepare_budgets(void); /* before the first lane with a budget; an error: the kernel cannot */
#endif
/* In the section of tide_kernel_mask (by default that of the platform): wake the keeper at that time, in place of the
 * time set before. TIDE_FOREVER: not. By default by the alarm and an event of platform.c. */
void tide_kernel_look_at_masked(int64_t time_ns);
void tide_kernel_wake_keeper(void);
void tide_kernel_await_look(void);
#ifndef tide_kernel_mask
#define tide_kernel_mask() tide_kernel_enter(NULL)
#define tide_kernel_unmask(state) tide_kernel_exit(NULL, state)
#endif

/* ---- the port provides ---- */

/* Wait for the event; `waiter` wakes the caller. Returns as tide_platform_t.event_wait. */
int tide_rtos_wait(tide_event_t *event, int64_t deadline_ns, void *waiter);
/* From the interrupt of the alarm, or a task that stands for it. Earlier calls and calls that were not asked for are
 * harmless. Cost: linear in the tasks that it wakes. */
void tide_rtos_alarm(void);
/* From the kernel: this task gets the processor; null: some other one. Masks by itself. O(lanes with a budget). */
void tide_rtos_switched(const void *task);

/* ---- a board provides, with TIDE_LINK_SYSTEM=1 ---- */

/* Its own transport for the kind of link that a program names, called by the link's task. Null: there is none of this
 * kind, or the address is not known. */
const tide_custom_transport_t *tide_rtos_transport(const tide_link_address_t *address);

#ifdef __cplusplus
}
#endif
#endif
