/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section and events on Zephyr. */
#include <zephyr/kernel.h>

#include "tide/port.h"

static struct {
  unsigned int depth;
  bool woke; /* a thread, within the section */
} section;

#ifndef CONFIG_SMP
/* Keeps out threads and interrupts, and nests. */
static uintptr_t enter_section(void) { return (uintptr_t)irq_lock(); }
static void leave_section(uintptr_t state) { irq_unlock((unsigned int)state); }
#else
#if TIDE_STATIC_PLATFORM
#error "TIDE_STATIC_PLATFORM is for one processor"
#endif
/* Not irq_lock: with several processors that is a lock of all of them, and a thread that is switched away by
 * k_sched_unlock gives it up for whoever has it (seen in Zephyr 4.3). A spinlock of its own, which its owner may take
 * again. An interrupt has the name of the thread that it interrupts, and that one is outside: within, interrupts are
 * locked. */
static struct k_spinlock section_lock;
static k_spinlock_key_t section_key;
static k_tid_t section_owner; /* null: nobody */

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

static uintptr_t critical_enter(void *context) {
  ARG_UNUSED(context);
  const uintptr_t state = enter_section();
  section.depth++;
  return state;
}

/* A thread that is woken while interrupts are locked gets the processor at the next point of scheduling, and unlocking
 * them is none. */
static void critical_exit(void *context, uintptr_t state) {
  ARG_UNUSED(context);
  const bool reschedule = --section.depth == 0u && section.woke;
  if (reschedule) section.woke = false;
  leave_section(state);
  if (!reschedule || k_is_in_isr()) return;
  k_sched_lock();
  k_sched_unlock();
}

/* Ticks of 64 bits do not wrap; they are as fine as CONFIG_SYS_CLOCK_TICKS_PER_SEC. Rounded down, so a deadline is
 * never reached early. */
#ifndef CONFIG_SMP
static int64_t uptime_ticks(void *context) {
  ARG_UNUSED(context);
  return k_uptime_ticks();
}
#else
/* While one processor announces ticks, another one reads the ticks up to there, fewer than it has read before. */
static int64_t uptime_ticks(void *context) {
  static int64_t latest;
  const uintptr_t state = critical_enter(context);
  const int64_t ticks = k_uptime_ticks();
  if (ticks > latest) latest = ticks;
  const int64_t found = latest;
  critical_exit(context, state);
  return found;
}
#endif

static int64_t now_ns(void *context) { return (int64_t)k_ticks_to_ns_floor64((uint64_t)uptime_ticks(context)); }

/* On one processor a locked scheduler keeps out every other thread and lets interrupts in. */
#ifndef CONFIG_SMP
static uintptr_t lanes_enter(void *context) {
  ARG_UNUSED(context);
  if (k_is_in_isr()) return 0u;
  k_sched_lock();
  return 1u;
}

static void lanes_exit(void *context, uintptr_t state) {
  ARG_UNUSED(context);
  if (state != 0u) k_sched_unlock();
}
#define LANES_ENTER lanes_enter
#define LANES_EXIT lanes_exit
#else
#define LANES_ENTER NULL
#define LANES_EXIT NULL
#endif

static void event_init(void *context, tide_event_t *event) {
  ARG_UNUSED(context);
  event->state = 0u;
  event->port = NULL;
}

/* A waiter has left its semaphore in the event; it is on the waiter's stack, so it is given within the section that
 * the waiter needs to leave. */
static void event_set(void *context, tide_event_t *event) {
  const uintptr_t state = critical_enter(context);
  struct k_sem *waiter = event->port;
  event->state = 1u;
  event->port = NULL;
  if (waiter != NULL) {
    k_sem_give(waiter);
    section.woke = true;
  }
  critical_exit(context, state);
}

static bool take(void *context, tide_event_t *event, struct k_sem *waiter) {
  const uintptr_t state = critical_enter(context);
  const bool set = event->state != 0u;
  event->state = 0u;
  event->port = set ? NULL : waiter;
  critical_exit(context, state);
  return set;
}

static k_timeout_t at(int64_t time_ns) {
  return K_TIMEOUT_ABS_TICKS((k_ticks_t)k_ns_to_ticks_ceil64((uint64_t)time_ns));
}

