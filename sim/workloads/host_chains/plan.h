/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of callbacks on executors of one process, as words read by both the program on this machine and the simulator.
 * `tide lab reproduce mt-case-study` generates them from a system.toml. */
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
  PLAN_LANES = 64, /* most lanes of an executor */
  PLAN_GROUPS = 32,
  PLAN_LOCKS = 8,
  PLAN_CALLBACKS = 256,
  PLAN_CHAINS = 126,
  PLAN_JOINS = 7,        /* most callbacks that a callback waits for besides the preceding one */
  PLAN_LENGTH = 128,     /* callbacks of a chain, including those before its branch */
  PLAN_NAME_BYTES = 160, /* chain and callback of a description, and suffixes */
  PLAN_DEPTH = 64
};

typedef struct executor_plan {
  char name[PLAN_NAME_BYTES];
  size_t lanes;
  int64_t budget_ns, budget_period_ns; /* of each lane, on a shared core; 0: its own core */
} executor_plan_t;

typedef struct group_plan {
  char name[PLAN_NAME_BYTES];
  tide_group_kind_t kind;
} group_plan_t;

typedef struct lock_plan {
  char name[PLAN_NAME_BYTES];
  int64_t sections_ns[PLAN_CALLBACKS]; /* by callback: time of holding the lock, once in each run; 0: never */
} lock_plan_t;

typedef struct callback_plan {
  char name[PLAN_NAME_BYTES];
  size_t executor;
  int64_t period_ns; /* 0: a subscription */
  tide_priority_t priority;
  int64_t least_ns, most_ns; /* execution time, drawn for each run */
  bool placed;
  int64_t offset_ns; /* if set: a timer's first expiry, from the start */
  int64_t jitter_ns; /* greatest delay of a timer's instance after its expiry, drawn for each */
  bool grouped;
  size_t group;
  size_t joins[PLAN_JOINS]; /* callbacks whose messages of the same instance it also needs */
  size_t join_count;
} callback_plan_t;

typedef struct chain_plan {
  char name[PLAN_NAME_BYTES];
  size_t callbacks[PLAN_LENGTH]; /* the first is a timer, the others subscribe to the preceding one */
  size_t length;
} chain_plan_t;

/* Distribution of executions. extremes: the shortest or the longest. */
typedef enum plan_executions { PLAN_EXECUTIONS_UNIFORM, PLAN_EXECUTIONS_EXTREMES } plan_executions_t;
/* Supply of lanes with a budget, in virtual time. server: the runtime's budget, with a less urgent task that always
 * needs the core. anywhere: the budget in one piece at a random place in each period, drawn by the seed. */
typedef enum plan_supply { PLAN_SUPPLY_SERVER, PLAN_SUPPLY_ANYWHERE } plan_supply_t;

typedef struct plan {
  tide_policy_t policy;
  plan_executions_t executions;
  plan_supply_t supply;
  int64_t duration_ns; /* time with releases */
  uint64_t seed;
  int64_t dispatch_ns; /* additional cost of starting a callback, to model another runtime */
  int64_t spread_ns;   /* range of the timers' start times, drawn by the seed; 0: all at once */
  size_t depth;        /* most waiting messages of a subscription; a newer one replaces the oldest */
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

/* Words; names are defined before their use:
 *   policy=tide|readyset seconds=60 seed=1 spread_us=0 dispatch_us=0 depth=10 executions=uniform|extremes
 *   supply=server|anywhere                                                supply of budgets, only in the simulator
 *   executor=NAME,LANES[,BUDGET_US,PERIOD_US] group=NAME,exclusive|reentrant
 *   callback=NAME,EXECUTOR,PERIOD_US,PRIORITY,LEAST_US,MOST_US[,GROUP]     period 0: a subscription
 *   offset=CALLBACK,OFFSET_US      first expiry of a timer; without it a period and its share of the spread
 *   jitter=CALLBACK,JITTER_US      greatest delay of a timer's instance after its expiry, drawn for each
 *   lock=NAME,CALLBACK,SECTION_US,CALLBACK,SECTION_US...                  callbacks that take it, and for how long
 *   chain=NAME,CALLBACK,CALLBACK...                                       chains may begin with the same callbacks
 *   join=CALLBACK,CALLBACK...      the first starts when the others have also published the same instance
 * Times may have decimals. Null, or an error message of one line (static until the next call). */
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
