/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions enter the critical section, do their part on the two halves, have the link start the next frame,
 * leave it, and then call on_activity to wake the executor. */
#include <string.h>

#include "daemon_internal.h"
#include "daemon_trace.h"
#include "tide/status.h"
#include "upcalls.h"

/* ---- the owner: a session called by name, or whom the configuration names ---- */

#if TIDE_STATIC_SESSION
static void owner_on_activity(tide_daemon_t *d) { tide_daemon_owner_on_activity(d); }
static void owner_on_done(tide_daemon_t *d, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_daemon_owner_on_done(d, node, outcome);
}
static void owner_on_control(tide_daemon_t *d, const tide_delivery_t *delivery) {
  tide_daemon_owner_on_control(d, delivery);
}
static void join_halves(tide_daemon_t *d, const tide_daemon_config_t *config) {
  (void)d;
  (void)config;
}
#else
static void owner_on_activity(tide_daemon_t *d) {
  if (d->owner.on_activity) d->owner.on_activity(d->owner.context);
}
static void owner_on_done(tide_daemon_t *d, tide_node_t *node, tide_node_outcome_t outcome) {
  if (d->owner.on_done) d->owner.on_done(d->owner.context, node, outcome);
}
static void owner_on_control(tide_daemon_t *d, const tide_delivery_t *delivery) {
  if (d->owner.on_control) d->owner.on_control(d->owner.receiver_context, delivery);
}

static int32_t priority_of(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account) {
  const tide_daemon_t *d = context;
  return d->owner.priority_of(d->owner.receiver_context, stream, request, account);
}

static void submessage_delivered(void *context, const tide_delivery_t *delivery) {
  const tide_daemon_t *d = context;
  d->owner.on_submessage(d->owner.receiver_context, delivery);
}

static void join_halves(tide_daemon_t *d, const tide_daemon_config_t *config) {
  tide_receiver_config_t *const receiver = &d->receiver.config;
  d->owner.on_activity = config->on_activity;
  d->owner.on_done = config->on_done;
  d->owner.context = config->context;
  d->owner.receiver_context = receiver->context;
  d->owner.priority_of = receiver->priority_of;
  d->owner.on_submessage = receiver->on_submessage;
  d->owner.on_control = receiver->on_control;
  d->transmitter.config.on_done = tide_daemon_on_done;
  d->transmitter.config.context = d;
  receiver->context = d;
  receiver->on_acknowledge = TIDE_RELIABLE_STREAMS ? tide_daemon_on_acknowledge : NULL;
  receiver->on_control = tide_daemon_on_control;
  if (receiver->priority_of) receiver->priority_of = priority_of;
  receiver->on_submessage = submessage_delivered;
}
#endif

/* ---- what the halves report; inside the critical section ---- */

void tide_daemon_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_daemon_t *d = context;
  TIDE_INVARIANT(node->owner == NULL || !tide_queue_contains(&node->entry));
  const bool deferring = d->deferring;
  d->deferring = true;
  DAEMON_TRACE(daemon_trace_done(d, node, outcome));
  owner_on_done(d, node, outcome);
  d->deferring = deferring;
  tide_daemon_wake_waiters(d, node->capacity);
  d->changed = true;
}

void tide_daemon_on_acknowledge(void *context, uint8_t stream, uint16_t first, uint16_t missing) {
  tide_daemon_t *d = context;
  (void)tide_transmitter_request_acknack(&d->transmitter, stream, first, missing);
}

static bool is_of_our_session(const tide_daemon_t *d, const tide_delivery_t *delivery) {
  return d->receiver.session == TIDE_XRCE_SESSION_ANY || delivery->header.session == d->receiver.session;
}

void tide_daemon_on_control(void *context, const tide_delivery_t *delivery) {
  tide_daemon_t *d = context;
  const tide_xrce_submessage_t *submessage = &delivery->submessage;
  d->changed = true;
  if (TIDE_RELIABLE_STREAMS && submessage->id == TIDE_XRCE_ACKNACK && is_of_our_session(d, delivery)) {
    tide_cdr_t cdr;
    tide_xrce_acknack_t body;
    tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                    !(submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN));
    tide_xrce_get_acknack(&cdr, &body);
    if (cdr.status == TIDE_OK && tide_transmitter_on_acknack(&d->transmitter, &body, daemon_now_ns(d)) != TIDE_OK)
      d->out_of_step = true;
  }
  owner_on_control(d, delivery);
}

