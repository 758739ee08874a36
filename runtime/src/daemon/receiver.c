/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving half of the daemon (tide/receiver.h): frames in slots, parsed once when they arrive, delivered when
 * they are the most urgent work.
 *
 * Invariants, tested by check: There is always a slot to fill. A slot is in the heap `noted` exactly when its frame
 * could be processed now: its state is SLOT_NOTED, or SLOT_HELD with the next frame of its stream, or SLOT_PARTIAL; its
 * frame waits neither for memory nor for a full reader; and no other frame of its stream is being delivered.
 * refresh_stream restores this after any change. A slot that holds a frame is charged to the account of the frame's
 * reader, or to `nobody`. `free` counts the free slots, `owed` the reserved slots that are not in use. `free` is at
 * least `owed`, except for a while after an account was opened or closed. A queued frame has no effect on its stream or
 * window before its checksum is verified. At worst, a damaged header causes one useless request for a retransmission.
 * / */
#include "tide/receiver.h"

#include <string.h>

#include "daemon_internal.h"
#include "tide/framing.h"
#include "tide/invariant.h"
#include "tide/platform.h"
#include "tide/status.h"

enum {
  SLOT_FREE,
  SLOT_FILLING,
  SLOT_NOTED,
  SLOT_HELD,    /* verified and not yet delivered; its turn in the stream has come or will come */
  SLOT_TAKEN,   /* a lane verifies or delivers the frame */
  SLOT_STALE,   /* like SLOT_TAKEN, but the frame's session has ended */
  SLOT_PARTIAL, /* some of the frame's submessages are delivered */
  SLOT_USED     /* delivered, its samples are in use */
};
enum { REASSEMBLY_FREE, REASSEMBLY_GROWING, REASSEMBLY_STALE, REASSEMBLY_USED };
enum { RANK_BITS = 47, SUBMESSAGE_ID_MAXIMUM = TIDE_XRCE_TIMESTAMP_REPLY };

/* ---- calls of the owner: its functions directly, or the configuration's pointers ---- */

#if TIDE_STATIC_PLATFORM
#define HAS_PRIORITIES(r) true
#define HAS_CONTROL(r) true
static tide_daemon_t *daemon_of(const tide_receiver_t *r) {
  return (tide_daemon_t *)((uintptr_t)r - offsetof(tide_daemon_t, receiver));
}
static int32_t ask_priority(const tide_receiver_t *r, uint8_t stream, tide_xrce_request_t request,
                            tide_account_t **account) {
  return tide_daemon_owner_priority_of(daemon_of(r), stream, request, account);
}
static void report_submessage(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  tide_daemon_owner_on_submessage(daemon_of(r), delivery);
}
static void report_control(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  tide_daemon_on_control(daemon_of(r), delivery);
}
static void report_acknowledge(const tide_receiver_t *r, uint8_t stream, uint16_t first, uint16_t missing) {
  tide_daemon_on_acknowledge(daemon_of(r), stream, first, missing);
}
#else
#define HAS_PRIORITIES(r) ((r)->config.priority_of != NULL)
#define HAS_CONTROL(r) ((r)->config.on_control != NULL)
static int32_t ask_priority(const tide_receiver_t *r, uint8_t stream, tide_xrce_request_t request,
                            tide_account_t **account) {
  return r->config.priority_of(r->config.context, stream, request, account);
}
static void report_submessage(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  r->config.on_submessage(r->config.context, delivery);
}
static void report_control(const tide_receiver_t *r, const tide_delivery_t *delivery) {
  if (r->config.on_control) r->config.on_control(r->config.context, delivery);
}
static void report_acknowledge(const tide_receiver_t *r, uint8_t stream, uint16_t first, uint16_t missing) {
  if (r->config.on_acknowledge) r->config.on_acknowledge(r->config.context, stream, first, missing);
}
#endif

static int16_t distance_from(uint16_t next, uint16_t sequence) { return tide_sequence_distance(sequence, next); }
static bool get_bit(const uint32_t *bits, uint8_t id) { return (bits[id / 32u] >> (id % 32u) & 1u) != 0u; }

static void set_bit(uint32_t *bits, uint8_t id, bool value) {
  const uint32_t mask = UINT32_C(1) << (id % 32u);
  bits[id / 32u] = value ? bits[id / 32u] | mask : bits[id / 32u] & ~mask;
}

static uint32_t lowest_bit(uint32_t bits) { return bits & (~bits + 1u); }

static uint32_t count_bits(uint32_t bits) {
  uint32_t count = 0u;
  for (; bits != 0u; bits &= bits - 1u) ++count;
  return count;
}

/* ---- slots and streams ---- */

static bool waits(const tide_slot_t *slot) { return slot->state == SLOT_NOTED || slot->state == SLOT_HELD; }

/* True if the function pass acknowledged the frame although it still waits. */
static bool has_passed(const tide_slot_t *slot) { return TIDE_RESERVATIONS && slot->passed; }

/* True if the frame waits and blocks its stream. */
static bool holds_up(const tide_slot_t *slot) { return waits(slot) && !has_passed(slot); }

static bool is_being_delivered(const tide_slot_t *slot) {
  return slot->state == SLOT_TAKEN || slot->state == SLOT_PARTIAL;
}

/* True if the frame waits or is being delivered in this stream and was not passed: its sequence number then still
 * matters. */
static bool is_in_order(const tide_slot_t *slot, uint8_t stream) {
  return slot->stream == stream && !has_passed(slot) && (waits(slot) || is_being_delivered(slot));
}

static tide_input_stream_t *find_stream(const tide_receiver_t *r, uint8_t id) {
  tide_input_stream_t *stream = r->config.streams;
  for (size_t left = r->config.stream_count; left > 0u; --left, ++stream)
    if (stream->id == id) return stream;
  return NULL;
}

static tide_input_stream_t *take_stream(tide_receiver_t *r, uint8_t id) {
  tide_input_stream_t *stream = find_stream(r, id);
  if (stream) return stream;
  stream = find_stream(r, 0u);
  if (stream) {
    tide_input_stream_init(stream, id, r->config.window);
  } else {
    TIDE_COUNT(r->counters.streams_full, 1u);
  }
  return stream;
}

static tide_slot_t *find_slot(const tide_receiver_t *r, uint8_t stream, uint16_t sequence) {
  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->sequence == sequence && is_in_order(slot, stream)) return slot;
  }
  return NULL;
}

static void leave_heap(tide_receiver_t *r, tide_slot_t *slot) { tide_queue_remove(&r->noted, &slot->entry); }

static void enter_heap(tide_receiver_t *r, tide_slot_t *slot) {
  const uint32_t urgency = 0xFFFFu - slot->priority;
  (void)tide_queue_push(&r->noted, &slot->entry, (int64_t)((uint64_t)urgency << RANK_BITS | slot->arrival));
}

bool tide_receiver_verify(const tide_slot_t *slot) {
  return !slot->verify || tide_crc16(slot->bytes, slot->length) == slot->crc;
}

/* ---- invariants, all checked after each step ---- */

#if TIDE_INVARIANTS
static bool is_charged(const tide_slot_t *slot) { return slot->state != SLOT_FREE && slot->state != SLOT_FILLING; }

/* A waiting frame may be outside the heap only if it waits for memory or for a full reader, or if another frame of its
 * stream precedes it or is being delivered. */
static bool has_reason_to_wait(const tide_receiver_t *r, const tide_slot_t *slot) {
  if (slot->blocked || (TIDE_RESERVATIONS && slot->account->full)) return true;
  const tide_input_stream_t *stream = find_stream(r, slot->stream);
  if (slot->state == SLOT_HELD && (!stream || slot->sequence != stream->next)) return true;
  for (size_t i = 0; i < r->slots_used; ++i)
    if (r->config.slots[i].stream == slot->stream && is_being_delivered(&r->config.slots[i])) return true;
  return false;
}

