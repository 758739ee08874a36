/* SPDX-License-Identifier: Apache-2.0 */
/* The port for kernels with tasks: functions that a kernel must provide, and those that the port provides.
 *
 *   platform.c   events, waits that end at their time   all but NuttX, which has the portable form of port/posix
 *   lanes.c      a task for each lane, locks, budgets   all
 *   link.c       a task that polls the session          all but NuttX, which has two threads on a device
 *
 * Each kernel has a folder next to this one. It contains an adaptor (freertos.c, zephyr.c, nuttx.c, threadx.c), which
 * defines the functions below, and a header tide_kernel.h, which defines:
 *
 *   TIDE_KERNEL_LANES             maximum number of lanes of one executor
 *   TIDE_KERNEL_ONE_SET           1: stacks are static, so lanes of one executor at a time
 *   TIDE_KERNEL_LANES_LOCK        1: one processor, and the scheduler can be locked (tide_platform_t.lanes_enter)
 *   TIDE_KERNEL_ALARM             1: waits end by tide_kernel_set_alarm_locked; 0: by the kernel's own time limits
 *   TIDE_KERNEL_TICK_HZ           the clock is a counter of ticks: its rate, and the value before it wraps
 *   TIDE_KERNEL_TICK_MAXIMUM
 *   TIDE_KERNEL_SETS_PRIORITY     0: the kernel cannot change priorities, so there are no locks
 *   TIDE_KERNEL_PRIORITY_*        LEAST and MOST of lanes, NORMAL (TIDE_SCHEDULING_NORMAL), LINK (of its task)
 *   TIDE_KERNEL_BUDGETS           1: lanes with TIDE_SCHEDULING_SPORADIC, on one processor; then also
 *   TIDE_KERNEL_REPLENISHMENTS    most outstanding replenishments of a lane
 *   TIDE_KERNEL_SWITCHES          1: the kernel reports switches of tasks; 0: it counts the time of each task
 *   TIDE_KERNEL_ARMS_IN_SWITCH    1: ... and the alarm can be set from that report
 *   TIDE_KERNEL_LOOK_NS           longest time between two checks of a lane that wants the processor; undefined: any
 *   TIDE_KERNEL_PRIORITY_KEEPER   of the task that enforces budgets, above all lanes that have one
 *   TIDE_KERNEL_PRIORITY_BUDGET   highest priority of a lane with a budget
 *   tide_kernel_task_t            the kernel's part of a task
 *   tide_kernel_stamp_t           point up to which a task's time is charged
 *
 * Priorities are those of lanes: larger is more urgent. An adaptor converts priorities if its kernel counts downwards.
 * Functions that end in _locked are called in the section of tide_kernel_enter. */
#pragma once

#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"
#include "tide_kernel.h"

TIDE_EXTERN_C_BEGIN

/* ---- platform.c needs ---- */

/* Like the members of tide_platform_t; called from tasks and interrupts. Sections nest. A task that was woken within a
 * section gets the processor when the outermost section ends. */
int64_t tide_kernel_now_ns(void *context); /* with TIDE_KERNEL_TICK_HZ instead: tide_kernel_ticks, in a section */
uint64_t tide_kernel_ticks(void);
uintptr_t tide_kernel_enter(void *context);
void tide_kernel_exit(void *context, uintptr_t state);
uintptr_t tide_kernel_lanes_enter(void *context); /* TIDE_KERNEL_LANES_LOCK */
void tide_kernel_lanes_exit(void *context, uintptr_t state);

/* Calls tide_rtos_wait with the object on which the calling task sleeps. */
int tide_kernel_event_wait(void *context, tide_event_t *event, int64_t deadline_ns);
/* Sleep until the waiter is woken or that time has come. May end early. An earlier wake ends the sleep at once. */
void tide_kernel_sleep(void *waiter, int64_t until_ns);
void tide_kernel_wake_locked(void *waiter);
/* Call tide_rtos_alarm at that time, or at once when it has passed, replacing the previous time. */
void tide_kernel_set_alarm_locked(int64_t time_ns);

/* ---- lanes.c and link.c need ---- */

typedef struct tide_rtos_task {
  void (*run)(void *argument); /* run and argument are set before the start */
  void *argument;
  tide_kernel_task_t kernel;
} tide_rtos_task_t;

/* Task slots besides those of lanes; a lane's slot is its index. */
enum { TIDE_RTOS_LINK = TIDE_KERNEL_LANES, TIDE_RTOS_KEEPER };

/* Starts a task that calls run(argument) once. Its priority is a separate argument, because it may differ from the
 * settings. TIDE_ERROR_ARGUMENT: there is no such processor. TIDE_ERROR_FULL: no memory. */
int tide_kernel_start(tide_rtos_task_t *task, size_t slot, const tide_lane_settings_t *settings, int priority);
/* Waits until run has returned, and frees the task's memory at once, not in an idle task. */
void tide_kernel_join(tide_rtos_task_t *task);
void *tide_kernel_self(void); /* the running task */
int tide_kernel_priority(void);
void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority); /* null: the running task */

/* For budgets: returns the time that the task has used since the stamp, and sets the stamp to now. If the kernel
 * reports switches, the function returns the time that has passed since the stamp, whichever task ran. */
int64_t tide_kernel_consumed_ns(tide_kernel_stamp_t *stamp, void *task);
#ifndef tide_kernel_prepare_budgets
int tide_kernel_prepare_budgets(
    void); /* called before the first lane with a budget; an error means that budgets are not supported */
#endif
/* In the section of tide_kernel_mask (by default that of the platform): wake the keeper at that time, replacing the
 * previous time. TIDE_FOREVER: never. The default uses the alarm and an event of platform.c. */
void tide_kernel_look_at_masked(int64_t time_ns);
void tide_kernel_wake_keeper(void);
void tide_kernel_await_look(void);
#ifndef tide_kernel_mask
#define tide_kernel_mask() tide_kernel_enter(NULL)
#define tide_kernel_unmask(state) tide_kernel_exit(NULL, state)
#endif

/* ---- the port provides ---- */

/* Wait for the event; `waiter` wakes the caller. Returns like tide_platform_t.event_wait. */
int tide_rtos_wait(tide_event_t *event, int64_t deadline_ns, void *waiter);
/* The interrupt of the alarm calls it, or a task in its place. Early and spurious calls are harmless. Cost: linear in
 * the tasks that it wakes. */
void tide_rtos_alarm(void);
/* Called by the kernel when it switches to this task. Null: it switches to a task that is not a lane. The function
 * masks interrupts itself. O(lanes with a budget). */
void tide_rtos_switched(const void *task);

/* ---- a board provides, with TIDE_LINK_SYSTEM=1 ---- */

/* The board's transport for this address, called by the link's task. Null: no such kind of link, or unknown address. */
const tide_custom_transport_t *tide_rtos_transport(const tide_link_address_t *address);

TIDE_EXTERN_C_END
