/* SPDX-License-Identifier: Apache-2.0 */
/* What goes next, the making of its frame, and the end of it. */
#include <string.h>

#include "transmitter_internal.h"

enum { HEADER_OF_SET_SESSION = 0xFF, ACKNACK_BYTES = 5, HEARTBEAT_BYTES = 5 };

static const uint8_t padding[3] = {0, 0, 0};

/* ---- what goes next ---- */

typedef struct choice {
  uint8_t kind;
  int32_t priority; /* ACKNACKs and HEARTBEATs stand above every position of their level */
  size_t control;
  tide_output_stream_t *stream;
  tide_node_t *node;
} choice_t;

static void choose_control(const tide_transmitter_t *t, choice_t *best) {
  for (size_t i = 0; i < t->control_count; ++i) {
    if (t->control[i].priority <= best->priority) continue;
    best->kind = FRAME_CONTROL;
    best->priority = t->control[i].priority;
    best->control = i;
  }
}

/* A level has one stream with answers, whose ACKNACK goes before its HEARTBEAT. */
static void choose_answer(const tide_transmitter_t *t, choice_t *best) {
  if (!TIDE_RELIABLE_STREAMS) return;
  for (size_t i = 0; i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (!stream->acknack_due && !stream->heartbeat_due) continue;
    const int32_t priority = transmitter_priority_at(stream->id, 0xFF);
    if (priority <= best->priority) continue;
    best->kind = stream->acknack_due ? FRAME_ACKNACK : FRAME_HEARTBEAT;
    best->priority = priority;
    best->stream = stream;
  }
}

static bool holds(const tide_transmitter_t *t, uint8_t level) {
  return t->config.hold_until_acknowledged || transmitter_has_bit(t->config.hold_levels[level / 32u], level % 32u);
}

/* The most urgent level that keeps less urgent ones off the wire; none: TIDE_PRIORITY_NONE. */
static int32_t held_level(const tide_transmitter_t *t) {
  int32_t level = TIDE_PRIORITY_NONE;
  for (size_t i = 0; i < t->stream_places; ++i) {
    const tide_output_stream_t *stream = &t->config.streams[i];
    const uint8_t own = TIDE_STREAM_LEVEL(stream->id);
    if (stream->id != 0u && transmitter_in_flight(stream) > 0u && own > level && holds(t, own)) level = own;
  }
  return level;
}

static void choose_node(const tide_transmitter_t *t, choice_t *best) {
  tide_node_t *node = (tide_node_t *)(void *)tide_queue_head(&t->execution_buffer);
  if (!node) return;
  if (TIDE_HOLD && TIDE_STREAM_LEVEL(node->stream) < held_level(t)) return;
  const int32_t priority = transmitter_priority_of_rank(node->rank);
  if (priority <= best->priority) return;
  best->kind = FRAME_NODE;
  best->priority = priority;
  best->node = node;
}

static choice_t choose(const tide_transmitter_t *t) {
  choice_t best = {.kind = FRAME_NONE, .priority = TIDE_PRIORITY_NONE};
  choose_control(t, &best);
  if (t->paused) return best;
  choose_answer(t, &best);
  choose_node(t, &best);
  return best;
}

static void start_frame(const tide_transmitter_t *t, tide_frame_parts_t *frame, uint8_t session, uint8_t stream,
                        uint16_t sequence) {
  const tide_xrce_header_t header = {.session = session, .stream = stream, .sequence = sequence, .key = t->key};
  frame->head = frame->head_storage;
  frame->head_bytes = tide_xrce_put_header(frame->head_storage, &header);
  frame->body = NULL;
  frame->body_bytes = 0u;
  frame->tail = NULL;
  frame->tail_bytes = 0u;
  frame->awaited = false;
}

static void build_control(tide_transmitter_t *t, size_t index, tide_frame_parts_t *frame) {
  const uint8_t session = t->control[index].session;
  start_frame(t, frame, session == HEADER_OF_SET_SESSION ? t->session : session, TIDE_XRCE_STREAM_NONE, 0u);
  memcpy(frame->head_storage + frame->head_bytes, t->control[index].bytes, t->control[index].length);
  frame->head_bytes += t->control[index].length;
  t->current_control = (uint8_t)index;
}

