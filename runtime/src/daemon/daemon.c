/* SPDX-License-Identifier: Apache-2.0 */
/* The Communication Daemon (tide/daemon.h): a transmitter, a receiver and a link that share one critical section.
 *
 * A public function enters the critical section, updates the transmitter and the receiver, lets the link start the next
 * frame, leaves the section, and then calls on_activity to wake the executor. */
#include "tide/daemon.h"

#include <string.h>

#include "daemon_internal.h"
#include "tide/invariant.h"
#include "tide/status.h"

/* From this number of frames in flight on, a submitter also receives: half of the usual window. By then several
 * acknowledgments have arrived together, and the window is not full yet. */
#define ATTEND_IN_FLIGHT 8u
#define LINK_MAY_GO (!TIDE_STATIC_PLATFORM) /* a link may close while it starts a frame */

static int64_t now_ns(const tide_daemon_t *d) { return tide_platform_now_ns(d->platform); }
static uintptr_t enter(tide_daemon_t *d) { return tide_platform_enter(d->platform); }

static void leave(tide_daemon_t *d, uintptr_t state) {
  /* a frame is started only on a link that is open or about to be closed */
  TIDE_INVARIANT(LINK_MAY_GO || !d->cancelled);
  TIDE_INVARIANT(!d->starting || d->transmitter.busy);
  tide_platform_exit(d->platform, state);
}

/* ---- traces: recorded within the critical section; nothing without TIDE_TRACE or without a ring ---- */

#if TIDE_TRACE
static tide_priority_t trace_level(uint8_t stream) { return TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0); }

static void trace_node(const tide_daemon_t *d, tide_trace_kind_t kind, const tide_node_t *node, uint8_t detail,
                       int64_t time_ns) {
  (void)tide_trace_put(d->trace, kind, node->priority, node->trace_instance, detail, time_ns);
}

/* Marks the node with its instance before the submission, because a submitted node may at once be on the wire or
 * free. */
static void trace_mark(const tide_daemon_t *d, tide_node_t *node, uint8_t stream) {
  node->trace_instance = tide_trace_instance(d->trace, trace_level(stream));
}

static void trace_wire(const tide_daemon_t *d, tide_trace_kind_t kind, int64_t time_ns) {
  if (!d->transmitter.busy) return;
  const tide_node_t *node = d->transmitter.current_node;
  (void)tide_trace_put(d->trace, kind, d->frame.priority, node ? node->trace_instance : 0u, (uint8_t)(node ? 0u : 1u),
                       time_ns);
  if (node && kind == TIDE_TRACE_WIRE_START) {
    (void)tide_trace_put(d->trace, TIDE_TRACE_FRAME, d->frame.priority, d->transmitter.current_sequence, node->stream,
                         time_ns);
  }
}

static void trace_done(const tide_daemon_t *d, const tide_node_t *node, tide_node_outcome_t outcome) {
  if (outcome != TIDE_NODE_SENT && outcome != TIDE_NODE_ACKNOWLEDGED && outcome != TIDE_NODE_PACKED)
    trace_node(d, TIDE_TRACE_LOST, node, (uint8_t)outcome, tide_platform_now_ns(d->platform));
}

static void trace_slot(const tide_daemon_t *d, tide_trace_kind_t kind, const tide_slot_t *slot, int64_t time_ns) {
  (void)tide_trace_put(d->trace, kind, trace_level(slot->stream), slot->sequence, slot->stream, time_ns);
}

static uint32_t trace_missed(const tide_daemon_t *d) {
  if (!d->trace) return 0u;
  const tide_receiver_counters_t *counters = &d->receiver.counters;
  return counters->checksum_errors + counters->malformed + counters->overflow_dropped + counters->gaps +
         counters->given_up;
}

/* Records the frames that were lost after `before` was counted. A missing reliable message may still arrive. */
static void trace_not_received(const tide_daemon_t *d, uint32_t before, const tide_slot_t *slot, int64_t time_ns) {
  const uint32_t missed = trace_missed(d) - before;
  if (missed > 0u) {
    (void)tide_trace_put(d->trace, TIDE_TRACE_LOST, trace_level(slot->stream), missed, TIDE_TRACE_NOT_RECEIVED,
                         time_ns);
  }
}
/* Without a ring nothing is computed; not even the clock is read. */
#define DAEMON_TRACE(call) \
  do {                     \
    if (d->trace) {        \
      (call);              \
    }                      \
  } while (false)