/* ---- the wire ---- */

static void wire_ended(tide_daemon_t *d) {
  DAEMON_TRACE(daemon_trace_wire(d, TIDE_TRACE_WIRE_END, daemon_now_ns(d)));
  tide_transmitter_sent(&d->transmitter, daemon_now_ns(d));
}

/* What to do about the frame after start has returned. True: the wire is free again already. */
static bool settle(tide_daemon_t *d, int status) {
  const bool cancelled = DAEMON_LINK_MAY_GO && d->cancelled;
  TIDE_INVARIANT(!d->starting && d->transmitter.busy && (d->link_open || cancelled));
  if (!d->completed && !cancelled && status >= 0) return false;
  if (cancelled && !d->completed) {
    tide_transmitter_cancel(&d->transmitter);
  } else {
    wire_ended(d);
  }
  return true;
}

/* Inside the critical section, and in the same one as whatever made a frame ready or the wire free: nobody who is
 * preempted stands between the two. True: that frame has gone already, so there may be another. */
static bool start_next(tide_daemon_t *d) {
  if (!d->link_open || d->deferring || d->starting) return false;
  if (tide_transmitter_next(&d->transmitter, daemon_now_ns(d), &d->frame) != 1) return false;
  DAEMON_TRACE(daemon_trace_wire(d, TIDE_TRACE_WIRE_START, daemon_now_ns(d)));
  TIDE_INVARIANT(d->transmitter.busy && d->frame.head_bytes + d->frame.body_bytes > 0u);
  d->starting = true;
  d->completed = false;
  if (DAEMON_LINK_MAY_GO) d->cancelled = false;
  const int status = d->link.start(d->link.context, &d->frame);
  d->starting = false;
  return settle(d, status);
}

static void report_activity(tide_daemon_t *d) {
  const uintptr_t state = daemon_enter(d);
  const bool changed = d->changed && !d->deferring;
  if (changed) d->changed = false;
  daemon_leave(d, state);
  if (changed) owner_on_activity(d);
}

/* Where the frame has gone already, the section is left before the next one, so that it stays short. Whoever comes in
 * between finds the wire free and starts what is most urgent. Nobody else would tell of its end. */
void tide_daemon_leave_busy(tide_daemon_t *d, uintptr_t state) {
  bool again = start_next(d);
  daemon_leave(d, state);
  if (!again) return;
  while (again) {
    state = daemon_enter(d);
    again = start_next(d);
    daemon_leave(d, state);
  }
  report_activity(d);
}

/* ---- set-up ---- */

int tide_daemon_init(tide_daemon_t *d, const tide_daemon_config_t *config) {
  if (!d || !config || (!TIDE_STATIC_PLATFORM && !config->platform)) return TIDE_ERROR_ARGUMENT;
  memset(d, 0, sizeof *d);
  d->platform = config->platform;
  int status = tide_transmitter_init(&d->transmitter, &config->transmitter);
  if (status == TIDE_OK) status = tide_receiver_init(&d->receiver, &config->receiver);
  if (status != TIDE_OK) return status;
  join_halves(d, config);
  if (DAEMON_HAS_WAITERS) tide_platform_event_init(d->platform, &d->done_event);
  tide_framing_reader_init(&d->reader, 0u);
  return TIDE_OK;
}

int tide_daemon_attach_link(tide_daemon_t *d, const tide_link_t *link, uint8_t address) {
  if (!link || !link->start) return TIDE_ERROR_ARGUMENT;
  const uintptr_t state = daemon_enter(d);
  const bool was_open = d->link_open;
  if (!was_open) {
    d->link = *link;
    d->link_open = true;
    d->transmitter.config.heartbeat_floor_ns = link->heartbeat_floor_ns;
    tide_framing_reader_init(&d->reader, address);
    tide_framing_reader_set_buffer(&d->reader, tide_receiver_claim(&d->receiver), d->receiver.config.slot_bytes);
  }
  tide_daemon_leave_busy(d, state);
  return was_open ? TIDE_ERROR_STATE : TIDE_OK;
}

