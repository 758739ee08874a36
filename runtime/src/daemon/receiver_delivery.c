/* SPDX-License-Identifier: Apache-2.0 */
/* Processing of what was noted: whose turn it is, verified, handed on, given back. */
#include "receiver_internal.h"
#include "tide/framing.h"
#include "upcalls.h"

int32_t tide_receiver_most_urgent(const tide_receiver_t *r) {
  const tide_slot_t *slot = (const tide_slot_t *)(const void *)tide_queue_head(&r->noted);
  return slot ? (int32_t)slot->priority : TIDE_PRIORITY_NONE;
}

static tide_slot_t *take(tide_receiver_t *r, tide_slot_t *slot) {
  if (!slot) return NULL;
  receiver_leave_heap(r, slot);
  slot->state = SLOT_TAKEN;
  slot->reassembly = NULL;
  slot->completed = slot->skip_ended = slot->too_large = slot->malformed = slot->skips = false;
  tide_receiver_refresh_stream(r, slot->stream);
  tide_receiver_check(r);
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

bool tide_receiver_any_of(const tide_receiver_t *r, const tide_frame_share_t *share, void *context,
                          bool (*is)(void *context, const tide_account_t *account, bool is_first)) {
  const tide_slot_t *first = most_urgent_of(r, share);
  if (!first || is(context, first->account, true)) return first != NULL;
  for (size_t i = 0; i < r->noted.count; ++i) {
    const tide_slot_t *slot = (const tide_slot_t *)(const void *)r->noted.entries[i];
    if (is_of(slot, share) && slot->priority == first->priority && is(context, slot->account, false)) return true;
  }
  return false;
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

/* ---- steps ---- */

bool tide_receiver_verify(const tide_slot_t *slot) {
  return !slot->verify || tide_crc16(0u, slot->bytes, slot->length) == slot->crc;
}

static bool put_back(tide_receiver_t *r, tide_slot_t *slot, uint8_t state, bool blocked) {
  slot->state = state;
  slot->blocked = blocked;
  tide_receiver_settle_stream(r, slot->stream);
  return false;
}

static bool drop(tide_receiver_t *r, tide_slot_t *slot) {
  const uint8_t stream = slot->stream;
  tide_receiver_let_go(r, slot);
  tide_receiver_settle_stream(r, stream);
  return false;
}

static bool reject(tide_receiver_t *r, tide_slot_t *slot) {
  const uint8_t stream = slot->stream;
  tide_receiver_let_go(r, slot);
  tide_receiver_ask_again(r, stream, slot->sequence);
  tide_receiver_settle_stream(r, stream);
  return false;
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
  if (verdict == TIDE_STREAM_HOLD) {
    (void)put_back(r, slot, SLOT_HELD, false);
  } else {
    (void)drop(r, slot);
  }
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) tide_receiver_acknowledge(r, stream, -1);
  return false;
}

static bool accept(tide_receiver_t *r, tide_slot_t *slot, bool verified) {
  if (slot->state == SLOT_STALE) return drop(r, slot);
  if (!verified) return reject(r, slot);
  slot->verify = false;
  if (TIDE_FRAGMENTS && slot->position > 0u)
    return tide_receiver_prepare_fragment(r, slot, slot->position) || put_back(r, slot, SLOT_PARTIAL, true);
  tide_input_stream_t *stream = tide_receiver_take_stream(r, slot->stream);
  if (!stream) return drop(r, slot);
  if (TIDE_RELIABLE_STREAMS && slot->arrived && slot->sequence != stream->next) {
    if (receiver_distance_from(stream->next, slot->sequence) < 0) return drop(r, slot);
    return put_back(r, slot, SLOT_HELD, false);
  }
  const size_t start = tide_xrce_header_bytes(slot->bytes[0]);
  const bool is_next = !TIDE_STREAM_IS_RELIABLE(slot->stream) || slot->sequence == stream->next;
  if (is_next && !tide_receiver_prepare_fragment(r, slot, start))
    return put_back(r, slot, slot->arrived ? SLOT_HELD : SLOT_NOTED, true);
  if (!slot->arrived && !arrive(r, slot, stream)) return false;
  slot->position = (uint16_t)start;
  tide_receiver_advance(r, stream);
  return true;
}

bool tide_receiver_accept(tide_receiver_t *r, tide_slot_t *slot, bool verified) {
  TIDE_INVARIANT(slot->state == SLOT_TAKEN || slot->state == SLOT_STALE);
  const bool accepted = accept(r, slot, verified);
  tide_receiver_check(r);
  return accepted;
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
        receiver_tell_submessage(r, &delivery);
        count++;
      }
    } else if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) {
      slot->malformed = true;
    } else if (!TIDE_FRAGMENTS) {
      slot->too_large = true;
    } else if (slot->completed || slot->skip_ended) {
      return count;
    } else {
      count += tide_receiver_deliver_fragment(r, slot, &delivery);
    }
    slot->position = (uint16_t)position;
  }
  if (more < 0) slot->malformed = true;
  slot->position = 0u;
  return count;
}

void tide_receiver_finish(tide_receiver_t *r, tide_slot_t *slot) {
  if (slot->malformed) TIDE_COUNT(r->counters.malformed, 1u);
  if (slot->too_large) TIDE_COUNT(r->counters.reassembly_too_large, 1u);
  if (TIDE_FRAGMENTS) tide_receiver_finish_reassembly(r, slot);
  if (TIDE_FRAGMENTS && slot->state == SLOT_TAKEN && slot->position > 0u) {
    slot->state = SLOT_PARTIAL;
  } else {
    tide_receiver_let_go(r, slot);
  }
  tide_receiver_settle_stream(r, slot->stream);
  tide_receiver_check(r);
}

static int process(tide_receiver_t *r, tide_slot_t *slot) {
  if (!slot || !tide_receiver_accept(r, slot, tide_receiver_verify(slot))) return 0;
  const int count = tide_receiver_deliver(r, slot);
  tide_receiver_finish(r, slot);
  return count;
}

int tide_receiver_process_most_urgent(tide_receiver_t *r) { return process(r, tide_receiver_take_most_urgent(r)); }
int tide_receiver_process_oldest(tide_receiver_t *r) { return process(r, tide_receiver_take_oldest(r)); }

/* ---- memory in use ---- */

void tide_receiver_retain(tide_receiver_t *r, const tide_delivery_t *delivery) {
  (void)r;
  if (TIDE_FRAGMENTS && delivery->reassembled) {
    ((tide_reassembly_t *)delivery->memory)->references++;
  } else {
    ((tide_slot_t *)delivery->memory)->references++;
  }
}

void tide_receiver_release(tide_receiver_t *r, void *memory, bool reassembled) {
  if (TIDE_FRAGMENTS && reassembled) {
    tide_reassembly_t *reassembly = memory;
    reassembly->released++;
    if (reassembly->state == REASSEMBLY_USED && reassembly->references == reassembly->released)
      tide_receiver_free_reassembly(r, reassembly);
  } else {
    tide_slot_t *slot = memory;
    slot->released++;
    if (slot->state == SLOT_USED && slot->references == slot->released) tide_receiver_free_slot(r, slot);
  }
  tide_receiver_check(r);
}