#define DAEMON_TRACE_LOCAL(declaration) declaration
#else
#define DAEMON_TRACE(call) ((void)0)
#define DAEMON_TRACE_LOCAL(declaration) ((void)0)
#endif

/* ---- calls of the daemon's owner: the session's functions directly, or the configuration's pointers ---- */

#if TIDE_STATIC_PLATFORM
static void owner_on_activity(tide_daemon_t *d) { tide_daemon_owner_on_activity(d); }
#define HAS_ON_DONE(d) true
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
#define HAS_ON_DONE(d) ((d)->owner.on_done != NULL)
static void owner_on_done(tide_daemon_t *d, tide_node_t *node, tide_node_outcome_t outcome) {
  d->owner.on_done(d->owner.context, node, outcome);
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

/* ---- reports of the transmitter and the receiver; made inside the critical section ---- */

void tide_daemon_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_daemon_t *d = context;
  TIDE_INVARIANT(node->owner == NULL || !tide_queue_contains(&node->entry));
  d->changed = true;
  DAEMON_TRACE(trace_done(d, node, outcome));
  if (!HAS_ON_DONE(d)) return;
  const bool deferring = d->deferring;
  d->deferring = true;
  owner_on_done(d, node, outcome);
  d->deferring = deferring;
}

void tide_daemon_on_acknowledge(void *context, uint8_t stream, uint16_t first, uint16_t missing) {
  tide_daemon_t *d = context;
  (void)tide_transmitter_request_acknack(&d->transmitter, stream, first, missing);
}

void tide_daemon_on_control(void *context, const tide_delivery_t *delivery) {
  tide_daemon_t *d = context;
  const tide_xrce_submessage_t *submessage = &delivery->submessage;
  const uint8_t session = d->receiver.session;
  d->changed = true;
  if (TIDE_RELIABLE_STREAMS && submessage->id == TIDE_XRCE_ACKNACK &&
      (session == TIDE_XRCE_SESSION_ANY || delivery->header.session == session)) {
    tide_cdr_t cdr;
    tide_xrce_acknack_t body;
    tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                    !(submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN));
    tide_xrce_get_acknack(&cdr, &body);
    if (cdr.status == TIDE_OK && tide_transmitter_on_acknack(&d->transmitter, &body, d->last_received_ns) != TIDE_OK)
      d->out_of_step = true;
  }
  owner_on_control(d, delivery);
}

/* ---- the wire ---- */

static void wire_ended(tide_daemon_t *d, int64_t time_ns) {
  DAEMON_TRACE(trace_wire(d, TIDE_TRACE_WIRE_END, now_ns(d)));
  tide_transmitter_sent(&d->transmitter, time_ns);
}

static bool may_start(const tide_daemon_t *d) { return d->link_open && !d->deferring && !d->starting; }

/* Passes the frame to the link. Returns true if the frame has left already, so that the caller may start the next
 * one. */
static bool start(tide_daemon_t *d, int64_t time_ns) {
  DAEMON_TRACE(trace_wire(d, TIDE_TRACE_WIRE_START, time_ns));
  TIDE_INVARIANT(d->transmitter.busy && d->frame.head_bytes + d->frame.body_bytes > 0u);
  d->starting = true;
  d->completed = false;
  if (LINK_MAY_GO) d->cancelled = false;
  const int status = d->link.start(d->link.context, &d->frame);
  d->starting = false;
  const bool cancelled = LINK_MAY_GO && d->cancelled;
  TIDE_INVARIANT(d->transmitter.busy && (d->link_open || cancelled));
  if (!d->completed && !cancelled && status == TIDE_OK) return false;
  if (cancelled && !d->completed) {
    tide_transmitter_cancel(&d->transmitter);
  } else {
    wire_ended(d, time_ns);
  }
  return true;
}

/* Called inside the critical section in which a frame became ready or the wire free, so that no preempted thread can
 * delay the start. A time_ns of 0 means that the caller has not read the clock; if no frame waits, HEARTBEATs that
 * became due meanwhile are then left to poll. */
static bool start_next(tide_daemon_t *d, int64_t time_ns) {
  const tide_transmitter_t *t = &d->transmitter;
  if (!may_start(d) || t->busy) return false;
  if (time_ns < t->heartbeat_least_ns && !tide_transmitter_has_next(t)) return false;
  if (time_ns == 0) time_ns = now_ns(d);
  return tide_transmitter_next(&d->transmitter, time_ns, &d->frame) == 1 && start(d, time_ns);
}

