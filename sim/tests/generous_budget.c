/* SPDX-License-Identifier: Apache-2.0 */
/* The corrected rule for the canary GENEROUS: what a lane uses comes back after half a period,
 * so that it takes twice its budget.
 */
#define tide_budget_rule_corrected careful_rule
#include "../../runtime/src/budget/corrected.c"
#undef tide_budget_rule_corrected

static void charge_early(tide_budget_t *budget, int64_t consumed_ns) {
  const int64_t period_ns = budget->config.period_ns;
  budget->config.period_ns = period_ns / 2;
  charge(budget, consumed_ns);
  budget->config.period_ns = period_ns;
}

extern const budget_rule_t tide_budget_rule_corrected;
const budget_rule_t tide_budget_rule_corrected = {start, charge_early, activate, resume, finish, settle, available_ns};