void tide_daemon_detach_link(tide_daemon_t *d) {
  const uintptr_t state = daemon_enter(d);
  if (d->link_open) {
    d->link_open = false;
    if (DAEMON_LINK_MAY_GO && d->starting) {
      d->cancelled = true;
    } else {
      tide_transmitter_cancel(&d->transmitter);
    }
  }
  daemon_leave(d, state);
}

/* ---- from the link ---- */

void tide_daemon_on_transmit_complete(tide_daemon_t *d) {
  const uintptr_t state = daemon_enter(d);
  const bool starting = d->starting; /* then whoever starts it goes on and tells */
  TIDE_INVARIANT(!starting || !d->completed);
  if (starting) {
    d->completed = true;
  } else {
    wire_ended(d);
  }
  tide_daemon_leave_busy(d, state);
  if (!starting) report_activity(d);
}

static void commit(tide_daemon_t *d, uint16_t length, bool verify, uint16_t crc) {
  const uintptr_t state = daemon_enter(d);
  TIDE_INVARIANT(length <= d->receiver.config.slot_bytes);
  d->deferring = true; /* the most urgent of all that one message asks for goes first */
  d->last_received_ns = daemon_now_ns(d);
  DAEMON_TRACE_LOCAL(const tide_slot_t *const slot = d->receiver.filling);
  DAEMON_TRACE_LOCAL(const uint32_t missed = daemon_trace_missed(d));
  if (tide_receiver_commit(&d->receiver, length, verify, crc, d->last_received_ns) == 1) {
    d->changed = true;
    DAEMON_TRACE(daemon_trace_slot(d, TIDE_TRACE_RECEIVED, slot, d->last_received_ns));
  }
  DAEMON_TRACE(daemon_trace_not_received(d, missed, slot, d->last_received_ns));
  d->deferring = false;
  tide_daemon_leave_busy(d, state);
}

void tide_daemon_on_bytes(tide_daemon_t *d, const uint8_t *bytes, size_t count) {
  while (count > 0u) {
    int complete = 0;
    const size_t used = tide_framing_reader_input(&d->reader, bytes, count, &complete);
    TIDE_INVARIANT(used <= count && (used > 0u || complete || d->reader.length <= d->receiver.config.slot_bytes));
    bytes += used;
    count -= used;
    if (complete) {
      commit(d, d->reader.length, true, d->reader.crc);
      tide_framing_reader_set_buffer(&d->reader, tide_receiver_claim(&d->receiver), d->receiver.config.slot_bytes);
    }
    if (used == 0u && !complete) break;
  }
  report_activity(d);
}

void tide_daemon_on_message(tide_daemon_t *d, const uint8_t *message, size_t length) {
  if (length <= d->receiver.config.slot_bytes && length > 0u)
    memcpy(tide_receiver_claim(&d->receiver), message, length);
  /* one that is too long is committed as such, and counted as malformed */
  commit(d, (uint16_t)(length <= d->receiver.config.slot_bytes ? length : 0u), false, 0u);
  report_activity(d);
}

int tide_daemon_wait(tide_daemon_t *d, tide_event_t *event, int64_t deadline_ns) {
  const uintptr_t state = daemon_enter(d);
  const tide_link_t link = d->link_open ? d->link : (tide_link_t){0};
  daemon_leave(d, state);
  return link.wait ? link.wait(link.context, event, deadline_ns)
                   : tide_platform_event_wait(d->platform, event, deadline_ns);
}

int64_t tide_daemon_poll(tide_daemon_t *d) {
  int64_t next_ns;
  bool again;
  do {
    const uintptr_t state = daemon_enter(d);
    const int64_t time_ns = daemon_now_ns(d);
    if (TIDE_MESSAGE_EXPIRY) (void)tide_transmitter_poll(&d->transmitter, time_ns); /* heartbeats: start_next looks */
    again = start_next(d);
    next_ns = tide_transmitter_poll(&d->transmitter, time_ns);
    daemon_leave(d, state);
  } while (again);
  report_activity(d);
  return next_ns;
}

