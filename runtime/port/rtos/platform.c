/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a kernel with tasks, for tasks and interrupts alike, and waits with exact deadlines. */
#include "rtos.h"

#ifdef TIDE_KERNEL_TICK_HZ
/* In the critical section, so that a wrap of the tick counter is counted once and in order. Exact even if a tick is not
 * a whole number of nanoseconds. */
int64_t tide_kernel_now_ns(void *context) {
  static uint64_t last, rounds; /* rounds: wraps of the tick counter, in ticks */
  const uint64_t rate = (uint64_t)TIDE_KERNEL_TICK_HZ, second_ns = 1000000000u;
  const uintptr_t state = tide_kernel_enter(context);
  const uint64_t now = tide_kernel_ticks();
  if (now < last) rounds += (uint64_t)TIDE_KERNEL_TICK_MAXIMUM + 1u;
  last = now;
  const uint64_t ticks = rounds + now;
  tide_kernel_exit(context, state);
  if (second_ns % rate == 0u) return (int64_t)(ticks * (second_ns / rate));
  return (int64_t)(ticks / rate * second_ns + ticks % rate * second_ns / rate);
}
#endif

/* ---- waits by one alarm ---- */

#if TIDE_KERNEL_ALARM
/* For a kernel whose own time limits are too coarse (ticks of FreeRTOS) or not safe (Zephyr on several processors). */
typedef struct sleeper {
  int64_t until_ns;
  void *waiter;
  struct sleeper *next;
} sleeper_t;
static sleeper_t *sleepers; /* the earliest first */
static int64_t look_ns = TIDE_FOREVER;
static tide_event_t look; /* wakes the keeper of budgets */

static void event_set(void *context, tide_event_t *event);

static void arm_locked(void) {
  const int64_t wake_ns = sleepers != NULL ? sleepers->until_ns : TIDE_FOREVER;
  const int64_t time_ns = look_ns < wake_ns ? look_ns : wake_ns;
  if (time_ns != TIDE_FOREVER) tide_kernel_set_alarm_locked(time_ns);
}

void tide_rtos_alarm(void) {
  const uintptr_t state = tide_kernel_enter(NULL);
  for (; sleepers != NULL && sleepers->until_ns <= tide_kernel_now_ns(NULL); sleepers = sleepers->next)
    tide_kernel_wake_locked(sleepers->waiter);
  if (look_ns <= tide_kernel_now_ns(NULL)) {
    look_ns = TIDE_FOREVER;
    event_set(NULL, &look);
  }
  arm_locked();
  tide_kernel_exit(NULL, state);
}

static void sleep_until(void *waiter, int64_t deadline_ns) {
  sleeper_t self = {.until_ns = deadline_ns, .waiter = waiter};
  uintptr_t state = tide_kernel_enter(NULL);
  sleeper_t **link = &sleepers;
  while (*link != NULL && (*link)->until_ns <= deadline_ns) link = &(*link)->next;
  self.next = *link;
  *link = &self;
  if (sleepers == &self) arm_locked();
  tide_kernel_exit(NULL, state);
  tide_kernel_sleep(waiter, TIDE_FOREVER);
  state = tide_kernel_enter(NULL);
  for (link = &sleepers; *link != NULL && *link != &self; link = &(*link)->next) {}
  if (*link != NULL) *link = self.next; /* woken by its event, not by the alarm */
  tide_kernel_exit(NULL, state);
}

#if TIDE_KERNEL_BUDGETS
void tide_kernel_look_at_masked(int64_t time_ns) {
  if (look_ns == time_ns) return;
  look_ns = time_ns;
  arm_locked();
}
void tide_kernel_wake_keeper(void) { event_set(NULL, &look); }
void tide_kernel_await_look(void) { (void)tide_kernel_event_wait(NULL, &look, TIDE_FOREVER); }
#endif
#else
#define sleep_until tide_kernel_sleep
#endif

/* ---- events ---- */

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0u;
  event->port = NULL;
}

/* A waiting caller stores its waiter in the event. The waker removes the waiter, so the caller is woken once. This
 * happens within the section, because a task that has left its wait may be deleted, and the waiter may be on its
 * stack. */
static void event_set(void *context, tide_event_t *event) {
  const uintptr_t state = tide_kernel_enter(context);
  void *const waiter = event->port;
  event->state = 1u;
  event->port = NULL;
  if (waiter != NULL) tide_kernel_wake_locked(waiter);
  tide_kernel_exit(context, state);
}

int tide_rtos_wait(tide_event_t *event, int64_t deadline_ns, void *waiter) {
  for (;;) {
    const bool late = deadline_ns != TIDE_FOREVER && tide_kernel_now_ns(NULL) >= deadline_ns;
    /* Testing the event and storing the waiter are atomic. So a set that comes after this section and before the sleep
     * finds the waiter, and its wake ends the sleep. */
    const uintptr_t state = tide_kernel_enter(NULL);
    const bool set = event->state != 0u;
    event->state = 0u;
    event->port = set || late ? NULL : waiter;
    tide_kernel_exit(NULL, state);
    if (set || late) return set ? 1 : 0;
    if (deadline_ns == TIDE_FOREVER) {
      tide_kernel_sleep(waiter, TIDE_FOREVER);
    } else {
      sleep_until(waiter, deadline_ns);
    }
  }
}

const tide_platform_t *tide_port_platform(void) {
  static const tide_platform_t platform = {
    .now_ns = tide_kernel_now_ns,
    .critical_enter = tide_kernel_enter,
    .critical_exit = tide_kernel_exit,
#if TIDE_KERNEL_LANES_LOCK
    .lanes_enter = tide_kernel_lanes_enter,
    .lanes_exit = tide_kernel_lanes_exit,
#endif
    .event_init = event_init,
    .event_set = event_set,
    .event_wait = tide_kernel_event_wait
  };
  return &platform;
}

#if TIDE_STATIC_PLATFORM
#if !TIDE_KERNEL_LANES_LOCK
#error "TIDE_STATIC_PLATFORM is for one processor"
#endif
int64_t tide_static_now_ns(void) { return tide_kernel_now_ns(NULL); }
uintptr_t tide_static_enter(void) { return tide_kernel_enter(NULL); }
void tide_static_exit(uintptr_t state) { tide_kernel_exit(NULL, state); }
uintptr_t tide_static_lanes_enter(void) { return tide_kernel_lanes_enter(NULL); }
void tide_static_lanes_exit(uintptr_t state) { tide_kernel_lanes_exit(NULL, state); }
void tide_static_event_init(tide_event_t *event) { event_init(NULL, event); }
void tide_static_event_set(tide_event_t *event) { event_set(NULL, event); }
int tide_static_event_wait(tide_event_t *event, int64_t time_ns) {
  return tide_kernel_event_wait(NULL, event, time_ns);
}
#endif
