/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of replenishments, ordered by time, and the two rules that use it. */
#ifndef TIDE_BUDGET_INTERNAL_H
#define TIDE_BUDGET_INTERNAL_H

#include "tide/budget.h"
#include "tide/invariant.h"

static inline tide_replenishment_t *budget_ring_at(const tide_budget_t *budget, uint16_t index) {
  return &budget->config.replenishments[((uint32_t)budget->first + index) % budget->config.maximum_replenishments];
}

static inline tide_replenishment_t budget_ring_pop(tide_budget_t *budget) {
  TIDE_INVARIANT(budget->count > 0u);
  const tide_replenishment_t head = *budget_ring_at(budget, 0u);
  budget->first = (uint16_t)(((uint32_t)budget->first + 1u) % budget->config.maximum_replenishments);
  budget->count--;
  return head;
}

/* The caller ensures that the ring has room and that none of its entries is later than this one. */
static inline void budget_ring_push(tide_budget_t *budget, int64_t time_ns, int64_t amount_ns) {
  tide_replenishment_t *const tail = budget->count > 0u ? budget_ring_at(budget, (uint16_t)(budget->count - 1u)) : 0;
  if (tail && tail->time_ns == time_ns) {
    tail->amount_ns += amount_ns;
    return;
  }
  TIDE_INVARIANT(budget->count < budget->config.maximum_replenishments && amount_ns > 0);
  TIDE_INVARIANT(!tail || tail->time_ns < time_ns);
  *budget_ring_at(budget, budget->count++) = (tide_replenishment_t){.time_ns = time_ns, .amount_ns = amount_ns};
}

/* The operations of a rule: start with the whole budget, charge the time used at high priority, become ready, get the
 * processor, end an activation, and let time pass until budget->now_ns. */
typedef struct budget_rule {
  void (*start)(tide_budget_t *budget);
  void (*charge)(tide_budget_t *budget, int64_t consumed_ns);
  void (*activate)(tide_budget_t *budget);
  void (*resume)(tide_budget_t *budget);
  void (*finish)(tide_budget_t *budget);
  void (*settle)(tide_budget_t *budget); /* sets high */
  int64_t (*available_ns)(const tide_budget_t *budget);
} budget_rule_t;

extern const budget_rule_t tide_budget_rule_corrected, tide_budget_rule_posix;

#endif
