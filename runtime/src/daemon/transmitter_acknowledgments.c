/* SPDX-License-Identifier: Apache-2.0 */
/* What the peer has, what it may have missed, and what nobody waits for any more: acknowledgments, HEARTBEATs and time
 * limits. */
#include "transmitter_internal.h"

enum { SLOW_AFTER_HEARTBEATS = 8, DELAY_SHIFT_MAXIMUM = 5 };
#define DELAY_MINIMUM_NS UINT32_C(2000000)
#define DELAY_UNMEASURED_NS UINT32_C(20000000)
#define DELAY_MAXIMUM_NS UINT32_C(2000000000)
#define TICK_BITS 10                      /* of transmitter_ticks_of */
#define ROUND_TRIP_MAXIMUM_TICKS 9765625u /* 10 s */

static tide_node_t *node_of_pending(tide_queue_entry_t *entry) {
  return (tide_node_t *)(void *)((uint8_t *)entry - offsetof(tide_node_t, pending));
}
static uint32_t elapsed_ticks(const tide_output_stream_t *stream, uint16_t sequence, int64_t now_ns) {
  return transmitter_ticks_of(now_ns) - stream->sent_ticks[sequence % 16u];
}
static uint16_t low_bits(uint32_t count) { return (uint16_t)(count >= 16u ? 0xFFFFu : (1u << count) - 1u); }
static uint16_t shifted(uint32_t bits, uint32_t count) { return (uint16_t)(count >= 16u ? 0u : bits >> count); }

/* ---- HEARTBEATs ---- */

static uint32_t at_most(uint32_t value, uint32_t maximum) { return value < maximum ? value : maximum; }

static uint32_t round_trip_ticks(const tide_transmitter_t *t) { return t->round_trip_eighths >> 3; }

static int64_t heartbeat_delay_ns(const tide_transmitter_t *t) {
  if (t->config.heartbeat_delay_ns >= 0) return t->config.heartbeat_delay_ns;
  if (t->config.heartbeat_floor_ns >= (int64_t)DELAY_MAXIMUM_NS) return DELAY_MAXIMUM_NS;
  const uint32_t given_ns = (uint32_t)t->config.heartbeat_floor_ns;
  const uint32_t floor_ns = given_ns > 0u ? given_ns : DELAY_MINIMUM_NS;
  const uint32_t ticks = at_most(round_trip_ticks(t) + t->deviation_quarters, DELAY_MAXIMUM_NS >> TICK_BITS);
  uint32_t delay_ns = t->round_trip_eighths > 0u ? ticks << TICK_BITS : DELAY_UNMEASURED_NS;
  if (delay_ns < floor_ns) delay_ns = floor_ns;
  return at_most(delay_ns, DELAY_MAXIMUM_NS >> t->delay_shift) << t->delay_shift;
}

int64_t tide_transmitter_repeat_delay_ns(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  const uint32_t count = stream->heartbeats_unanswered;
  int64_t delay = t->config.heartbeat_period_ns;
  if (count > SLOW_AFTER_HEARTBEATS) {
    for (uint32_t slower = at_most((count - SLOW_AFTER_HEARTBEATS) / 4u, 3u); slower > 0u; --slower) delay += delay;
    return delay;
  }
  if (t->config.heartbeat_delay_ns >= 0) return delay;
  int64_t doubled = heartbeat_delay_ns(t);
  if (doubled >= delay) return doubled;
  for (uint32_t n = count; n > 0u && doubled < delay; --n) doubled += doubled;
  return doubled < delay ? doubled : delay;
}

/* A HEARTBEAT on the wire: the time of the next one counts from its end, and none is due before. */
static bool is_on_wire(const tide_transmitter_t *t, const tide_output_stream_t *stream) {
  return t->busy && t->current_stream == stream &&
         (t->current_kind == FRAME_NODE || t->current_kind == FRAME_HEARTBEAT);
}

void tide_transmitter_refresh_stream(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns) {
  if (!TIDE_RELIABLE_STREAMS) return;
  if (stream->sending && transmitter_has_room(t, stream)) tide_transmitter_enqueue(t, stream, stream->sending);
  if (transmitter_in_flight(stream) == 0u && !transmitter_has_skipped(stream)) {
    stream->heartbeat_at_ns = TIDE_FOREVER;
    stream->heartbeat_due = false;
    stream->heartbeats_unanswered = 0u;
  } else if (stream->queued > 0u || is_on_wire(t, stream)) {
    stream->heartbeat_at_ns = TIDE_FOREVER;
  } else if (!stream->heartbeat_due && stream->heartbeat_at_ns == TIDE_FOREVER) {
    stream->heartbeat_at_ns = now_ns + heartbeat_delay_ns(t);
  }
}
int64_t tide_transmitter_mark_due_heartbeats(tide_transmitter_t *t, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  if (!TIDE_RELIABLE_STREAMS) return next_ns;
  for (size_t i = 0; i < t->stream_places; ++i) {
    tide_output_stream_t *stream = &t->config.streams[i];
    if (stream->id == 0u) continue;
    if (stream->heartbeat_at_ns <= now_ns) {
      stream->heartbeat_at_ns = TIDE_FOREVER;
      stream->heartbeat_due = true;
    }
    if (stream->heartbeat_at_ns < next_ns) next_ns = stream->heartbeat_at_ns;
  }
  return next_ns;
}
/* ---- acknowledgments ---- */

