/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's fragments for the canary HOARDING: nobody's memory is counted, so that whoever comes first takes what
 * is kept for others. */
#define tide_receiver_charge_reassembly careful_charge_reassembly
#include "../../runtime/src/daemon/receiver_fragments.c"
#undef tide_receiver_charge_reassembly

void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account);
void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account) {
  tide_account_t *before = reassembly->account;
  careful_charge_reassembly(reassembly, account);
  if (before) before->reassemblies = 0u;
  if (account) account->reassemblies = 0u;
}
