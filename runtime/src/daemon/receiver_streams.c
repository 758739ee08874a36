/* SPDX-License-Identifier: Apache-2.0 */
/* What the peer is told about a stream, and what goes on when it moves. */
#include "receiver_internal.h"
#include "upcalls.h"

static uint32_t lowest_bit(uint32_t bits) { return bits & (~bits + 1u); }

static uint32_t count_bits(uint32_t bits) {
  uint32_t count = 0u;
  for (; bits != 0u; bits &= bits - 1u) ++count;
  return count;
}

/* Relative to what is next. */
static uint32_t asked_bits(const tide_input_stream_t *stream) {
  const uint16_t moved = (uint16_t)(stream->next - stream->asked_from);
  return moved < 16u ? (uint32_t)stream->asked >> moved : 0u;
}

uint32_t tide_receiver_promised(const tide_receiver_t *r, uint8_t stream, bool others) {
  uint32_t count = 0u;
  for (size_t i = 0; TIDE_RESERVATIONS && TIDE_RELIABLE_STREAMS && i < r->config.stream_count; ++i) {
    const tide_input_stream_t *each = &r->config.streams[i];
    if (each->id != 0u && (each->id == stream) != others) count += count_bits(asked_bits(each));
  }
  return count;
}

bool tide_receiver_keep_promise(const tide_receiver_t *r, uint8_t id, uint16_t sequence) {
  if (!TIDE_RESERVATIONS) return false;
  tide_input_stream_t *stream = tide_receiver_find_stream(r, id);
  const uint16_t place = stream ? (uint16_t)(sequence - stream->asked_from) : 16u;
  if (place >= 16u || (stream->asked >> place & 1u) == 0u) return false;
  stream->asked = (uint16_t)(stream->asked & ~(1u << place));
  return true;
}

static bool is_ahead_here(const tide_receiver_t *r, const tide_input_stream_t *stream) {
  for (size_t i = 0; i < r->config.slot_count; ++i)
    if (r->config.slots[i].stream == stream->id && receiver_waits(&r->config.slots[i])) return true;
  return false;
}

/* Of what is missing: what was asked for before, what there is room for, and what is next if it can take the place of
 * something farther ahead. */
static uint32_t choose_missing(const tide_receiver_t *r, const tide_input_stream_t *stream, uint32_t wanted) {
  if (!TIDE_RESERVATIONS) {
    uint32_t first = lowest_bit(wanted);
    for (uint32_t room = r->free; room > 1u && first != wanted; --room) first |= lowest_bit(wanted & ~first);
    return first;
  }
  uint32_t chosen = asked_bits(stream) & wanted;
  const uint32_t taken = tide_receiver_promised(r, stream->id, true) + count_bits(chosen);
  for (uint32_t room = tide_receiver_room(r, stream->id); room > taken && chosen != wanted; --room)
    chosen |= lowest_bit(wanted & ~chosen);
  return is_ahead_here(r, stream) ? chosen | (wanted & 1u) : chosen;
}

void tide_receiver_acknowledge(tide_receiver_t *r, tide_input_stream_t *stream, int16_t suspect) {
  if (!TIDE_RELIABLE_STREAMS) return;
  uint32_t here = stream->held;
  int16_t highest = suspect;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != stream->id || !(receiver_waits(slot) || receiver_is_being_delivered(slot))) continue;
    const int16_t ahead = receiver_distance_from(stream->next, slot->sequence);
    if (ahead < 0 || ahead >= (int16_t)stream->window) continue;
    here |= UINT32_C(1) << ahead;
    if (ahead > highest) highest = ahead;
  }
  const uint32_t below = highest < 0 ? 0u : (UINT32_C(2) << highest) - 1u;
  const uint32_t wanted = (tide_input_stream_missing(stream) | below) & ~here;
  const uint32_t missing = choose_missing(r, stream, wanted);
  if (TIDE_RESERVATIONS) {
    stream->asked_from = stream->next;
    stream->asked = (uint16_t)missing;
    stream->withheld = missing != wanted;
    r->withheld = r->withheld || stream->withheld;
  }
  stream->acknowledge = false;
  receiver_tell_acknowledge(r, stream->id, stream->next, (uint16_t)missing);
}

void tide_receiver_ask_withheld(tide_receiver_t *r) {
  r->withheld = false;
  for (size_t i = 0; TIDE_RELIABLE_STREAMS && i < r->config.stream_count; ++i) {
    tide_input_stream_t *stream = &r->config.streams[i];
    if (stream->id == 0u || !stream->withheld) continue;
    if (tide_receiver_room(r, stream->id) > 0u) {
      tide_receiver_acknowledge(r, stream, -1);
    } else {
      r->withheld = true;
    }
  }
}