static void build_answer(tide_transmitter_t *t, tide_output_stream_t *stream, uint8_t kind, tide_frame_parts_t *frame) {
  tide_cdr_t cdr;
  start_frame(t, frame, t->session, TIDE_XRCE_STREAM_NONE, 0u);
  uint8_t *bytes = frame->head_storage + frame->head_bytes;
  tide_cdr_writer(&cdr, bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, ACKNACK_BYTES);
  if (kind == FRAME_ACKNACK) {
    const tide_xrce_acknack_t body = {stream->acknack_first, stream->acknack_missing, stream->id};
    tide_xrce_put_submessage_header(bytes, TIDE_XRCE_ACKNACK, TIDE_XRCE_FLAG_LITTLE_ENDIAN, ACKNACK_BYTES);
    tide_xrce_put_acknack(&cdr, &body);
    stream->acknack_due = false;
    TIDE_COUNT(t->counters.acknacks, 1u);
  } else {
    const tide_xrce_heartbeat_t body = {stream->first_unacknowledged, (uint16_t)(stream->next_to_send - 1u),
                                        stream->id};
    tide_xrce_put_submessage_header(bytes, TIDE_XRCE_HEARTBEAT, TIDE_XRCE_FLAG_LITTLE_ENDIAN, HEARTBEAT_BYTES);
    tide_xrce_put_heartbeat(&cdr, &body);
    stream->heartbeat_due = false;
    frame->awaited = true;
    if (stream->heartbeats_unanswered < UINT8_MAX) stream->heartbeats_unanswered++;
    TIDE_COUNT(t->counters.heartbeats, 1u);
  }
  frame->head_bytes += TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + cdr.position;
  t->current_stream = stream;
}

/* Reliable: the fragment to go now, and the books as if it had gone: its acknowledgment may overtake the report that
 * its last byte has left. */
static void take_fragment(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns) {
  uint16_t offset = 0u;
  if (node->resend != 0u) {
    while (TIDE_FRAGMENTS && !transmitter_has_bit(node->resend, offset)) offset++;
    node->resend &= (uint16_t)(node->resend - 1u);
    t->current_fragment = (uint16_t)(transmitter_window_base(node) + offset);
    t->current_sequence = (uint16_t)(node->first_sequence + t->current_fragment);
    stream->resent |= (uint16_t)(1u << (uint16_t)(t->current_sequence - stream->first_unacknowledged));
    TIDE_COUNT(t->counters.retransmissions, 1u);
  } else {
    TIDE_INVARIANT(transmitter_has_room(t, stream));
    if (node->next_fragment == 0u) node->first_sequence = stream->next_to_send;
    t->current_fragment = node->next_fragment++;
    t->current_sequence = stream->next_to_send++;
    if (!TIDE_FRAGMENTS || node->next_fragment == node->fragment_count)
      stream->sending = transmitter_behind(stream, node);
  }
  stream->sent_ticks[t->current_sequence % 16u] = transmitter_ticks_of(now_ns);
  if (TIDE_MESSAGE_EXPIRY && !tide_queue_contains(&node->pending))
    (void)tide_queue_push(&t->pending_buffer, &node->pending, node->expires_ns);
  if (node->resend == 0u && !(stream->sending == node && transmitter_has_room(t, stream)))
    tide_transmitter_dequeue(t, stream, node);
  tide_transmitter_refresh_stream(t, stream, now_ns);
}

static void build_node(tide_transmitter_t *t, tide_node_t *node, int64_t now_ns, tide_frame_parts_t *frame) {
  tide_output_stream_t *stream = tide_transmitter_find_stream(t, node->stream);
  t->current_stream = stream;
  t->current_node = node;
  if (transmitter_is_reliable(node)) {
    take_fragment(t, stream, node, now_ns);
  } else {
    tide_transmitter_dequeue(t, stream, node);
    t->current_sequence = stream->next_sequence;
  }
  start_frame(t, frame, t->session, node->stream, t->current_sequence);
  frame->awaited = transmitter_is_reliable(node);
  frame->body = node->bytes;
  frame->body_bytes = node->length;
  const bool is_part = TIDE_LONG_MESSAGES && transmitter_is_part(stream, node);
  if (TIDE_FRAGMENTS && (node->fragment_count > 1u || is_part)) {
    const uint32_t start = t->current_fragment * t->fragment_bytes;
    const bool ends = t->current_fragment + 1u == node->fragment_count;
    const bool last = ends && (!is_part || transmitter_is_last_part(stream, node));
    const uint32_t bytes = ends ? node->length - start : t->fragment_bytes;
    frame->body = node->bytes + start;
    frame->body_bytes = bytes;
    const uint8_t flags = (uint8_t)(TIDE_XRCE_FLAG_LITTLE_ENDIAN | (last ? TIDE_XRCE_FLAG_LAST_FRAGMENT : 0u));
    tide_xrce_put_submessage_header(frame->head_storage + frame->head_bytes, TIDE_XRCE_FRAGMENT, flags,
                                    (uint16_t)bytes);
    frame->head_bytes += TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
    TIDE_COUNT(t->counters.fragments, 1u);
  }
  if (t->config.pad_last) {
    frame->tail = padding;
    frame->tail_bytes = (4u - frame->body_bytes % 4u) % 4u;
  }
}

