/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in fragments. */
#include <string.h>

#include "receiver_internal.h"
#include "upcalls.h"

enum { SUBMESSAGE_ID_MAXIMUM = TIDE_XRCE_TIMESTAMP_REPLY };

/* ---- whose memory is whose ---- */

#if TIDE_FRAGMENTS && TIDE_RESERVATIONS
void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account) {
  if (reassembly->account) reassembly->account->reassemblies--;
  if (account) account->reassemblies++;
  reassembly->account = account;
}

static void expect(tide_account_t *account, size_t bytes) {
  if (bytes > account->fragment_bytes) account->fragment_bytes = (uint32_t)bytes;
}

/* The first one is everybody's right; a second one only while each of the others would still find its first, also if
 * all of them need one that is large enough for the largest of their messages. */
static bool may_take(const tide_receiver_t *r, const tide_account_t *account, const tide_reassembly_t *reassembly) {
  if (account->reassemblies == 0u) return true;
  size_t owed = 0u, free = 0u;
  uint32_t largest = 0u;
  for (const tide_account_t *other = r->nobody.next; other; other = other->next) {
    if (other->fragment_bytes == 0u || other->reassemblies > 0u) continue;
    owed++;
    if (other->fragment_bytes > largest) largest = other->fragment_bytes;
  }
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    const tide_reassembly_t *each = &r->config.reassemblies[i];
    free += each != reassembly && each->state == REASSEMBLY_FREE && each->capacity >= largest ? 1u : 0u;
  }
  return free >= owed;
}

static void count_wait(tide_account_t *account) { account->waits++; }
#else
void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account) {
  reassembly->account = account;
}
static void expect(tide_account_t *account, size_t bytes) {
  (void)account;
  (void)bytes;
}
static bool may_take(const tide_receiver_t *r, const tide_account_t *account, const tide_reassembly_t *reassembly) {
  (void)r;
  (void)account;
  (void)reassembly;
  return true;
}
static void count_wait(tide_account_t *account) { (void)account; }
#endif

void tide_receiver_free_reassembly(tide_receiver_t *r, tide_reassembly_t *reassembly) {
  reassembly->state = REASSEMBLY_FREE;
  reassembly->stream = 0u;
  tide_receiver_charge_reassembly(reassembly, NULL);
  tide_receiver_unblock(r);
}

void tide_receiver_unblock(tide_receiver_t *r) {
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (!slot->blocked) continue;
    slot->blocked = false;
    tide_receiver_refresh_stream(r, slot->stream);
  }
}

tide_reassembly_t *tide_receiver_growing(const tide_receiver_t *r, uint8_t stream) {
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
  tide_reassembly_t *reassembly = tide_receiver_growing(r, stream);
  if (reassembly) tide_receiver_free_reassembly(r, reassembly);
}

void tide_receiver_settle_stream(tide_receiver_t *r, uint8_t id) {
  bool busy = false;
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.slot_count; ++i)
    busy = busy || (r->config.slots[i].stream == id && receiver_is_being_delivered(&r->config.slots[i]));
  if (TIDE_FRAGMENTS && !busy && receiver_get_bit(r->abandoning, id)) abandon_message(r, id);
  tide_receiver_refresh_stream(r, id);
}

/* The whole size as the first fragment tells it, or SIZE_MAX when that cannot be the start of a message. */
static size_t announced_bytes(const tide_xrce_submessage_t *fragment) {
  if (fragment->body_bytes < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) return TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  if (fragment->body[0] > SUBMESSAGE_ID_MAXIMUM) return SIZE_MAX;
  const size_t announced = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + (size_t)(fragment->body[2] | fragment->body[3] << 8);
  return announced > fragment->body_bytes ? announced : fragment->body_bytes;
}

/* The smallest free one that is large enough; *waiting tells whether one would be, but is in use or kept for others. */
static tide_reassembly_t *choose_reassembly(const tide_receiver_t *r, const tide_account_t *account, size_t bytes,
                                            bool *waiting) {
  tide_reassembly_t *best = NULL;
  *waiting = false;
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->capacity < bytes) continue;
    if (reassembly->state != REASSEMBLY_FREE || !may_take(r, account, reassembly)) {
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

/* Of a message that begins: who reads it. As its frame came it may not have been known to be a first one. Null: nobody
 * does. */
static tide_account_t *account_of_message(tide_receiver_t *r, const tide_slot_t *slot,
                                          const tide_xrce_submessage_t *fragment) {
  tide_account_t *account = slot->account;
  if (!TIDE_RESERVATIONS || account != &r->nobody || !receiver_has_priorities(r)) return account;
  if (fragment->body_bytes < 8u || fragment->body[0] != TIDE_XRCE_DATA) return account;
  const uint8_t *ids = fragment->body + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  const tide_xrce_request_t request = {(uint16_t)(ids[0] << 8 | ids[1]), (uint16_t)(ids[2] << 8 | ids[3])};
  return receiver_ask_priority(r, slot->stream, request, &account) < 0 ? NULL : account;
}

static void skip_message(tide_receiver_t *r, tide_slot_t *slot) {
  receiver_set_bit(r->skipping, slot->stream, true);
  slot->skips = true;
}

bool tide_receiver_prepare_fragment(tide_receiver_t *r, tide_slot_t *slot, size_t position) {
  tide_xrce_submessage_t fragment;
  slot->reassembly = NULL;
  slot->skips = false;
  if (!TIDE_FRAGMENTS) return true;
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream) || !first_fragment_from(slot, position, &fragment)) return true;
  slot->skips = receiver_get_bit(r->skipping, slot->stream);
  if (slot->skips) return true;
  slot->reassembly = tide_receiver_growing(r, slot->stream);
  if (slot->reassembly) return true;
  tide_account_t *account = account_of_message(r, slot, &fragment);
  if (!account) {
    skip_message(r, slot);
    return true;
  }
  const size_t bytes = announced_bytes(&fragment);
  bool waiting;
  tide_reassembly_t *reassembly = choose_reassembly(r, account, bytes, &waiting);
  if (!reassembly && waiting) {
    TIDE_COUNT(r->counters.reassembly_busy, 1u);
    expect(account, bytes);
    count_wait(account);
    return false;
  }
  if (!reassembly) {
    TIDE_COUNT(r->counters.reassembly_too_large, 1u);
    skip_message(r, slot);
    return true;
  }
  expect(account, bytes);
  reassembly->state = REASSEMBLY_GROWING;
  reassembly->stream = slot->stream;
  reassembly->priority = slot->priority;
  reassembly->owner = slot->owner;
  tide_receiver_charge_reassembly(reassembly, account);
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

int tide_receiver_deliver_fragment(tide_receiver_t *r, tide_slot_t *slot, const tide_delivery_t *delivery) {
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

void tide_receiver_finish_reassembly(tide_receiver_t *r, tide_slot_t *slot) {
  tide_reassembly_t *reassembly = slot->reassembly;
  const bool over = slot->completed || slot->too_large || slot->state == SLOT_STALE;
  if (slot->state == SLOT_TAKEN && slot->too_large) receiver_set_bit(r->skipping, slot->stream, true);
  if (slot->state == SLOT_TAKEN && slot->skip_ended) receiver_set_bit(r->skipping, slot->stream, false);
  slot->reassembly = NULL;
  if (!reassembly || !over) return;
  if (reassembly->references == reassembly->released) {
    tide_receiver_free_reassembly(r, reassembly);
  } else {
    reassembly->state = REASSEMBLY_USED;
  }
}
