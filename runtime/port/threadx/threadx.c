/* SPDX-License-Identifier: Apache-2.0 */
/* ThreadX for the port of kernels (runtime/port/rtos): sections and the clock for threads and interrupts alike, sleep
 * on semaphores, threads on static stacks. */
#include "../rtos/rtos.h"
#include "tx_thread.h"

#define SECOND_NS INT64_C(1000000000)
#define SLEEP_MAXIMUM_NS (1000 * SECOND_NS) /* longer sleeps are split */
#define LEVEL(priority) ((UINT)(TIDE_KERNEL_PRIORITY_MOST - (priority)))

bool tide_port_in_interrupt(void) { return TX_THREAD_GET_SYSTEM_STATE() != 0u; }

/* ---- sections ---- */

/* Masked interrupts do not keep ThreadX from switching: it enables them when it wakes a more urgent thread. So a
 * section also disables preemption, as ThreadX's own components do. */
uintptr_t tide_kernel_enter(void *context) {
  TX_INTERRUPT_SAVE_AREA(void) context;
  TX_DISABLE
  _tx_thread_preempt_disable++;
  return (uintptr_t)interrupt_save;
}

void tide_kernel_exit(void *context, uintptr_t state) {
  TX_INTERRUPT_SAVE_AREA(void) context;
  interrupt_save = (UINT)state;
  _tx_thread_preempt_disable--;
  TX_RESTORE
  _tx_thread_system_preempt_check();
}

/* Without preemption no other thread runs, but interrupts do. */
uintptr_t tide_kernel_lanes_enter(void *context) {
  if (tide_port_in_interrupt()) return 0u;
  const uintptr_t state = tide_kernel_enter(context);
  _tx_thread_preempt_disable++;
  tide_kernel_exit(context, state);
  return 1u;
}

void tide_kernel_lanes_exit(void *context, uintptr_t state) {
  if (state == 0u) return;
  const uintptr_t inner = tide_kernel_enter(context);
  _tx_thread_preempt_disable--;
  tide_kernel_exit(context, inner);
}

/* ---- clock and sleep ---- */

#if TIDE_THREADX_ALARM
int64_t tide_kernel_now_ns(void *context) {
  (void)context;
  return tide_threadx_clock_ns();
}
void tide_kernel_set_alarm_locked(int64_t time_ns) { tide_threadx_set_alarm(time_ns); }
void tide_threadx_alarm(void) { tide_rtos_alarm(); }
#else
uint64_t tide_kernel_ticks(void) { return tx_time_get(); }
#endif

void tide_kernel_wake_locked(void *waiter) { (void)tx_semaphore_put(waiter); }

void tide_kernel_sleep(void *waiter, int64_t until_ns) {
  ULONG ticks = TX_WAIT_FOREVER;
  if (until_ns != TIDE_FOREVER) {
    int64_t left_ns = until_ns - tide_kernel_now_ns(NULL);
    if (left_ns <= 0) return;
    if (left_ns > SLEEP_MAXIMUM_NS) left_ns = SLEEP_MAXIMUM_NS;
    ticks = (ULONG)((left_ns * (int64_t)TX_TIMER_TICKS_PER_SECOND + SECOND_NS - 1) / SECOND_NS);
  }
  (void)tx_semaphore_get(waiter, ticks);
}

int tide_kernel_event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  TX_SEMAPHORE waiter;
  char name[] = "tide wait";
  (void)context;
  (void)tx_semaphore_create(&waiter, name, 0u);
  const int status = tide_rtos_wait(event, deadline_ns, &waiter);
  (void)tx_semaphore_delete(&waiter);
  return status;
}

static uint64_t measure_now(void *context) { return (uint64_t)tide_kernel_now_ns(context); }
const tide_measure_clock_t *tide_port_measure_clock(void) {
  static const tide_measure_clock_t clock = {.now = measure_now, .mask = UINT64_MAX, .hertz = 1000000000u};
  return &clock;
}

/* ---- threads ---- */

static ULONG64 stacks[TIDE_THREADX_LANES][TIDE_THREADX_LANE_STACK_BYTES / sizeof(ULONG64)];
static ULONG64 link_stack[TIDE_THREADX_LINK_STACK_BYTES / sizeof(ULONG64)];

static void run_thread(ULONG argument) {
  tide_rtos_task_t *task = (tide_rtos_task_t *)argument;
  const tide_platform_t *platform = tide_port_platform();
  task->run(task->argument);
  platform->event_set(platform->context, &task->kernel.ended);
}

int tide_kernel_start(tide_rtos_task_t *task, size_t slot, const tide_lane_settings_t *settings, int priority) {
  const tide_platform_t *platform = tide_port_platform();
  static char name[] = "tide lane"; /* ThreadX takes no constant string */
  const bool is_link = slot == TIDE_RTOS_LINK;
  const ULONG slice = settings->scheduling == TIDE_SCHEDULING_ROUND_ROBIN ? TIDE_THREADX_SLICE_TICKS : TX_NO_TIME_SLICE;
  if (settings->processor > 0u || (!is_link && settings->stack_bytes > sizeof stacks[0])) return TIDE_ERROR_UNSUPPORTED;
  platform->event_init(platform->context, &task->kernel.ended);
  const UINT made = tx_thread_create(
      &task->kernel.thread, name, run_thread, (ULONG)task, is_link ? link_stack : stacks[slot],
      (ULONG)(is_link ? sizeof link_stack : sizeof stacks[0]), LEVEL(priority), LEVEL(priority), slice, TX_AUTO_START);
  return made == TX_SUCCESS ? TIDE_OK : TIDE_ERROR_FULL;
}

/* The thread may still be on its way from event_set to its end; it holds nothing there. */
void tide_kernel_join(tide_rtos_task_t *task) {
  const tide_platform_t *platform = tide_port_platform();
  (void)platform->event_wait(platform->context, &task->kernel.ended, TIDE_FOREVER);
  (void)tx_thread_terminate(&task->kernel.thread);
  (void)tx_thread_delete(&task->kernel.thread);
}

void *tide_kernel_self(void) { return tx_thread_identify(); }

int tide_kernel_priority(void) {
  return TIDE_KERNEL_PRIORITY_MOST - (int)tx_thread_identify()->tx_thread_user_priority;
}

/* Only the keeper of budgets, which ThreadX does not have, sets the priority of another task. */
void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority) {
  UINT before;
  (void)task;
  (void)tx_thread_priority_change(tx_thread_identify(), LEVEL(priority), &before);
}
