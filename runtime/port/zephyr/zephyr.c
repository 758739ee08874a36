/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr for the port of kernels (runtime/port/rtos): sections, ticks of 64 bits, sleep on semaphores, threads on
 * static stacks. Zephyr counts priorities downwards; larger numbers are more urgent here, as for all lanes. */
#include <zephyr/kernel.h>

#include "../rtos/rtos.h"

bool tide_port_in_interrupt(void) { return k_is_in_isr(); }

/* ---- sections ---- */

static struct {
  unsigned int depth;
  bool woke; /* a thread was woken within the section */
} section;

#ifndef CONFIG_SMP
/* Excludes threads and interrupts; nests. */
static uintptr_t enter_section(void) { return (uintptr_t)irq_lock(); }
static void leave_section(uintptr_t state) { irq_unlock((unsigned int)state); }
#else
/* This is a recursive spinlock of the port. irq_lock is not used, because with several processors it locks all of them.
 * Besides, a thread that is switched out by k_sched_unlock releases irq_lock on behalf of its holder (observed in
 * Zephyr 4.3). An interrupt has the identity of the interrupted thread, but that thread cannot be inside a section,
 * because interrupts are locked there. */
static struct k_spinlock section_lock;
static k_spinlock_key_t section_key;
static k_tid_t section_owner; /* null: no owner */

static uintptr_t enter_section(void) {
  const k_tid_t self = k_current_get();
  if (__atomic_load_n(&section_owner, __ATOMIC_RELAXED) == self) return 0u;
  const k_spinlock_key_t key = k_spin_lock(&section_lock);
  section_key = key;
  __atomic_store_n(&section_owner, self, __ATOMIC_RELAXED);
  return 0u;
}

static void leave_section(uintptr_t state) {
  ARG_UNUSED(state);
  if (section.depth > 0u) return;
  const k_spinlock_key_t key = section_key;
  __atomic_store_n(&section_owner, NULL, __ATOMIC_RELAXED);
  k_spin_unlock(&section_lock, key);
}
#endif

uintptr_t tide_kernel_enter(void *context) {
  ARG_UNUSED(context);
  const uintptr_t state = enter_section();
  section.depth++;
  return state;
}

/* A thread woken while interrupts are locked gets the processor at the next scheduling point; unlocking is not one. */
void tide_kernel_exit(void *context, uintptr_t state) {
  ARG_UNUSED(context);
  const bool reschedule = --section.depth == 0u && section.woke;
  if (reschedule) section.woke = false;
  leave_section(state);
  if (!reschedule || k_is_in_isr()) return;
  k_sched_lock();
  k_sched_unlock();
}

/* On one processor a locked scheduler excludes all other threads but not interrupts. */
uintptr_t tide_kernel_lanes_enter(void *context) {
  ARG_UNUSED(context);
  if (k_is_in_isr()) return 0u;
  k_sched_lock();
  return 1u;
}

void tide_kernel_lanes_exit(void *context, uintptr_t state) {
  ARG_UNUSED(context);
  if (state != 0u) k_sched_unlock();
}

/* ---- clock and sleep ---- */

/* Ticks of 64 bits do not wrap; they are as fine as CONFIG_SYS_CLOCK_TICKS_PER_SEC. Rounded down, so a deadline is
 * never reached early. */
int64_t tide_kernel_now_ns(void *context) {
#ifndef CONFIG_SMP
  ARG_UNUSED(context);
  const int64_t ticks = k_uptime_ticks();
#else
  /* While one processor announces ticks, another processor may read a smaller tick count than before. */
  static int64_t latest;
  const uintptr_t state = tide_kernel_enter(context);
  const int64_t read = k_uptime_ticks();
  if (read > latest) latest = read;
  const int64_t ticks = latest;
  tide_kernel_exit(context, state);
#endif
  return (int64_t)k_ticks_to_ns_floor64((uint64_t)ticks);
}

static k_timeout_t at(int64_t time_ns) {
  return K_TIMEOUT_ABS_TICKS((k_ticks_t)k_ns_to_ticks_ceil64((uint64_t)time_ns));
}

void tide_kernel_wake_locked(void *waiter) {
  k_sem_give(waiter);
  section.woke = true;
}

void tide_kernel_sleep(void *waiter, int64_t until_ns) {
  (void)k_sem_take(waiter, until_ns == TIDE_FOREVER ? K_FOREVER : at(until_ns));
}

int tide_kernel_event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  struct k_sem waiter;
  ARG_UNUSED(context);
  (void)k_sem_init(&waiter, 0, 1);
  return tide_rtos_wait(event, deadline_ns, &waiter);
}

