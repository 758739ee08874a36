/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon records, within its critical section; nothing without TIDE_TRACE, or without a ring. Called by way of
 * DAEMON_TRACE. */
#ifndef TIDE_DAEMON_TRACE_H
#define TIDE_DAEMON_TRACE_H

#include "tide/daemon.h"

#if TIDE_TRACE
static inline tide_priority_t daemon_trace_level(uint8_t stream) { return TIDE_PRIORITY(TIDE_STREAM_LEVEL(stream), 0); }

static inline void daemon_trace_node(const tide_daemon_t *d, tide_trace_kind_t kind, const tide_node_t *node,
                                     uint8_t detail, int64_t now_ns) {
  (void)tide_trace_put(d->trace, kind, node->priority, node->trace_instance, detail, now_ns);
}

/* Before it is submitted: then it may be on the wire, or free, at once. */
static inline void daemon_trace_mark(const tide_daemon_t *d, tide_node_t *node, uint8_t stream) {
  node->trace_instance = tide_trace_instance(d->trace, daemon_trace_level(stream));
}

static inline void daemon_trace_wire(const tide_daemon_t *d, tide_trace_kind_t kind, int64_t now_ns) {
  if (!d->transmitter.busy) return;
  const tide_node_t *node = d->transmitter.current_node;
  (void)tide_trace_put(d->trace, kind, d->frame.priority, node ? node->trace_instance : 0u, (uint8_t)(node ? 0u : 1u),
                       now_ns);
  if (node && kind == TIDE_TRACE_WIRE_START) {
    (void)tide_trace_put(d->trace, TIDE_TRACE_FRAME, d->frame.priority, d->transmitter.current_sequence, node->stream,
                         now_ns);
  }
}

static inline void daemon_trace_done(const tide_daemon_t *d, const tide_node_t *node, tide_node_outcome_t outcome) {
  if (outcome != TIDE_NODE_SENT && outcome != TIDE_NODE_ACKNOWLEDGED && outcome != TIDE_NODE_PACKED)
    daemon_trace_node(d, TIDE_TRACE_LOST, node, (uint8_t)outcome, tide_platform_now_ns(d->platform));
}

static inline void daemon_trace_slot(const tide_daemon_t *d, tide_trace_kind_t kind, const tide_slot_t *slot,
                                     int64_t now_ns) {
  (void)tide_trace_put(d->trace, kind, daemon_trace_level(slot->stream), slot->sequence, slot->stream, now_ns);
}

static inline uint32_t daemon_trace_missed(const tide_daemon_t *d) {
  if (!d->trace) return 0u;
  const tide_receiver_counters_t *counters = &d->receiver.counters;
  return counters->checksum_errors + counters->malformed + counters->overflow_dropped + counters->gaps +
         counters->given_up;
}

/* Since `before` was counted. A reliable message that is missed may come again. */
static inline void daemon_trace_not_received(const tide_daemon_t *d, uint32_t before, const tide_slot_t *slot,
                                             int64_t now_ns) {
  const uint32_t missed = daemon_trace_missed(d) - before;
  if (missed > 0u) {
    (void)tide_trace_put(d->trace, TIDE_TRACE_LOST, daemon_trace_level(slot->stream), missed, TIDE_TRACE_NOT_RECEIVED,
                         now_ns);
  }
}
/* Without a ring nothing is computed, the time neither. */
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

#endif
