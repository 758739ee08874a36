/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants.
 * There always is a slot to fill. A slot is among the noted frames (the heap) exactly when it could be processed now:
 * it is noted, or held and the next of its stream, or delivered in part; it does not wait for memory; and no other
 * frame of its stream is being delivered. refresh_stream restores this after any change.
 * Nothing is believed before its checksum was good: a noted frame takes no place for its stream and moves no window;
 * the worst that a damaged header does is to ask for a message in vain. */
#include "tide/receiver.h"

#include <string.h>

#include "tide/framing.h"
#include "tide/status.h"

enum {
  SLOT_FREE,
  SLOT_FILLING,
  SLOT_NOTED,
  SLOT_HELD,    /* verified, early in its stream or next, not yet delivered */
  SLOT_TAKEN,   /* somebody verifies or delivers it */
  SLOT_STALE,   /* the same, but its session is over */
  SLOT_PARTIAL, /* some of its submessages are delivered */
  SLOT_USED     /* delivered, samples in use */
};
enum { REASSEMBLY_FREE, REASSEMBLY_GROWING, REASSEMBLY_STALE, REASSEMBLY_USED };
enum { ANY_SESSION = 0xFF, RANK_BITS = 47, SUBMESSAGE_ID_MAXIMUM = TIDE_XRCE_TIMESTAMP_REPLY };

static int16_t distance_from(uint16_t next, uint16_t sequence) { return tide_sequence_distance(sequence, next); }
static bool get_bit(const uint32_t *bits, uint8_t id) { return (bits[id / 32u] >> (id % 32u) & 1u) != 0u; }
static void set_bit(uint32_t *bits, uint8_t id, bool value) {
  const uint32_t mask = UINT32_C(1) << (id % 32u);
  bits[id / 32u] = value ? bits[id / 32u] | mask : bits[id / 32u] & ~mask;
}
static uint16_t request_part(const uint8_t *bytes) { return (uint16_t)(bytes[0] << 8 | bytes[1]); }

static tide_input_stream_t *find_stream(const tide_receiver_t *r, uint8_t id) {
  for (size_t i = 0; i < r->config.stream_count; ++i)
    if (r->config.streams[i].id == id) return &r->config.streams[i];
  return NULL;
}

static tide_input_stream_t *take_stream(tide_receiver_t *r, uint8_t id) {
  tide_input_stream_t *stream = find_stream(r, id);
  if (stream) return stream;
  stream = find_stream(r, 0u);
  if (stream)
    tide_input_stream_init(stream, id, r->config.window);
  else
    TIDE_COUNT(r->counters.streams_full, 1u);
  return stream;
}

/* ---- set-up ---- */

static int check_config(const tide_receiver_config_t *config) {
  if (!config->slots || !config->storage || !config->noted_storage || !config->streams) return TIDE_ERROR_ARGUMENT;
  if (config->slot_count < 2u || config->slot_bytes < 16u || config->slot_bytes > UINT16_MAX)
    return TIDE_ERROR_ARGUMENT;
  if (config->stream_count == 0u || config->window > TIDE_STREAM_WINDOW_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (config->reassembly_count > 0u && !config->reassemblies) return TIDE_ERROR_ARGUMENT;
  return config->on_submessage ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

int tide_receiver_init(tide_receiver_t *r, const tide_receiver_config_t *config) {
  if (!r || !config) return TIDE_ERROR_ARGUMENT;
  const int status = TIDE_CONFIG_CHECKS ? check_config(config) : TIDE_OK;
  if (status != TIDE_OK) return status;
  memset(r, 0, sizeof *r);
  r->config = *config;
  if (r->config.window == 0u) r->config.window = TIDE_STREAM_WINDOW_MAXIMUM;
  r->session = ANY_SESSION;
  tide_queue_init(&r->noted, config->noted_storage, config->slot_count);
  for (size_t i = 0; i < config->slot_count; ++i)
    config->slots[i] = (tide_slot_t){.bytes = config->storage + i * config->slot_bytes};
  for (size_t i = 0; i < config->stream_count; ++i) config->streams[i].id = 0u;
  for (size_t i = 0; TIDE_FRAGMENTS && i < config->reassembly_count; ++i) {
    config->reassemblies[i].stream = 0u;
    config->reassemblies[i].state = REASSEMBLY_FREE;
  }
  r->filling = &config->slots[0];
  r->filling->state = SLOT_FILLING;
  return TIDE_OK;
}

void tide_receiver_set_session(tide_receiver_t *r, uint8_t session, uint32_t key) {
  r->session = session;
  r->key = key;
}

/* ---- slots and the heap ---- */

static bool waits(const tide_slot_t *slot) { return slot->state == SLOT_NOTED || slot->state == SLOT_HELD; }
static bool is_being_delivered(const tide_slot_t *slot) {
  return slot->state == SLOT_TAKEN || slot->state == SLOT_PARTIAL;
}

static void leave_heap(tide_receiver_t *r, tide_slot_t *slot) { tide_queue_remove(&r->noted, &slot->entry); }

static void enter_heap(tide_receiver_t *r, tide_slot_t *slot) {
  const uint32_t urgency = 0xFFFFu - slot->priority;
  (void)tide_queue_push(&r->noted, &slot->entry, (int64_t)((uint64_t)urgency << RANK_BITS | slot->arrival));
}

/* What was retained lives on. */
static void let_go(tide_receiver_t *r, tide_slot_t *slot) {
  leave_heap(r, slot);
  slot->state = slot->references == slot->released ? SLOT_FREE : SLOT_USED;
}

static bool is_ready(const tide_slot_t *slot, const tide_input_stream_t *stream, bool taken, bool partial) {
  if (slot->blocked || taken) return false;
  if (slot->state == SLOT_PARTIAL) return true;
  if (partial) return false;
  return slot->state == SLOT_NOTED || (stream && slot->sequence == stream->next);
}

static void refresh_stream(tide_receiver_t *r, uint8_t id) {
  const tide_input_stream_t *stream = find_stream(r, id);
  bool taken = false, partial = false;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != id) continue;
    taken = taken || slot->state == SLOT_TAKEN;
    partial = partial || slot->state == SLOT_PARTIAL;
  }
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != id || (!waits(slot) && slot->state != SLOT_PARTIAL)) continue;
    const bool is_past =
        waits(slot) && TIDE_STREAM_IS_RELIABLE(id) && stream && distance_from(stream->next, slot->sequence) < 0;
    if (is_past)
      let_go(r, slot); /* its sender gave it up meanwhile */
    else if (is_ready(slot, stream, taken, partial))
      enter_heap(r, slot);
    else
      leave_heap(r, slot);
  }
}

