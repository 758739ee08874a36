/* SPDX-License-Identifier: Apache-2.0 */
/* Only programs that watch a chain have this file: the executor calls it by the pointers that it leaves in the watch.
 */
#include "tide/chain_watch.h"

#include "exec.h"
#include "tide/status.h"

/* A last callback may preempt the first one's lane before that has ended, so an instance begins before its first
 * callback runs. */
static void begin(tide_chain_watch_t *watch, const tide_callback_t *callback) {
  if (callback != watch->first) return;
  const uintptr_t lock = exec_lock(callback->executor);
  const bool missing = watch->under_way;
  const int64_t since_ns = watch->since_ns;
  watch->since_ns = callback->ready_ns;
  watch->under_way = true;
  watch->started++;
  watch->missing += missing;
  exec_unlock(callback->executor, lock);
  if (missing && watch->on_violation != NULL) {
    watch->on_violation(watch, TIDE_VIOLATION_MISSING, callback->ready_ns - since_ns);
  }
}

/* now_ns: taken after the callback. A run of the last callback without an instance under way is of one that was given
 * up as missing, or of none. */
static void end(tide_chain_watch_t *watch, const tide_callback_t *callback, int64_t now_ns) {
  if (callback != watch->last) return;
  const tide_executor_t *executor = watch->first->executor;
  const uintptr_t lock = exec_lock(executor);
  const int64_t took_ns = now_ns - watch->since_ns;
  const bool ended = watch->under_way;
  const bool late = ended && took_ns > watch->chain->deadline_ns;
  watch->under_way = false;
  watch->ended += ended;
  watch->late += late;
  if (ended && took_ns > watch->longest_ns) watch->longest_ns = took_ns;
  exec_unlock(executor, lock);
  if (late && watch->on_violation != NULL) {
    watch->on_violation(watch, TIDE_VIOLATION_LATE, took_ns - watch->chain->deadline_ns);
  }
}

static bool fits(const tide_chain_t *chain, const tide_callback_t *first) {
  if (chain->deadline_ns <= 0 || chain->deadline_ns > chain->period_ns) return false;
  return first->kind != TIDE_CALLBACK_TIMER || exec_timer_of((tide_callback_t *)first)->period_ns == chain->period_ns;
}

int tide_chain_watch(tide_chain_watch_t *watch, const tide_chain_t *chain, tide_callback_t *first,
                     tide_callback_t *last) {
  if (!TIDE_MEASUREMENT) return TIDE_ERROR_UNSUPPORTED;
  if (watch == NULL || chain == NULL || first == NULL || last == NULL || !fits(chain, first)) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (first->executor == NULL || last->executor == NULL) return TIDE_ERROR_STATE;
  if (first->watch != NULL || last->watch != NULL) return TIDE_ERROR_EXISTS;
  watch->chain = chain;
  watch->first = first;
  watch->last = last;
  watch->begin = begin;
  watch->end = end;
  first->watch = last->watch = watch;
  return TIDE_OK;
}

tide_chain_watch_counters_t tide_chain_watch_counters(const tide_chain_watch_t *watch) {
  if (watch->first == NULL) return (tide_chain_watch_counters_t){0};
  const uintptr_t lock = exec_lock(watch->first->executor);
  const tide_chain_watch_counters_t counters = {watch->started, watch->ended, watch->late, watch->missing,
                                                watch->longest_ns};
  exec_unlock(watch->first->executor, lock);
  return counters;
}
