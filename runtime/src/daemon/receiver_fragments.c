/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in fragments. */
#include <string.h>

#include "receiver_internal.h"
#include "upcalls.h"

enum { SUBMESSAGE_ID_MAXIMUM = TIDE_XRCE_TIMESTAMP_REPLY };

void receiver_free_reassembly(tide_receiver_t *r, tide_reassembly_t *reassembly) {
  reassembly->state = REASSEMBLY_FREE;
  reassembly->stream = 0u;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (!slot->blocked) continue;
    slot->blocked = false;
    receiver_refresh_stream(r, slot->stream);
  }
}

tide_reassembly_t *receiver_growing(const tide_receiver_t *r, uint8_t stream) {
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
  receiver_set_bit(r->abandoning, stream, false);
  receiver_set_bit(r->skipping, stream, false);
  tide_reassembly_t *reassembly = receiver_growing(r, stream);
  if (reassembly) receiver_free_reassembly(r, reassembly);
}

void receiver_settle_stream(tide_receiver_t *r, uint8_t id) {
  bool busy = false;
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.slot_count; ++i)
    busy = busy || (r->config.slots[i].stream == id && receiver_is_being_delivered(&r->config.slots[i]));
  if (TIDE_FRAGMENTS && !busy && receiver_get_bit(r->abandoning, id)) abandon_message(r, id);
  receiver_refresh_stream(r, id);
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
    if (reassembly->state != REASSEMBLY_FREE) {
      *waiting = true;
    } else if (!best || reassembly->capacity < best->capacity) {
      best = reassembly;
    }
  }
  return best;
}

static bool first_fragment_from(const tide_slot_t *slot, size_t position, tide_xrce_submessage_t *fragment) {
  while (tide_xrce_next_submessage(slot->bytes, slot->length, &position, fragment) == 1)
    if (fragment->id == TIDE_XRCE_FRAGMENT) return true;
  return false;
}

bool receiver_prepare_fragment(tide_receiver_t *r, tide_slot_t *slot, size_t position) {
  tide_xrce_submessage_t fragment;
  slot->reassembly = NULL;
  slot->skips = false;
  if (!TIDE_FRAGMENTS) return true;
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream) || !first_fragment_from(slot, position, &fragment)) return true;
  slot->skips = receiver_get_bit(r->skipping, slot->stream);
  if (slot->skips) return true;
  slot->reassembly = receiver_growing(r, slot->stream);
  if (slot->reassembly) return true;
  bool waiting;
  tide_reassembly_t *reassembly = choose_reassembly(r, announced_bytes(&fragment), &waiting);
  if (!reassembly && waiting) {
    TIDE_COUNT(r->counters.reassembly_busy, 1u);
    return false;
  }
  if (!reassembly) {
    TIDE_COUNT(r->counters.reassembly_too_large, 1u);
    receiver_set_bit(r->skipping, slot->stream, true);
    slot->skips = true;
    return true;
  }
  reassembly->state = REASSEMBLY_GROWING;
  reassembly->stream = slot->stream;
  reassembly->priority = slot->priority;
  reassembly->owner = slot->owner;
  reassembly->account = slot->account;
  reassembly->length = 0u;
  reassembly->references = 0u;
  reassembly->released = 0u;
  slot->reassembly = reassembly;
  return true;
}

/* ---- delivery ---- */

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
    receiver_tell_submessage(r, &delivery);
    count++;
  }
  if (more < 0) slot->malformed = true;
  return count;
}

int receiver_deliver_fragment(tide_receiver_t *r, tide_slot_t *slot, const tide_delivery_t *delivery) {
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

void receiver_finish_reassembly(tide_receiver_t *r, tide_slot_t *slot) {
  tide_reassembly_t *reassembly = slot->reassembly;
  const bool over = slot->completed || slot->too_large || slot->state == SLOT_STALE;
  if (slot->state == SLOT_TAKEN && slot->too_large) receiver_set_bit(r->skipping, slot->stream, true);
  if (slot->state == SLOT_TAKEN && slot->skip_ended) receiver_set_bit(r->skipping, slot->stream, false);
  slot->reassembly = NULL;
  if (!reassembly || !over) return;
  if (reassembly->references == reassembly->released) {
    receiver_free_reassembly(r, reassembly);
  } else {
    reassembly->state = REASSEMBLY_USED;
  }
}
