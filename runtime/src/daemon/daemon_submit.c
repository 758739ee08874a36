/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes for messages: who gets one, who waits for one, and what is submitted. */
#include "daemon_internal.h"
#include "daemon_trace.h"
#include "tide/status.h"

/* The most urgent waits first, and of equals whoever came first. */
static bool waiters_hold(const tide_daemon_t *d) {
  for (const tide_daemon_waiter_t *waiter = d->waiters; waiter && waiter->next; waiter = waiter->next)
    if (waiter->priority < waiter->next->priority) return false;
  return true;
}

void tide_daemon_wake_waiters(tide_daemon_t *d, uint32_t bytes) {
  if (!DAEMON_HAS_WAITERS) return;
  for (tide_daemon_waiter_t *waiter = d->waiters; waiter; waiter = waiter->next)
    if (waiter->bytes <= bytes) tide_platform_event_set(d->platform, &waiter->event);
  tide_platform_event_set(d->platform, &d->done_event);
}

/* Somebody waits before this caller (who may be one of them), and could use what would be handed out. */
static bool is_spoken_for(const tide_daemon_t *d, const tide_daemon_waiter_t *caller) {
  const uint32_t free_bytes = tide_transmitter_free_bytes(&d->transmitter, caller->bytes);
  const uint32_t offered_bytes = free_bytes > 0u ? free_bytes : caller->bytes;
  for (const tide_daemon_waiter_t *waiter = d->waiters; waiter && waiter != caller; waiter = waiter->next) {
    if (waiter->priority < caller->priority) return false;
    if (waiter->bytes > offered_bytes) continue;
    const bool is_kept =
        TIDE_RESERVATIONS && free_bytes > 0u &&
        !tide_transmitter_may_acquire(&d->transmitter, waiter->bytes, waiter->priority, waiter->writer);
    if (!is_kept) return true; /* for the caller's level */
  }
  return false;
}

static int try_to_acquire(tide_daemon_t *d, const tide_daemon_waiter_t *caller, tide_node_t **node) {
  *node = NULL;
  if (DAEMON_HAS_WAITERS && d->waiters && is_spoken_for(d, caller)) return TIDE_ERROR_FULL;
  if (TIDE_RESERVATIONS && caller->own) return tide_transmitter_acquire_own(&d->transmitter, caller->bytes, node);
  return tide_transmitter_acquire_for(&d->transmitter, caller->bytes, caller->priority, caller->writer, node);
}

static int acquire(tide_daemon_t *d, const tide_daemon_waiter_t *caller, tide_node_t **node) {
  const uintptr_t state = daemon_enter(d);
  int status = try_to_acquire(d, caller, node);
  if (status != TIDE_ERROR_FULL) {
    daemon_leave(d, state);
    return status;
  }
  (void)tide_transmitter_poll(&d->transmitter, daemon_now_ns(d));
  status = try_to_acquire(d, caller, node);
  tide_daemon_leave_busy(d, state); /* the peer is told of what has expired */
  return status;
}

int tide_daemon_acquire_for(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                            tide_node_t **node) {
  const tide_daemon_waiter_t caller = {.bytes = bytes, .priority = priority, .writer = writer};
  return acquire(d, &caller, node);
}

int tide_daemon_acquire(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, tide_node_t **node) {
  return tide_daemon_acquire_for(d, bytes, priority, 0u, node);
}

int tide_daemon_acquire_own(tide_daemon_t *d, uint32_t bytes, tide_node_t **node) {
  if (!TIDE_RESERVATIONS) return tide_daemon_acquire(d, bytes, 0u, node); /* nothing is kept, and nothing is below 0 */
  const tide_daemon_waiter_t caller = {.bytes = bytes, .own = true};
  return acquire(d, &caller, node);
}

int tide_daemon_acquire_locked(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                               tide_node_t **node) {
  *node = NULL;
  if (DAEMON_HAS_WAITERS && d->waiters) return TIDE_ERROR_FULL;
  if (tide_transmitter_free_bytes(&d->transmitter, bytes) == 0u) return TIDE_ERROR_FULL;
  return tide_transmitter_acquire_for(&d->transmitter, bytes, priority, writer, node);
}

