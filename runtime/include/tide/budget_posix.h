/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets for threads of a POSIX system that has no SCHED_SPORADIC (Linux). A supervising thread, more urgent than all
 * lanes, keeps a tide_budget_t for each lane, reads the lanes' processor clocks, and changes their SCHED_FIFO
 * priorities.
 *
 *   static tide_posix_budgets_t budgets;
 *   static tide_posix_budget_t lane;
 *   static tide_replenishment_t replenishments[8];
 *   int status = tide_posix_budgets_start(&budgets, 90, TIDE_POSIX_ANY_CPU);
 *   if (status != TIDE_OK) fprintf(stderr, "%s\n", tide_posix_budget_advice(status));
 *   const tide_budget_config_t config = {.priority = 60, .low_priority = 6, .budget_ns = 30000000,
 *                                        .period_ns = 100000000, .replenishments = replenishments,
 *                                        .maximum_replenishments = 8};
 *   status = tide_posix_budget_attach(&budgets, &lane, thread, &config);
 *
 * Accuracy. Priorities rise at replenishments and fall when the budget is used up. Each change is late by the
 * supervisor's wake-up latency (some 10 us, more in virtual machines). The supervisor waits at least 50 us between two
 * checks of a lane, or up to 800 us if the lane does not get the processor. So a lane with less budget left than that
 * may overrun it by as much. An overrun is deducted from the next replenishment, so over many periods the lane gets its
 * budget to the nanosecond.
 *
 * A thread that sleeps without calling tide_posix_budget_block counts as waiting for the processor. After a sleep
 * longer than a period it may then use up to twice its budget in one period. Lanes of an executor call
 * tide_posix_budget_block.
 *
 * Linux itself offers SCHED_DEADLINE (tide_posix_schedule in tide/posix_thread.h). Its budgets are hard: without budget
 * a thread waits even when the processor is idle. Its threads are ordered by deadline, not by priority.
 *
 * Memory: the caller's, from attach to detach. Functions may be called from any thread unless they say otherwise. */
#ifndef TIDE_BUDGET_POSIX_H
#define TIDE_BUDGET_POSIX_H

#include <pthread.h>
#include <time.h>

#include "tide/budget.h"
#include "tide/posix.h"

TIDE_EXTERN_C_BEGIN

struct tide_posix_budgets;

/* A thread with a budget. Zero it before first use. */
typedef struct tide_posix_budget {
  struct tide_posix_budgets *owner; /* null: not attached */
  struct tide_posix_budget *next;
  tide_budget_t budget;
  pthread_t thread;
  clockid_t clock;
  int64_t consumed_ns; /* reading of its processor clock at the latest check */
  int64_t look_ns;     /* time of the next check */
  uint32_t idle_looks; /* consecutive checks without progress */
  int applied;         /* its present priority */
  int policy_before, priority_before;
  uint64_t failures; /* times the system refused a change of priority */
} tide_posix_budget_t;

typedef struct tide_posix_budgets {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t supervisor;
  tide_posix_budget_t *lanes;
  int64_t wake_ns;
  int priority;
  bool prepared, running, stop;
  uint64_t looks;
} tide_posix_budgets_t;

/* Start the supervisor with SCHED_FIFO at this priority, on this processor (TIDE_POSIX_ANY_CPU: any). The structure
 * must be zeroed before. TIDE_ERROR_ARGUMENT: no such priority or processor; TIDE_ERROR_STATE: the supervisor is
 * already running; TIDE_ERROR_NOT_PERMITTED: no real-time scheduling for this user. Budgets need real-time scheduling,
 * because a nice value limits nothing. */
int tide_posix_budgets_start(tide_posix_budgets_t *budgets, int priority, int cpu);
/* Detaches all lanes and ends the supervisor. Meanwhile other threads may call functions for these lanes, except
 * attach. Such a call takes effect before the stop or not at all. Keep the structure's memory until all such calls have
 * returned. */
void tide_posix_budgets_stop(tide_posix_budgets_t *budgets);

/* Give a thread a budget. The thread counts as ready from then on. It must be the calling thread (pthread_self()) or
 * one that does not end before detach. config.priority: above low_priority, below the supervisor's.
 * config.low_priority: a real-time priority, or 0 for SCHED_OTHER. TIDE_ERROR_ARGUMENT: a value out of range, or no
 * such thread; TIDE_ERROR_EXISTS: already attached; TIDE_ERROR_STATE: no supervisor runs; TIDE_ERROR_NOT_PERMITTED: as
 * from start. */
int tide_posix_budget_attach(tide_posix_budgets_t *budgets, tide_posix_budget_t *lane, pthread_t thread,
                             const tide_budget_config_t *config);
/* Detach the thread and restore the scheduling that it had. TIDE_ERROR_STATE: not attached. */
int tide_posix_budget_detach(tide_posix_budget_t *lane);

/* Report that there is work for the lane. The thread that adds the work calls it before it wakes the lane, and the lane
 * calls it after each wait. It has no effect when the lane is ready already. It takes a mutex with priority
 * inheritance, which is held for some microseconds at most. */
void tide_posix_budget_ready(tide_posix_budget_t *lane);
/* Called by the lane itself: it is about to wait. */
void tide_posix_budget_block(tide_posix_budget_t *lane);
/* The functions of this lane as tide_budget_hooks_t. */
tide_budget_hooks_t tide_posix_budget_hooks(tide_posix_budget_t *lane);

/* Read the lane's clock, then its counters. TIDE_ERROR_STATE: not attached. */
int tide_posix_budget_counters(tide_posix_budget_t *lane, tide_budget_counters_t *counters);

/* Returns one line that says what a status of these functions means and what to do. Static text. */
const char *tide_posix_budget_advice(int status);

TIDE_EXTERN_C_END
#endif