static tide_slot_t *find_slot(const tide_receiver_t *r, uint8_t stream, uint16_t sequence) {
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream == stream && slot->sequence == sequence && (waits(slot) || is_being_delivered(slot))) return slot;
  }
  return NULL;
}

/* ---- acknowledgments ---- */

static uint32_t free_slots(const tide_receiver_t *r) {
  uint32_t count = 0;
  for (size_t i = 0; i < r->config.slot_count; ++i) count += r->config.slots[i].state == SLOT_FREE ? 1u : 0u;
  return count;
}

static uint32_t lowest_bits(uint32_t bits, uint32_t count) {
  uint32_t chosen = bits & (~bits + 1u); /* the first one always */
  for (; count > 1u && chosen != bits; --count) chosen |= (bits & ~chosen) & (~(bits & ~chosen) + 1u);
  return chosen;
}

/* Flags what is missing up to the last frame that was announced, is here, or (suspect) seems to have been sent, as far
 * as there is room for it. What is here and was not looked at yet is neither acknowledged nor flagged. */
static void acknowledge(tide_receiver_t *r, tide_input_stream_t *stream, int16_t suspect) {
  if (!TIDE_RELIABLE_STREAMS) return;
  uint32_t here = stream->held;
  int16_t highest = suspect;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != stream->id || !(waits(slot) || is_being_delivered(slot))) continue;
    const int16_t ahead = distance_from(stream->next, slot->sequence);
    if (ahead < 0 || ahead >= (int16_t)stream->window) continue;
    here |= UINT32_C(1) << ahead;
    if (ahead > highest) highest = ahead;
  }
  const uint32_t below = highest < 0 ? 0u : (UINT32_C(2) << highest) - 1u;
  const uint32_t missing = lowest_bits((tide_input_stream_missing(stream) | below) & ~here, free_slots(r));
  stream->acknowledge = false;
  if (r->config.on_acknowledge)
    r->config.on_acknowledge(r->config.context, stream->id, stream->next, (uint16_t)missing);
}

/* ---- messages in fragments ---- */

static void free_reassembly(tide_receiver_t *r, tide_reassembly_t *reassembly) {
  reassembly->state = REASSEMBLY_FREE;
  reassembly->stream = 0u;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (!slot->blocked) continue;
    slot->blocked = false;
    refresh_stream(r, slot->stream);
  }
}

static tide_reassembly_t *growing(const tide_receiver_t *r, uint8_t stream) {
  if (!TIDE_FRAGMENTS) return NULL;
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->stream == stream && reassembly->state == REASSEMBLY_GROWING) return reassembly;
  }
  return NULL;
}

/* Forget the part of a message whose rest will never come. */
static void abandon_message(tide_receiver_t *r, uint8_t stream) {
  if (!TIDE_FRAGMENTS) return;
  set_bit(r->abandoning, stream, false);
  set_bit(r->skipping, stream, false);
  tide_reassembly_t *reassembly = growing(r, stream);
  if (reassembly) free_reassembly(r, reassembly);
}

/* The end of a delivery, or a change of the stream: what was given up can be forgotten when nobody works on it. */
static void settle_stream(tide_receiver_t *r, uint8_t id) {
  bool busy = false;
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.slot_count; ++i)
    busy = busy || (r->config.slots[i].stream == id && is_being_delivered(&r->config.slots[i]));
  if (TIDE_FRAGMENTS && !busy && get_bit(r->abandoning, id)) abandon_message(r, id);
  refresh_stream(r, id);
}

