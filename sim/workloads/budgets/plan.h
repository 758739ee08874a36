/* SPDX-License-Identifier: Apache-2.0 */
/* The experiment of the budget-based executor (Staschulat, Lange, Dasari 2021, section IV) as words read by both the
 * program on this machine and the simulator: pings arrive on each lane's topic, the executor passes a ping to a free
 * lane, the lane works and answers. */
#ifndef BUDGETS_PLAN_H
#define BUDGETS_PLAN_H

#include <stdint.h>

#include "tide/budget.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LANES_MAXIMUM 16
#define REPLENISHMENTS_MAXIMUM 1000
#define EXECUTOR_PRIORITY 90 /* 110 in the paper; Linux ends at 99 */

typedef struct lane_plan {
  char name[16];
  int32_t priority, low_priority;
  int64_t budget_ns, period_ns; /* budget 0: FIFO, without a budget */
  int32_t sleep_percent;        /* share of the work that is slept instead of computed */
} lane_plan_t;

typedef struct pong_plan {
  lane_plan_t lanes[LANES_MAXIMUM];
  int32_t lane_count;
  int64_t duration_ns, ping_ns, work_ns;
  uint16_t replenishments;
  tide_budget_rule_t rule;
  int32_t cpu; /* processor of all threads; native only */
} pong_plan_t;

typedef struct lane_result {
  uint64_t pings, replies, overwritten; /* overwritten: pings replaced by newer ones before the lane was free */
  int64_t cpu_ns;
  tide_budget_counters_t budget;
} lane_result_t;

/* Words: seconds=10 ping_ms=10 work_ms=10 replenishments=100 rule=corrected|posix cpu=0, and for each lane
 * lane=NAME,PRIORITY[,BUDGET_MS/PERIOD_MS,LOW_PRIORITY][,sleep=PERCENT]. Numbers may have decimals. Null, or an error
 * message of one line (static until the next call). */
const char *pong_plan_read(pong_plan_t *plan, int count, char **words);
void pong_plan_help(const char *program);
void pong_plan_print(const pong_plan_t *plan, const char *on, const lane_result_t *results);

#ifdef __cplusplus
}
#endif
#endif