static void check(const tide_receiver_t *r) {
  size_t free = 0u, charged = 0u, noted = 0u;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    const bool is_noted = tide_queue_contains(&slot->entry);
    TIDE_INVARIANT((slot->state == SLOT_FILLING) == (slot == r->filling));
    TIDE_INVARIANT(slot->state == SLOT_FREE || i < r->slots_used);
    TIDE_INVARIANT(is_charged(slot) == (slot->account != NULL));
    TIDE_INVARIANT(!is_noted || waits(slot) || slot->state == SLOT_PARTIAL);
    TIDE_INVARIANT(!slot->blocked || waits(slot) || slot->state == SLOT_PARTIAL);
    TIDE_INVARIANT(!is_noted || !slot->blocked);
    TIDE_INVARIANT(slot->state != SLOT_HELD || TIDE_STREAM_IS_RELIABLE(slot->stream));
    TIDE_INVARIANT(is_noted || !waits(slot) || has_reason_to_wait(r, slot));
    free += slot->state == SLOT_FREE ? 1u : 0u;
    charged += is_charged(slot) ? 1u : 0u;
    noted += is_noted ? 1u : 0u;
  }
  TIDE_INVARIANT(free == r->free && free + charged + 1u == r->config.slot_count);
  TIDE_INVARIANT(noted == r->noted.count);
#if TIDE_RESERVATIONS
  size_t used = 0u, owed = 0u, reassemblies = 0u, charged_reassemblies = 0u;
  for (const tide_account_t *account = &r->nobody; account; account = account->next) {
    used += account->used;
    owed += account->used < account->reserved ? (size_t)(account->reserved - account->used) : 0u;
    charged_reassemblies += account->reassemblies;
  }
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.reassembly_count; ++i) {
    const tide_reassembly_t *each = &r->config.reassemblies[i];
    TIDE_INVARIANT((each->state == REASSEMBLY_FREE) == (each->account == NULL));
    reassemblies += each->account ? 1u : 0u;
  }
  TIDE_INVARIANT(used == charged && owed == r->owed && charged_reassemblies == reassemblies);
#endif
}
#else
static void check(const tide_receiver_t *r) { (void)r; }
#endif

/* ---- accounts: which reader uses which slots ---- */

static bool is_over(const tide_account_t *account) { return TIDE_RESERVATIONS && account->used > account->reserved; }

static uint16_t owed_to(const tide_account_t *account) {
  return is_over(account) ? 0u : (uint16_t)(account->reserved - account->used);
}

/* Number of slots that frames of this stream may still take. */
static uint32_t room_for(const tide_receiver_t *r, uint8_t stream) {
  if (!TIDE_RESERVATIONS || !r->nobody.next) return r->free;
  uint32_t owed_to_others = 0u;
  const tide_account_t *account = &r->nobody;
  do {
    if (account->stream != stream) owed_to_others += owed_to(account);
    account = account->next;
  } while (account);
  return r->free > owed_to_others ? r->free - owed_to_others : 0u;
}

static void charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account) {
  slot->account = account;
  if (!TIDE_RESERVATIONS) return;
  account->stream = slot->stream;
  if (account->used++ < account->reserved) r->owed--;
}

static void discharge(tide_receiver_t *r, tide_slot_t *slot) {
  if (TIDE_RESERVATIONS && --slot->account->used < slot->account->reserved) r->owed++;
  slot->account = NULL;
}

static void ask_withheld(tide_receiver_t *r);

static void free_slot(tide_receiver_t *r, tide_slot_t *slot) {
  slot->state = SLOT_FREE;
  r->free++;
  while (r->config.slots[r->slots_used - 1u].state == SLOT_FREE) r->slots_used--; /* one slot is being filled */
  discharge(r, slot);
  if (TIDE_RESERVATIONS && TIDE_RELIABLE_STREAMS && r->withheld) ask_withheld(r);
}

/* Ends the processing of a frame; samples of it that are in use stay valid. */
static void let_go(tide_receiver_t *r, tide_slot_t *slot) {
  leave_heap(r, slot);
  if (TIDE_FRAGMENTS) slot->blocked = false;
  if (slot->references == slot->released) {
    free_slot(r, slot);
  } else {
    slot->state = SLOT_USED;
  }
}

/* Call this after any change of a stream: it puts the frames that can be processed into the heap. */
static void refresh_stream(tide_receiver_t *r, uint8_t id) {
  const tide_input_stream_t *stream = NULL;
  bool taken = false, partial = false;
  size_t first = r->slots_used; /* the stream's first slot that waits or is partly delivered */
  for (size_t i = 0; i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != id) continue;
    taken = taken || slot->state == SLOT_TAKEN;
    partial = partial || slot->state == SLOT_PARTIAL;
    if (first > i && (waits(slot) || slot->state == SLOT_PARTIAL)) first = i;
  }
  if (first < r->slots_used) stream = find_stream(r, id);
  for (size_t i = first; i < r->slots_used; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream != id || (!waits(slot) && slot->state != SLOT_PARTIAL)) continue;
    const bool is_past =
        holds_up(slot) && TIDE_STREAM_IS_RELIABLE(id) && stream && distance_from(stream->next, slot->sequence) < 0;
    if (is_past) {
      let_go(r, slot); /* the sender has given the frame up, and the stream has moved past it */
      continue;
    }
    bool ready = !slot->blocked && !taken;
    if (slot->state != SLOT_PARTIAL) {
      const bool is_turn = slot->state == SLOT_NOTED || (stream && slot->sequence == stream->next);
      ready = ready && !partial && !(TIDE_RESERVATIONS && slot->account->full) && is_turn;
    }
    if (ready) {
      enter_heap(r, slot);
    } else {
      leave_heap(r, slot);
    }
  }
}

/* Reserves slots for the accounts in rounds: each round gives one more slot to every account that wants one, as long as
 * there are enough for a whole round. The result therefore does not depend on the order in which accounts were
 * opened. */
static void share_out(tide_receiver_t *r) {
  if (!TIDE_RESERVATIONS) return;
  size_t left = r->config.slot_count - 1u;
  uint16_t most = 0u;
  for (;; most++) {
    size_t count = 0u;
    for (const tide_account_t *account = &r->nobody; account; account = account->next)
      count += account->wanted > most ? 1u : 0u;
    if (count == 0u || count > left) break;
    left -= count;
  }
  r->owed = 0u;
  for (tide_account_t *account = &r->nobody; account; account = account->next) {
    account->reserved = account->wanted < most ? account->wanted : most;
    r->owed = (uint16_t)(r->owed + owed_to(account));
  }
}

void tide_receiver_open_account(tide_receiver_t *r, tide_account_t *account, uint16_t wanted) {
  *account = (tide_account_t){.next = r->nobody.next, .wanted = wanted};
  if (!TIDE_RESERVATIONS) return;
  r->nobody.next = account;
  share_out(r);
}

void tide_receiver_set_full(tide_receiver_t *r, tide_account_t *account, bool full) {
  if (!TIDE_RESERVATIONS || account->full == full) return;
  account->full = full;
  for (size_t i = 0; i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->account == account && waits(slot)) refresh_stream(r, slot->stream);
  }
  check(r);
}

static void charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account) {
#if TIDE_FRAGMENTS && TIDE_RESERVATIONS
  if (reassembly->account) reassembly->account->reassemblies--;
  if (account) account->reassemblies++;
#endif
  reassembly->account = account;
}

/* A reassembly buffer became free, so the streams that wait for one try again. */
static void unblock(tide_receiver_t *r) {
  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (!slot->blocked) continue;
    slot->blocked = false;
    refresh_stream(r, slot->stream);
  }
}