/* The whole size as the first fragment tells it, or SIZE_MAX when that cannot be the start of a message. */
static size_t announced_bytes(const tide_xrce_submessage_t *fragment) {
  if (fragment->body_bytes < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) return TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  if (fragment->body[0] > SUBMESSAGE_ID_MAXIMUM) return SIZE_MAX;
  const size_t announced = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + (size_t)(fragment->body[2] | fragment->body[3] << 8);
  return announced > fragment->body_bytes ? announced : fragment->body_bytes;
}

/* The smallest free one that is large enough; *waiting tells whether one would be, but is in use. */
static tide_reassembly_t *choose_reassembly(const tide_receiver_t *r, size_t bytes, bool *waiting) {
  tide_reassembly_t *best = NULL;
  *waiting = false;
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->capacity < bytes) continue;
    if (reassembly->state != REASSEMBLY_FREE)
      *waiting = true;
    else if (!best || reassembly->capacity < best->capacity)
      best = reassembly;
  }
  return best;
}

static bool first_fragment_from(const tide_slot_t *slot, size_t position, tide_xrce_submessage_t *fragment) {
  while (tide_xrce_next_submessage(slot->bytes, slot->length, &position, fragment) == 1)
    if (fragment->id == TIDE_XRCE_FRAGMENT) return true;
  return false;
}

/* Finds the memory for the next FRAGMENT in the slot, if there is one. False: it has to wait. */
static bool prepare_fragment(tide_receiver_t *r, tide_slot_t *slot, size_t position) {
  tide_xrce_submessage_t fragment;
  slot->reassembly = NULL;
  slot->skips = false;
  if (!TIDE_FRAGMENTS) return true;
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream) || !first_fragment_from(slot, position, &fragment)) return true;
  slot->skips = get_bit(r->skipping, slot->stream);
  if (slot->skips) return true;
  slot->reassembly = growing(r, slot->stream);
  if (slot->reassembly) return true;
  bool waiting;
  tide_reassembly_t *reassembly = choose_reassembly(r, announced_bytes(&fragment), &waiting);
  if (!reassembly && waiting) {
    TIDE_COUNT(r->counters.reassembly_busy, 1u);
    return false;
  }
  if (!reassembly) {
    TIDE_COUNT(r->counters.reassembly_too_large, 1u);
    set_bit(r->skipping, slot->stream, true);
    slot->skips = true;
    return true;
  }
  reassembly->state = REASSEMBLY_GROWING;
  reassembly->stream = slot->stream;
  reassembly->priority = slot->priority;
  reassembly->owner = slot->owner;
  reassembly->length = 0u;
  reassembly->references = 0u;
  reassembly->released = 0u;
  slot->reassembly = reassembly;
  return true;
}

/* ---- reset ---- */

void tide_receiver_reset(tide_receiver_t *r) {
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    slot->blocked = false;
    if (slot->state == SLOT_TAKEN) {
      slot->state = SLOT_STALE;
      if (slot->reassembly) slot->reassembly->state = REASSEMBLY_STALE;
    }
    if (waits(slot) || slot->state == SLOT_PARTIAL) let_go(r, slot);
  }
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.reassembly_count; ++i)
    if (r->config.reassemblies[i].state == REASSEMBLY_GROWING) free_reassembly(r, &r->config.reassemblies[i]);
  for (size_t i = 0; i < r->config.stream_count; ++i) r->config.streams[i].id = 0u;
  if (!TIDE_FRAGMENTS) return;
  memset(r->skipping, 0, sizeof r->skipping);
  memset(r->abandoning, 0, sizeof r->abandoning);
}

/* ---- answers ---- */

static void hand_on_answers(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                            size_t position) {
  tide_delivery_t delivery = {.header = *header, .arrived_ns = slot->arrived_ns, .memory = r->filling};
  while (tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage) == 1)
    r->config.on_control(r->config.context, &delivery);
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
  if (TIDE_FRAGMENTS && stream->given_up != given_up) set_bit(r->abandoning, stream->id, true);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) acknowledge(r, stream, -1);
}

/* Its header may be damaged, too, but most likely it is the message that it says: ask for that one. */
static void ask_again(tide_receiver_t *r, uint8_t id, uint16_t sequence) {
  tide_input_stream_t *stream = find_stream(r, id);
  TIDE_COUNT(r->counters.checksum_errors, 1u);
  if (!stream || !TIDE_STREAM_IS_RELIABLE(id)) return;
  const int16_t ahead = distance_from(stream->next, sequence);
  if (ahead >= 0 && ahead < (int16_t)stream->window) acknowledge(r, stream, ahead);
}

/* Those that waited for this turn of their stream. */
static void handle_waiting_answers(tide_receiver_t *r, tide_input_stream_t *stream) {
  for (tide_slot_t *slot; (slot = find_slot(r, stream->id, stream->next)) != NULL && waits(slot) && slot->answers;) {
    tide_xrce_header_t header;
    const int position = tide_xrce_get_header(slot->bytes, slot->length, &header);
    if (!tide_receiver_verify(slot)) {
      slot->state = SLOT_FREE;
      leave_heap(r, slot);
      ask_again(r, slot->stream, slot->sequence);
      return;
    }
    if (!slot->arrived) (void)tide_input_stream_arrive(stream, slot->sequence);
    hand_on_answers(r, slot, &header, (size_t)position);
    let_go(r, slot);
    advance_once(r, stream);
  }
}