/* As TCP (Jacobson, Congestion Avoidance and Control, 1988): an eighth of each error goes into the mean, a quarter into
 * the mean deviation, which are kept times 8 and times 4. */
static void measure_round_trip(tide_transmitter_t *t, uint32_t sample_ticks) {
  if (sample_ticks > ROUND_TRIP_MAXIMUM_TICKS) return;
  t->delay_shift = 0u;
  if (t->round_trip_eighths == 0u) {
    t->round_trip_eighths = sample_ticks > 0u ? sample_ticks * 8u : 1u;
    t->deviation_quarters = sample_ticks * 2u;
    return;
  }
  const int32_t error = (int32_t)(sample_ticks - round_trip_ticks(t));
  t->round_trip_eighths += (uint32_t)error;
  t->deviation_quarters += (uint32_t)(error < 0 ? -error : error) - t->deviation_quarters / 4u;
}

/* Karn: what was sent twice measures nothing, and neither does an answer that a HEARTBEAT may have asked for; but if
 * that goes on the delay is too short for this line, so it doubles. */
static void observe_progress(tide_transmitter_t *t, const tide_output_stream_t *stream, uint16_t count,
                             int64_t now_ns) {
  const uint16_t newest = (uint16_t)(stream->first_unacknowledged + count - 1u);
  if ((stream->resent & low_bits(count)) != 0u) return;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_stream == stream && t->current_sequence == newest) return;
  if (t->config.heartbeat_delay_ns < 0 && stream->heartbeats_unanswered > 0u && t->round_trip_eighths > 0u) {
    if (t->delay_shift < DELAY_SHIFT_MAXIMUM) t->delay_shift++;
    return;
  }
  measure_round_trip(t, elapsed_ticks(stream, newest, now_ns));
}

static void move_window(tide_output_stream_t *stream, uint16_t count) {
  stream->first_unacknowledged = (uint16_t)(stream->first_unacknowledged + count);
  stream->resent = shifted(stream->resent, count);
}

static void acknowledge(tide_transmitter_t *t, tide_output_stream_t *stream, uint16_t count) {
  while (count > 0u && stream->first) {
    tide_node_t *node = stream->first;
    uint16_t step = (uint16_t)(node->next_fragment - transmitter_window_base(node));
    TIDE_INVARIANT(step <= transmitter_in_flight(stream));
    if (TIDE_FRAGMENTS && step > count) step = count;
    if (step == 0u) return;
    count = (uint16_t)(count - step);
    move_window(stream, step);
    if (TIDE_FRAGMENTS) {
      node->window_base = (uint16_t)(node->window_base + step);
      node->resend = shifted(node->resend, step);
    }
    if (!TIDE_FRAGMENTS || node->window_base == node->fragment_count) {
      tide_transmitter_unlink_node(stream, node);
      tide_transmitter_release_node(t, stream, node, TIDE_NODE_ACKNOWLEDGED);
    } else if (node->resend == 0u && stream->sending != node) {
      tide_transmitter_dequeue(t, stream, node);
    }
  }
}

static bool is_under_way(const tide_transmitter_t *t, const tide_output_stream_t *stream, const tide_node_t *node,
                         uint16_t sequence, int64_t now_ns) {
  const uint16_t fragment = (uint16_t)(sequence - node->first_sequence);
  if (transmitter_has_bit(node->resend, (uint16_t)(fragment - transmitter_window_base(node)))) return true;
  if (t->busy && t->current_kind == FRAME_NODE && t->current_node == node && t->current_fragment == fragment)
    return true;
  const uint16_t offset = (uint16_t)(sequence - stream->first_unacknowledged);
  if (!transmitter_has_bit(stream->resent, offset)) return false;
  const uint32_t guard_ticks = t->round_trip_eighths > 0u ? round_trip_ticks(t) : DELAY_UNMEASURED_NS >> TICK_BITS;
  return elapsed_ticks(stream, sequence, now_ns) < guard_ticks;
}

