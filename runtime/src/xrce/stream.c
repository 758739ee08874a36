/* SPDX-License-Identifier: Apache-2.0 */
/* Every distance is counted from `next`, and none wraps around (checked by the function holds). A held message is never
 * given up: if the sender no longer has the messages before it, `next` stops at it. */
#include "tide/stream.h"

#include "tide/invariant.h"
#include "tide/priority.h"

static bool is_reliable(const tide_input_stream_t *stream) { return TIDE_STREAM_IS_RELIABLE(stream->id); }

static int16_t ahead(const tide_input_stream_t *stream, uint16_t sequence) {
  return tide_sequence_distance(sequence, stream->next);
}

static bool is_held(const tide_input_stream_t *stream, uint32_t n) { return (((uint32_t)stream->held >> n) & 1u) != 0; }

/* Records that the sender has sent messages up to this number. */
static void note_announced(tide_input_stream_t *stream, uint16_t sequence) {
  if (ahead(stream, sequence) > ahead(stream, stream->last_announced)) stream->last_announced = sequence;
}

/* Held bits lie below the window; last_announced is at least next - 1, and oldest is not behind next. */
static bool holds(const tide_input_stream_t *stream) {
  return (uint32_t)stream->held >> stream->window == 0u && ahead(stream, stream->last_announced) >= -1 &&
         ahead(stream, stream->oldest) >= 0;
}

static void keep_invariants(tide_input_stream_t *stream) {
  if (ahead(stream, stream->last_announced) < -1) stream->last_announced = (uint16_t)(stream->next - 1u);
  if (ahead(stream, stream->oldest) < 0) stream->oldest = stream->next;
}

/* Moves `next` past messages that the sender no longer has, but at most up to a held one. Returns the number of
 * messages that were given up. */
static uint16_t give_up(tide_input_stream_t *stream) {
  int16_t lost = ahead(stream, stream->oldest);
  if (lost <= 0) return 0;
  uint16_t count = (uint16_t)lost;
  for (uint16_t n = 0; n < TIDE_STREAM_WINDOW_MAXIMUM && n < count; ++n)
    if (is_held(stream, n)) count = n;
  stream->next = (uint16_t)(stream->next + count);
  stream->held = (uint16_t)(count < TIDE_STREAM_WINDOW_MAXIMUM ? (uint32_t)stream->held >> count : 0u);
  if (!TIDE_LEAN || TIDE_FRAGMENTS) stream->given_up += count;
  return count;
}

void tide_input_stream_init(tide_input_stream_t *stream, uint8_t id, uint8_t window) {
  if (window < 1u) window = 1u;
  if (window > TIDE_STREAM_WINDOW_MAXIMUM) window = TIDE_STREAM_WINDOW_MAXIMUM;
  *stream = (tide_input_stream_t){.id = id, .window = window, .last_announced = UINT16_MAX};
}

static tide_stream_verdict_t arrive_best_effort(tide_input_stream_t *stream, uint16_t sequence) {
  int16_t distance = ahead(stream, sequence);
  if (distance < 0) {
    TIDE_COUNT(stream->duplicates, 1u);
    return TIDE_STREAM_DUPLICATE;
  }
  TIDE_COUNT(stream->gaps, (uint16_t)distance);
  stream->next = sequence;
  stream->last_announced = sequence;
  return TIDE_STREAM_DELIVER;
}

tide_stream_verdict_t tide_input_stream_arrive(tide_input_stream_t *stream, uint16_t sequence) {
  if (!is_reliable(stream)) return arrive_best_effort(stream, sequence);
  int16_t distance = ahead(stream, sequence);
  bool inside = distance < (int16_t)stream->window;
  stream->acknowledge = true;
  if (distance < 0 || (inside && is_held(stream, (uint32_t)distance))) {
    TIDE_COUNT(stream->duplicates, 1u);
    return TIDE_STREAM_DUPLICATE;
  }
  if (distance - ahead(stream, stream->last_announced) > 1) TIDE_COUNT(stream->gaps, 1u);
  note_announced(stream, sequence);
  if (!inside) return TIDE_STREAM_OUTSIDE;
  TIDE_INVARIANT(distance >= 0 && holds(stream));
  if (distance == 0) return TIDE_STREAM_DELIVER;
  stream->held |= (uint16_t)(1u << distance);
  TIDE_INVARIANT(holds(stream));
  return TIDE_STREAM_HOLD;
}

bool tide_input_stream_advance(tide_input_stream_t *stream) {
  stream->next++;
  stream->held >>= 1;
  (void)give_up(stream);
  keep_invariants(stream);
  TIDE_INVARIANT(holds(stream));
  return is_held(stream, 0);
}

void tide_input_stream_forget(tide_input_stream_t *stream, uint16_t sequence) {
  int16_t distance = ahead(stream, sequence);
  if (distance >= 0 && distance < (int16_t)stream->window) stream->held &= (uint16_t) ~(1u << distance);
}

uint16_t tide_input_stream_heartbeat(tide_input_stream_t *stream, uint16_t first, uint16_t last) {
  if (!is_reliable(stream)) return 0;
  stream->acknowledge = true;
  if (ahead(stream, last) > ahead(stream, stream->last_announced)) TIDE_COUNT(stream->gaps, 1u);
  note_announced(stream, last);
  if (ahead(stream, first) > ahead(stream, stream->oldest)) stream->oldest = first;
  uint16_t count = give_up(stream);
  keep_invariants(stream);
  TIDE_INVARIANT(holds(stream));
  return count;
}

uint16_t tide_input_stream_missing(const tide_input_stream_t *stream) {
  int16_t sent = ahead(stream, stream->last_announced); /* number of the last sent message, relative to next */
  if (sent < 0) return 0;
  uint16_t count = sent < (int16_t)stream->window ? (uint16_t)(sent + 1) : stream->window;
  return (uint16_t)(((1ul << count) - 1ul) & (uint16_t)~stream->held);
}
