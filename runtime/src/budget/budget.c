/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/budget.h"

#include "internal.h"
#include "tide/status.h"

/* Later than any clock value, yet small enough that the sum of two or three such times fits an int64_t. */
#define TIME_MAXIMUM_NS (INT64_MAX / 4)

static const budget_rule_t *rule_of(const tide_budget_t *budget) {
  return budget->config.rule == TIDE_BUDGET_POSIX ? &tide_budget_rule_posix : &tide_budget_rule_corrected;
}

/* Invariant of the ring: times rise strictly, and amounts are positive. With the corrected rule the amounts sum to the
 * budget, and less than the first portion is used. */
static bool ring_holds(const tide_budget_t *budget) {
  int64_t sum_ns = 0;
  for (uint16_t index = 0u; index < budget->count; index++) {
    const tide_replenishment_t *portion = budget_ring_at(budget, index);
    if (portion->amount_ns <= 0) return false;
    if (index > 0u && budget_ring_at(budget, (uint16_t)(index - 1u))->time_ns >= portion->time_ns) return false;
    sum_ns += portion->amount_ns;
  }
  if (budget->count > budget->config.maximum_replenishments) return false;
  if (budget->config.rule == TIDE_BUDGET_POSIX) return true; /* the sum may exceed the budget */
  return sum_ns == budget->config.budget_ns && budget->used_ns >= 0 &&
         budget->used_ns < budget_ring_at(budget, 0u)->amount_ns;
}

static int64_t within_clock(int64_t time_ns) {
  if (time_ns > TIME_MAXIMUM_NS) return TIME_MAXIMUM_NS;
  return time_ns < -TIME_MAXIMUM_NS ? -TIME_MAXIMUM_NS : time_ns;
}

static bool is_valid(const tide_budget_config_t *config) {
  return config->replenishments && config->maximum_replenishments > 0u && config->low_priority < config->priority &&
         config->budget_ns > 0 && config->budget_ns <= config->period_ns &&
         config->period_ns <= TIDE_BUDGET_PERIOD_MAXIMUM_NS &&
         (config->rule == TIDE_BUDGET_CORRECTED || config->rule == TIDE_BUDGET_POSIX);
}

int tide_budget_init(tide_budget_t *budget, const tide_budget_config_t *config, int64_t now_ns) {
  if (!budget || !config || !is_valid(config)) return TIDE_ERROR_ARGUMENT;
  *budget = (tide_budget_t){.config = *config, .now_ns = within_clock(now_ns), .stopped_ns = INT64_MIN, .high = true};
  rule_of(budget)->start(budget);
  return TIDE_OK;
}

static void use(tide_budget_t *budget, int64_t consumed_ns) {
  const int64_t had_ns = rule_of(budget)->available_ns(budget);
  budget->counters.used_ns += (uint64_t)consumed_ns;
  if (consumed_ns > had_ns) budget->counters.overrun_ns += (uint64_t)(consumed_ns - had_ns);
  rule_of(budget)->charge(budget, consumed_ns);
}

static void record(const tide_budget_t *budget, bool exhausted) {
#if TIDE_TRACE
  if (budget->trace)
    (void)tide_trace_put(budget->trace, TIDE_TRACE_BUDGET, 0u, 0u, exhausted ? 1u : 0u, budget->now_ns);
#else
  (void)budget, (void)exhausted;
#endif
}

static void pass(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns) {
  const bool was_high = budget->high;
  now_ns = within_clock(now_ns);
  consumed_ns = consumed_ns > 0 ? within_clock(consumed_ns) : 0;
  if (now_ns > budget->now_ns) budget->now_ns = now_ns;
  if (!was_high) {
    budget->counters.low_ns += (uint64_t)consumed_ns;
  } else if (consumed_ns > 0) {
    use(budget, consumed_ns);
  }
  rule_of(budget)->settle(budget);
  TIDE_INVARIANT(ring_holds(budget) && (budget->ready || !budget->running));
  if (was_high && !budget->high) {
    budget->counters.exhaustions++;
    record(budget, true);
  }
  if (!was_high && budget->high) {
    budget->counters.replenishments++;
    record(budget, false);
  }
}

void tide_budget_ready(tide_budget_t *budget, int64_t now_ns) {
  pass(budget, 0, now_ns);
  if (budget->ready) return;
  budget->ready = true;
  budget->counters.activations++;
  rule_of(budget)->activate(budget);
}

void tide_budget_run(tide_budget_t *budget, int64_t now_ns) {
  pass(budget, 0, now_ns);
  const bool goes_on = budget->now_ns == budget->stopped_ns;
  if (budget->ready && !budget->running && !goes_on) rule_of(budget)->resume(budget);
  budget->running = budget->ready;
}

void tide_budget_account(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns) {
  pass(budget, consumed_ns, now_ns);
}

void tide_budget_preempt(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns) {
  pass(budget, consumed_ns, now_ns);
  if (budget->running) budget->stopped_ns = budget->now_ns;
  budget->running = false;
}

void tide_budget_block(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns) {
  pass(budget, consumed_ns, now_ns);
  if (!budget->ready) return;
  budget->ready = budget->running = false;
  rule_of(budget)->finish(budget);
  rule_of(budget)->settle(budget);
  TIDE_INVARIANT(ring_holds(budget) && !budget->running);
}

int64_t tide_budget_available_ns(const tide_budget_t *budget) {
  TIDE_INVARIANT(rule_of(budget)->available_ns(budget) <= budget->config.budget_ns);
  return budget->high ? rule_of(budget)->available_ns(budget) : 0;
}

int64_t tide_budget_deadline_ns(const tide_budget_t *budget) {
  TIDE_INVARIANT(budget->high || budget->count > 0u);
  if (!budget->high) return budget_ring_at(budget, 0u)->time_ns;
  if (!budget->running) return INT64_MAX;
  const int64_t limit_ns = budget->now_ns + rule_of(budget)->available_ns(budget);
  /* Under the POSIX rule, a replenishment that comes while the lane runs adds to the budget of this run. */
  if (budget->config.rule == TIDE_BUDGET_POSIX && budget->count > 0u &&
      budget_ring_at(budget, 0u)->time_ns < limit_ns) {
    return budget_ring_at(budget, 0u)->time_ns;
  }
  return limit_ns;
}