void tide_receiver_close_account(tide_receiver_t *r, tide_account_t *account) {
  if (!TIDE_RESERVATIONS) return;
  tide_account_t **link = &r->nobody.next;
  while (*link && *link != account) link = &(*link)->next;
  if (!*link) return;
  tide_receiver_set_full(r, account, false);
  *link = account->next;
  for (size_t i = 0; i < r->slots_used; ++i)
    if (r->config.slots[i].account == account) r->config.slots[i].account = &r->nobody;
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->account == account) charge_reassembly(reassembly, &r->nobody);
  }
  r->nobody.used = (uint16_t)(r->nobody.used + account->used);
  account->used = 0u;
  share_out(r);
  if (TIDE_FRAGMENTS) unblock(r);
  check(r);
}

/* ---- reassembly buffers ---- */

static void free_reassembly(tide_receiver_t *r, tide_reassembly_t *reassembly) {
  reassembly->state = REASSEMBLY_FREE;
  reassembly->stream = 0u;
  charge_reassembly(reassembly, NULL);
  unblock(r);
}

static tide_reassembly_t *growing(const tide_receiver_t *r, uint8_t stream) {
  if (!TIDE_FRAGMENTS) return NULL;
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->stream == stream && reassembly->state == REASSEMBLY_GROWING) return reassembly;
  }
  return NULL;
}

/* Call this at the end of a delivery or after a change of the stream: it drops a message whose rest will never arrive,
 * unless the message is being processed. */
static void settle_stream(tide_receiver_t *r, uint8_t id) {
  if (TIDE_FRAGMENTS && get_bit(r->abandoning, id)) {
    bool busy = false;
    for (size_t i = 0; i < r->slots_used; ++i)
      busy = busy || (r->config.slots[i].stream == id && is_being_delivered(&r->config.slots[i]));
    tide_reassembly_t *reassembly = busy ? NULL : growing(r, id);
    if (!busy) {
      set_bit(r->abandoning, id, false);
      set_bit(r->skipping, id, false);
    }
    if (reassembly) free_reassembly(r, reassembly);
  }
  refresh_stream(r, id);
}

/* Every account may take a first buffer. It may take a second one only while every other account could still get a
 * first buffer that is large enough for the largest of all their messages. */
static bool may_take(const tide_receiver_t *r, const tide_account_t *account, const tide_reassembly_t *reassembly) {
#if TIDE_FRAGMENTS && TIDE_RESERVATIONS
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
#else
  (void)r, (void)account, (void)reassembly;
  return true;
#endif
}

/* Size of the whole message as announced by its first fragment; SIZE_MAX if the fragment cannot be the start of a
 * message. */
static size_t announced_bytes(const tide_xrce_submessage_t *fragment) {
  if (fragment->body_bytes < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) return TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  if (fragment->body[0] > SUBMESSAGE_ID_MAXIMUM) return SIZE_MAX;
  const size_t announced = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + (size_t)(fragment->body[2] | fragment->body[3] << 8);
  return announced > fragment->body_bytes ? announced : fragment->body_bytes;
}

/* The account of a message's reader. It is looked up again, because the frame may not have been recognised as a first
 * fragment when it arrived. Null if the message has no reader. */
static tide_account_t *account_of_message(tide_receiver_t *r, const tide_slot_t *slot,
                                          const tide_xrce_submessage_t *fragment) {
  tide_account_t *account = slot->account;
  if (!TIDE_RESERVATIONS || account != &r->nobody || !HAS_PRIORITIES(r)) return account;
  if (fragment->body_bytes < 8u || fragment->body[0] != TIDE_XRCE_DATA) return account;
  const uint8_t *ids = fragment->body + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  const tide_xrce_request_t request = {(uint16_t)(ids[0] << 8 | ids[1]), (uint16_t)(ids[2] << 8 | ids[3])};
  return ask_priority(r, slot->stream, request, &account) < 0 ? NULL : account;
}

/* Finds the memory for the next FRAGMENT in the slot, or marks the FRAGMENT as skipped. Returns false if it has to wait
 * for memory. */
static bool prepare_fragment(tide_receiver_t *r, tide_slot_t *slot, size_t position) {
  slot->reassembly = NULL;
  slot->skips = false;
  if (!TIDE_FRAGMENTS || !TIDE_STREAM_IS_RELIABLE(slot->stream)) return true;
  tide_xrce_submessage_t fragment;
  do {
    if (tide_xrce_next_submessage(slot->bytes, slot->length, &position, &fragment) != 1) return true;
  } while (fragment.id != TIDE_XRCE_FRAGMENT);
  slot->skips = get_bit(r->skipping, slot->stream);
  if (slot->skips) return true;
  slot->reassembly = growing(r, slot->stream);
  if (slot->reassembly) return true;

  /* a message begins: take the smallest free buffer that is large enough and not reserved for others */
  tide_account_t *account = account_of_message(r, slot, &fragment);
  const size_t bytes = announced_bytes(&fragment);
  tide_reassembly_t *best = NULL;
  bool waiting = false; /* a large enough buffer is in use or reserved for others */
  for (size_t i = 0; account && i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->capacity < bytes) continue;
    if (reassembly->state != REASSEMBLY_FREE || !may_take(r, account, reassembly)) {
      waiting = true;
    } else if (!best || reassembly->capacity < best->capacity) {
      best = reassembly;
    }
  }
  if (!best && !waiting) { /* the message has no reader, or no buffer can hold it */
    if (account) TIDE_COUNT(r->counters.reassembly_too_large, 1u);
    set_bit(r->skipping, slot->stream, true);
    slot->skips = true;
    return true;
  }
#if TIDE_FRAGMENTS && TIDE_RESERVATIONS
  if (bytes > account->fragment_bytes) account->fragment_bytes = (uint32_t)bytes;
  if (!best) account->waits++;
#endif
  if (!best) {
    TIDE_COUNT(r->counters.reassembly_busy, 1u);
    return false;
  }
  best->state = REASSEMBLY_GROWING;
  best->stream = slot->stream;
  best->priority = slot->priority;
  best->owner = slot->owner;
  charge_reassembly(best, account);
  best->length = 0u;
  best->references = 0u;
  best->released = 0u;
  slot->reassembly = best;
  return true;
}

/* ---- acknowledgments of a stream ----
 *
 * A requested retransmission must find a slot: if it is dropped, the sender does not send a third copy for a while.
 * Slots are therefore promised to requested frames until they arrive. */

/* The requested frames, as bits relative to `next`. */
static uint32_t asked_bits(const tide_input_stream_t *stream) {
  const uint16_t moved = (uint16_t)(stream->next - stream->asked_from);
  return moved < 16u ? (uint32_t)stream->asked >> moved : 0u;
}

/* Number of slots promised to requested frames: those of this stream, or those of all other streams. */
static uint32_t promised_slots(const tide_receiver_t *r, uint8_t stream, bool others) {
  uint32_t count = 0u;
  for (size_t i = 0; TIDE_RESERVATIONS && TIDE_RELIABLE_STREAMS && i < r->config.stream_count; ++i) {
    const tide_input_stream_t *each = &r->config.streams[i];
    if (each->id == 0u) break; /* stream entries are filled in order and all freed at once */
    if ((each->id == stream) != others) count += count_bits(asked_bits(each));
  }
  return count;
}

/* Called when a frame has arrived. Returns true if the frame had been requested. */
static bool keep_promise(const tide_receiver_t *r, uint8_t id, uint16_t sequence) {
  if (!TIDE_RESERVATIONS) return false;
  tide_input_stream_t *stream = find_stream(r, id);
  const uint16_t place = stream ? (uint16_t)(sequence - stream->asked_from) : 16u;
  if (place >= 16u || (stream->asked >> place & 1u) == 0u) return false;
  stream->asked = (uint16_t)(stream->asked & ~(1u << place));
  return true;
}

