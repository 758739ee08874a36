/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of callbacks on executors of one process, in words that the program on this machine and the simulator both
 * take. `tide lab reproduce mt-case-study` makes the words from a system.toml. */
#ifndef HOST_CHAINS_PLAN_H
#define HOST_CHAINS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PLAN_EXECUTORS = 16,
  PLAN_LANES = 64, /* of an executor */
  PLAN_GROUPS = 32,
  PLAN_LOCKS = 8,
  PLAN_CALLBACKS = 256,
  PLAN_CHAINS = 126,
  PLAN_JOINS = 7,        /* that a callback waits for beside the one before it */
  PLAN_LENGTH = 128,     /* of a chain, those before its branch among them */
  PLAN_NAME_BYTES = 160, /* chain and callback of a description, and what is put behind them */
  PLAN_DEPTH = 64
};

typedef struct executor_plan {
  char name[PLAN_NAME_BYTES];
  size_t lanes;
  int64_t budget_ns, budget_period_ns; /* of each lane, on a core that others want, too; 0: a core of its own */
} executor_plan_t;

typedef struct group_plan {
  char name[PLAN_NAME_BYTES];
  tide_group_kind_t kind;
} group_plan_t;

typedef struct lock_plan {
  char name[PLAN_NAME_BYTES];
  int64_t sections_ns[PLAN_CALLBACKS]; /* by callback: for how long it has the lock, once in each run; 0: never */
} lock_plan_t;

typedef struct callback_plan {
  char name[PLAN_NAME_BYTES];
  size_t executor;
  int64_t period_ns; /* 0: a subscription */
  tide_priority_t priority;
  int64_t least_ns, most_ns; /* execution time, drawn for each run */
  bool placed;
  int64_t offset_ns; /* if it is placed: of a timer's first expiry, from the start */
  int64_t jitter_ns; /* so much later than its expiry a timer starts an instance at most, drawn for each */
  bool grouped;
  size_t group;
  size_t joins[PLAN_JOINS]; /* callbacks whose messages of the same instance it needs, too */
  size_t join_count;
} callback_plan_t;

typedef struct chain_plan {
  char name[PLAN_NAME_BYTES];
  size_t callbacks[PLAN_LENGTH]; /* the first is a timer, all others are subscriptions behind the one before */
  size_t length;
} chain_plan_t;

/* How executions are drawn. extremes: the shortest or the longest. */
typedef enum plan_executions { PLAN_EXECUTIONS_UNIFORM, PLAN_EXECUTIONS_EXTREMES } plan_executions_t;
/* Of lanes with a budget, in virtual time. server: the runtime's budget, and somebody less urgent who always wants the
 * core. anywhere: the budget in one piece somewhere in each period, drawn by the seed. */
typedef enum plan_supply { PLAN_SUPPLY_SERVER, PLAN_SUPPLY_ANYWHERE } plan_supply_t;

typedef struct plan {
  tide_policy_t policy;
  plan_executions_t executions;
  plan_supply_t supply;
  int64_t duration_ns; /* releases come in this time */
  uint64_t seed;
  int64_t dispatch_ns; /* what starting a callback costs beside what the runtime itself takes: another one's */
  int64_t spread_ns;   /* timers begin so much after each other at most, drawn by the seed; 0: all at once */
  size_t depth;        /* messages that wait for a subscription; a newer one replaces the oldest */
  executor_plan_t executors[PLAN_EXECUTORS];
  size_t executor_count;
  group_plan_t groups[PLAN_GROUPS];
  size_t group_count;
  lock_plan_t locks[PLAN_LOCKS];
  size_t lock_count;
  callback_plan_t callbacks[PLAN_CALLBACKS]; /* in order of registration */
  size_t callback_count;
  chain_plan_t chains[PLAN_CHAINS];
  size_t chain_count;
} plan_t;

/* Words, each in the order in which others name it:
 *   policy=tide|readyset seconds=60 seed=1 spread_us=0 dispatch_us=0 depth=10 executions=uniform|extremes
 *   supply=server|anywhere                                                of budgets, which only the simulator has
 *   executor=NAME,LANES[,BUDGET_US,PERIOD_US]
 *   group=NAME,exclusive|reentrant
 *   callback=NAME,EXECUTOR,PERIOD_US,PRIORITY,LEAST_US,MOST_US[,GROUP]     period 0: a subscription
 *   offset=CALLBACK,OFFSET_US      of a timer's first expiry; without it a period and its share of the spread
 *   jitter=CALLBACK,JITTER_US      so much later than its expiry a timer may start an instance, drawn for each
 *   lock=NAME,CALLBACK,SECTION_US,CALLBACK,SECTION_US...                  who takes it, and for how long
 *   chain=NAME,CALLBACK,CALLBACK...                                       chains may begin with the same callbacks
 *   join=CALLBACK,CALLBACK...      the first starts when those behind it have published the same instance, too
 * Times may have decimals. Null, or one line that says what is wrong (static until the next call). */
const char *plan_read(plan_t *plan, int count, char **words);
void plan_help(const char *program);
/* The callback before it in its chains, or itself: a timer. */
size_t plan_predecessor(const plan_t *plan, size_t callback);
const char *plan_policy(tide_policy_t policy);
bool plan_has_budgets(const plan_t *plan);

#ifdef __cplusplus
}
#endif
#endif
