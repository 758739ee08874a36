/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/budget.h"

#include "tide/invariant.h"
#include "tide/status.h"

/* Later than any clock value, yet small enough that the sum of two or three such times fits an int64_t. */
#define TIME_MAXIMUM_NS (INT64_MAX / 4)

/* ---- the ring of portions, ordered by time ---- */

static tide_replenishment_t *ring_at(const tide_budget_t *budget, uint16_t index) {
  return &budget->config.replenishments[((uint32_t)budget->first + index) % budget->config.maximum_replenishments];
}

static tide_replenishment_t ring_pop(tide_budget_t *budget) {
  TIDE_INVARIANT(budget->count > 0u);
  const tide_replenishment_t head = *ring_at(budget, 0u);
  budget->first = (uint16_t)(((uint32_t)budget->first + 1u) % budget->config.maximum_replenishments);
  budget->count--;
  return head;
}

/* The caller ensures that the ring has room and that none of its entries is later than this one. */
static void ring_push(tide_budget_t *budget, int64_t time_ns, int64_t amount_ns) {
  tide_replenishment_t *const tail = budget->count > 0u ? ring_at(budget, (uint16_t)(budget->count - 1u)) : 0;
  if (tail && tail->time_ns == time_ns) {
    tail->amount_ns += amount_ns;
    return;
  }
  TIDE_INVARIANT(budget->count < budget->config.maximum_replenishments && amount_ns > 0);
  TIDE_INVARIANT(!tail || tail->time_ns < time_ns);
  *ring_at(budget, budget->count++) = (tide_replenishment_t){.time_ns = time_ns, .amount_ns = amount_ns};
}

/* Invariant of the ring: times rise strictly, amounts are positive and sum to the budget, and less than the first
 * portion is used. */
static bool ring_holds(const tide_budget_t *budget) {
  int64_t sum_ns = 0;
  for (uint16_t index = 0u; index < budget->count; index++) {
    const tide_replenishment_t *portion = ring_at(budget, index);
    if (portion->amount_ns <= 0) return false;
    if (index > 0u && ring_at(budget, (uint16_t)(index - 1u))->time_ns >= portion->time_ns) return false;
    sum_ns += portion->amount_ns;
  }
  if (budget->count > budget->config.maximum_replenishments) return false;
  return sum_ns == budget->config.budget_ns && budget->used_ns >= 0 && budget->used_ns < ring_at(budget, 0u)->amount_ns;
}

/* ---- the rule: the used part of the first portion becomes usable again one period after that portion's time ---- */

/* Merges all portions that are earlier than this time into one portion at this time. Returns true if there were any. */
static bool raise_times(tide_budget_t *budget, int64_t time_ns) {
  int64_t amount_ns = 0;
  while (budget->count > 0u && ring_at(budget, 0u)->time_ns < time_ns) {
    amount_ns += ring_pop(budget).amount_ns;
  }
  if (amount_ns == 0) return false;
  if (budget->count > 0u && ring_at(budget, 0u)->time_ns == time_ns) {
    ring_at(budget, 0u)->amount_ns += amount_ns;
    return true;
  }
  const uint16_t places = budget->config.maximum_replenishments;
  TIDE_INVARIANT(budget->count < places);
  budget->first = (uint16_t)(((uint32_t)budget->first + places - 1u) % places);
  budget->count++;
  *ring_at(budget, 0u) = (tide_replenishment_t){.time_ns = time_ns, .amount_ns = amount_ns};
  return true;
}

/* Using up the whole queue n times only moves all its times n periods later. */
static void go_round(tide_budget_t *budget, int64_t rounds) {
  int64_t later_ns;
  if (__builtin_mul_overflow(rounds, budget->config.period_ns, &later_ns) || later_ns > INT64_MAX / 4) {
    later_ns = INT64_MAX / 4;
  }
  for (uint16_t index = 0u; index < budget->count; index++) {
    tide_replenishment_t *const portion = ring_at(budget, index);
    portion->time_ns = portion->time_ns > INT64_MAX / 2 - later_ns ? INT64_MAX / 2 : portion->time_ns + later_ns;
  }
}

static void charge(tide_budget_t *budget, int64_t consumed_ns) {
  const int64_t period_ns = budget->config.period_ns, budget_ns = budget->config.budget_ns;
  const int64_t rounds = consumed_ns / budget_ns;
  int64_t rest_ns = budget->used_ns + consumed_ns % budget_ns;
  if (rounds > 0) go_round(budget, rounds);
  while (rest_ns >= ring_at(budget, 0u)->amount_ns) {
    const tide_replenishment_t head = ring_pop(budget);
    ring_push(budget, head.time_ns + period_ns, head.amount_ns);
    rest_ns -= head.amount_ns;
    TIDE_INVARIANT(rest_ns >= 0);
  }
  budget->used_ns = rest_ns;
}