/* Returns how many fragments were queued again. */
static uint16_t resend_flagged(tide_transmitter_t *t, tide_output_stream_t *stream, uint16_t missing, int64_t now_ns) {
  uint16_t count = 0u;
  tide_node_t *node = stream->first;
  const uint16_t sent = transmitter_in_flight(stream);
  for (uint16_t n = 0; n < sent; ++n) {
    const uint16_t sequence = (uint16_t)(stream->first_unacknowledged + n);
    while ((uint16_t)(sequence - node->first_sequence) >= (TIDE_FRAGMENTS ? node->next_fragment : 1u))
      node = node->next_in_stream;
    TIDE_INVARIANT(node != NULL);
    if (!transmitter_has_bit(missing, n)) continue;
    if (is_under_way(t, stream, node, sequence, now_ns)) {
      TIDE_COUNT(t->counters.nack_ignored, 1u);
      continue;
    }
    node->resend |= (uint16_t)(1u << (uint16_t)(sequence - node->first_sequence - transmitter_window_base(node)));
    tide_transmitter_enqueue(t, stream, node);
    count++;
  }
  return count;
}

int tide_transmitter_on_acknack(tide_transmitter_t *t, const tide_xrce_acknack_t *acknack, int64_t now_ns) {
  tide_output_stream_t *stream =
      TIDE_STREAM_IS_RELIABLE(acknack->stream) ? tide_transmitter_find_stream(t, acknack->stream) : NULL;
  const uint16_t count = stream ? (uint16_t)(acknack->first_unacknowledged - stream->first_unacknowledged) : 0u;
  if (stream && count >= 0x8000u) return TIDE_OK; /* overtaken by a later one, or the peer misses what has expired */
  if (!stream || count > transmitter_in_flight(stream)) {
    TIDE_COUNT(t->counters.nack_ignored, 1u);
    return stream ? TIDE_ERROR_STATE : TIDE_OK;
  }
  if (count > 0u) {
    observe_progress(t, stream, count, now_ns);
    acknowledge(t, stream, count);
  }
  const bool progress = count > 0u || transmitter_has_skipped(stream);
  stream->skipped = false;
  if (resend_flagged(t, stream, acknack->missing, now_ns) > 0u || progress) {
    stream->heartbeats_unanswered = 0u;
    if (t->config.heartbeat_delay_ns < 0) stream->heartbeat_at_ns = TIDE_FOREVER;
  }
  tide_transmitter_expire_overdue(t, stream, now_ns);
  tide_transmitter_refresh_stream(t, stream, now_ns);
  tide_transmitter_check(t);
  return TIDE_OK;
}
/* ---- time ---- */

static void expire_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns);
void tide_transmitter_expire_overdue(tide_transmitter_t *t, tide_output_stream_t *stream, int64_t now_ns) {
  while (TIDE_RELIABLE_STREAMS && TIDE_MESSAGE_EXPIRY && stream->first && stream->first->state == NODE_OVERDUE &&
         !(t->busy && t->current_node == stream->first))
    expire_node(t, stream, stream->first, now_ns);
}
/* One that was sent leaves a hole. When the last of its fragments never left, one more number is used up, so that
 * the peer in any case misses something between the parts it has and the next message. */
static void skip_sent(tide_output_stream_t *stream, const tide_node_t *node) {
  const bool sent_in_part = node->next_fragment < transmitter_fragment_count(node);
  if (sent_in_part) stream->next_to_send++;
  const uint16_t given_up = (uint16_t)(node->next_fragment - transmitter_window_base(node));
  move_window(stream, (uint16_t)(given_up + (sent_in_part ? 1u : 0u)));
  stream->skipped = true;
  stream->heartbeat_due = true;
  stream->heartbeat_at_ns = TIDE_FOREVER;
}

static void expire_node(tide_transmitter_t *t, tide_output_stream_t *stream, tide_node_t *node, int64_t now_ns) {
  const bool on_wire = t->busy && t->current_node == node;
  if (!transmitter_is_reliable(node) && on_wire) return;
  if (transmitter_is_reliable(node)) {
    if (node->next_fragment > 0u && (stream->first != node || on_wire)) {
      node->state = NODE_OVERDUE;
      return;
    }
    if (node->next_fragment > 0u) skip_sent(stream, node);
    tide_transmitter_unlink_node(stream, node);
  }
  tide_transmitter_release_node(t, stream, node, TIDE_NODE_EXPIRED);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) tide_transmitter_refresh_stream(t, stream, now_ns);
}

int64_t tide_transmitter_poll(tide_transmitter_t *t, int64_t now_ns) {
  int64_t expiry_ns = TIDE_FOREVER;
  for (tide_queue_entry_t *head; TIDE_MESSAGE_EXPIRY && (head = tide_queue_head(&t->pending_buffer)) != NULL;) {
    expiry_ns = head->key;
    if (expiry_ns > now_ns) break;
    tide_node_t *node = node_of_pending(head);
    tide_output_stream_t *stream = tide_transmitter_find_stream(t, node->stream);
    tide_queue_remove(&t->pending_buffer, head);
    expire_node(t, stream, node, now_ns);
    tide_transmitter_expire_overdue(t, stream, now_ns);
    expiry_ns = TIDE_FOREVER;
  }
  const int64_t heartbeat_ns = tide_transmitter_mark_due_heartbeats(t, now_ns);
  return heartbeat_ns < expiry_ns ? heartbeat_ns : expiry_ns;
}