static bool take_changed(tide_daemon_t *d) {
  const bool changed = d->changed && !d->deferring && !d->starting;
  if (changed) d->changed = false;
  return changed;
}

static void leave_reporting(tide_daemon_t *d, uintptr_t state) {
  const bool changed = take_changed(d);
  leave(d, state);
  if (changed) owner_on_activity(d);
}

/* Leaves the critical section after the link has started the most urgent frame; `gone` means that this frame was sent
 * at once. The critical section is left before each further start, so that it stays short. A thread that enters the
 * section in between finds the wire free and starts the most urgent frame itself. Returns true if the owner has to be
 * called. */
static bool leave_started(tide_daemon_t *d, uintptr_t state, bool gone) {
  while (gone && tide_transmitter_has_next(&d->transmitter)) {
    leave(d, state);
    state = enter(d);
    gone = start_next(d, 0);
  }
  const bool changed = take_changed(d);
  leave(d, state);
  return changed;
}

static void leave_busy(tide_daemon_t *d, uintptr_t state) {
  if (leave_started(d, state, start_next(d, 0))) owner_on_activity(d);
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
  tide_framing_reader_init(&d->reader, 0u);
  return TIDE_OK;
}

int tide_daemon_attach_link(tide_daemon_t *d, const tide_link_t *link, uint8_t address) {
  if (!link || !link->start) return TIDE_ERROR_ARGUMENT;
  const uintptr_t state = enter(d);
  const bool was_open = d->link_open;
  if (!was_open) {
    d->link = *link;
    d->link_open = true;
    d->transmitter.config.heartbeat_floor_ns = link->heartbeat_floor_ns;
    tide_framing_reader_init(&d->reader, address);
    tide_framing_reader_set_buffer(&d->reader, tide_receiver_claim(&d->receiver), d->receiver.config.slot_bytes);
  }
  leave_busy(d, state);
  return was_open ? TIDE_ERROR_STATE : TIDE_OK;
}

void tide_daemon_detach_link(tide_daemon_t *d) {
  const uintptr_t state = enter(d);
  if (d->link_open) {
    d->link_open = false;
    if (LINK_MAY_GO && d->starting) {
      d->cancelled = true;
    } else {
      tide_transmitter_cancel(&d->transmitter);
    }
  }
  leave(d, state);
}

/* ---- from the link ---- */

void tide_daemon_on_transmit_complete(tide_daemon_t *d) {
  const uintptr_t state = enter(d);
  TIDE_INVARIANT(!d->starting || !d->completed);
  if (d->starting) { /* the caller that starts the frame continues and reports */
    d->completed = true;
    leave(d, state);
    return;
  }
  const int64_t time_ns = now_ns(d);
  wire_ended(d, time_ns);
  if (leave_started(d, state, start_next(d, time_ns))) owner_on_activity(d);
}

/* Returns true if the owner has to be called. */
static bool commit(tide_daemon_t *d, uint16_t length, bool verify, uint16_t crc) {
  const uintptr_t state = enter(d);
  TIDE_INVARIANT(length <= d->receiver.config.slot_bytes);
  d->deferring = true; /* of all frames caused by one message, the most urgent one goes first */
  d->last_received_ns = now_ns(d);
  DAEMON_TRACE_LOCAL(const tide_slot_t *const slot = d->receiver.filling);
  DAEMON_TRACE_LOCAL(const uint32_t missed = trace_missed(d));
  if (tide_receiver_commit(&d->receiver, length, verify, crc, d->last_received_ns) == 1) {
    d->changed = true;
    DAEMON_TRACE(trace_slot(d, TIDE_TRACE_RECEIVED, slot, d->last_received_ns));
  }
  DAEMON_TRACE(trace_not_received(d, missed, slot, d->last_received_ns));
  d->deferring = false;
  return leave_started(d, state, start_next(d, d->last_received_ns));
}

