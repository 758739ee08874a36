/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section and events on Zephyr. */
#include <zephyr/kernel.h>

#include "tide/port.h"

/* Ticks of 64 bits do not wrap; they are as fine as CONFIG_SYS_CLOCK_TICKS_PER_SEC. Rounded down, so a deadline is
 * never reached early. */
static int64_t now_ns(void *context) {
  ARG_UNUSED(context);
  return (int64_t)k_ticks_to_ns_floor64((uint64_t)k_uptime_ticks());
}

static struct {
  unsigned int depth;
  bool woke; /* a thread, within the section */
} section;

/* Keeps out threads and interrupts of this processor, and nests. With several processors (CONFIG_SMP) irq_lock is a
 * lock of all of them that its owner may take again. */
static uintptr_t critical_enter(void *context) {
  ARG_UNUSED(context);
  const unsigned int key = irq_lock();
  section.depth++;
  return (uintptr_t)key;
}

/* A thread that is woken while interrupts are locked gets the processor at the next point of scheduling, and unlocking
 * them is none. */
static void critical_exit(void *context, uintptr_t state) {
  ARG_UNUSED(context);
  const bool reschedule = --section.depth == 0u && section.woke;
  if (reschedule) section.woke = false;
  irq_unlock((unsigned int)state);
  if (!reschedule || k_is_in_isr()) return;
  k_sched_lock();
  k_sched_unlock();
}

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

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  struct k_sem sleep;
  (void)k_sem_init(&sleep, 0, 1);
  for (;;) {
    const bool late = deadline_ns != TIDE_FOREVER && now_ns(context) >= deadline_ns;
    if (take(context, event, late ? NULL : &sleep)) return 1;
    if (late) return 0;
    const k_timeout_t timeout = deadline_ns == TIDE_FOREVER
                                    ? K_FOREVER
                                    : K_TIMEOUT_ABS_TICKS((k_ticks_t)k_ns_to_ticks_ceil64((uint64_t)deadline_ns));
    (void)k_sem_take(&sleep, timeout);
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
#ifndef CONFIG_SMP
uintptr_t tide_static_lanes_enter(void) { return lanes_enter(NULL); }
void tide_static_lanes_exit(uintptr_t state) { lanes_exit(NULL, state); }
#else
uintptr_t tide_static_lanes_enter(void) { return critical_enter(NULL); }
void tide_static_lanes_exit(uintptr_t state) { critical_exit(NULL, state); }
#endif
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
