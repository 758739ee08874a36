/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the runtime in which a mutant intercepts functions of the file itself (mutants.h). A definition selects the
 * file. */

#if defined MUTANT_FILE_BUDGET
#include "tide/budget.h"

/* The three events in which the owner reports used time. */
#define GENEROUS(event)                                                             \
  void careful_##event(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns); \
  void event(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns) {          \
    const int64_t period_ns = budget->config.period_ns;                             \
    if (tide_mutant == MUTANT_GENEROUS) budget->config.period_ns = period_ns / 2;   \
    careful_##event(budget, consumed_ns, now_ns);                                   \
    budget->config.period_ns = period_ns;                                           \
  }
GENEROUS(tide_budget_account)
GENEROUS(tide_budget_preempt)
GENEROUS(tide_budget_block)
#define tide_budget_account careful_tide_budget_account
#define tide_budget_preempt careful_tide_budget_preempt
#define tide_budget_block careful_tide_budget_block
#include "../../runtime/src/budget/budget.c"

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