/* Selects the missing frames to request: those requested before, those for which there are slots, and the next one if
 * it can replace a frame farther ahead. */
static uint32_t choose_missing(const tide_receiver_t *r, const tide_input_stream_t *stream, uint32_t wanted) {
  if (!TIDE_RESERVATIONS) {
    uint32_t first = lowest_bit(wanted);
    for (uint32_t room = r->free; room > 1u && first != wanted; --room) first |= lowest_bit(wanted & ~first);
    return first;
  }
  uint32_t chosen = asked_bits(stream) & wanted;
  const uint32_t taken = promised_slots(r, stream->id, true) + count_bits(chosen);
  for (uint32_t room = room_for(r, stream->id); room > taken && chosen != wanted; --room)
    chosen |= lowest_bit(wanted & ~chosen);
  for (size_t i = 0; i < r->slots_used; ++i)
    if (r->config.slots[i].stream == stream->id && holds_up(&r->config.slots[i])) return chosen | (wanted & 1u);
  return chosen;
}

/* Requests missing frames as far as there are slots, up to the last frame that was announced, has arrived, or
 * (`suspect`) seems to have been sent. Frames that have arrived but are not verified yet are neither acknowledged nor
 * requested. */
static void acknowledge(tide_receiver_t *r, tide_input_stream_t *stream, int16_t suspect) {
  if (!TIDE_RELIABLE_STREAMS) return;
  uint32_t here = stream->held;
  int16_t highest = suspect;
  for (size_t i = 0; i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (!is_in_order(slot, stream->id)) continue;
    const int16_t ahead = distance_from(stream->next, slot->sequence);
    if (ahead < 0 || ahead >= (int16_t)stream->window) continue;
    here |= UINT32_C(1) << ahead;
    if (ahead > highest) highest = ahead;
  }
  const uint32_t below = highest < 0 ? 0u : (UINT32_C(2) << highest) - 1u;
  const uint32_t wanted = (tide_input_stream_missing(stream) | below) & ~here;
  const uint32_t missing = wanted == 0u ? 0u : choose_missing(r, stream, wanted);
  if (TIDE_RESERVATIONS) {
    stream->asked_from = stream->next;
    stream->asked = (uint16_t)missing;
    stream->withheld = missing != wanted;
    r->withheld = r->withheld || stream->withheld;
  }
  stream->acknowledge = false;
  report_acknowledge(r, stream->id, stream->next, (uint16_t)missing);
}

/* A slot became free: requests frames that were withheld or evicted. */
static void ask_withheld(tide_receiver_t *r) {
  r->withheld = false;
  for (size_t i = 0; TIDE_RELIABLE_STREAMS && i < r->config.stream_count; ++i) {
    tide_input_stream_t *stream = &r->config.streams[i];
    if (stream->id == 0u || !stream->withheld) continue;
    if (room_for(r, stream->id) > 0u) {
      acknowledge(r, stream, -1);
    } else {
      r->withheld = true;
    }
  }
}

/* A frame is damaged. The damage may be in its header, but most likely the sequence number is right, so that message is
 * requested. */
static void ask_again(tide_receiver_t *r, uint8_t id, uint16_t sequence) {
  tide_input_stream_t *stream = find_stream(r, id);
  TIDE_COUNT(r->counters.checksum_errors, 1u);
  if (!stream || !TIDE_STREAM_IS_RELIABLE(id)) return;
  const int16_t ahead = distance_from(stream->next, sequence);
  if (ahead >= 0 && ahead < (int16_t)stream->window) acknowledge(r, stream, ahead);
}

/* ---- a stream advances ---- */

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

static void hand_on_answers(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                            size_t position) {
  tide_delivery_t delivery = {.header = *header, .arrived_ns = slot->arrived_ns, .memory = r->filling};
  while (tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage) == 1)
    report_control(r, &delivery);
  TIDE_COUNT(r->counters.answers, 1u);
}

/* Delivers the answers that are now next in their stream. A frame that counts as held but is in no slot was passed over
 * for newer frames of its reader, so the stream moves past it. */
static void go_on(tide_receiver_t *r, tide_input_stream_t *stream) {
  for (;;) {
    tide_slot_t *slot = find_slot(r, stream->id, stream->next);
    if (slot && waits(slot) && slot->answers) {
      tide_xrce_header_t header;
      const int position = tide_xrce_get_header(slot->bytes, slot->length, &header);
      if (!tide_receiver_verify(slot)) {
        let_go(r, slot);
        ask_again(r, slot->stream, slot->sequence);
        slot = NULL;
      } else {
        if (!slot->arrived) (void)tide_input_stream_arrive(stream, slot->sequence);
        hand_on_answers(r, slot, &header, (size_t)position);
        let_go(r, slot);
        advance_once(r, stream);
        continue;
      }
    }
    if (slot || (stream->held & 1u) == 0u) return;
    advance_once(r, stream);
  }
}

/* The next frame of the stream has arrived. */
static void advance(tide_receiver_t *r, tide_input_stream_t *stream) {
  advance_once(r, stream);
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) go_on(r, stream);
}

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
  /* Frames that wait here are not missing, although the stream registers their arrival only after they were
   * verified. */
  uint16_t here = stream->last_announced;
  while (!TIDE_LEAN && here != body.last && find_slot(r, body.stream, (uint16_t)(here + 1u))) here++;
  const uint16_t given_up = tide_input_stream_heartbeat(stream, body.first_unacknowledged, body.last);
  if (here != body.last) TIDE_COUNT(r->counters.gaps, stream->gaps - gaps);
  if (given_up > 0u) {
    TIDE_COUNT(r->counters.given_up, given_up);
    if (TIDE_FRAGMENTS) set_bit(r->abandoning, stream->id, true);
  }
  go_on(r, stream);
  settle_stream(r, stream->id);
  /* The sender cannot advance, so the next frame is requested even if no slot is known to be free for it: its reader,
   * and thus the reader's reserved slots, may be unknown. */
  if (TIDE_RESERVATIONS) {
    stream->asked = (uint16_t)(asked_bits(stream) | 1u);
    stream->asked_from = stream->next;
  }
  acknowledge(r, stream, -1);
}

void tide_receiver_reset(tide_receiver_t *r) {
  r->withheld = false;
  r->refused_ns = 0;
  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    slot->blocked = false;
    if (has_passed(slot)) continue; /* the frame was acknowledged, so the next session does not repeat it */
    if (slot->state == SLOT_TAKEN) {
      slot->state = SLOT_STALE;
      if (slot->reassembly) slot->reassembly->state = REASSEMBLY_STALE;
    }
    if (waits(slot) || slot->state == SLOT_PARTIAL) let_go(r, slot);
  }
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->config.reassembly_count; ++i) {
    if (r->config.reassemblies[i].state == REASSEMBLY_GROWING) free_reassembly(r, &r->config.reassemblies[i]);
  }
  for (size_t i = 0; i < r->config.stream_count; ++i) r->config.streams[i].id = 0u;
  check(r);
  if (!TIDE_FRAGMENTS) return;
  memset(r->skipping, 0, sizeof r->skipping);
  memset(r->abandoning, 0, sizeof r->abandoning);
}

/* ---- a frame arrives: the only place where its header is fully parsed ---- */

static int32_t priority_of_stream(const tide_slot_t *slot) { return (int32_t)TIDE_STREAM_LEVEL(slot->stream) << 8; }

