/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines at run time: checks whether each instance of a chain ended in time. `tide check` proves this before the
 * robot moves; the watch reports when a premise of the proof does not hold on this board.
 *
 *   static tide_chain_watch_t watch;                 zeroed, and kept as long as the callbacks
 *   tide_chain_init(&brake, "brake", 3, RCL_MS_TO_NS(60), RCL_MS_TO_NS(60));
 *   ... add its callbacks ...
 *   watch.on_violation = stop_the_motor;             optional
 *   tide_chain_watch(&watch, &brake, tide_rclc_timer_callback(&timer), tide_rclc_subscription_callback(&command));
 *
 * An instance begins at the timer's nominal expiry, or when the first callback becomes ready, and ends when the last
 * callback has run. Instances do not overlap: an instance that has not ended when the next one begins counts as
 * missing, and its later end counts for the next instance. So if every instance takes between one and two periods, only
 * the first counts as missing, and each later one seems to take one period less. The first and the last callback run on
 * this machine; the callbacks between them may run elsewhere.
 *
 * Late and missing instances are reported in the counters, in the trace (TIDE_TRACE_DEADLINE) and, with
 * tide_rclc_diagnostics, as a warning on /diagnostics.
 *
 * Cost: two comparisons per run while no chain is watched; otherwise at most 40 instructions per instance, without a
 * lock. Memory: the program's. A lean runtime has no watch. */
#ifndef TIDE_CHAIN_WATCH_H
#define TIDE_CHAIN_WATCH_H

#include "tide/executor.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_violation { TIDE_VIOLATION_LATE, TIDE_VIOLATION_MISSING } tide_violation_t;

typedef struct tide_watched_chain {
  int64_t since_ns[2]; /* start times of the latest even and the latest odd instance; set by the watch */
  /* Called after an instance ended late (over_ns: by how much), or when the next one begins before it has ended
   * (over_ns: its age). Runs in the lane that detected the violation, outside any lock; it must not block. Set before
   * tide_chain_watch; may be null. */
  void (*on_violation)(struct tide_watched_chain *watch, tide_violation_t violation, int64_t over_ns);
  void *context; /* the program's */
  /* Set by tide_chain_watch. */
  int64_t deadline_ns;
  const char *name;
  const tide_callback_t *last;
  void (*begin)(struct tide_watched_chain *watch, const tide_callback_t *callback);
  void (*end)(struct tide_watched_chain *watch, int64_t now_ns);
  /* Each member is written either by the first or by the last callback, without a lock. */
  uint32_t started, late, missing; /* numbers of instances */
  uint32_t over;                   /* number of the latest ended instance, from 1 */
  int64_t longest_ns, usual_ns;    /* longest_ns: the longest of all ended instances; usual_ns: an instance shorter than
                                      this is neither late nor the longest so far */
} tide_chain_watch_t;

/* missing: instances that have not ended and are not running. longest_ns: longest time from an instance's beginning to
 * its end. */
typedef struct tide_watch_counters {
  uint32_t started, ended, late, missing;
  int64_t longest_ns;
} tide_chain_watch_counters_t;

/* Watch a chain that has a deadline no longer than its period. Call it when both callbacks belong to an executor,
 * before its lanes spin. TIDE_ERROR_ARGUMENT: the chain has no deadline, or one beyond its period, or its period is not
 * the timer's. TIDE_ERROR_STATE: a callback belongs to no executor. TIDE_ERROR_EXISTS: one of the callbacks begins or
 * ends another watched chain. TIDE_ERROR_UNSUPPORTED: a lean runtime. */
int tide_chain_watch(tide_chain_watch_t *watch, const tide_chain_t *chain, tide_callback_t *first,
                     tide_callback_t *last);
/* Call it in the last callback's lane; from elsewhere a 32-bit machine may read a half-written longest_ns. */
tide_chain_watch_counters_t tide_chain_watch_counters(const tide_chain_watch_t *watch);
/* Name and counters of the watched chain that ends with the executor's callback of this index, from 0. Any thread may
 * call it. Returns 1 if a watched chain ends with this callback, else 0. TIDE_ERROR_NOT_FOUND: no callback has this
 * index. */
int tide_executor_get_watch(tide_executor_t *executor, size_t place, const char **name,
                            tide_chain_watch_counters_t *counters);

TIDE_EXTERN_C_END
#endif