#if TIDE_KERNEL_ALARM
static void on_alarm(struct k_timer *timer) {
  ARG_UNUSED(timer);
  tide_rtos_alarm();
}
static K_TIMER_DEFINE(alarm, on_alarm, NULL);

void tide_kernel_set_alarm_locked(int64_t time_ns) { k_timer_start(&alarm, at(time_ns), K_NO_WAIT); }
#endif

static uint64_t cycles(void *context) {
  ARG_UNUSED(context);
  return k_cycle_get_32();
}

const tide_measure_clock_t *tide_port_measure_clock(void) {
  static tide_measure_clock_t clock = {.now = cycles, .mask = UINT32_MAX};
  clock.hertz = (uint32_t)sys_clock_hw_cycles_per_sec();
  return &clock;
}

/* ---- threads ---- */

static K_THREAD_STACK_ARRAY_DEFINE(stacks, CONFIG_TIDE_LANES_MAXIMUM, CONFIG_TIDE_LANE_STACK_BYTES);
static K_THREAD_STACK_DEFINE(link_stack, CONFIG_TIDE_LINK_STACK_BYTES);
#ifdef CONFIG_TIDE_BUDGETS
static K_THREAD_STACK_DEFINE(keeper_stack, CONFIG_TIDE_BUDGETS_STACK_BYTES);
#endif
static struct k_thread threads[CONFIG_TIDE_LANES_MAXIMUM + 2];

#ifdef CONFIG_SCHED_CPU_MASK
#define PROCESSORS CONFIG_MP_MAX_NUM_CPUS
#else
#define PROCESSORS 0
#endif

static void run_thread(void *task, void *unused, void *also_unused) {
  const tide_rtos_task_t *self = task;
  ARG_UNUSED(unused);
  ARG_UNUSED(also_unused);
  self->run(self->argument);
}

int tide_kernel_start(tide_rtos_task_t *task, size_t slot, const tide_lane_settings_t *settings, int priority) {
  k_thread_stack_t *stack = link_stack;
  size_t bytes = K_THREAD_STACK_SIZEOF(link_stack);
  if (slot < CONFIG_TIDE_LANES_MAXIMUM) {
    stack = stacks[slot];
    bytes = K_THREAD_STACK_SIZEOF(stacks[slot]);
    if (settings->stack_bytes > CONFIG_TIDE_LANE_STACK_BYTES) return TIDE_ERROR_UNSUPPORTED;
  }
#ifdef CONFIG_TIDE_BUDGETS
  if (slot == TIDE_RTOS_KEEPER) {
    stack = keeper_stack;
    bytes = K_THREAD_STACK_SIZEOF(keeper_stack);
  }
#endif
  if (settings->processor > PROCESSORS) return PROCESSORS > 0 ? TIDE_ERROR_ARGUMENT : TIDE_ERROR_UNSUPPORTED;
  task->kernel = k_thread_create(&threads[slot], stack, bytes, run_thread, task, NULL, NULL,
                                 CONFIG_NUM_PREEMPT_PRIORITIES - priority, 0, K_FOREVER);
  (void)k_thread_name_set(task->kernel, settings->name != NULL ? settings->name : "tide lane");
#ifdef CONFIG_SCHED_CPU_MASK
  if (settings->processor != 0u)
    (void)k_thread_cpu_pin(task->kernel, settings->processor - 1); /* the thread is pinned before it runs */
#endif
  k_thread_start(task->kernel);
  return TIDE_OK;
}

void tide_kernel_join(tide_rtos_task_t *task) { (void)k_thread_join(task->kernel, K_FOREVER); }

void *tide_kernel_self(void) { return k_current_get(); }

int tide_kernel_priority(void) { return CONFIG_NUM_PREEMPT_PRIORITIES - k_thread_priority_get(k_current_get()); }

void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority) {
  k_thread_priority_set(task != NULL ? task->kernel : k_current_get(), CONFIG_NUM_PREEMPT_PRIORITIES - priority);
}

#ifdef CONFIG_TIDE_BUDGETS
int64_t tide_kernel_consumed_ns(tide_kernel_stamp_t *stamp, void *task) {
  k_thread_runtime_stats_t statistics;
  if (k_thread_runtime_stats_get(task, &statistics) != 0) return 0;
  const int64_t before_ns = *stamp;
  *stamp = (int64_t)k_cyc_to_ns_floor64(statistics.execution_cycles);
  return *stamp - before_ns;
}
#endif
