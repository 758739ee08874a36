/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of receiver_internal.h, looked at as a whole after each step. */
#include "receiver_internal.h"
#include "tide/invariant.h"

#if TIDE_INVARIANTS
static bool is_charged(const tide_slot_t *slot) { return slot->state != SLOT_FREE && slot->state != SLOT_FILLING; }

static void check_slot(const tide_receiver_t *r, const tide_slot_t *slot) {
  const bool noted = tide_queue_contains(&slot->entry);
  TIDE_INVARIANT((slot->state == SLOT_FILLING) == (slot == r->filling));
  TIDE_INVARIANT(is_charged(slot) == (slot->account != NULL));
  TIDE_INVARIANT(!noted || receiver_waits(slot) || slot->state == SLOT_PARTIAL);
  TIDE_INVARIANT(!slot->blocked || receiver_waits(slot) || slot->state == SLOT_PARTIAL);
  TIDE_INVARIANT(!noted || !slot->blocked);
  TIDE_INVARIANT(slot->state != SLOT_HELD || TIDE_STREAM_IS_RELIABLE(slot->stream));
}

/* Why what waits may not be among the noted frames: another of its stream is being delivered, or comes first. */
static bool has_reason_to_wait(const tide_receiver_t *r, const tide_slot_t *slot) {
  if (slot->blocked || (TIDE_RESERVATIONS && slot->account->full)) return true;
  const tide_input_stream_t *stream = tide_receiver_find_stream(r, slot->stream);
  if (slot->state == SLOT_HELD && (!stream || slot->sequence != stream->next)) return true;
  for (size_t i = 0; i < r->config.slot_count; ++i)
    if (r->config.slots[i].stream == slot->stream && receiver_is_being_delivered(&r->config.slots[i])) return true;
  return false;
}

static void check_reassemblies(const tide_receiver_t *r) {
#if TIDE_FRAGMENTS
  size_t charged = 0u, used = 0u;
  const tide_account_t *account = &r->nobody;
  do {
    charged += account->reassemblies;
    account = account->next;
  } while (account);
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    const tide_reassembly_t *each = &r->config.reassemblies[i];
    TIDE_INVARIANT((each->state == REASSEMBLY_FREE) == (each->account == NULL));
    used += each->account ? 1u : 0u;
  }
  TIDE_INVARIANT(charged == used);
#else
  (void)r;
#endif
}

static void check_accounts(const tide_receiver_t *r, size_t charged) {
  size_t used = 0u, owed = 0u;
  const tide_account_t *account = &r->nobody;
  do {
    used += account->used;
    owed += account->used < account->reserved ? (size_t)(account->reserved - account->used) : 0u;
    account = account->next;
  } while (account);
  TIDE_INVARIANT(used == charged);
  TIDE_INVARIANT(owed == r->owed);
  check_reassemblies(r);
}

void tide_receiver_check(const tide_receiver_t *r) {
  size_t free = 0u, charged = 0u, noted = 0u;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    const bool is_noted = tide_queue_contains(&slot->entry);
    check_slot(r, slot);
    TIDE_INVARIANT(is_noted || !receiver_waits(slot) || has_reason_to_wait(r, slot));
    free += slot->state == SLOT_FREE ? 1u : 0u;
    charged += is_charged(slot) ? 1u : 0u;
    noted += is_noted ? 1u : 0u;
  }
  TIDE_INVARIANT(free == r->free && free + charged + 1u == r->config.slot_count);
  TIDE_INVARIANT(noted == r->noted.count);
  if (TIDE_RESERVATIONS) check_accounts(r, charged);
}
#else
typedef int receiver_has_no_invariants_t; /* a file that says nothing is not C */
#endif
