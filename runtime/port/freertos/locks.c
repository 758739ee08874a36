/* SPDX-License-Identifier: Apache-2.0 */
/* The priority ceiling of locks on tasks. A lane rises to the priority of the lock's lane, if that one has a priority
 * of its own: lanes that inherit one all have the same. */
#include "tide/lock.h"

#include "tide/port.h"
#include "tide/status.h"
#include "tide_freertos.h"

#define UNCHANGED UINTPTR_MAX

static const void *current(void *context) {
  (void)context;
  return TIDE_FREERTOS_IN_INTERRUPT() ? NULL : (const void *)xTaskGetCurrentTaskHandle();
}

#if INCLUDE_vTaskPrioritySet
static int raise_to(void *context, const tide_lane_t *lane, uintptr_t *before) {
  const tide_lane_settings_t *settings = &lane->settings;
  const UBaseType_t own = uxTaskPriorityGet(NULL);
  (void)context;
  *before = UNCHANGED;
  const bool ranked =
      settings->scheduling == TIDE_SCHEDULING_FIFO || settings->scheduling == TIDE_SCHEDULING_ROUND_ROBIN;
  if (!ranked || own >= (UBaseType_t)settings->priority) return TIDE_OK;
  *before = (uintptr_t)own;
  vTaskPrioritySet(NULL, (UBaseType_t)settings->priority);
  return TIDE_OK;
}

static void restore(void *context, uintptr_t before) {
  (void)context;
  if (before != UNCHANGED) vTaskPrioritySet(NULL, (UBaseType_t)before);
}
#else
static int raise_to(void *context, const tide_lane_t *lane, uintptr_t *before) {
  (void)context;
  (void)lane;
  *before = UNCHANGED;
  return TIDE_ERROR_UNSUPPORTED;
}

static void restore(void *context, uintptr_t before) {
  (void)context;
  (void)before;
}
#endif

const tide_lock_port_t *tide_port_locks(void) {
  static const tide_lock_port_t port = {.current = current, .raise = raise_to, .restore = restore, .may_wait = true};
  return &port;
}
