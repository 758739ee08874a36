/* SPDX-License-Identifier: Apache-2.0 */
/* The priority ceiling of locks on threads. A lane with a fixed priority rises to that of the lock's lane. Lanes with
 * normal scheduling have no priority to raise: there a lock only excludes, without bounding the wait. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"

#define UNCHANGED UINTPTR_MAX

_Static_assert(sizeof(pthread_t) <= sizeof(void *), "a thread's name fits where a lock keeps its holder");

static const void *current(void *context) {
  const pthread_t self = pthread_self(); /* threads of NuttX's simulator share thread-local storage */
  const void *name = NULL;
  (void)context;
  memcpy(&name, &self, sizeof self); /* pthread_t is a number on some systems, a pointer on others */
  return name;
}

static bool is_fixed(int policy) { return policy == SCHED_FIFO || policy == SCHED_RR; }

static int set_priority(int policy, int priority) {
  const struct sched_param parameters = {.sched_priority = priority};
  return pthread_setschedparam(pthread_self(), policy, &parameters) == 0 ? TIDE_OK : TIDE_ERROR_NOT_PERMITTED;
}

static int raise_to(void *context, const tide_lane_t *lane, uintptr_t *before) {
  struct sched_param own;
  int policy;
  (void)context;
  *before = UNCHANGED;
  const tide_lane_settings_t *settings = &lane->settings;
  const bool ranked =
      settings->scheduling == TIDE_SCHEDULING_FIFO || settings->scheduling == TIDE_SCHEDULING_ROUND_ROBIN;
  if (!ranked || pthread_getschedparam(pthread_self(), &policy, &own) != 0 || !is_fixed(policy)) return TIDE_OK;
  if (own.sched_priority >= settings->priority) return TIDE_OK;
  *before = (uintptr_t)own.sched_priority;
  return set_priority(policy, settings->priority);
}

/* Lowering is always permitted. */
static void restore(void *context, uintptr_t before) {
  struct sched_param own;
  int policy;
  (void)context;
  if (before == UNCHANGED || pthread_getschedparam(pthread_self(), &policy, &own) != 0) return;
  (void)set_priority(policy, (int)before);
}

const tide_lock_port_t *tide_port_locks(void) {
  static const tide_lock_port_t port = {.current = current, .raise = raise_to, .restore = restore, .may_wait = true};
  return &port;
}