/* ---- answers ---- */

void tide_receiver_hand_on_answers(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                                   size_t position) {
  tide_delivery_t delivery = {.header = *header, .arrived_ns = slot->arrived_ns, .memory = r->filling};
  while (tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage) == 1)
    receiver_tell_control(r, &delivery);
  TIDE_COUNT(r->counters.answers, 1u);
}

static void advance_once(tide_receiver_t *r, tide_input_stream_t *stream) {
  if (!TIDE_RELIABLE_STREAMS) {
    stream->next++;
    return;
  }
  const uint32_t given_up = stream->given_up;
  (void)tide_input_stream_advance(stream);
  TIDE_COUNT(r->counters.given_up, stream->given_up - given_up);
  if (TIDE_FRAGMENTS && stream->given_up != given_up) receiver_set_bit(r->abandoning, stream->id, true);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) tide_receiver_acknowledge(r, stream, -1);
}

void tide_receiver_ask_again(tide_receiver_t *r, uint8_t id, uint16_t sequence) {
  tide_input_stream_t *stream = tide_receiver_find_stream(r, id);
  TIDE_COUNT(r->counters.checksum_errors, 1u);
  if (!stream || !TIDE_STREAM_IS_RELIABLE(id)) return;
  const int16_t ahead = receiver_distance_from(stream->next, sequence);
  if (ahead >= 0 && ahead < (int16_t)stream->window) tide_receiver_acknowledge(r, stream, ahead);
}

/* Those that waited for this turn of their stream. */
static void handle_waiting_answers(tide_receiver_t *r, tide_input_stream_t *stream) {
  for (tide_slot_t *slot; (slot = tide_receiver_find_slot(r, stream->id, stream->next)) != NULL &&
                          receiver_waits(slot) && slot->answers;) {
    tide_xrce_header_t header;
    const int position = tide_xrce_get_header(slot->bytes, slot->length, &header);
    if (!tide_receiver_verify(slot)) {
      tide_receiver_let_go(r, slot);
      tide_receiver_ask_again(r, slot->stream, slot->sequence);
      return;
    }
    if (!slot->arrived) (void)tide_input_stream_arrive(stream, slot->sequence);
    tide_receiver_hand_on_answers(r, slot, &header, (size_t)position);
    tide_receiver_let_go(r, slot);
    advance_once(r, stream);
  }
}

/* What is next and held, but in no slot any more, gave way to something newer of its reader. */
static void go_on(tide_receiver_t *r, tide_input_stream_t *stream) {
  handle_waiting_answers(r, stream);
  while ((stream->held & 1u) != 0u && !tide_receiver_find_slot(r, stream->id, stream->next)) {
    advance_once(r, stream);
    handle_waiting_answers(r, stream);
  }
}

void tide_receiver_advance(tide_receiver_t *r, tide_input_stream_t *stream) {
  advance_once(r, stream);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) go_on(r, stream);
}

/* ---- HEARTBEATs ---- */

void tide_receiver_apply_heartbeat(tide_receiver_t *r, const tide_xrce_submessage_t *submessage) {
  tide_cdr_t cdr;
  tide_xrce_heartbeat_t body;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes, !(submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN));
  tide_xrce_get_heartbeat(&cdr, &body);
  if (cdr.status != TIDE_OK || !TIDE_STREAM_IS_RELIABLE(body.stream)) {
    TIDE_COUNT(r->counters.malformed, 1u);
    return;
  }
  tide_input_stream_t *stream = tide_receiver_take_stream(r, body.stream);
  if (!stream) return;
  const uint32_t gaps = stream->gaps;
  const uint16_t given_up = tide_input_stream_heartbeat(stream, body.first_unacknowledged, body.last);
  TIDE_COUNT(r->counters.gaps, stream->gaps - gaps);
  if (given_up > 0u) {
    TIDE_COUNT(r->counters.given_up, given_up);
    if (TIDE_FRAGMENTS) receiver_set_bit(r->abandoning, stream->id, true);
  }
  go_on(r, stream);
  tide_receiver_settle_stream(r, stream->id);
  /* The sender gets no further, so what is next is asked for whether there is room or not: whose it is may be unknown,
   * and then the room that it has, too. */
  if (TIDE_RESERVATIONS) {
    stream->asked = (uint16_t)(asked_bits(stream) | 1u);
    stream->asked_from = stream->next;
  }
  tide_receiver_acknowledge(r, stream, -1);
}