static int32_t priority_of_data(const tide_receiver_t *r, const tide_slot_t *slot, uint8_t id, const uint8_t *body,
                                size_t bytes, tide_account_t **account) {
  if (id != TIDE_XRCE_DATA || bytes < TIDE_XRCE_REQUEST_BYTES || !HAS_PRIORITIES(r)) return priority_of_stream(slot);
  return ask_priority(r, slot->stream, tide_xrce_read_request(body), account);
}

/* A later fragment does not name its reader: it is as urgent as the preceding one, which waits or was processed. */
static int32_t priority_of_fragment(const tide_receiver_t *r, const tide_slot_t *slot,
                                    const tide_xrce_submessage_t *fragment, tide_account_t **account) {
  if (!TIDE_FRAGMENTS) return priority_of_stream(slot);
  const tide_slot_t *before = find_slot(r, slot->stream, (uint16_t)(slot->sequence - 1u));
  if (before && before->continues) {
    *account = before->account;
    return before->priority | TIDE_FRAME_OWNER(before->owner);
  }
  const tide_reassembly_t *reassembly = before ? NULL : growing(r, slot->stream);
  if (reassembly) {
    *account = reassembly->account;
    return reassembly->priority | TIDE_FRAME_OWNER(reassembly->owner);
  }
  const tide_input_stream_t *stream = find_stream(r, slot->stream);
  const bool is_first = before || slot->sequence == (stream ? stream->next : 0u);
  if (!is_first || fragment->body_bytes < 8u) return priority_of_stream(slot);
  return priority_of_data(r, slot, fragment->body[0], fragment->body + 4, fragment->body_bytes - 4u, account);
}

/* Sets slot->continues and slot->whole. Returns the frame's priority, without that of later frames of its stream;
 * negative if the frame is a single submessage without a reader. */
static int32_t preprocess(const tide_receiver_t *r, tide_slot_t *slot, const tide_xrce_submessage_t *first,
                          size_t position, tide_account_t **account) {
  slot->continues = false;
  slot->whole = false;
  if (first->id == TIDE_XRCE_FRAGMENT) {
    slot->continues = (first->flags & TIDE_XRCE_FLAG_LAST_FRAGMENT) == 0u;
    const int32_t priority = priority_of_fragment(r, slot, first, account);
    return priority < 0 ? priority_of_stream(slot) : priority;
  }
  const int32_t priority = priority_of_data(r, slot, first->id, first->body, first->body_bytes, account);
  const bool alone = ((position + 3u) & ~(size_t)3u) >= slot->length;
  slot->whole = alone && first->id == TIDE_XRCE_DATA;
  return priority >= 0 || alone ? priority : priority_of_stream(slot);
}

static bool is_answer(const tide_xrce_submessage_t *submessage) {
  return submessage->id == TIDE_XRCE_STATUS || submessage->id == TIDE_XRCE_INFO;
}

/* True if no submessage from this position on needs a callback. The frame then does not have to wait for the
 * executor. */
static bool has_answers_only(const tide_slot_t *slot, size_t position) {
  tide_xrce_submessage_t submessage;
  int more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &submessage)) == 1)
    if (!is_answer(&submessage)) return false;
  return more == 0;
}

/* A stream is delivered in order, so frames before an urgent one become as urgent. */
static void pass_on_priority(tide_receiver_t *r, tide_slot_t *slot) {
  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other == slot || other->stream != slot->stream || !waits(other)) continue;
    const bool is_before = has_passed(other) || tide_sequence_distance(other->sequence, slot->sequence) < 0;
    if (!is_before && other->priority > slot->priority) slot->priority = other->priority;
  }
  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other == slot || other->stream != slot->stream || !waits(other)) continue;
    const bool is_after = !has_passed(other) && tide_sequence_distance(other->sequence, slot->sequence) > 0;
    if (is_after || other->priority >= slot->priority) continue;
    other->priority = slot->priority;
    if (!tide_queue_contains(&other->entry)) continue;
    leave_heap(r, other);
    enter_heap(r, other);
  }
}

/* ---- eviction: the next frame needs a slot ---- */

static int32_t urgency_of(const tide_slot_t *slot) { return priority_of_stream(slot) << 8 | slot->priority; }

/* Cache of the last stream found. One entry is enough: only candidates of one level need it, and a level has one
 * reliable stream of data. */
typedef struct next {
  uint8_t stream;
  uint16_t sequence;
} next_t;

/* True if the frame is ahead of the next expected frame of its reliable stream. A waiting answer to a request is always
 * early, because an answer that is next is handled on arrival. */
static bool is_early(const tide_receiver_t *r, const tide_slot_t *slot, next_t *next) {
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) return false;
  if (slot->stream == TIDE_STREAM_REQUESTS) return true;
  if (slot->stream != next->stream) {
    const tide_input_stream_t *stream = find_stream(r, slot->stream);
    *next = (next_t){slot->stream, (uint16_t)(stream ? stream->next : 0u)};
  }
  return distance_from(next->sequence, slot->sequence) > 0;
}

/* Chooses the waiting frame to evict when `frame` has taken the last slot. The choice may be `frame` itself, which
 * waits like the others. The function makes only two passes over the slots, because it runs in the critical section for
 * each frame of a flood. */
static tide_slot_t *choose_evicted(const tide_receiver_t *r, const tide_slot_t *frame) {
  const bool frame_is_over = is_over(frame->account);
  /* Streams blocked on a reassembly buffer: their other frames cannot be used until that buffer is free. They are
   * collected once, with one bit for each id, because a search for each candidate would be quadratic. */
  uint32_t blocked[8] = {0u};
  for (size_t i = 0; TIDE_FRAGMENTS && i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->blocked && waits(slot)) set_bit(blocked, slot->stream, true);
  }
  next_t next = {.stream = TIDE_XRCE_STREAM_NONE};
  tide_slot_t *of_others = NULL, *own = NULL;

  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *slot = &r->config.slots[i];
    if (!waits(slot)) continue;
    const bool is_blocked = get_bit(blocked, slot->stream);
    const bool is_reliable = TIDE_STREAM_IS_RELIABLE(slot->stream) && !has_passed(slot);

    /* 1. The account that gives up a slot: the frame's own account, unless another one has to. */
    const tide_account_t *account = frame->account, *other = slot->account;
    const bool is_own = TIDE_RESERVATIONS && other == account;
    if (is_own && of_others) continue;
    if (TIDE_RESERVATIONS && !is_own) {
      if (!is_over(other)) continue; /* reserved slots are never taken */
      const bool follows =
          is_reliable && slot->stream == frame->stream && tide_sequence_distance(slot->sequence, frame->sequence) > 0;
      const bool unblocks = is_blocked && !get_bit(blocked, frame->stream);
      /* An account within its reservation takes slots from any account above its reservation. An account above its
       * reservation may take the slot of a frame that can be used only after this frame, or that cannot be used at
       * present. It may take other slots only if nothing is reserved for it: those of accounts that use more slots, and
       * those of less urgent frames of accounts that use as many. */
      if (frame_is_over && !follows && !unblocks) {
        if (account->reserved > 0u || other->used < account->used) continue;
        if (other->used == account->used && urgency_of(slot) >= urgency_of(frame)) continue;
      }
    }

    /* 2. The frame to evict. */
    tide_slot_t **chosen = is_own ? &own : &of_others;
    const tide_slot_t *best = *chosen;
    bool is_first;
    if (!best) {
      is_first = true;
    } else if (is_blocked != get_bit(blocked, best->stream)) {
      is_first = is_blocked;
    } else if (urgency_of(slot) != urgency_of(best)) {
      /* The level decides first, as in senders: a sender that withholds less urgent levels until an urgent one is
       * acknowledged could otherwise wait forever while less urgent frames take the slots. */
      is_first = urgency_of(slot) < urgency_of(best);
    } else if (has_passed(slot) != has_passed(best)) {
      is_first = has_passed(best); /* a passed frame was acknowledged, so it would be lost */
    } else if (is_reliable && slot->stream == best->stream) {
      is_first = tide_sequence_distance(slot->sequence, best->sequence) >
                 0; /* the later frame is needed last, and will be repeated */
    } else {
      const bool differs = slot->stream != best->stream; /* evict a reliable frame, unless it is next */
      const bool early = differs && is_early(r, slot, &next), best_is_early = differs && is_early(r, best, &next);
      /* Of a reader's best-effort frames, the latest are kept. Of all other frames, those that came first are kept. */
      const bool keeps_last = TIDE_RESERVATIONS && other != &r->nobody && !is_reliable;
      const bool by_age = keeps_last ? slot->arrival < best->arrival : slot->arrival > best->arrival;
      is_first = early != best_is_early ? early : by_age;
    }
    if (is_first) *chosen = slot;
  }
  return of_others ? of_others : own;
}