static void queue_up(tide_daemon_t *d, tide_daemon_waiter_t *waiter) {
  tide_daemon_waiter_t **place = &d->waiters;
  while (*place && (*place)->priority >= waiter->priority) place = &(*place)->next;
  waiter->next = *place;
  *place = waiter;
  TIDE_INVARIANT(waiters_hold(d));
}

/* What it was woken for and did not take is for the next. */
static void step_aside(tide_daemon_t *d, const tide_daemon_waiter_t *waiter) {
  tide_daemon_waiter_t **place = &d->waiters;
  while (*place != waiter) {
    TIDE_INVARIANT(*place != NULL);
    place = &(*place)->next;
  }
  *place = waiter->next;
  tide_daemon_wake_waiters(d, UINT32_MAX);
}

int tide_daemon_acquire_until(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, int64_t deadline_ns,
                              tide_node_t **node) {
  if (!DAEMON_HAS_WAITERS) return TIDE_ERROR_UNSUPPORTED;
  const tide_platform_t *platform = d->platform;
  tide_daemon_waiter_t waiter = {.bytes = bytes, .priority = priority};
  int status = acquire(d, &waiter, node);
  if (status != TIDE_ERROR_FULL) return status;
  tide_platform_event_init(platform, &waiter.event);
  uintptr_t state = daemon_enter(d);
  queue_up(d, &waiter);
  daemon_leave(d, state);
  do {
    status = acquire(d, &waiter, node); /* it may have come back before this one was in the queue */
    if (status == TIDE_ERROR_FULL && !tide_platform_event_wait(platform, &waiter.event, deadline_ns))
      status = TIDE_ERROR_TIMEOUT;
  } while (status == TIDE_ERROR_FULL);
  state = daemon_enter(d);
  step_aside(d, &waiter);
  daemon_leave(d, state);
  return status;
}

void tide_daemon_abandon(tide_daemon_t *d, tide_node_t *node) {
  const uintptr_t state = daemon_enter(d);
  tide_transmitter_abandon(&d->transmitter, node);
  tide_daemon_wake_waiters(d, node ? node->capacity : 0u);
  daemon_leave(d, state);
}

int tide_daemon_submit(tide_daemon_t *d, tide_node_t *node, uint8_t stream) {
  return tide_daemon_submit_and_leave(d, node, stream, daemon_enter(d));
}

int tide_daemon_submit_and_leave(tide_daemon_t *d, tide_node_t *node, uint8_t stream, uintptr_t state) {
  DAEMON_TRACE(daemon_trace_mark(d, node, stream));
  if (TIDE_PACKING && tide_transmitter_pack(&d->transmitter, node, stream)) {
    DAEMON_TRACE(daemon_trace_node(d, TIDE_TRACE_SUBMIT, node, 0u, daemon_now_ns(d)));
    tide_daemon_leave_busy(d, state);
    return TIDE_OK;
  }
  const int status = tide_transmitter_submit(&d->transmitter, node, stream, daemon_now_ns(d));
  DAEMON_TRACE(daemon_trace_node(d, status == TIDE_OK ? TIDE_TRACE_SUBMIT : TIDE_TRACE_LOST, node,
                                 status == TIDE_OK ? 0u : TIDE_TRACE_REFUSED, daemon_now_ns(d)));
  if (status != TIDE_OK) tide_daemon_wake_waiters(d, node->capacity);
  tide_daemon_leave_busy(d, state);
  return status;
}

int tide_daemon_submit_part(tide_daemon_t *d, tide_long_message_t *message, tide_node_t *node, uint8_t stream,
                            bool complete) {
  const uintptr_t state = daemon_enter(d);
  const int status = tide_transmitter_submit_part(&d->transmitter, message, node, stream, complete, daemon_now_ns(d));
  tide_daemon_leave_busy(d, state);
  return status;
}

int tide_daemon_submit_control(tide_daemon_t *d, const uint8_t *submessage, size_t length, uint8_t session,
                               tide_priority_t priority) {
  const uintptr_t state = daemon_enter(d);
  const int status = tide_transmitter_submit_control(&d->transmitter, submessage, length, session, priority);
  tide_daemon_leave_busy(d, state);
  return status;
}
