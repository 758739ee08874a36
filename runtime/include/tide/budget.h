/* SPDX-License-Identifier: Apache-2.0 */
/* Processor budgets: a sporadic server as a state machine (SCHED_SPORADIC of POSIX.1; Sprunt, Sha, Lehoczky, CMU/SEI-
 * 89-TR-011). A lane with a budget runs at its priority while it has budget, and at its low priority otherwise. At its
 * low priority it uses only time that no other thread needs (work-conserving). Used budget is replenished one period
 * after the activation in which it was used.
 *
 * Events and time go in; the priority to run at and the time of the next check come out. Nothing here reads a clock,
 * sets a priority or allocates. `tide/budget_posix.h` uses it for threads, sim/engine/machine.h for simulated ones, and
 * an RTOS port in its context-switch hooks. All times are int64_t nanoseconds on one monotonic clock; the arithmetic is
 * exact.
 *
 * The budget is a queue of portions, each with the time from which it may be used. Portions are used in queue order. A
 * used portion, or the used part of a portion, moves to the end of the queue and is usable one period later. An
 * activation sets the time of unused portions to the time of the activation. The portions always add up to the budget:
 *   - A lane that nothing preempts never has more than floor(L/T)*B + min(B, L mod T) at its priority in any window of
 *     length L, with B the budget and T the period. (The queue rotates: the unit used now is used again B units later.
 *     The lane's run that uses it now began when the first portion of that run became usable. The run that uses it
 *     again began in the same way, at least one period later.)
 *   - In any window that begins when the lane is blocked or has no budget: at most B*ceil(L/T), preempted or not. That
 *     is what the response-time analysis of less urgent lanes assumes of a periodic task (B, T).
 *   - In any window at all: at most B*(ceil(L/T) + 1). Budget that stays unused for longer than one period, because of
 *     more urgent work, is lost (`forgiven` counts this).
 *   - If the owner (the code that calls these functions) checks too late, the overrun is deducted from the next
 *   portion, so overruns do not add up.
 *
 * A lane stays at its low priority while maximum_replenishments are outstanding, until the first of them is due, even
 * if budget is left. The queue of replenishments needs one entry for each activation within one period that ends with
 * budget left.
 *
 * Cost: O(maximum_replenishments) at worst, O(1) for a lane that uses its budget without a break. Memory: the caller's
 * structure and 16 bytes per replenishment, which must stay until the last call. Not thread-safe: the owner locks. */
#ifndef TIDE_BUDGET_H
#define TIDE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "tide/options.h"
#if TIDE_TRACE
#include "tide/trace.h"
#endif

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_replenishment {
  int64_t time_ns;   /* the portion may be used from this time on */
  int64_t amount_ns; /* amount of processor time */
} tide_replenishment_t;

typedef struct tide_budget_config {
  int32_t priority;                     /* priority with budget, in the owner's numbers: larger is more urgent */
  int32_t low_priority;                 /* priority without budget; below `priority` */
  int64_t budget_ns;                    /* 1..period_ns; equal to period_ns: no limit */
  int64_t period_ns;                    /* replenishment period; up to TIDE_BUDGET_PERIOD_MAXIMUM_NS */
  tide_replenishment_t *replenishments; /* array of maximum_replenishments */
  uint16_t maximum_replenishments;      /* 1 or more */
} tide_budget_config_t;

#define TIDE_BUDGET_PERIOD_MAXIMUM_NS INT64_C(1000000000000000) /* 11 days */

typedef struct tide_budget_counters {
  uint64_t activations;
  uint64_t exhaustions;    /* times the lane ran out of budget and fell to its low priority */
  uint64_t replenishments; /* times the lane rose to its priority again */
  uint64_t denied;         /* times budget was delayed because maximum_replenishments were outstanding */
  uint64_t forgiven;       /* times budget was lost because it stayed unused for longer than a period */
  uint64_t used_ns;        /* processor time used at its priority */
  uint64_t low_ns;         /* processor time used at its low priority */
  uint64_t overrun_ns;     /* the part of used_ns beyond the budget available at that time */
} tide_budget_counters_t;

typedef struct tide_budget {
  tide_budget_config_t config;
  uint16_t first, count; /* the ring in config.replenishments */
  bool ready, running;   /* state of the lane, as the events report it */
  bool high;             /* the lane has its full priority */
  int64_t now_ns;        /* time of the latest event */
  int64_t stopped_ns;    /* time of the latest preempt */
  int64_t used_ns;       /* used part of the first portion */
  tide_budget_counters_t counters;
#if TIDE_TRACE
  tide_trace_ring_t *trace; /* null, or the ring for its records; set by the program after tide_budget_init */
#endif
} tide_budget_t;

/* Initialise as a blocked lane with its whole budget. TIDE_ERROR_ARGUMENT: a value outside its range. */
int tide_budget_init(tide_budget_t *budget, const tide_budget_config_t *config, int64_t now_ns);

/* The events. now_ns: not before the previous event (an earlier time counts as the previous event's). consumed_ns:
 * processor time used since the last event with a consumed_ns, or since run. Events that do not fit the state (ready
 * twice, block while blocked) change nothing but the time. */

/* The lane became runnable. */
void tide_budget_ready(tide_budget_t *budget, int64_t now_ns);
/* The lane was given the processor. An owner that cannot observe context switches calls ready and run in succession.
 * The deadline is then the earliest time at which the budget can be used up. */
void tide_budget_run(tide_budget_t *budget, int64_t now_ns);
/* Time has passed: call this at the deadline, or at any other time, also with consumed_ns 0. */
void tide_budget_account(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns);
/* The lane lost the processor to another thread. */
void tide_budget_preempt(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns);
/* The lane blocks. */
void tide_budget_block(tide_budget_t *budget, int64_t consumed_ns, int64_t now_ns);

/* Priority at which the lane runs, or will run when it becomes ready, after the latest event. */
static inline int32_t tide_budget_priority(const tide_budget_t *budget) {
  return budget->high ? budget->config.priority : budget->config.low_priority;
}
/* Processor time that the lane may use at its priority, after the latest event; 0 at its low priority. Portions that
 * become usable later are not included. */
int64_t tide_budget_available_ns(const tide_budget_t *budget);
/* When to call tide_budget_account next if no other event comes before. The budget is exhausted or replenished at that
 * time. INT64_MAX: never. Earlier calls are harmless. */
int64_t tide_budget_deadline_ns(const tide_budget_t *budget);

/* Functions that a lane calls before and after its waits; a port fills them in (tide_posix_budget_hooks). Null
 * functions: no budget. The loop of a lane:
 *
 *   for (;;) {
 *     while (there is work) do it;         further work belongs to the same activation and does not fragment the budget
 *     if (hooks.block) hooks.block(hooks.context);
 *     wait for the lane's event;           its setter called hooks.ready before
 *     if (hooks.ready) hooks.ready(hooks.context);
 *   }
 */
typedef struct tide_budget_hooks {
  void *context;
  /* Reports that there is work for the lane. The thread that adds the work calls it, before it wakes the lane. The lane
   * also calls it after each of its waits, for work that was added while it was falling asleep. It has no effect when
   * the lane is ready already. */
  void (*ready)(void *context);
  /* Called by the lane when it has no work and is about to wait. */
  void (*block)(void *context);
  /* Called by the lane within a callback: returns its counters up to now, and whether it has its priority (*high). May
   * be null. */
  void (*read)(void *context, tide_budget_counters_t *counters, bool *high);
} tide_budget_hooks_t;

TIDE_EXTERN_C_END
#endif