static void advance(tide_receiver_t *r, tide_input_stream_t *stream) {
  advance_once(r, stream);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) handle_waiting_answers(r, stream);
}

/* ---- reception: what has no stream ---- */

static void apply_heartbeat(tide_receiver_t *r, const tide_xrce_submessage_t *submessage) {
  tide_cdr_t cdr;
  tide_xrce_heartbeat_t body;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes, !(submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN));
  tide_xrce_get_heartbeat(&cdr, &body);
  if (cdr.status != TIDE_OK || !TIDE_STREAM_IS_RELIABLE(body.stream)) {
    TIDE_COUNT(r->counters.malformed, 1u);
    return;
  }
  tide_input_stream_t *stream = take_stream(r, body.stream);
  if (!stream) return;
  const uint32_t gaps = stream->gaps;
  const uint16_t given_up = tide_input_stream_heartbeat(stream, body.first_unacknowledged, body.last);
  TIDE_COUNT(r->counters.gaps, stream->gaps - gaps);
  if (given_up > 0u) {
    TIDE_COUNT(r->counters.given_up, given_up);
    if (TIDE_FRAGMENTS) set_bit(r->abandoning, stream->id, true);
  }
  handle_waiting_answers(r, stream);
  settle_stream(r, stream->id);
  acknowledge(r, stream, -1);
}

static int handle_control(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                          size_t position) {
  if (!tide_receiver_verify(slot)) {
    TIDE_COUNT(r->counters.checksum_errors, 1u);
    return 0;
  }
  TIDE_COUNT(r->counters.control, 1u);
  tide_delivery_t delivery = {.header = *header, .arrived_ns = slot->arrived_ns, .memory = r->filling};
  const bool in_session = r->session == ANY_SESSION || header->session == r->session;
  int more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage)) == 1) {
    if (TIDE_RELIABLE_STREAMS && in_session && delivery.submessage.id == TIDE_XRCE_HEARTBEAT)
      apply_heartbeat(r, &delivery.submessage);
    if (in_session && delivery.submessage.id == TIDE_XRCE_RESET) tide_receiver_reset(r);
    if (r->config.on_control) r->config.on_control(r->config.context, &delivery);
  }
  if (more < 0) TIDE_COUNT(r->counters.malformed, 1u);
  return 0;
}

/* ---- reception: what has a stream ---- */

static int32_t priority_of_data(const tide_receiver_t *r, const tide_slot_t *slot, uint8_t id, const uint8_t *body,
                                size_t bytes) {
  const int32_t of_stream = (int32_t)TIDE_STREAM_LEVEL(slot->stream) << 8;
  if (id != TIDE_XRCE_DATA || bytes < 4u || !r->config.priority_of) return of_stream;
  const tide_xrce_request_t request = {request_part(body), request_part(body + 2)};
  return r->config.priority_of(r->config.context, slot->stream, request);
}

/* A later fragment says nothing about its message: it is as urgent as the one before it. */
static int32_t priority_of_fragment(const tide_receiver_t *r, const tide_slot_t *slot,
                                    const tide_xrce_submessage_t *fragment) {
  if (!TIDE_FRAGMENTS) return priority_of_data(r, slot, TIDE_XRCE_FRAGMENT, NULL, 0u);
  const tide_slot_t *before = find_slot(r, slot->stream, (uint16_t)(slot->sequence - 1u));
  if (before && before->continues) return before->priority | TIDE_FRAME_OWNER(before->owner);
  const tide_reassembly_t *reassembly = growing(r, slot->stream);
  if (reassembly) return reassembly->priority | TIDE_FRAME_OWNER(reassembly->owner);
  const tide_input_stream_t *stream = find_stream(r, slot->stream);
  const bool is_first = before || slot->sequence == (stream ? stream->next : 0u);
  if (!is_first || fragment->body_bytes < 8u) return priority_of_data(r, slot, TIDE_XRCE_FRAGMENT, NULL, 0u);
  return priority_of_data(r, slot, fragment->body[0], fragment->body + 4, fragment->body_bytes - 4u);
}

/* Nothing in it waits for a callback, so it need not wait for the executor. */
static bool has_answers_only(const tide_slot_t *slot, size_t position) {
  tide_xrce_submessage_t submessage;
  int more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &submessage)) == 1)
    if (submessage.id != TIDE_XRCE_STATUS && submessage.id != TIDE_XRCE_INFO) return false;
  return more == 0;
}

