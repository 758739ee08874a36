/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the runtime whose own functions a mutant intercepts (mutants.h): one of them, which the definition names. */

#if defined MUTANT_FILE_ACCOUNTS
#define tide_receiver_charge careful_charge
#define tide_receiver_discharge careful_discharge
#define tide_receiver_free_slot careful_free_slot
#include "../../runtime/src/daemon/receiver_accounts.c"
#undef tide_receiver_charge
#undef tide_receiver_discharge
#undef tide_receiver_free_slot

static void owe_nothing(tide_receiver_t *r) {
  if (tide_mutant == MUTANT_GREEDY) r->owed = 0u;
}
void tide_receiver_charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account);
void tide_receiver_charge(tide_receiver_t *r, tide_slot_t *slot, tide_account_t *account) {
  careful_charge(r, slot, account);
  owe_nothing(r);
}
void tide_receiver_discharge(tide_receiver_t *r, tide_slot_t *slot);
void tide_receiver_discharge(tide_receiver_t *r, tide_slot_t *slot) {
  careful_discharge(r, slot);
  owe_nothing(r);
}
void tide_receiver_free_slot(tide_receiver_t *r, tide_slot_t *slot);
void tide_receiver_free_slot(tide_receiver_t *r, tide_slot_t *slot) {
  careful_free_slot(r, slot);
  owe_nothing(r);
}

#elif defined MUTANT_FILE_FRAGMENTS
#define tide_receiver_charge_reassembly careful_charge_reassembly
#include "../../runtime/src/daemon/receiver_fragments.c"
#undef tide_receiver_charge_reassembly

void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account);
void tide_receiver_charge_reassembly(tide_reassembly_t *reassembly, tide_account_t *account) {
  tide_account_t *before = reassembly->account;
  careful_charge_reassembly(reassembly, account);
  if (tide_mutant != MUTANT_HOARDING) return;
  if (before) before->reassemblies = 0u;
  if (account) account->reassemblies = 0u;
}

#elif defined MUTANT_FILE_POOL
#define tide_transmitter_acquire_for careful_acquire
#include "../../runtime/src/daemon/transmitter_pool.c"
#undef tide_transmitter_acquire_for

int tide_transmitter_acquire_for(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                 tide_node_t **node) {
  if (tide_mutant == MUTANT_GRABBING) memset(t->levels, 0, sizeof t->levels);
  const int status = careful_acquire(t, bytes, priority, writer, node);
  if (tide_mutant == MUTANT_GRABBING) memset(t->levels, 0, sizeof t->levels);
  return status;
}

#elif defined MUTANT_FILE_BUDGET
#define tide_budget_rule_corrected careful_rule
#include "../../runtime/src/budget/corrected.c"
#undef tide_budget_rule_corrected

static void charge_early(tide_budget_t *budget, int64_t consumed_ns) {
  const int64_t period_ns = budget->config.period_ns;
  if (tide_mutant == MUTANT_GENEROUS) budget->config.period_ns = period_ns / 2;
  charge(budget, consumed_ns);
  budget->config.period_ns = period_ns;
}

extern const budget_rule_t tide_budget_rule_corrected;
const budget_rule_t tide_budget_rule_corrected = {start, charge_early, activate, resume, finish, settle, available_ns};

#elif defined MUTANT_FILE_ACTION_SERVER
#include "../../runtime/src/compat/action.h"

static tide_action_result_t *find_or_forget(const tide_action_t *action, const uint8_t *goal_id) {
  return tide_mutant == MUTANT_FORGETS ? NULL : tide_action_find_result(action, goal_id);
}
#define tide_action_find_result find_or_forget
#include "../../runtime/src/compat/action_server.c"

#elif defined MUTANT_FILE_ACTION_CLIENT
#include "../../runtime/src/compat/action.h"

static bool meets_session(tide_action_t *action) {
  return tide_mutant != MUTANT_TRUSTS && tide_action_meets_session(action);
}
#define tide_action_meets_session meets_session
static bool is_in_doubt(const tide_action_t *action, const tide_goal_t *goal) {
  return tide_mutant != MUTANT_BELIEVES && tide_action_is_in_doubt(action, goal);
}
#define tide_action_is_in_doubt is_in_doubt
#include "../../runtime/src/compat/action_client.c"
#endif