int tide_transmitter_next(tide_transmitter_t *t, int64_t now_ns, tide_frame_parts_t *frame) {
  if (t->busy) return 0;
  (void)tide_transmitter_mark_due_heartbeats(t, now_ns);
  const choice_t choice = choose(t);
  if (choice.kind == FRAME_NONE) return 0;
  t->busy = true;
  t->current_kind = choice.kind;
  t->current_node = NULL;
  frame->priority = (tide_priority_t)choice.priority;
  if (choice.kind == FRAME_CONTROL) {
    build_control(t, choice.control, frame);
  } else if (choice.kind == FRAME_NODE) {
    build_node(t, choice.node, now_ns, frame);
  } else if (TIDE_RELIABLE_STREAMS) {
    build_answer(t, choice.stream, choice.kind, frame);
  }
  TIDE_COUNT(t->counters.frames, 1u);
  tide_transmitter_check(t);
  return 1;
}

/* ---- the wire is done ---- */

static void remove_control(tide_transmitter_t *t) {
  TIDE_INVARIANT(t->current_control < t->control_count);
  t->control_count--;
  for (size_t i = t->current_control; i < t->control_count; ++i) t->control[i] = t->control[i + 1u];
}
static void node_sent(tide_transmitter_t *t, tide_node_t *node, int64_t now_ns) {
  tide_output_stream_t *stream = t->current_stream;
  if (!transmitter_is_reliable(node)) {
    stream->next_sequence++;
    if (node->state == NODE_SUBMITTED) tide_transmitter_release_node(t, stream, node, TIDE_NODE_SENT);
    return;
  }
  if (node->state != NODE_RETURNING) stream->sent_ticks[t->current_sequence % 16u] = transmitter_ticks_of(now_ns);
  stream->heartbeat_at_ns = TIDE_FOREVER; /* counts from the last frame */
  tide_transmitter_refresh_stream(t, stream, now_ns);
  tide_transmitter_expire_overdue(t, stream, now_ns);
}

static void give_back_current(tide_transmitter_t *t, tide_node_t *node) {
  if (node && node->state == NODE_RETURNING)
    tide_transmitter_finish_node(t, node, (tide_node_outcome_t)t->current_outcome);
}

void tide_transmitter_sent(tide_transmitter_t *t, int64_t now_ns) {
  if (!t->busy) return;
  tide_node_t *node = t->current_node;
  tide_output_stream_t *stream = t->current_stream;
  t->busy = false;
  t->current_node = NULL;
  switch (t->current_kind) {
    case FRAME_CONTROL:
      remove_control(t);
      break;
    case FRAME_HEARTBEAT:
      if (!TIDE_RELIABLE_STREAMS) break;
      if (transmitter_in_flight(stream) > 0u || transmitter_has_skipped(stream))
        stream->heartbeat_at_ns = now_ns + tide_transmitter_repeat_delay_ns(t, stream);
      tide_transmitter_refresh_stream(t, stream, now_ns);
      break;
    case FRAME_NODE:
      node_sent(t, node, now_ns);
      break;
    default:
      break;
  }
  give_back_current(t, node);
  tide_transmitter_check(t);
}

static void queue_again(tide_transmitter_t *t, tide_node_t *node) {
  tide_output_stream_t *stream = t->current_stream;
  const bool acknowledged = transmitter_is_reliable(node) && t->current_fragment < transmitter_window_base(node);
  if (node->state != NODE_RETURNING && !acknowledged) {
    if (transmitter_is_reliable(node))
      node->resend |= (uint16_t)(1u << (uint16_t)(t->current_fragment - transmitter_window_base(node)));
    tide_transmitter_enqueue(t, stream, node);
  }
  /* nothing of it goes now, so nothing would ask about the rest */
  if (transmitter_is_reliable(node) && stream->queued == 0u && transmitter_in_flight(stream) > 0u)
    stream->heartbeat_due = true;
}

void tide_transmitter_cancel(tide_transmitter_t *t) {
  if (!t->busy) return;
  tide_node_t *node = t->current_node;
  t->busy = false;
  t->current_node = NULL;
  if (t->current_kind == FRAME_NODE) queue_again(t, node);
  if (t->current_kind == FRAME_ACKNACK) t->current_stream->acknack_due = true;
  if (t->current_kind == FRAME_HEARTBEAT) t->current_stream->heartbeat_due = true;
  give_back_current(t, node);
  tide_transmitter_check(t);
}