/* The only full look at the header. Returns the frame's own priority or, negative, that nobody wants it. */
static int32_t preprocess(const tide_receiver_t *r, tide_slot_t *slot, const tide_xrce_submessage_t *first,
                          size_t position) {
  slot->continues = false;
  if (first->id == TIDE_XRCE_FRAGMENT) {
    slot->continues = (first->flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0u;
    const int32_t priority = priority_of_fragment(r, slot, first);
    return priority < 0 ? (int32_t)TIDE_STREAM_LEVEL(slot->stream) << 8 : priority;
  }
  const int32_t priority = priority_of_data(r, slot, first->id, first->body, first->body_bytes);
  const bool alone = ((position + 3u) & ~(size_t)3u) >= slot->length;
  return priority >= 0 || alone ? priority : (int32_t)TIDE_STREAM_LEVEL(slot->stream) << 8;
}

/* A stream keeps its order, so what is before an urgent frame is as urgent as that frame. */
static void pass_on_priority(tide_receiver_t *r, tide_slot_t *slot) {
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other == slot || other->stream != slot->stream || !waits(other)) continue;
    const bool is_before = tide_sequence_distance(other->sequence, slot->sequence) < 0;
    if (!is_before && other->priority > slot->priority) slot->priority = other->priority;
  }
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other == slot || other->stream != slot->stream || !waits(other)) continue;
    if (tide_sequence_distance(other->sequence, slot->sequence) > 0 || other->priority >= slot->priority) continue;
    other->priority = slot->priority;
    if (!tide_queue_contains(&other->entry)) continue;
    leave_heap(r, other);
    enter_heap(r, other);
  }
}

/* Its stream waits for a tide_reassembly: until whoever has it goes on, more frames of this one are of no use. */
static bool is_stuck(const tide_receiver_t *r, const tide_slot_t *slot) {
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.slot_count; ++i) {
    const tide_slot_t *other = &r->config.slots[i];
    if (other->blocked && other->stream == slot->stream && waits(other)) return true;
  }
  return false;
}

/* By level first, as senders choose: one that sends nothing less urgent until a level is acknowledged could wait
 * forever for a place that something less urgent keeps. */
static bool gives_way_before(const tide_receiver_t *r, const tide_slot_t *a, const tide_slot_t *b) {
  const uint8_t level_a = TIDE_STREAM_LEVEL(a->stream), level_b = TIDE_STREAM_LEVEL(b->stream);
  const bool stuck_a = is_stuck(r, a), stuck_b = is_stuck(r, b);
  if (stuck_a != stuck_b) return stuck_a;
  if (level_a != level_b) return level_a < level_b;
  if (a->priority != b->priority) return a->priority < b->priority;
  int32_t ahead[2] = {0, 0};
  const tide_slot_t *both[2] = {a, b};
  for (int i = 0; i < 2; ++i) {
    const tide_input_stream_t *stream = find_stream(r, both[i]->stream);
    if (TIDE_STREAM_IS_RELIABLE(both[i]->stream))
      ahead[i] = distance_from(stream ? stream->next : 0u, both[i]->sequence);
  }
  if (ahead[0] != ahead[1]) return ahead[0] > ahead[1];
  return a->arrival > b->arrival;
}

/* The frame that arrived is noted: the next one needs a slot. */
static void replace_filling(tide_receiver_t *r) {
  tide_slot_t *chosen = r->filling; /* the frame itself waits: when all others are in use it gives way */
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->state == SLOT_FREE) {
      chosen = slot;
      break;
    }
    if (waits(slot) && gives_way_before(r, slot, chosen)) chosen = slot;
  }
  if (chosen->state != SLOT_FREE) {
    tide_input_stream_t *stream = find_stream(r, chosen->stream);
    if (chosen->state == SLOT_HELD && stream) tide_input_stream_forget(stream, chosen->sequence);
    leave_heap(r, chosen);
    TIDE_COUNT(r->counters.overflow_dropped, 1u);
  }
  chosen->state = SLOT_FILLING;
  chosen->blocked = false;
  r->filling = chosen;
}

/* Reliable frames that cannot be of use are dropped at once. */
static bool is_useless(tide_receiver_t *r, const tide_slot_t *slot, tide_input_stream_t *stream) {
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) return false;
  const int16_t ahead = distance_from(stream ? stream->next : 0u, slot->sequence);
  if (ahead < 0 || find_slot(r, slot->stream, slot->sequence)) {
    TIDE_COUNT(r->counters.duplicates, 1u);
    if (stream) acknowledge(r, stream, -1);
    return true;
  }
  if (ahead < (int16_t)r->config.window) return false;
  TIDE_COUNT(r->counters.outside_window, 1u);
  return true;
}

/* Answers in their stream's order are handled where they came in, whatever has taken the slots: without them a client
 * that connects again while data floods in could not go on. Best-effort ones have no place in their stream to keep.
 * False: it has to wait like any other frame. */
static bool handle_answers(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                           size_t position) {
  tide_input_stream_t *stream = find_stream(r, slot->stream);
  const bool reliable = TIDE_STREAM_IS_RELIABLE(slot->stream);
  if (reliable && slot->sequence != (stream ? stream->next : 0u)) return false;
  if (!tide_receiver_verify(slot)) {
    ask_again(r, slot->stream, slot->sequence);
    return true;
  }
  if (reliable) {
    stream = take_stream(r, slot->stream);
    if (!stream) return true;
    (void)tide_input_stream_arrive(stream, slot->sequence);
  }
  hand_on_answers(r, slot, header, position);
  if (reliable) {
    advance(r, stream);
    refresh_stream(r, stream->id);
  }
  return true;
}

