/* SPDX-License-Identifier: Apache-2.0 */
/* The priority ceiling of locks on threads of Zephyr, which counts priorities downwards (lanes.c). A lane rises to the
 * priority of the lock's lane, if that one has a priority of its own: lanes that inherit one all have the same. */
#include <zephyr/kernel.h>

#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"

#define UNCHANGED UINTPTR_MAX

static const void *current(void *context) {
  ARG_UNUSED(context);
  return k_is_in_isr() ? NULL : (const void *)k_current_get();
}

static int raise_to(void *context, const tide_lane_t *lane, uintptr_t *before) {
  const tide_lane_settings_t *settings = &lane->settings;
  const int own = k_thread_priority_get(k_current_get());
  const int ceiling = CONFIG_NUM_PREEMPT_PRIORITIES - settings->priority;
  ARG_UNUSED(context);
  *before = UNCHANGED;
  const bool ranked =
      settings->scheduling == TIDE_SCHEDULING_FIFO || settings->scheduling == TIDE_SCHEDULING_ROUND_ROBIN;
  if (!ranked || own <= ceiling) return TIDE_OK;
  *before = (uintptr_t)own; /* above a ceiling that is preemptible, so not negative */
  k_thread_priority_set(k_current_get(), ceiling);
  return TIDE_OK;
}

static void restore(void *context, uintptr_t before) {
  ARG_UNUSED(context);
  if (before != UNCHANGED) k_thread_priority_set(k_current_get(), (int)before);
}

const tide_lock_port_t *tide_port_locks(void) {
  static const tide_lock_port_t port = {.current = current, .raise = raise_to, .restore = restore, .may_wait = true};
  return &port;
}
