/* SPDX-License-Identifier: Apache-2.0 */
/* Whose slots are whose. */
#include "receiver_internal.h"

bool tide_receiver_is_over(const tide_account_t *account) {
  return TIDE_RESERVATIONS && account->used > account->reserved;
}

static uint16_t owed_to(const tide_account_t *account) {
  return tide_receiver_is_over(account) ? 0u : (uint16_t)(account->reserved - account->used);
}

void tide_receiver_charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account) {
  slot->account = account;
  if (!TIDE_RESERVATIONS) return;
  account->stream = slot->stream;
  if (account->used++ < account->reserved) r->owed--;
}

void tide_receiver_discharge(tide_receiver_t *r, tide_slot_t *slot) {
  if (TIDE_RESERVATIONS && --slot->account->used < slot->account->reserved) r->owed++;
  slot->account = NULL;
}

void tide_receiver_free_slot(tide_receiver_t *r, tide_slot_t *slot) {
  slot->state = SLOT_FREE;
  r->free++;
  tide_receiver_discharge(r, slot);
  if (TIDE_RESERVATIONS && TIDE_RELIABLE_STREAMS && r->withheld) tide_receiver_ask_withheld(r);
}

uint32_t tide_receiver_room(const tide_receiver_t *r, uint8_t stream) {
  if (!TIDE_RESERVATIONS || !r->nobody.next) return r->free;
  uint32_t owed_to_others = 0u;
  const tide_account_t *account = &r->nobody;
  do {
    if (account->stream != stream) owed_to_others += owed_to(account);
    account = account->next;
  } while (account);
  return r->free > owed_to_others ? r->free - owed_to_others : 0u;
}

/* ---- reservations ---- */

static size_t count_who_want_more_than(const tide_receiver_t *r, uint16_t slots) {
  size_t count = 0;
  for (const tide_account_t *account = &r->nobody; account; account = account->next)
    count += account->wanted > slots ? 1u : 0u;
  return count;
}

/* Round by round one more to each that wants it, as long as there is one for each: nobody is to be without because
 * another one came first. */
void tide_receiver_share_out(tide_receiver_t *r) {
  if (!TIDE_RESERVATIONS) return;
  size_t left = r->config.slot_count - 1u;
  uint16_t most = 0u;
  size_t count;
  while ((count = count_who_want_more_than(r, most)) > 0u && count <= left) {
    left -= count;
    most++;
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
  tide_receiver_share_out(r);
}

static void hand_over(tide_receiver_t *r, tide_account_t *account) {
  for (size_t i = 0; i < r->config.slot_count; ++i)
    if (r->config.slots[i].account == account) r->config.slots[i].account = &r->nobody;
  for (size_t i = 0; i < r->config.reassembly_count; ++i) {
    tide_reassembly_t *reassembly = &r->config.reassemblies[i];
    if (reassembly->account == account) tide_receiver_charge_reassembly(reassembly, &r->nobody);
  }
  r->nobody.used = (uint16_t)(r->nobody.used + account->used);
  account->used = 0u;
}

void tide_receiver_close_account(tide_receiver_t *r, tide_account_t *account) {
  if (!TIDE_RESERVATIONS) return;
  tide_account_t **place = &r->nobody.next;
  while (*place && *place != account) place = &(*place)->next;
  if (!*place) return;
  tide_receiver_set_full(r, account, false);
  *place = account->next;
  hand_over(r, account);
  tide_receiver_share_out(r);
  if (TIDE_FRAGMENTS) tide_receiver_unblock(r);
  tide_receiver_check(r);
}

void tide_receiver_set_full(tide_receiver_t *r, tide_account_t *account, bool full) {
  if (!TIDE_RESERVATIONS || account->full == full) return;
  account->full = full;
  for (size_t i = 0; i < r->config.slot_count; ++i) {
    const tide_slot_t *slot = &r->config.slots[i];
    if (slot->account == account && receiver_waits(slot)) tide_receiver_refresh_stream(r, slot->stream);
  }
  tide_receiver_check(r);
}