static void evict(tide_receiver_t *r, tide_slot_t *slot) {
  tide_input_stream_t *stream = find_stream(r, slot->stream);
  if (slot->state == SLOT_HELD && stream) tide_input_stream_forget(stream, slot->sequence);
  leave_heap(r, slot);
  TIDE_COUNT(r->counters.overflow_dropped, 1u);
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream) || has_passed(slot)) {
    TIDE_COUNT(slot->account->dropped, 1u);
  } else if (stream) {
    if (distance_from(stream->last_announced, slot->sequence) > 0) stream->last_announced = slot->sequence;
    if (TIDE_RESERVATIONS) {
      stream->withheld = r->withheld = true;
      r->refused_ns = r->filling->arrived_ns;
    }
  }
  discharge(r, slot);
}

/* Once a frame of a stream has found no slot, later frames of that stream must not take the slots of earlier ones: the
 * later frames would only be evicted, and then sent a third time. */
static bool comes_too_early(const tide_receiver_t *r, const tide_slot_t *slot) {
  if (!TIDE_RESERVATIONS) return false;
  if (!TIDE_RELIABLE_STREAMS || !TIDE_STREAM_IS_RELIABLE(slot->stream)) return false;
  const tide_input_stream_t *stream = find_stream(r, slot->stream);
  if (!stream || !stream->withheld) return false;
  uint32_t missing = (uint16_t)(slot->sequence - stream->next);
  for (size_t i = 0; i < r->slots_used; ++i) {
    const tide_slot_t *other = &r->config.slots[i];
    if (other == slot || !is_in_order(other, slot->stream)) continue;
    if (distance_from(stream->next, other->sequence) >= 0 && distance_from(slot->sequence, other->sequence) < 0)
      missing--;
  }
  return missing >= room_for(r, slot->stream);
}

/* The arrived frame is queued; this provides a slot for the next frame. */
static void replace_filling(tide_receiver_t *r, bool was_asked_for) {
  tide_slot_t *frame = r->filling, *chosen = frame;
  const uint32_t promised = was_asked_for ? 0u : promised_slots(r, frame->stream, true);
  const bool is_early = !was_asked_for && comes_too_early(r, frame);
  if (!is_early && r->free > (is_over(frame->account) ? r->owed + promised : 0u)) {
    for (chosen = r->config.slots; chosen->state != SLOT_FREE;) ++chosen;
    r->free--;
    const uint16_t used = (uint16_t)(chosen - r->config.slots + 1);
    if (used > r->slots_used) r->slots_used = used;
  } else {
    if (!is_early) chosen = choose_evicted(r, frame);
    evict(r, chosen);
  }
  chosen->state = SLOT_FILLING;
  chosen->blocked = false;
  r->filling = chosen;
}

/* ---- readers that keep only the last samples ---- */

/* True if a frame waits so far ahead that its sender will soon have to wait for the frames before it. */
static bool fills_window(const tide_receiver_t *r, uint8_t id) {
  const tide_input_stream_t *stream = find_stream(r, id);
  const int16_t most = (int16_t)(r->config.window - r->config.window / 4u);
  for (size_t i = 0; i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->stream == id && holds_up(slot) && distance_from(stream ? stream->next : 0u, slot->sequence) >= most)
      return true;
  }
  return false;
}

/* True if the stream should continue past its next frame: the sender will soon have to wait, or slots are short and the
 * next frame has waited for TIDE_BURST_NS. */
static bool holds_up_sender(const tide_receiver_t *r, uint8_t id, int64_t now_ns) {
  if (fills_window(r, id)) return true;
  if (r->free > r->owed) return false;
  const tide_input_stream_t *stream = find_stream(r, id);
  const tide_slot_t *next = find_slot(r, id, stream ? stream->next : 0u);
  return next && now_ns - next->arrived_ns >= TIDE_BURST_NS;
}

/* Lets the stream continue past its next frame, which waits in its slot for its reader. The frame is acknowledged and
 * no longer blocks later frames. */
static bool pass(tide_receiver_t *r, uint8_t id) {
  tide_input_stream_t *stream = take_stream(r, id);
  tide_slot_t *slot = stream ? find_slot(r, id, stream->next) : NULL;
  if (!slot || !waits(slot) || !slot->whole || slot->account->keep == 0u || !tide_receiver_verify(slot)) return false;
  /* Keeps the order of delivery: the frame must precede the later frames of its stream, some of which may have arrived
   * earlier. */
  tide_slot_t *first = slot;
  for (size_t i = 0; i < r->slots_used; ++i) {
    tide_slot_t *other = &r->config.slots[i];
    if (other->stream == id && holds_up(other) && other->arrival < first->arrival) first = other;
  }
  const uint64_t arrival = first->arrival;
  leave_heap(r, first);
  first->arrival = slot->arrival;
  leave_heap(r, slot);
  slot->arrival = arrival;
  slot->verify = false;
  slot->passed = true;
  slot->state = SLOT_NOTED;
  if (!slot->arrived) (void)tide_input_stream_arrive(stream, slot->sequence);
  advance(r, stream);
  return true;
}

bool tide_receiver_is_behind(const tide_receiver_t *r, const tide_account_t *account, size_t samples, bool is_old) {
  if (account->keep == 0u) return false;
  /* A withheld frame is newer than the waiting frames, and will take the first slot that becomes free. */
  const bool is_short = TIDE_RESERVATIONS ? r->withheld || r->free <= r->owed : r->free == 0u;
  for (size_t i = 0; i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    samples += waits(slot) && slot->account == account && !slot->continues ? 1u : 0u;
  }
  if (samples > account->keep) return is_old || is_short;
  return is_old && is_short && samples > 1u && TIDE_RESERVATIONS && account->used >= account->reserved;
}

/* Skips a frame without delivery: it counts as received, so it is not sent again and does not block later frames. */
static void pass_over(tide_receiver_t *r, tide_slot_t *slot) {
  const uint8_t id = slot->stream;
  const uint16_t sequence = slot->sequence;
  const bool is_good = tide_receiver_verify(slot), has_arrived = slot->arrived, passed = has_passed(slot);
  if (is_good) TIDE_COUNT(slot->account->dropped, 1u);
  let_go(r, slot);
  if (!is_good) {
    ask_again(r, id, sequence);
  } else if (TIDE_STREAM_IS_RELIABLE(id) && !passed) {
    tide_input_stream_t *stream = take_stream(r, id);
    const bool is_next = stream && sequence == stream->next;
    if (stream && !has_arrived) (void)tide_input_stream_arrive(stream, sequence);
    if (is_next) advance(r, stream);
  }
  settle_stream(r, id);
}

/* If a keep-last reader is slower than its samples arrive, its oldest waiting frames are evicted, so that they do not
 * delay newer ones. Frames that arrived within the last TIDE_BURST_NS stay while there are spare slots. Without
 * reservations nothing is evicted here: frames wait for the end of the running callback, and all of them are processed
 * before the next callback runs. */