#ifndef CONFIG_SMP
static void sleep_until(struct k_sem *semaphore, int64_t time_ns) {
  (void)k_sem_take(semaphore, time_ns == TIDE_FOREVER ? K_FOREVER : at(time_ns));
}
#else
/* With several processors no wait has a time limit of the kernel's: its end may be on its way on one processor while
 * the thread is woken on another one and waits again, and then ends that wait and leaves the thread among the waits
 * (an assertion in Zephyr 4.3). So they all have one timer. */
typedef struct sleeper {
  int64_t until_ns;
  struct k_sem *semaphore;
  struct sleeper *next;
} sleeper_t;
static sleeper_t *sleepers; /* the earliest first */

static void on_alarm(struct k_timer *timer);
static K_TIMER_DEFINE(alarm, on_alarm, NULL);

static void arm_locked(void) {
  if (sleepers != NULL) k_timer_start(&alarm, at(sleepers->until_ns), K_NO_WAIT);
}

static void on_alarm(struct k_timer *timer) {
  ARG_UNUSED(timer);
  const uintptr_t state = critical_enter(NULL);
  for (; sleepers != NULL && sleepers->until_ns <= now_ns(NULL); sleepers = sleepers->next)
    k_sem_give(sleepers->semaphore);
  arm_locked();
  critical_exit(NULL, state);
}

static void add_sleeper(sleeper_t *sleeper) {
  const uintptr_t state = critical_enter(NULL);
  sleeper_t **place = &sleepers;
  while (*place != NULL && (*place)->until_ns <= sleeper->until_ns) place = &(*place)->next;
  sleeper->next = *place;
  *place = sleeper;
  if (sleepers == sleeper) arm_locked();
  critical_exit(NULL, state);
}

static void remove_sleeper(const sleeper_t *sleeper) {
  const uintptr_t state = critical_enter(NULL);
  sleeper_t **place = &sleepers;
  while (*place != NULL && *place != sleeper) place = &(*place)->next;
  if (*place != NULL) *place = sleeper->next;
  critical_exit(NULL, state);
}

static void sleep_until(struct k_sem *semaphore, int64_t time_ns) {
  sleeper_t sleeper = {.until_ns = time_ns, .semaphore = semaphore};
  if (time_ns != TIDE_FOREVER) add_sleeper(&sleeper);
  (void)k_sem_take(semaphore, K_FOREVER);
  if (time_ns != TIDE_FOREVER) remove_sleeper(&sleeper);
}
#endif

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  struct k_sem sleep;
  (void)k_sem_init(&sleep, 0, 1);
  for (;;) {
    const bool late = deadline_ns != TIDE_FOREVER && now_ns(context) >= deadline_ns;
    if (take(context, event, late ? NULL : &sleep)) return 1;
    if (late) return 0;
    sleep_until(&sleep, deadline_ns);
  }
}

const tide_platform_t *tide_port_platform(void) {
  static const tide_platform_t platform = {.now_ns = now_ns,
                                           .critical_enter = critical_enter,
                                           .critical_exit = critical_exit,
                                           .lanes_enter = LANES_ENTER,
                                           .lanes_exit = LANES_EXIT,
                                           .event_init = event_init,
                                           .event_set = event_set,
                                           .event_wait = event_wait};
  return &platform;
}

#if TIDE_STATIC_PLATFORM
int64_t tide_static_now_ns(void) { return now_ns(NULL); }
uintptr_t tide_static_enter(void) { return critical_enter(NULL); }
void tide_static_exit(uintptr_t state) { critical_exit(NULL, state); }
uintptr_t tide_static_lanes_enter(void) { return lanes_enter(NULL); }
void tide_static_lanes_exit(uintptr_t state) { lanes_exit(NULL, state); }
void tide_static_event_init(tide_event_t *event) { event_init(NULL, event); }
void tide_static_event_set(tide_event_t *event) { event_set(NULL, event); }
int tide_static_event_wait(tide_event_t *event, int64_t deadline_ns) { return event_wait(NULL, event, deadline_ns); }
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

bool tide_port_in_interrupt(void) { return k_is_in_isr(); }