/* ---- from the executor ---- */

int32_t tide_daemon_most_urgent(tide_daemon_t *d) {
  const uintptr_t state = daemon_enter(d);
  const int32_t priority = tide_receiver_most_urgent(&d->receiver);
  daemon_leave(d, state);
  return priority;
}

int32_t tide_daemon_most_urgent_of(tide_daemon_t *d, const tide_frame_share_t *share) {
  const uintptr_t state = daemon_enter(d);
  const int32_t priority = tide_receiver_most_urgent_of(&d->receiver, share);
  daemon_leave(d, state);
  return priority;
}

/* When a slot came free for what was withheld, an acknowledgment asks for it. */
static void leave_asking(tide_daemon_t *d, uintptr_t state, bool may_ask) {
  if (may_ask) {
    tide_daemon_leave_busy(d, state);
  } else {
    daemon_leave(d, state);
  }
}

static int process(tide_daemon_t *d, tide_slot_t *(*take)(tide_receiver_t *, const tide_frame_share_t *),
                   const tide_frame_share_t *share) {
  uintptr_t state = daemon_enter(d);
  tide_slot_t *slot = take(&d->receiver, share);
  daemon_leave(d, state);
  if (!slot) return 0;
  const bool verified = tide_receiver_verify(slot);
  state = daemon_enter(d);
  DAEMON_TRACE_LOCAL(const uint32_t missed = daemon_trace_missed(d));
  const bool accepted = tide_receiver_accept(&d->receiver, slot, verified);
  DAEMON_TRACE(daemon_trace_not_received(d, missed, slot, daemon_now_ns(d)));
  tide_daemon_leave_busy(d, state); /* the acknowledgment leaves while the payload is handed on */
  if (!accepted) return 0;
  const int count = tide_receiver_deliver(&d->receiver, slot);
  state = daemon_enter(d);
  const bool may_ask = TIDE_RESERVATIONS && d->receiver.withheld;
  DAEMON_TRACE(daemon_trace_slot(d, TIDE_TRACE_DIGESTED, slot, daemon_now_ns(d)));
  tide_receiver_finish(&d->receiver, slot);
  leave_asking(d, state, may_ask);
  return count;
}

int tide_daemon_process_most_urgent_of(tide_daemon_t *d, const tide_frame_share_t *share) {
  return process(d, tide_receiver_take_most_urgent_of, share);
}
int tide_daemon_process_oldest_of(tide_daemon_t *d, const tide_frame_share_t *share) {
  return process(d, tide_receiver_take_oldest_of, share);
}

static tide_slot_t *take_most_urgent(tide_receiver_t *r, const tide_frame_share_t *share) {
  (void)share;
  return tide_receiver_take_most_urgent(r);
}
static tide_slot_t *take_oldest(tide_receiver_t *r, const tide_frame_share_t *share) {
  (void)share;
  return tide_receiver_take_oldest(r);
}
int tide_daemon_process_most_urgent(tide_daemon_t *d) { return process(d, take_most_urgent, NULL); }
int tide_daemon_process_oldest(tide_daemon_t *d) { return process(d, take_oldest, NULL); }

void tide_daemon_disown(tide_daemon_t *d, uint8_t owner) {
  const uintptr_t state = daemon_enter(d);
  tide_receiver_disown(&d->receiver, owner);
  daemon_leave(d, state);
}

void tide_daemon_release(tide_daemon_t *d, void *memory, bool reassembled) {
  const uintptr_t state = daemon_enter(d);
  const size_t noted = d->receiver.noted.count;
  const bool may_ask = TIDE_RESERVATIONS && d->receiver.withheld;
  tide_receiver_release(&d->receiver, memory, reassembled);
  if (d->receiver.noted.count > noted) d->changed = true;
  leave_asking(d, state, may_ask);
  if (reassembled) report_activity(d);
}

void tide_daemon_resume(tide_daemon_t *d, tide_account_t *account) {
  const uintptr_t state = daemon_enter(d);
  const size_t noted = d->receiver.noted.count;
  tide_receiver_set_full(&d->receiver, account, false);
  if (d->receiver.noted.count > noted) d->changed = true;
  daemon_leave(d, state);
  report_activity(d);
}