static void keep_last(tide_receiver_t *r, const tide_account_t *account, int64_t now_ns) {
  while (TIDE_RESERVATIONS && account->keep > 0u) {
    tide_slot_t *oldest = NULL;
    for (size_t i = 0; i < r->slots_used; ++i) {
      tide_slot_t *slot = &r->config.slots[i];
      const bool is_one = slot->account == account && waits(slot) && slot->whole;
      if (is_one && (!oldest || slot->arrival < oldest->arrival)) oldest = slot;
    }
    if (!oldest) return;
    if (!tide_receiver_is_behind(r, account, 0u, now_ns - oldest->arrived_ns >= TIDE_BURST_NS)) return;
    pass_over(r, oldest);
  }
}

/* While frames find no slot, the sender waits for its window and no frame arrives. Only this call then evicts frames
 * that have become old. */
static void make_room(tide_receiver_t *r, int64_t now_ns) {
  for (const tide_account_t *account = r->nobody.next; account; account = account->next) keep_last(r, account, now_ns);
  for (size_t i = 0; i < r->config.stream_count; ++i) {
    const uint8_t id = r->config.streams[i].id;
    if (id == 0u || !TIDE_STREAM_IS_RELIABLE(id)) continue;
    while (holds_up_sender(r, id, now_ns) && pass(r, id)) continue;
    refresh_stream(r, id);
  }
}

int64_t tide_receiver_poll(tide_receiver_t *r, int64_t now_ns) {
  const bool has_work = TIDE_RESERVATIONS && TIDE_RELIABLE_STREAMS && tide_receiver_is_short(r);
  if (!has_work) return TIDE_FOREVER;
  int64_t next_ns = TIDE_FOREVER;
  if (r->withheld) make_room(r, now_ns);
  if (r->refused_ns != 0 && now_ns - r->refused_ns < TIDE_BURST_NS) {
    next_ns = r->refused_ns + TIDE_BURST_NS;
  } else if (r->refused_ns != 0) {
    /* A sender ignores a request that comes too soon after its latest retransmission. */
    r->refused_ns = 0;
    for (size_t i = 0; i < r->config.stream_count; ++i) {
      tide_input_stream_t *stream = &r->config.streams[i];
      if (stream->id != 0u && asked_bits(stream) != 0u) acknowledge(r, stream, -1);
    }
  }
  for (size_t i = 0; r->withheld && i < r->slots_used; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    const int64_t old_ns = slot->arrived_ns + TIDE_BURST_NS;
    if (waits(slot) && old_ns > now_ns && old_ns < next_ns) next_ns = old_ns;
  }
  check(r);
  return next_ns;
}

/* ---- commit: a frame is handled at once, queued, or dropped ---- */

static int handle_control(tide_receiver_t *r, const tide_slot_t *slot, const tide_xrce_header_t *header,
                          size_t position) {
  if (!tide_receiver_verify(slot)) {
    TIDE_COUNT(r->counters.checksum_errors, 1u);
    return 0;
  }
  TIDE_COUNT(r->counters.control, 1u);
  tide_delivery_t delivery = {.header = *header, .arrived_ns = slot->arrived_ns, .memory = r->filling};
  const bool in_session = r->session == TIDE_XRCE_SESSION_ANY || header->session == r->session;
  int more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage)) == 1) {
    if (TIDE_RELIABLE_STREAMS && in_session && delivery.submessage.id == TIDE_XRCE_HEARTBEAT)
      apply_heartbeat(r, &delivery.submessage);
    if (in_session && delivery.submessage.id == TIDE_XRCE_RESET) tide_receiver_reset(r);
    report_control(r, &delivery);
  }
  if (more < 0) TIDE_COUNT(r->counters.malformed, 1u);
  return 0;
}

/* Reliable frames that are duplicates or lie outside the window are dropped at once. */
static bool is_useless(tide_receiver_t *r, const tide_slot_t *slot, tide_input_stream_t *stream) {
  if (!TIDE_STREAM_IS_RELIABLE(slot->stream)) return false;
  const int16_t ahead = distance_from(stream ? stream->next : 0u, slot->sequence);
  /* a frame that was passed over is held in the stream but in no slot */
  const bool is_held = stream && ahead >= 0 && ahead < (int16_t)stream->window && (stream->held >> ahead & 1) != 0;
  if (ahead < 0 || is_held || find_slot(r, slot->stream, slot->sequence)) {
    TIDE_COUNT(r->counters.duplicates, 1u);
    /* Requests no retransmission: a peer that retransmits at each request would answer every duplicate with another
     * duplicate. */
    if (stream && ahead < 0) report_acknowledge(r, stream->id, stream->next, 0u);
    return true;
  }
  if (ahead < (int16_t)r->config.window) return false;
  TIDE_COUNT(r->counters.outside_window, 1u);
  return true;
}

/* Answers that are next in their stream are handled on arrival, even if all slots are in use: otherwise a client could
 * not reconnect while data floods in. Best-effort answers have no order to keep, so they are handled on arrival, too.
 * Returns false if the frame has to wait like any other. */
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
  slot->answers = HAS_CONTROL(r) && is_answer(&first) && has_answers_only(slot, position);
  if (slot->answers && handle_answers(r, slot, header, start)) return 0;
  const bool was_asked_for = TIDE_RELIABLE_STREAMS && keep_promise(r, slot->stream, slot->sequence);
  tide_account_t *account = &r->nobody;
  int32_t priority = preprocess(r, slot, &first, position, &account);
  slot->unwanted = priority < 0;
  if (slot->unwanted) TIDE_COUNT(r->counters.unwanted, 1u);
  if (slot->unwanted && !TIDE_STREAM_IS_RELIABLE(slot->stream)) return 0;
  if (slot->unwanted) priority = priority_of_stream(slot);
  slot->priority = (tide_priority_t)(priority & 0xFFFF);
  slot->owner = (uint8_t)(priority >> 16);
  slot->state = SLOT_NOTED;
  slot->arrival = r->next_arrival++;
  slot->arrived = slot->passed = false;
  slot->position = 0u;
  slot->references = 0u;
  slot->released = 0u;
  TIDE_COUNT(r->counters.noted, 1u);
  charge(r, slot, account);
  pass_on_priority(r, slot);
  refresh_stream(r, slot->stream);
  keep_last(r, account, slot->arrived_ns);
  const bool reliable = TIDE_STREAM_IS_RELIABLE(slot->stream);
  if (TIDE_RESERVATIONS && reliable && fills_window(r, slot->stream)) {
    while (fills_window(r, slot->stream) && pass(r, slot->stream)) continue;
    refresh_stream(r, slot->stream);
  }
  /* If the frames of a stream find no slot, a gap among its retransmissions is already known. Requested at once, the
   * missing frames would be retransmitted and dropped as fast as the link allows, so they are requested when a slot
   * becomes free. */
  const bool is_known = TIDE_RESERVATIONS && was_asked_for && stream && stream->withheld;
  const bool reveals_gap = reliable && stream && !is_known && slot->sequence != stream->next &&
                           !find_slot(r, slot->stream, (uint16_t)(slot->sequence - 1u));
  if (reveals_gap) acknowledge(r, stream, -1);
  replace_filling(r, was_asked_for);
  return r->filling == slot ? 0 : 1;
}

static bool is_foreign(const tide_receiver_t *r, const tide_xrce_header_t *header) {
  if (r->session == TIDE_XRCE_SESSION_ANY) return false;
  if (r->session == TIDE_XRCE_SESSION_NONE_WITHOUT_KEY) return header->stream != TIDE_XRCE_STREAM_NONE;
  if (header->session == r->session) return tide_xrce_session_has_key(header->session) && header->key != r->key;
  return !tide_xrce_is_no_session(header->session) || header->stream != TIDE_XRCE_STREAM_NONE;
}