void tide_daemon_on_bytes(tide_daemon_t *d, const uint8_t *bytes, size_t count) {
  bool changed = false;
  while (count > 0u) {
    int complete = 0;
    const size_t used = tide_framing_reader_input(&d->reader, bytes, count, &complete);
    TIDE_INVARIANT(used <= count && (used > 0u || complete || d->reader.length <= d->receiver.config.slot_bytes));
    bytes += used;
    count -= used;
    if (complete) {
      changed = commit(d, d->reader.length, true, d->reader.crc) || changed;
      tide_framing_reader_set_buffer(&d->reader, tide_receiver_claim(&d->receiver), d->receiver.config.slot_bytes);
    }
    if (used == 0u && !complete) break;
  }
  if (changed) owner_on_activity(d);
}

void tide_daemon_on_message(tide_daemon_t *d, const uint8_t *message, size_t length) {
  if (length <= d->receiver.config.slot_bytes && length > 0u)
    memcpy(tide_receiver_claim(&d->receiver), message, length);
  /* a message that is too long is committed with length 0 and counted as malformed */
  if (commit(d, (uint16_t)(length <= d->receiver.config.slot_bytes ? length : 0u), false, 0u)) owner_on_activity(d);
}

int tide_daemon_wait(tide_daemon_t *d, tide_event_t *event, int64_t deadline_ns, tide_wait_t kind) {
  const uintptr_t state = enter(d);
  int (*const wait)(void *, tide_event_t *, int64_t, tide_wait_t) = d->link_open ? d->link.wait : NULL;
  void *const link = d->link.context;
  if (wait) d->link.hold(link);
  leave(d, state);
  return wait ? wait(link, event, deadline_ns, kind) : tide_platform_event_wait(d->platform, event, deadline_ns);
}

int64_t tide_daemon_poll(tide_daemon_t *d) {
  int64_t next_ns, room_ns = TIDE_FOREVER;
  bool again;
  do {
    const uintptr_t state = enter(d);
    const int64_t time_ns = now_ns(d);
    if (TIDE_RESERVATIONS && tide_receiver_is_short(&d->receiver)) {
      const size_t noted = d->receiver.noted.count;
      room_ns = tide_receiver_poll(&d->receiver, time_ns);
      if (d->receiver.noted.count > noted) d->changed = true;
    }
    if (!TIDE_LEAN && time_ns >= tide_transmitter_deadline(&d->transmitter)) /* start_next handles heartbeats */
      (void)tide_transmitter_poll(&d->transmitter, time_ns);
    again = start_next(d, time_ns);
    next_ns = tide_transmitter_poll(&d->transmitter, time_ns);
    leave_reporting(d, state);
  } while (again);
  return room_ns < next_ns ? room_ns : next_ns;
}

/* ---- from the executor ---- */

int32_t tide_daemon_most_urgent(tide_daemon_t *d) {
  if (tide_queue_looks_empty(&d->receiver.noted)) return TIDE_PRIORITY_NONE;
  const uintptr_t state = enter(d);
  const int32_t priority = tide_receiver_most_urgent(&d->receiver);
  leave(d, state);
  return priority;
}

int32_t tide_daemon_most_urgent_of(tide_daemon_t *d, const tide_frame_share_t *share) {
  if (tide_queue_looks_empty(&d->receiver.noted)) return TIDE_PRIORITY_NONE;
  const uintptr_t state = enter(d);
  const int32_t priority = tide_receiver_most_urgent_of(&d->receiver, share);
  leave(d, state);
  return priority;
}

/* may_ask: missing frames were not requested, for lack of slots. If a slot became free, an acknowledgment that requests
 * them is due. */
static void leave_asking(tide_daemon_t *d, uintptr_t state, bool may_ask) {
  if (may_ask) {
    leave_busy(d, state);
  } else {
    leave_reporting(d, state);
  }
}