static int note(tide_receiver_t *r, tide_slot_t *slot, const tide_xrce_header_t *header, size_t position) {
  tide_input_stream_t *stream = find_stream(r, slot->stream);
  tide_xrce_submessage_t first;
  const size_t start = position;
  if (tide_xrce_next_submessage(slot->bytes, slot->length, &position, &first) != 1) {
    TIDE_COUNT(r->counters.malformed, 1u);
    return 0;
  }
  if (is_useless(r, slot, stream)) return 0;
  slot->answers = r->config.on_control && has_answers_only(slot, start);
  if (slot->answers && handle_answers(r, slot, header, start)) return 0;
  const int32_t priority = preprocess(r, slot, &first, position);
  slot->unwanted = priority < 0;
  if (slot->unwanted) TIDE_COUNT(r->counters.unwanted, 1u);
  if (slot->unwanted && !TIDE_STREAM_IS_RELIABLE(slot->stream)) return 0;
  slot->priority =
      (tide_priority_t)(slot->unwanted ? (int32_t)TIDE_STREAM_LEVEL(slot->stream) << 8 : priority & 0xFFFF);
  slot->owner = (uint8_t)(slot->unwanted ? 0 : priority >> 16);
  slot->state = SLOT_NOTED;
  slot->arrival = r->next_arrival++;
  slot->arrived = false;
  slot->position = 0u;
  slot->references = 0u;
  slot->released = 0u;
  TIDE_COUNT(r->counters.noted, 1u);
  pass_on_priority(r, slot);
  refresh_stream(r, slot->stream);
  const bool reliable = TIDE_STREAM_IS_RELIABLE(slot->stream);
  const bool reveals_gap = reliable && stream && slot->sequence != stream->next &&
                           !find_slot(r, slot->stream, (uint16_t)(slot->sequence - 1u));
  if (reveals_gap) acknowledge(r, stream, -1);
  replace_filling(r);
  return r->filling == slot ? 0 : 1;
}

static bool is_foreign(const tide_receiver_t *r, const tide_xrce_header_t *header) {
  const bool without_session =
      header->session == TIDE_XRCE_SESSION_NONE_WITHOUT_KEY || header->session == TIDE_XRCE_SESSION_NONE_WITH_KEY;
  if (r->session == ANY_SESSION) return false;
  if (header->session == r->session) return header->session < 0x80u && header->key != r->key;
  return !without_session || header->stream != TIDE_XRCE_STREAM_NONE;
}

uint8_t *tide_receiver_claim(tide_receiver_t *r) { return r->filling->bytes; }

int tide_receiver_commit(tide_receiver_t *r, uint16_t length, bool verify, uint16_t crc, int64_t now_ns) {
  tide_slot_t *slot = r->filling;
  tide_xrce_header_t header;
  TIDE_COUNT(r->counters.frames, 1u);
  const int position =
      length > r->config.slot_bytes ? TIDE_ERROR_MALFORMED : tide_xrce_get_header(slot->bytes, length, &header);
  if (position < 0) {
    TIDE_COUNT(r->counters.malformed, 1u);
    return 0;
  }
  if (is_foreign(r, &header)) {
    TIDE_COUNT(r->counters.foreign_session, 1u);
    return 0;
  }
  slot->length = length;
  slot->verify = verify;
  slot->crc = crc;
  slot->arrived_ns = now_ns;
  slot->stream = header.stream;
  slot->sequence = header.sequence;
  if (header.stream == TIDE_XRCE_STREAM_NONE) return handle_control(r, slot, &header, (size_t)position);
  return note(r, slot, &header, (size_t)position);
}

/* ---- processing ---- */

int32_t tide_receiver_most_urgent(const tide_receiver_t *r) {
  const tide_slot_t *slot = (const tide_slot_t *)(const void *)tide_queue_head(&r->noted);
  return slot ? (int32_t)slot->priority : TIDE_PRIORITY_NONE;
}

static tide_slot_t *take(tide_receiver_t *r, tide_slot_t *slot) {
  if (!slot) return NULL;
  leave_heap(r, slot);
  slot->state = SLOT_TAKEN;
  slot->reassembly = NULL;
  slot->completed = slot->skip_ended = slot->too_large = slot->malformed = slot->skips = false;
  refresh_stream(r, slot->stream);
  return slot;
}

tide_slot_t *tide_receiver_take_most_urgent(tide_receiver_t *r) {
  return take(r, (tide_slot_t *)(void *)tide_queue_head(&r->noted));
}

static bool is_of(const tide_slot_t *slot, const tide_frame_share_t *share) {
  const bool may = share->owner == 0u || slot->owner == 0u || slot->owner == share->owner;
  return may && slot->priority >= share->least && slot->priority <= share->most;
}

/* The head, or what would be the head if nothing else were noted. */
static tide_slot_t *most_urgent_of(const tide_receiver_t *r, const tide_frame_share_t *share) {
  tide_slot_t *best = (tide_slot_t *)(void *)tide_queue_head(&r->noted);
  if (!best || is_of(best, share)) return best;
  if (best->priority < share->least) return NULL;
  best = NULL;
  for (size_t i = 1; i < r->noted.count; ++i) {
    tide_slot_t *slot = (tide_slot_t *)(void *)r->noted.entries[i];
    if (is_of(slot, share) && (!best || slot->entry.key < best->entry.key)) best = slot;
  }
  return best;
}

