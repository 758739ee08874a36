/* SPDX-License-Identifier: Apache-2.0 */
/* Locks for data that callbacks of different lanes share, with a bounded wait.
 *
 * Immediate priority ceiling: while a lane holds a lock, it runs as urgently as the most urgent callback that may take
 * the lock. So an urgent callback waits for at most one critical section of a less urgent callback. On one processor a
 * lane never finds a lock held, unless the kernel time-slices lanes of equal priority. With time slicing, and on
 * several processors, lanes wait in FIFO order. The bounds of `tide check` include both kinds of waiting
 * (docs/analysis/locks.md).
 *
 *   static tide_lock_set_t locks;
 *   static tide_lock_t map;
 *   tide_lock_set_init(&locks, tide_port_platform(), tide_port_locks());
 *   tide_lock_init(&map, &locks);
 *   tide_lock_allow(&map, &urgent);            for each callback that takes the lock, after tide_executor_add
 *   ...
 *   tide_lock_take(&map, callback);            in a callback; give it before the callback returns
 *   tide_lock_give(&map);
 *
 * A callback holds one lock at a time. Callbacks of one lane never overlap and need no lock. Memory: the caller's;
 * nothing is allocated. Cost: give O(1), take O(locks of the set); take and give each change the lane's priority
 * once. */
#ifndef TIDE_LOCK_H
#define TIDE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/executor.h"

TIDE_EXTERN_C_BEGIN

/* Error codes in addition to tide/status.h; one for each misuse. */
typedef enum tide_lock_error {
  TIDE_ERROR_LOCK_CONTEXT = -39, /* taken in an interrupt, or for a callback that is not running */
  TIDE_ERROR_LOCK_HELD = -40,    /* taken by a callback that already holds this lock or another one */
  TIDE_ERROR_LOCK_OWNER = -41,   /* given by a lane that does not hold it */
  TIDE_ERROR_LOCK_CEILING = -42  /* taken by a callback more urgent than the lock's ceiling */
} tide_lock_error_t;

/* System functions that a lock needs. */
typedef struct tide_lock_port {
  void *context;
  /* Identifies the caller: a distinct value for each lane; null: an interrupt that is not a lane. */
  const void *(*current)(void *context);
  /* Raise the caller to at least the priority of `lane`; *before gets the value to pass to restore. Returns zero, or
   * the error that tide_lock_take then returns. */
  int (*raise)(void *context, const tide_lane_t *lane, uintptr_t *before);
  void (*restore)(void *context, uintptr_t before);
  bool may_wait; /* lanes have their own stacks, so that one can wait for a held lock; if false, taking a held lock
                    returns TIDE_ERROR_LOCK_CEILING */
} tide_lock_port_t;

/* Lock functions of this platform: for threads or tasks of POSIX, NuttX, FreeRTOS, Zephyr and ThreadX, or lanes of a
 * Cortex-M by BASEPRI. Ports with one lane have no lock functions, because they need none. */
const tide_lock_port_t *tide_port_locks(void);

typedef struct tide_lock_waiter tide_lock_waiter_t;

typedef struct tide_lock_set {
  const tide_platform_t *platform;
  const tide_lock_port_t *port;
  struct tide_lock *first;
} tide_lock_set_t;

typedef struct tide_lock { /* internal, except the counters */
  tide_lock_set_t *set;
  struct tide_lock *next;
  const tide_lane_t *lane; /* the most urgent lane that runs a callback that may take the lock */
  int32_t ceiling;         /* the most urgent priority of the callbacks that may take the lock; -1: none is allowed
                              yet */
  const void *owner;       /* the holder; null: the lock is free */
  uintptr_t before;        /* priority to which the owner returns */
  tide_lock_waiter_t *first_waiter, *last_waiter;
  uint32_t takes, waits; /* times the lock was taken, and times a caller had to wait for it */
} tide_lock_t;

/* Call these two functions before the lanes run. TIDE_ERROR_ARGUMENT: a pointer is null. */
int tide_lock_set_init(tide_lock_set_t *set, const tide_platform_t *platform, const tide_lock_port_t *port);
int tide_lock_init(tide_lock_t *lock, tide_lock_set_t *set);

/* The callback may take the lock: the lock's ceiling rises to the callback's priority. Call it before the lanes run.
 * TIDE_ERROR_STATE: the callback belongs to no executor. TIDE_ERROR_UNSUPPORTED: its lane has a budget or a bandwidth,
 * which may end within a critical section. */
int tide_lock_allow(tide_lock_t *lock, const tide_callback_t *callback);

/* Called by the running callback. TIDE_OK: the caller holds the lock. Errors change nothing:
 *   TIDE_ERROR_LOCK_CONTEXT   an interrupt, or the callback is not running
 *   TIDE_ERROR_LOCK_HELD      the caller holds this lock or another one of the set
 *   TIDE_ERROR_LOCK_CEILING   the callback is more urgent than any that was allowed, or the lock is held and
 *                             lanes cannot wait
 *   TIDE_ERROR_NOT_PERMITTED  the system does not let this user raise a priority
 *   TIDE_ERROR_UNSUPPORTED    FreeRTOS without INCLUDE_vTaskPrioritySet */
int tide_lock_take(tide_lock_t *lock, const tide_callback_t *callback);

/* Call it from the lane that took the lock. TIDE_ERROR_STATE: no lane holds it. TIDE_ERROR_LOCK_OWNER: another lane
 * holds it. */
int tide_lock_give(tide_lock_t *lock);

/* Like tide_status_text, including the codes of locks. It is a separate function, so that a program without locks does
 * not link them. */
const char *tide_lock_text(int status);

TIDE_EXTERN_C_END
#endif
