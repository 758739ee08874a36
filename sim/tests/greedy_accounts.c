/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's accounts for the canary GREEDY: nothing is owed to anybody, so that whoever comes first takes what is
 * reserved for others. */
#define tide_receiver_charge careful_charge
#define tide_receiver_discharge careful_discharge
#define tide_receiver_free_slot careful_free_slot
#include "../../runtime/src/daemon/receiver_accounts.c"
#undef tide_receiver_charge
#undef tide_receiver_discharge
#undef tide_receiver_free_slot

void tide_receiver_charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account);
void tide_receiver_charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account) {
  careful_charge(r, slot, account);
  r->owed = 0u;
}
void tide_receiver_discharge(tide_receiver_t *r, tide_slot_t *slot);
void tide_receiver_discharge(tide_receiver_t *r, tide_slot_t *slot) {
  careful_discharge(r, slot);
  r->owed = 0u;
}
void tide_receiver_free_slot(tide_receiver_t *r, tide_slot_t *slot);
void tide_receiver_free_slot(tide_receiver_t *r, tide_slot_t *slot) {
  careful_free_slot(r, slot);
  r->owed = 0u;
}