int32_t tide_receiver_most_urgent_of(const tide_receiver_t *r, const tide_frame_share_t *share) {
  const tide_slot_t *slot = most_urgent_of(r, share);
  return slot ? (int32_t)slot->priority : TIDE_PRIORITY_NONE;
}

tide_slot_t *tide_receiver_take_most_urgent_of(tide_receiver_t *r, const tide_frame_share_t *share) {
  return take(r, most_urgent_of(r, share));
}

tide_slot_t *tide_receiver_take_oldest_of(tide_receiver_t *r, const tide_frame_share_t *share) {
  tide_slot_t *oldest = NULL;
  for (size_t i = 0; i < r->noted.count; ++i) {
    tide_slot_t *slot = (tide_slot_t *)(void *)r->noted.entries[i];
    if (is_of(slot, share) && (!oldest || slot->arrival < oldest->arrival)) oldest = slot;
  }
  return take(r, oldest);
}

tide_slot_t *tide_receiver_take_oldest(tide_receiver_t *r) {
  const tide_frame_share_t all = {.most = UINT16_MAX};
  return tide_receiver_take_oldest_of(r, &all);
}

void tide_receiver_disown(tide_receiver_t *r, uint8_t owner) {
  for (size_t i = 0; i < r->config.slot_count; ++i)
    if (r->config.slots[i].owner == owner) r->config.slots[i].owner = 0u;
  for (size_t i = 0; i < r->config.reassembly_count; ++i)
    if (r->config.reassemblies[i].owner == owner) r->config.reassemblies[i].owner = 0u;
}

bool tide_receiver_verify(const tide_slot_t *slot) {
  return !slot->verify || tide_crc16(0u, slot->bytes, slot->length) == slot->crc;
}

static bool put_back(tide_receiver_t *r, tide_slot_t *slot, uint8_t state, bool blocked) {
  slot->state = state;
  slot->blocked = blocked;
  settle_stream(r, slot->stream);
  return false;
}

static bool drop(tide_receiver_t *r, tide_slot_t *slot) {
  const uint8_t stream = slot->stream;
  let_go(r, slot);
  settle_stream(r, stream);
  return false;
}

static bool reject(tide_receiver_t *r, tide_slot_t *slot) {
  slot->state = SLOT_FREE;
  ask_again(r, slot->stream, slot->sequence);
  return drop(r, slot);
}

/* Tells the stream of the frame's arrival. True: it is next. Otherwise the slot is held or dropped. */
static bool arrive(tide_receiver_t *r, tide_slot_t *slot, tide_input_stream_t *stream) {
  const uint32_t gaps = stream->gaps;
  const tide_stream_verdict_t verdict = tide_input_stream_arrive(stream, slot->sequence);
  TIDE_COUNT(r->counters.gaps, stream->gaps - gaps);
  if (verdict == TIDE_STREAM_DELIVER) return true;
  if (verdict == TIDE_STREAM_DUPLICATE) TIDE_COUNT(r->counters.duplicates, 1u);
  if (!TIDE_RELIABLE_STREAMS) return drop(r, slot);
  if (verdict == TIDE_STREAM_OUTSIDE) TIDE_COUNT(r->counters.outside_window, 1u);
  slot->arrived = verdict == TIDE_STREAM_HOLD;
  if (verdict == TIDE_STREAM_HOLD)
    (void)put_back(r, slot, SLOT_HELD, false);
  else
    (void)drop(r, slot);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) acknowledge(r, stream, -1);
  return false;
}

bool tide_receiver_accept(tide_receiver_t *r, tide_slot_t *slot, bool verified) {
  if (slot->state == SLOT_STALE) return drop(r, slot);
  if (!verified) return reject(r, slot);
  slot->verify = false;
  if (TIDE_FRAGMENTS && slot->position > 0u)
    return prepare_fragment(r, slot, slot->position) || put_back(r, slot, SLOT_PARTIAL, true);
  tide_input_stream_t *stream = take_stream(r, slot->stream);
  if (!stream) return drop(r, slot);
  if (TIDE_RELIABLE_STREAMS && slot->arrived && slot->sequence != stream->next) {
    if (distance_from(stream->next, slot->sequence) < 0) return drop(r, slot);
    return put_back(r, slot, SLOT_HELD, false);
  }
  const size_t start = tide_xrce_header_bytes(slot->bytes[0]);
  const bool is_next = !TIDE_STREAM_IS_RELIABLE(slot->stream) || slot->sequence == stream->next;
  if (is_next && !prepare_fragment(r, slot, start))
    return put_back(r, slot, slot->arrived ? SLOT_HELD : SLOT_NOTED, true);
  if (!slot->arrived && !arrive(r, slot, stream)) return false;
  slot->position = (uint16_t)start;
  advance(r, stream);
  return true;
}

