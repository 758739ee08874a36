/* SPDX-License-Identifier: Apache-2.0 */
/* The machine below the runtime: a clock, a critical section and events. A port fills in one structure of functions;
 * nothing in src/ includes a header of an operating system. */
#ifndef TIDE_PLATFORM_H
#define TIDE_PLATFORM_H

#include <stdint.h>

#include "tide/base/extern_c.h"
#include "tide/options.h"

TIDE_EXTERN_C_BEGIN

#define TIDE_FOREVER INT64_MAX

/* An event for one waiter. Setting an event is sticky: an event set before the wait ends the wait at once, so no
 * wake-up is lost. Memory: the owner's, zeroed before event_init. */
typedef struct tide_event {
  uint32_t state; /* used by the port */
  void *port;     /* used by the port: a task handle, a semaphore, a fiber */
} tide_event_t;

typedef struct tide_platform {
  void *context;

  /* Monotonic time in nanoseconds. Any thread or interrupt may call it. */
  int64_t (*now_ns)(void *context);

  /* Wall clock in nanoseconds since 1970, used by time synchronisation only; null where there is none. */
  int64_t (*wall_ns)(void *context);

  /* Enter and leave a short critical section against other threads and interrupts of the runtime. Sections of one
   * thread nest; exit gets the value that the matching enter returned. The runtime does a bounded amount of work
   * inside. */
  uintptr_t (*critical_enter)(void *context);
  void (*critical_exit)(void *context, uintptr_t state);

  /* Enter and leave a critical section against lanes and threads only; interrupts stay enabled. Executors do all work
   * that grows with the number of callbacks within this section, so the time with interrupts disabled does not depend
   * on that number. critical_enter may be called inside. If the critical section is already held, lanes_enter must
   * exclude at least as much. Provide both functions only on one processor, where each priority band (tide/executor.h)
   * has one lane, and what interrupts or preempts ends before the interrupted code continues. Null: the critical
   * section excludes lanes and interrupts. */
  uintptr_t (*lanes_enter)(void *context);
  void (*lanes_exit)(void *context, uintptr_t state);

  void (*event_init)(void *context, tide_event_t *event);

  /* Set the event. Any thread or interrupt may call it; it never blocks. */
  void (*event_set)(void *context, tide_event_t *event);

  /* Sleep until the event is set, or until the clock of now_ns reaches deadline_ns. Returns 1 and clears the event, or
   * 0 at the deadline, never earlier. TIDE_FOREVER: no limit. With a deadline in the past it returns at once. An event
   * has at most one waiter. */
  int (*event_wait)(void *context, tide_event_t *event, int64_t deadline_ns);
} tide_platform_t;

/* ---- how the runtime calls its platform: through the pointers above, or directly (TIDE_STATIC_PLATFORM) ---- */

#if TIDE_STATIC_PLATFORM
int64_t tide_static_now_ns(void);
uintptr_t tide_static_enter(void);
void tide_static_exit(uintptr_t state);
uintptr_t tide_static_lanes_enter(void);
void tide_static_lanes_exit(uintptr_t state);
void tide_static_event_init(tide_event_t *event);
void tide_static_event_set(tide_event_t *event);
int tide_static_event_wait(tide_event_t *event, int64_t deadline_ns);
#endif

static inline int64_t tide_platform_now_ns(const tide_platform_t *platform) {
#if TIDE_STATIC_PLATFORM
  (void)platform;
  return tide_static_now_ns();
#else
  return platform->now_ns(platform->context);
#endif
}

static inline void tide_platform_event_init(const tide_platform_t *platform, tide_event_t *event) {
#if TIDE_STATIC_PLATFORM
  (void)platform;
  tide_static_event_init(event);
#else
  platform->event_init(platform->context, event);
#endif
}

static inline void tide_platform_event_set(const tide_platform_t *platform, tide_event_t *event) {
#if TIDE_STATIC_PLATFORM
  (void)platform;
  tide_static_event_set(event);
#else
  platform->event_set(platform->context, event);
#endif
}

static inline int tide_platform_event_wait(const tide_platform_t *platform, tide_event_t *event, int64_t deadline_ns) {
#if TIDE_STATIC_PLATFORM
  (void)platform;
  return tide_static_event_wait(event, deadline_ns);
#else
  return platform->event_wait(platform->context, event, deadline_ns);
#endif
}

static inline uintptr_t tide_platform_enter(const tide_platform_t *platform) {
#if TIDE_SINGLE_CONTEXT
  (void)platform;
  return 0;
#elif TIDE_STATIC_PLATFORM
  (void)platform;
  return tide_static_enter();
#else
  return platform->critical_enter(platform->context);
#endif
}

static inline void tide_platform_exit(const tide_platform_t *platform, uintptr_t state) {
#if TIDE_SINGLE_CONTEXT
  (void)platform;
  (void)state;
#elif TIDE_STATIC_PLATFORM
  (void)platform;
  tide_static_exit(state);
#else
  platform->critical_exit(platform->context, state);
#endif
}

TIDE_EXTERN_C_END
#endif