uint8_t *tide_receiver_claim(tide_receiver_t *r) { return r->filling->bytes; }

static int commit(tide_receiver_t *r, uint16_t length, bool verify, uint16_t crc, int64_t now_ns) {
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

int tide_receiver_commit(tide_receiver_t *r, uint16_t length, bool verify, uint16_t crc, int64_t now_ns) {
  const int noted = commit(r, length, verify, crc, now_ns);
  check(r);
  return noted;
}

/* ---- which frame is processed next ---- */

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
  check(r);
  return slot;
}

static bool is_of(const tide_slot_t *slot, const tide_frame_share_t *share) {
  const bool may = share->owner == 0u || slot->owner == 0u || slot->owner == share->owner;
  return may && slot->priority >= share->least && slot->priority <= share->most;
}

/* The most urgent queued frame of the share (the frames that one lane processes). */
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
  for (size_t i = 0; TIDE_RESERVATIONS && i < r->noted.count; ++i) {
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

void tide_receiver_disown(tide_receiver_t *r, uint8_t owner) {
  for (size_t i = 0; i < r->slots_used; ++i)
    if (r->config.slots[i].owner == owner) r->config.slots[i].owner = 0u;
  for (size_t i = 0; i < r->config.reassembly_count; ++i)
    if (r->config.reassemblies[i].owner == owner) r->config.reassemblies[i].owner = 0u;
}

/* ---- accept, deliver, finish ---- */

/* put_back and drop return false, which means that the frame is not delivered now. */

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

/* Registers the frame's arrival in its stream. Returns true if the frame is next. Otherwise the frame is held or
 * dropped. */
static bool arrive(tide_receiver_t *r, tide_slot_t *slot, tide_input_stream_t *stream) {
  const uint32_t gaps = stream->gaps;
  const tide_stream_verdict_t verdict = tide_input_stream_arrive(stream, slot->sequence);
  TIDE_COUNT(r->counters.gaps, stream->gaps - gaps);
  if (verdict == TIDE_STREAM_DELIVER) return true;
  if (verdict == TIDE_STREAM_DUPLICATE) TIDE_COUNT(r->counters.duplicates, 1u);
  if (!TIDE_RELIABLE_STREAMS) return drop(r, slot);
  if (verdict == TIDE_STREAM_OUTSIDE) TIDE_COUNT(r->counters.outside_window, 1u);
  slot->arrived = verdict == TIDE_STREAM_HOLD;
  (void)(slot->arrived ? put_back(r, slot, SLOT_HELD, false) : drop(r, slot));
  if (TIDE_STREAM_IS_RELIABLE(stream->id)) acknowledge(r, stream, -1);
  return false;
}

static bool accept(tide_receiver_t *r, tide_slot_t *slot, bool verified) {
  if (slot->state == SLOT_STALE) return drop(r, slot);
  if (!verified) {
    const uint8_t id = slot->stream;
    let_go(r, slot);
    ask_again(r, id, slot->sequence);
    settle_stream(r, id);
    return false;
  }
  slot->verify = false;
  if (has_passed(slot)) {
    slot->position = (uint16_t)tide_xrce_header_bytes(slot->bytes[0]);
    return true;
  }
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

bool tide_receiver_accept(tide_receiver_t *r, tide_slot_t *slot, bool verified) {
  TIDE_INVARIANT(slot->state == SLOT_TAKEN || slot->state == SLOT_STALE);
  const bool accepted = accept(r, slot, verified);
  check(r);
  return accepted;
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
    report_submessage(r, &delivery);
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

/* Stops before a FRAGMENT of a second message, for which the next accept finds memory. */
int tide_receiver_deliver(tide_receiver_t *r, tide_slot_t *slot) {
  tide_delivery_t delivery; /* assigned member by member: for a literal, GCC calls memset on a Cortex-M */
  delivery.arrived_ns = slot->arrived_ns;
  delivery.memory = slot;
  delivery.reassembled = false;
  (void)tide_xrce_get_header(slot->bytes, slot->length, &delivery.header);
  size_t position = slot->position;
  int count = 0, more;
  while ((more = tide_xrce_next_submessage(slot->bytes, slot->length, &position, &delivery.submessage)) == 1) {
    if (delivery.submessage.id != TIDE_XRCE_FRAGMENT) {
      if (!slot->unwanted) {
        report_submessage(r, &delivery);
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
  check(r);
}

static int process(tide_receiver_t *r, tide_slot_t *slot) {
  if (!slot || !tide_receiver_accept(r, slot, tide_receiver_verify(slot))) return 0;
  const int count = tide_receiver_deliver(r, slot);
  tide_receiver_finish(r, slot);
  return count;
}

static const tide_frame_share_t all_frames = {.most = UINT16_MAX};

int tide_receiver_process_most_urgent(tide_receiver_t *r) {
  return process(r, tide_receiver_take_most_urgent_of(r, &all_frames));
}

int tide_receiver_process_oldest(tide_receiver_t *r) {
  return process(r, tide_receiver_take_oldest_of(r, &all_frames));
}

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
      free_reassembly(r, reassembly);
  } else {
    tide_slot_t *slot = memory;
    slot->released++;
    if (slot->state == SLOT_USED && slot->references == slot->released) free_slot(r, slot);
  }
  check(r);
}

/* ---- set-up ---- */

static int check_config(const tide_receiver_config_t *config) {
  if (!config->slots || !config->storage || !config->noted_storage || !config->streams) return TIDE_ERROR_ARGUMENT;
  if (config->slot_count < 2u || config->slot_count > UINT16_MAX || config->slot_bytes < 16u ||
      config->slot_bytes > UINT16_MAX)
    return TIDE_ERROR_ARGUMENT;
  if (config->stream_count == 0u || config->window > TIDE_STREAM_WINDOW_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (config->reassembly_count > 0u && !config->reassemblies) return TIDE_ERROR_ARGUMENT;
  return TIDE_STATIC_PLATFORM || config->on_submessage ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

int tide_receiver_init(tide_receiver_t *r, const tide_receiver_config_t *config) {
  if (!r || !config) return TIDE_ERROR_ARGUMENT;
  const int status = TIDE_LEAN ? TIDE_OK : check_config(config);
  if (status != TIDE_OK) return status;
  memset(r, 0, sizeof *r);
  r->config = *config;
  if (r->config.window == 0u) r->config.window = TIDE_STREAM_WINDOW_MAXIMUM;
  r->session = TIDE_XRCE_SESSION_ANY;
  tide_queue_init(&r->noted, config->noted_storage, config->slot_count);
  for (size_t i = 0; i < config->slot_count; ++i)
    config->slots[i] = (tide_slot_t){.bytes = config->storage + i * config->slot_bytes};
  for (size_t i = 0; i < config->stream_count; ++i) config->streams[i].id = 0u;
  for (size_t i = 0; TIDE_FRAGMENTS && i < config->reassembly_count; ++i) {
    config->reassemblies[i].stream = 0u;
    config->reassemblies[i].state = REASSEMBLY_FREE;
    config->reassemblies[i].account = NULL;
  }
  r->filling = &config->slots[0];
  r->filling->state = SLOT_FILLING;
  r->slots_used = 1u;
  r->free = (uint16_t)(config->slot_count - 1u);
  r->nobody = (tide_account_t){.wanted = 1u};
  share_out(r);
  check(r);
  return TIDE_OK;
}

void tide_receiver_set_session(tide_receiver_t *r, uint8_t session, uint32_t key) {
  r->session = session;
  r->key = key;
}