static int process(tide_daemon_t *d, tide_slot_t *(*take)(tide_receiver_t *, const tide_frame_share_t *),
                   const tide_frame_share_t *share) {
  uintptr_t state = enter(d);
  tide_slot_t *slot = take(&d->receiver, share);
  const bool counts = slot && slot->verify; /* a checksum takes time linear in the frame's length, so it is computed
                                             * outside of the critical section */
  if (!slot || counts) leave(d, state);
  if (!slot) return 0;
  const bool verified = tide_receiver_verify(slot);
  if (counts) state = enter(d);
  DAEMON_TRACE_LOCAL(const uint32_t missed = trace_missed(d));
  const bool accepted = tide_receiver_accept(&d->receiver, slot, verified);
  DAEMON_TRACE(trace_not_received(d, missed, slot, now_ns(d)));
  leave_busy(d, state); /* the acknowledgment leaves while the payload is delivered */
  if (!accepted) return 0;
  const int count = tide_receiver_deliver(&d->receiver, slot);
  state = enter(d);
  const bool may_ask = TIDE_RESERVATIONS && d->receiver.withheld;
  DAEMON_TRACE(trace_slot(d, TIDE_TRACE_DIGESTED, slot, now_ns(d)));
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

static const tide_frame_share_t all_frames = {.most = UINT16_MAX};

int tide_daemon_process_most_urgent(tide_daemon_t *d) { return tide_daemon_process_most_urgent_of(d, &all_frames); }
int tide_daemon_process_oldest(tide_daemon_t *d) { return tide_daemon_process_oldest_of(d, &all_frames); }

void tide_daemon_disown(tide_daemon_t *d, uint8_t owner) {
  const uintptr_t state = enter(d);
  tide_receiver_disown(&d->receiver, owner);
  leave(d, state);
}

void tide_daemon_release(tide_daemon_t *d, void *memory, bool reassembled) {
  const uintptr_t state = enter(d);
  const size_t noted = d->receiver.noted.count;
  const bool may_ask = TIDE_RESERVATIONS && d->receiver.withheld;
  tide_receiver_release(&d->receiver, memory, reassembled);
  if (d->receiver.noted.count > noted) d->changed = true;
  leave_asking(d, state, may_ask);
}

void tide_daemon_resume(tide_daemon_t *d, tide_account_t *account) {
  const uintptr_t state = enter(d);
  const size_t noted = d->receiver.noted.count;
  tide_receiver_set_full(&d->receiver, account, false);
  if (d->receiver.noted.count > noted) d->changed = true;
  leave_reporting(d, state);
}

/* ---- nodes for messages ---- */

enum { OWN, FOR_WRITER, KEEPING_LAST };

static int acquire(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, uint16_t writer, int how,
                   tide_node_t **node) {
  tide_transmitter_t *const t = &d->transmitter;
  const uintptr_t state = enter(d);
  int status = how == OWN ? tide_transmitter_acquire_own(t, bytes, node)
                          : tide_transmitter_acquire_free(t, bytes, priority, writer, node);
  if (status != TIDE_ERROR_FULL) {
    leave(d, state);
    return status;
  }
  (void)tide_transmitter_poll(t, now_ns(d)); /* reclaims expired nodes */
  status = how == OWN          ? tide_transmitter_acquire_own(t, bytes, node)
           : how == FOR_WRITER ? tide_transmitter_acquire_for(t, bytes, priority, writer, node)
                               : tide_transmitter_acquire_last(t, bytes, priority, writer, node);
  leave_busy(d, state); /* this also informs the peer of expired messages */
  return status;
}

int tide_daemon_acquire_for(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                            tide_node_t **node) {
  return acquire(d, bytes, priority, writer, FOR_WRITER, node);
}

int tide_daemon_acquire_last(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                             tide_node_t **node) {
  return acquire(d, bytes, priority, writer, KEEPING_LAST, node);
}

int tide_daemon_acquire(tide_daemon_t *d, uint32_t bytes, tide_priority_t priority, tide_node_t **node) {
  return acquire(d, bytes, priority, 0u, FOR_WRITER, node);
}

int tide_daemon_acquire_own(tide_daemon_t *d, uint32_t bytes, tide_node_t **node) {
  /* without reservations FOR_WRITER does the same: no node is reserved, and nothing is less urgent than priority 0, so
   * nothing is evicted */
  return acquire(d, bytes, 0u, 0u, TIDE_RESERVATIONS ? OWN : FOR_WRITER, node);
}

void tide_daemon_keep_last_locked(tide_daemon_t *d, tide_node_t *node, uint8_t stream, uint16_t depth) {
  tide_transmitter_keep_last(&d->transmitter, node, stream, depth, now_ns(d));
}

void tide_daemon_abandon(tide_daemon_t *d, tide_node_t *node) {
  const uintptr_t state = enter(d);
  tide_transmitter_abandon(&d->transmitter, node);
  leave(d, state);
}

/* ---- submit ---- */

int tide_daemon_submit(tide_daemon_t *d, tide_node_t *node, uint8_t stream) {
  return tide_daemon_submit_and_leave(d, node, stream, enter(d));
}

int tide_daemon_submit_and_leave(tide_daemon_t *d, tide_node_t *node, uint8_t stream, uintptr_t state) {
  DAEMON_TRACE(trace_mark(d, node, stream));
  if (TIDE_PACKING && d->transmitter.config.pack && tide_transmitter_pack(&d->transmitter, node, stream)) {
    DAEMON_TRACE(trace_node(d, TIDE_TRACE_SUBMIT, node, 0u, now_ns(d)));
    leave_busy(d, state);
    return TIDE_OK;
  }
  const int64_t time_ns = now_ns(d);
  const bool starts = may_start(d);
  const int status = tide_transmitter_submit_next(&d->transmitter, node, stream, time_ns, starts ? &d->frame : NULL);
  DAEMON_TRACE(trace_node(d, status < 0 ? TIDE_TRACE_LOST : TIDE_TRACE_SUBMIT, node,
                          status < 0 ? TIDE_TRACE_REFUSED : 0u, time_ns));
  int (*wait)(void *, tide_event_t *, int64_t, tide_wait_t) = NULL;
  void *const link = d->link.context;
  if (!TIDE_STATIC_PLATFORM && d->link.wait && starts && TIDE_STREAM_IS_RELIABLE(stream) &&
      tide_transmitter_in_flight(&d->transmitter, stream) >= ATTEND_IN_FLIGHT) {
    wait = d->link.wait;
    d->link.hold(link);
  }
  const bool gone = status == 1 ? start(d, time_ns) : start_next(d, time_ns);
  if (leave_started(d, state, gone)) owner_on_activity(d);
  if (wait) (void)wait(link, NULL, 0, TIDE_WAIT_NOT);
  return status < 0 ? status : TIDE_OK;
}

int tide_daemon_submit_part(tide_daemon_t *d, tide_long_message_t *message, tide_node_t *node, uint8_t stream,
                            bool complete) {
  const uintptr_t state = enter(d);
  const int status = tide_transmitter_submit_part(&d->transmitter, message, node, stream, complete, now_ns(d));
  leave_busy(d, state);
  return status;
}

int tide_daemon_submit_control(tide_daemon_t *d, const uint8_t *submessage, size_t length, uint8_t session,
                               tide_priority_t priority) {
  const uintptr_t state = enter(d);
  const int status = tide_transmitter_submit_control(&d->transmitter, submessage, length, session, priority);
  leave_busy(d, state);
  return status;
}

/* ---- functions for the session ---- */

void tide_daemon_set_session(tide_daemon_t *d, uint8_t session, uint32_t key) {
  const uintptr_t state = enter(d);
  tide_transmitter_set_session(&d->transmitter, session, key);
  tide_receiver_set_session(&d->receiver, session, key);
  d->out_of_step = false;
  leave(d, state);
}

void tide_daemon_reset(tide_daemon_t *d, bool keep) {
  const uintptr_t state = enter(d);
  tide_transmitter_reset(&d->transmitter, keep);
  tide_receiver_reset(&d->receiver);
  leave_busy(d, state);
}

int tide_daemon_set_heartbeat_delay(tide_daemon_t *d, int64_t delay_ns) {
  const uintptr_t state = enter(d);
  const int status = tide_transmitter_set_heartbeat_delay(&d->transmitter, delay_ns);
  leave(d, state);
  return status;
}

int tide_daemon_set_packing(tide_daemon_t *d, bool pack) {
  if (!TIDE_PACKING && pack) return TIDE_ERROR_UNSUPPORTED;
  const uintptr_t state = enter(d);
  d->transmitter.config.pack = pack;
  leave(d, state);
  return TIDE_OK;
}

int tide_daemon_hold_level(tide_daemon_t *d, uint8_t level, bool hold) {
  const uintptr_t state = enter(d);
  const int status = tide_transmitter_hold_level(&d->transmitter, level, hold);
  leave_busy(d, state);
  return status;
}

void tide_daemon_pause_streams(tide_daemon_t *d, bool paused) {
  const uintptr_t state = enter(d);
  tide_transmitter_pause_streams(&d->transmitter, paused);
  leave_busy(d, state);
}

bool tide_daemon_is_idle(tide_daemon_t *d, uint8_t stream) {
  const uintptr_t state = enter(d);
  const bool idle = tide_transmitter_is_idle(&d->transmitter, stream);
  leave(d, state);
  return idle;
}