static int deliver_message(tide_receiver_t *r, tide_delivery_t delivery, tide_reassembly_t *reassembly,
                           tide_slot_t *slot) {
  size_t position = 0u;
  int count = 0, more;
  delivery.memory = reassembly;
  delivery.reassembled = true;
  while ((more = tide_xrce_next_submessage(reassembly->bytes, reassembly->length, &position, &delivery.submessage)) ==
         1) {
    if (delivery.submessage.id == TIDE_XRCE_FRAGMENT) {
      more = TIDE_ERROR_MALFORMED;
      break;
    }
    r->config.on_submessage(r->config.context, &delivery);
    count++;
  }
  if (more < 0) slot->malformed = true;
  return count;
}

static int deliver_fragment(tide_receiver_t *r, tide_slot_t *slot, const tide_delivery_t *delivery) {
  const tide_xrce_submessage_t *fragment = &delivery->submessage;
  tide_reassembly_t *reassembly = slot->reassembly;
  const bool last = (fragment->flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) != 0u;
  if (slot->skips || !reassembly) {
    slot->skip_ended = last;
    return 0;
  }
  if (fragment->body_bytes > reassembly->capacity - reassembly->length) {
    slot->too_large = true;
    slot->skips = true;
    slot->skip_ended = last;
    return 0;
  }
  memcpy(reassembly->bytes + reassembly->length, fragment->body, fragment->body_bytes);
  reassembly->length += (uint32_t)fragment->body_bytes;
  if (!last) return 0;
  slot->completed = true;
  return deliver_message(r, *delivery, reassembly, slot);
}

/* Stops before a FRAGMENT of a second message: memory for that one is found by the next accept. */
int tide_receiver_deliver(tide_receiver_t *r, tide_slot_t *slot) {
  tide_delivery_t delivery = {.arrived_ns = slot->arrived_ns, .memory = slot};
  (void)tide_xrce_get_header(slot->bytes, slot->length, &delivery.header);
  size_t position = slot->position;
  int count = 0, more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage)) == 1) {
    if (delivery.submessage.id != TIDE_XRCE_FRAGMENT) {
      if (!slot->unwanted) {
        r->config.on_submessage(r->config.context, &delivery);
        count++;
      }
    } else if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) {
      slot->malformed = true;
    } else if (!TIDE_FRAGMENTS) {
      slot->too_large = true;
    } else if (slot->completed || slot->skip_ended) {
      return count;
    } else {
      count += deliver_fragment(r, slot, &delivery);
    }
    slot->position = (uint16_t)position;
  }
  if (more < 0) slot->malformed = true;
  slot->position = 0u;
  return count;
}

static void finish_reassembly(tide_receiver_t *r, tide_slot_t *slot) {
  tide_reassembly_t *reassembly = slot->reassembly;
  const bool over = slot->completed || slot->too_large || slot->state == SLOT_STALE;
  if (slot->state == SLOT_TAKEN && slot->too_large) set_bit(r->skipping, slot->stream, true);
  if (slot->state == SLOT_TAKEN && slot->skip_ended) set_bit(r->skipping, slot->stream, false);
  slot->reassembly = NULL;
  if (!reassembly || !over) return;
  if (reassembly->references == reassembly->released) {
    free_reassembly(r, reassembly);
  } else {
    reassembly->state = REASSEMBLY_USED;
  }
}

void tide_receiver_finish(tide_receiver_t *r, tide_slot_t *slot) {
  if (slot->malformed) TIDE_COUNT(r->counters.malformed, 1u);
  if (slot->too_large) TIDE_COUNT(r->counters.reassembly_too_large, 1u);
  if (TIDE_FRAGMENTS) finish_reassembly(r, slot);
  if (TIDE_FRAGMENTS && slot->state == SLOT_TAKEN && slot->position > 0u) {
    slot->state = SLOT_PARTIAL;
  } else {
    let_go(r, slot);
  }
  settle_stream(r, slot->stream);
}

static int process(tide_receiver_t *r, tide_slot_t *slot) {
  if (!slot || !tide_receiver_accept(r, slot, tide_receiver_verify(slot))) return 0;
  const int count = tide_receiver_deliver(r, slot);
  tide_receiver_finish(r, slot);
  return count;
}

int tide_receiver_process_most_urgent(tide_receiver_t *r) { return process(r, tide_receiver_take_most_urgent(r)); }
int tide_receiver_process_oldest(tide_receiver_t *r) { return process(r, tide_receiver_take_oldest(r)); }

void tide_receiver_retain(tide_receiver_t *r, const tide_delivery_t *delivery) {
  (void)r;
  if (TIDE_FRAGMENTS && delivery->reassembled)
    ((tide_reassembly_t *)delivery->memory)->references++;
  else
    ((tide_slot_t *)delivery->memory)->references++;
}

void tide_receiver_release(tide_receiver_t *r, void *memory, bool reassembled) {
  if (TIDE_FRAGMENTS && reassembled) {
    tide_reassembly_t *reassembly = memory;
    reassembly->released++;
    if (reassembly->state == REASSEMBLY_USED && reassembly->references == reassembly->released)
      free_reassembly(r, reassembly);
  } else {
    tide_slot_t *slot = memory;
    slot->released++;
    if (slot->state == SLOT_USED && slot->references == slot->released) slot->state = SLOT_FREE;
  }
}
