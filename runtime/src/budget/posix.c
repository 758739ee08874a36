/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of POSIX.1-2017, section 2.8.4, SCHED_SPORADIC; steps are numbered as in the standard. The ring holds the
 * pending replenishment operations; their times never decrease, because activation times never do. */
#include "internal.h"

static void start(tide_budget_t *budget) { budget->available_ns = budget->config.budget_ns; }

static bool deserves_high(const tide_budget_t *budget) {
  return budget->available_ns > 0 && budget->count < budget->config.maximum_replenishments;
}

static void post_activation(tide_budget_t *budget, int64_t time_ns) { /* 2 */
  TIDE_INVARIANT(deserves_high(budget));
  budget->high = true;
  budget->activation_ns = time_ns;
  budget->used_ns = 0;
}

static void replenish(tide_budget_t *budget, int64_t amount_ns) { /* 7 */
  const int64_t room_ns = budget->config.budget_ns - budget->available_ns;
  budget->available_ns += amount_ns < room_ns ? amount_ns : room_ns;
}

static void schedule(tide_budget_t *budget) { /* 6 */
  const int64_t time_ns = budget->activation_ns + budget->config.period_ns, amount_ns = budget->used_ns;
  budget->used_ns = 0;
  if (time_ns < budget->now_ns) {
    replenish(budget, amount_ns);
  } else {
    budget_ring_push(budget, time_ns, amount_ns);
  }
}

static void charge(tide_budget_t *budget, int64_t consumed_ns) {
  budget->used_ns += consumed_ns;
  budget->available_ns = consumed_ns < budget->available_ns ? budget->available_ns - consumed_ns : 0; /* 3 */
  if (budget->available_ns > 0) return;
  budget->high = false; /* 5 */
  schedule(budget);
  if (budget->ready && deserves_high(budget)) post_activation(budget, budget->now_ns);
}

static void activate(tide_budget_t *budget) {
  if (deserves_high(budget)) post_activation(budget, budget->now_ns);
}

static void resume(tide_budget_t *budget) { (void)budget; }

static void finish(tide_budget_t *budget) { /* 4 */
  if (budget->used_ns == 0) return;
  schedule(budget);
  const bool is_full = budget->count == budget->config.maximum_replenishments;
  if (is_full && budget->available_ns > 0 && budget_ring_at(budget, 0u)->time_ns > budget->now_ns) {
    budget->counters.denied++;
  }
}

static void settle(tide_budget_t *budget) {
  while (budget->count > 0u && budget_ring_at(budget, 0u)->time_ns <= budget->now_ns) {
    const tide_replenishment_t due = budget_ring_pop(budget);
    replenish(budget, due.amount_ns);
    if (budget->ready && !budget->high && deserves_high(budget)) post_activation(budget, due.time_ns);
  }
  budget->high = deserves_high(budget);
}

static int64_t available_ns(const tide_budget_t *budget) { return budget->available_ns; }

const budget_rule_t tide_budget_rule_posix = {start, charge, activate, resume, finish, settle, available_ns};
