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

/* Keeps out threads and interrupts of this processor, and nests. With several processors (CONFIG_SMP) irq_lock is a
 * lock of all of them that its owner may take again. */
static uintptr_t critical_enter(void *context) {
  ARG_UNUSED(context);
  return (uintptr_t)irq_lock();
}

static void critical_exit(void *context, uintptr_t state) {
  ARG_UNUSED(context);
  irq_unlock((unsigned int)state);
}

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
  if (waiter != NULL) k_sem_give(waiter);
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
                                           .event_init = event_init,
                                           .event_set = event_set,
                                           .event_wait = event_wait};
  return &platform;
}

static uint64_t cycles(void *context) {
  ARG_UNUSED(context);
  return k_cycle_get_32();
}

const tide_measure_clock_t *tide_port_measure_clock(void) {
  static tide_measure_clock_t clock = {.now = cycles, .mask = UINT32_MAX};
  clock.hertz = (uint32_t)sys_clock_hw_cycles_per_sec();
  return &clock;
}
