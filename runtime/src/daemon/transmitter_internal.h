/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the transmitter share.
 * Invariants.
 * A reliable node is in execution_buffer exactly when one of its fragments could go now: something is flagged for
 * resending, or it is its stream's `sending` and the window is open. So at most one unsent node of a stream is in the
 * heap, an acknowledgment touches at most a window of nodes, and a full window blocks nobody else.
 * Sequence numbers are given when a fragment leaves for the first time. Since a stream is first come, first served
 * this is the same as giving them at submission, but what expires unsent leaves no hole.
 * A node whose time is over while it is on the wire (NODE_RETURNING) is given back when the wire lets go of it. */
#ifndef TIDE_DAEMON_TRANSMITTER_INTERNAL_H
#define TIDE_DAEMON_TRANSMITTER_INTERNAL_H

#include "tide/invariant.h"
#include "tide/platform.h"
#include "tide/status.h"
#include "tide/transmitter.h"

enum { NODE_FREE, NODE_OWNED, NODE_SUBMITTED, NODE_OVERDUE, NODE_RETURNING };
enum { FRAME_NONE, FRAME_CONTROL, FRAME_ACKNACK, FRAME_HEARTBEAT, FRAME_NODE, FRAME_OF_OLD_SESSION };
/* A rank is the priority and, in its low bits, the order of submission. */
#define TRANSMITTER_RANK_BITS 47

static inline uint32_t transmitter_ticks_of(int64_t time_ns) { return (uint32_t)((uint64_t)time_ns >> 10); }
static inline uint16_t transmitter_in_flight(const tide_output_stream_t *stream) {
  return (uint16_t)(stream->next_to_send - stream->first_unacknowledged);
}
static inline bool transmitter_has_room(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  return transmitter_in_flight(stream) < t->config.window;
}
static inline bool transmitter_is_reliable(const tide_node_t *node) { return TIDE_STREAM_IS_RELIABLE(node->stream); }
static inline int32_t transmitter_priority_at(uint8_t stream, int32_t position) {
  return (int32_t)TIDE_STREAM_LEVEL(stream) << 8 | position;
}
static inline int32_t transmitter_priority_of_rank(int64_t rank) {
  return 0xFFFF - (int32_t)(rank >> TRANSMITTER_RANK_BITS);
}
static inline bool transmitter_has_bit(uint32_t bits, uint32_t number) { return (bits >> number & 1u) != 0u; }

/* Without fragments every message is one, and is given back when that is acknowledged. */
static inline uint16_t transmitter_fragment_count(const tide_node_t *node) {
  return (uint16_t)(TIDE_FRAGMENTS ? node->fragment_count : 1u);
}
static inline uint16_t transmitter_window_base(const tide_node_t *node) {
  return (uint16_t)(TIDE_FRAGMENTS ? node->window_base : 0u);
}
/* Of what never expires nothing is given up. */
static inline bool transmitter_has_skipped(const tide_output_stream_t *stream) {
  return TIDE_MESSAGE_EXPIRY && stream->skipped;
}

static inline tide_long_message_t *transmitter_long_message(const tide_output_stream_t *stream) {
#if TIDE_LONG_MESSAGES
  return stream->long_message;
#else
  (void)stream;
  return NULL;
#endif
}
static inline bool transmitter_is_part(const tide_output_stream_t *stream, const tide_node_t *node) {
  const tide_long_message_t *message = transmitter_long_message(stream);
  return message && node->owner == message;
}
/* More parts come: what stands behind it in the list of its stream waits. */
static inline bool transmitter_is_being_written(const tide_output_stream_t *stream) {
  const tide_long_message_t *message = transmitter_long_message(stream);
  return message && !message->complete;
}
static inline bool transmitter_is_last_part(const tide_output_stream_t *stream, const tide_node_t *part) {
  const tide_long_message_t *message = transmitter_long_message(stream);
  return message->complete && message->last == part;
}
/* What leaves when this node has. */
static inline tide_node_t *transmitter_behind(const tide_output_stream_t *stream, const tide_node_t *node) {
  if (transmitter_is_being_written(stream) && transmitter_long_message(stream)->last == node) return NULL;
  return node->next_in_stream;
}

static inline void transmitter_stop_pending(tide_transmitter_t *t, tide_node_t *node) {
  if (TIDE_MESSAGE_EXPIRY) tide_queue_remove(&t->pending_buffer, &node->pending);
}

/* One copy serves all where small code counts. */
inline tide_output_stream_t *tide_transmitter_find_stream(const tide_transmitter_t *t, uint8_t id) {
  for (size_t i = 0; i < t->stream_places; ++i)
    if (t->config.streams[i].id == id) return &t->config.streams[i];
  return NULL;
}

/* transmitter_invariants.c. Not from what on_done may call (submit, acquire, poll): a step may be half done there. */
#if TIDE_INVARIANTS
void tide_transmitter_check(const tide_transmitter_t *t);
#else
static inline void tide_transmitter_check(const tide_transmitter_t *t) { (void)t; }
#endif

/* transmitter_pool.c */
void tide_transmitter_enqueue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node);
void tide_transmitter_dequeue(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node);
void tide_transmitter_finish_node(tide_transmitter_t *t, tide_node_t *node,
                                  tide_node_outcome_t outcome); /* to its owner */
/* The node is no longer in its stream's list: give it back, now or when the wire lets go of it. */
void tide_transmitter_release_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node,
                                   tide_node_outcome_t outcome);
tide_output_stream_t *tide_transmitter_take_stream(tide_transmitter_t *t, uint8_t id); /* null: no place for it */
/* The key of a node that joins the stream now. */
int64_t tide_transmitter_rank_of(const tide_transmitter_t *t, const tide_output_stream_t *stream,
                                 const tide_node_t *node);
void tide_transmitter_clear_stream(tide_output_stream_t *stream, uint8_t id);
void tide_transmitter_unlink_node(tide_output_stream_t *stream, tide_node_t *node);
void tide_transmitter_start_over(const tide_transmitter_t *t, tide_node_t *node); /* from its first fragment */

/* transmitter_long.c */
#if TIDE_LONG_MESSAGES
void tide_transmitter_return_part(tide_output_stream_t *stream, tide_node_t *node); /* its part came back */
void tide_transmitter_lose_long(tide_transmitter_t *t, tide_output_stream_t *stream);
#else
static inline void tide_transmitter_return_part(tide_output_stream_t *stream, tide_node_t *node) {
  (void)stream;
  (void)node;
}
static inline void tide_transmitter_lose_long(tide_transmitter_t *t, tide_output_stream_t *stream) {
  (void)t;
  (void)stream;
}
#endif

/* transmitter_acknowledgments.c */
/* After any change: what the stream could send is queued, and silence has its time limit, counted from the end of the
 * last frame. */
void tide_transmitter_refresh_stream(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns);
/* Until a HEARTBEAT is repeated. */
int64_t tide_transmitter_repeat_delay_ns(const tide_transmitter_t *t, const tide_output_stream_t *stream);
/* Returns the time of the next HEARTBEAT that is not due yet. */
int64_t tide_transmitter_mark_due_heartbeats(tide_transmitter_t *t, int64_t now_ns);
/* A node that ran out of time while others of its stream stood before it may be at the front now. */
void tide_transmitter_expire_overdue(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns);

#endif