/* Splits off the used part of the first portion. If the ring has no room for both parts, the unused part joins the next
 * portion. */
static void finish(tide_budget_t *budget) {
  if (budget->used_ns == 0) return;
  tide_replenishment_t *const head = ring_at(budget, 0u);
  const int64_t back_ns = head->time_ns + budget->config.period_ns, used_ns = budget->used_ns;
  const int64_t rest_ns = head->amount_ns - used_ns;
  TIDE_INVARIANT(used_ns > 0 && rest_ns > 0);
  budget->used_ns = 0;
  const tide_replenishment_t *const tail = ring_at(budget, (uint16_t)(budget->count - 1u));
  if (budget->count < budget->config.maximum_replenishments || tail->time_ns == back_ns) {
    head->amount_ns = rest_ns;
    ring_push(budget, back_ns, used_ns);
    return;
  }
  (void)ring_pop(budget);
  ring_push(budget, back_ns, used_ns);
  ring_at(budget, 0u)->amount_ns += rest_ns;
  if (ring_at(budget, 0u)->time_ns > budget->now_ns) budget->counters.denied++;
}

/* The used part of the first portion is split off first, so that it is not counted as forgiven. */
static void resume(tide_budget_t *budget) {
  const int64_t oldest_ns = budget->now_ns - budget->config.period_ns;
  if (ring_at(budget, 0u)->time_ns >= oldest_ns) return;
  finish(budget);
  if (raise_times(budget, oldest_ns)) budget->counters.forgiven++;
}

/* Time has passed until budget->now_ns. */
static void settle(tide_budget_t *budget) { budget->high = ring_at(budget, 0u)->time_ns <= budget->now_ns; }

static int64_t available_ns(const tide_budget_t *budget) {
  const bool is_back = ring_at(budget, 0u)->time_ns + budget->config.period_ns <= budget->now_ns;
  int64_t sum_ns = is_back ? 0 : -budget->used_ns;
  for (uint16_t index = 0u; index < budget->count; index++) {
    const tide_replenishment_t *const portion = ring_at(budget, index);
    if (portion->time_ns > budget->now_ns) break;
    sum_ns += portion->amount_ns;
  }
  return sum_ns > 0 ? sum_ns : 0; /* negative after an overrun: future budget was used */
}

/* ---- events ---- */

static int64_t within_clock(int64_t time_ns) {
  if (time_ns > TIME_MAXIMUM_NS) return TIME_MAXIMUM_NS;
  return time_ns < -TIME_MAXIMUM_NS ? -TIME_MAXIMUM_NS : time_ns;
}

static bool is_valid(const tide_budget_config_t *config) {
  return config->replenishments && config->maximum_replenishments > 0u && config->low_priority < config->priority &&
         config->budget_ns > 0 && config->budget_ns <= config->period_ns &&
         config->period_ns <= TIDE_BUDGET_PERIOD_MAXIMUM_NS;
}

int tide_budget_init(tide_budget_t *budget, const tide_budget_config_t *config, int64_t now_ns) {
  if (!budget || !config || !is_valid(config)) return TIDE_ERROR_ARGUMENT;
  *budget = (tide_budget_t){.config = *config, .now_ns = within_clock(now_ns), .stopped_ns = INT64_MIN, .high = true};
  ring_push(budget, budget->now_ns, budget->config.budget_ns);
  return TIDE_OK;
}

static void use(tide_budget_t *budget, int64_t consumed_ns) {
  const int64_t had_ns = available_ns(budget);
  budget->counters.used_ns += (uint64_t)consumed_ns;
  if (consumed_ns > had_ns) budget->counters.overrun_ns += (uint64_t)(consumed_ns - had_ns);
  charge(budget, consumed_ns);
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
  settle(budget);
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
  (void)raise_times(budget, budget->now_ns);
}

void tide_budget_run(tide_budget_t *budget, int64_t now_ns) {
  pass(budget, 0, now_ns);
  const bool goes_on = budget->now_ns == budget->stopped_ns;
  if (budget->ready && !budget->running && !goes_on) resume(budget);
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
  finish(budget);
  settle(budget);
  TIDE_INVARIANT(ring_holds(budget) && !budget->running);
}

int64_t tide_budget_available_ns(const tide_budget_t *budget) {
  TIDE_INVARIANT(available_ns(budget) <= budget->config.budget_ns);
  return budget->high ? available_ns(budget) : 0;
}

int64_t tide_budget_deadline_ns(const tide_budget_t *budget) {
  TIDE_INVARIANT(budget->high || budget->count > 0u);
  if (!budget->high) return ring_at(budget, 0u)->time_ns;
  if (!budget->running) return INT64_MAX;
  return budget->now_ns + available_ns(budget);
}
