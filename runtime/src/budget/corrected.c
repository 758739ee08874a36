/* SPDX-License-Identifier: Apache-2.0 */
/* The corrected rule of the sporadic server. Invariants: ring_holds (budget.c); the used part of the first portion
 * becomes usable again one period after that portion's time. */
#include "internal.h"

static void start(tide_budget_t *budget) { budget_ring_push(budget, budget->now_ns, budget->config.budget_ns); }

/* Merges all portions that are earlier than this time into one portion at this time. Returns true if there were any. */
static bool raise_times(tide_budget_t *budget, int64_t time_ns) {
  int64_t amount_ns = 0;
  while (budget->count > 0u && budget_ring_at(budget, 0u)->time_ns < time_ns) {
    amount_ns += budget_ring_pop(budget).amount_ns;
  }
  if (amount_ns == 0) return false;
  if (budget->count > 0u && budget_ring_at(budget, 0u)->time_ns == time_ns) {
    budget_ring_at(budget, 0u)->amount_ns += amount_ns;
    return true;
  }
  const uint16_t places = budget->config.maximum_replenishments;
  TIDE_INVARIANT(budget->count < places);
  budget->first = (uint16_t)(((uint32_t)budget->first + places - 1u) % places);
  budget->count++;
  *budget_ring_at(budget, 0u) = (tide_replenishment_t){.time_ns = time_ns, .amount_ns = amount_ns};
  return true;
}

/* Using up the whole queue n times only moves all its times n periods later. */
static void go_round(tide_budget_t *budget, int64_t rounds) {
  int64_t later_ns;
  if (__builtin_mul_overflow(rounds, budget->config.period_ns, &later_ns) || later_ns > INT64_MAX / 4) {
    later_ns = INT64_MAX / 4;
  }
  for (uint16_t index = 0u; index < budget->count; index++) {
    tide_replenishment_t *const portion = budget_ring_at(budget, index);
    portion->time_ns = portion->time_ns > INT64_MAX / 2 - later_ns ? INT64_MAX / 2 : portion->time_ns + later_ns;
  }
}

static void charge(tide_budget_t *budget, int64_t consumed_ns) {
  const int64_t period_ns = budget->config.period_ns, budget_ns = budget->config.budget_ns;
  const int64_t rounds = consumed_ns / budget_ns;
  int64_t rest_ns = budget->used_ns + consumed_ns % budget_ns;
  if (rounds > 0) go_round(budget, rounds);
  while (rest_ns >= budget_ring_at(budget, 0u)->amount_ns) {
    const tide_replenishment_t head = budget_ring_pop(budget);
    budget_ring_push(budget, head.time_ns + period_ns, head.amount_ns);
    rest_ns -= head.amount_ns;
    TIDE_INVARIANT(rest_ns >= 0);
  }
  budget->used_ns = rest_ns;
}

static void activate(tide_budget_t *budget) { (void)raise_times(budget, budget->now_ns); }

/* Splits off the used part of the first portion. If the ring has no room for both parts, the unused part joins the next
 * portion. */
static void finish(tide_budget_t *budget) {
  if (budget->used_ns == 0) return;
  tide_replenishment_t *const head = budget_ring_at(budget, 0u);
  const int64_t back_ns = head->time_ns + budget->config.period_ns, used_ns = budget->used_ns;
  const int64_t rest_ns = head->amount_ns - used_ns;
  TIDE_INVARIANT(used_ns > 0 && rest_ns > 0);
  budget->used_ns = 0;
  const tide_replenishment_t *const tail = budget_ring_at(budget, (uint16_t)(budget->count - 1u));
  if (budget->count < budget->config.maximum_replenishments || tail->time_ns == back_ns) {
    head->amount_ns = rest_ns;
    budget_ring_push(budget, back_ns, used_ns);
    return;
  }
  (void)budget_ring_pop(budget);
  budget_ring_push(budget, back_ns, used_ns);
  budget_ring_at(budget, 0u)->amount_ns += rest_ns;
  if (budget_ring_at(budget, 0u)->time_ns > budget->now_ns) budget->counters.denied++;
}

/* The used part of the first portion is split off first, so that it is not counted as forgiven. */
static void resume(tide_budget_t *budget) {
  const int64_t oldest_ns = budget->now_ns - budget->config.period_ns;
  if (budget_ring_at(budget, 0u)->time_ns >= oldest_ns) return;
  finish(budget);
  if (raise_times(budget, oldest_ns)) budget->counters.forgiven++;
}

static void settle(tide_budget_t *budget) { budget->high = budget_ring_at(budget, 0u)->time_ns <= budget->now_ns; }

static int64_t available_ns(const tide_budget_t *budget) {
  const bool is_back = budget_ring_at(budget, 0u)->time_ns + budget->config.period_ns <= budget->now_ns;
  int64_t sum_ns = is_back ? 0 : -budget->used_ns;
  for (uint16_t index = 0u; index < budget->count; index++) {
    const tide_replenishment_t *const portion = budget_ring_at(budget, index);
    if (portion->time_ns > budget->now_ns) break;
    sum_ns += portion->amount_ns;
  }
  return sum_ns > 0 ? sum_ns : 0; /* negative after an overrun: future budget was used */
}

const budget_rule_t tide_budget_rule_corrected = {start, charge, activate, resume, finish, settle, available_ns};
