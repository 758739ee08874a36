/* SPDX-License-Identifier: Apache-2.0 */
/* Only programs that watch a chain have this file: the executor calls it by the pointers that it leaves in the watch.
 */
#include "tide/chain_watch.h"

#include "exec.h"
#include "tide/status.h"

/* What is rare is apart, so that an instance in time saves no registers. */
#define RARE __attribute__((noinline, cold))

RARE static void note_missing(tide_chain_watch_t *watch, const tide_callback_t *callback) {
  watch->missing++;
  if (watch->on_violation == NULL) return;
  const int64_t since_ns = watch->since_ns[(watch->started - 1u) & 1u];
  watch->on_violation(watch, TIDE_VIOLATION_MISSING, callback->ready_ns - since_ns);
}

/* Called before the first callback runs: the last one may preempt it. */
static void begin(tide_chain_watch_t *watch, const tide_callback_t *callback) {
  const uint32_t before = watch->started;
  watch->since_ns[(before + 1u) & 1u] = callback->ready_ns;
  __atomic_store_n(&watch->started, before + 1u, __ATOMIC_RELEASE);
  if (__atomic_load_n(&watch->over, __ATOMIC_RELAXED) != before) note_missing(watch, callback);
}

RARE static void note_unusual(tide_chain_watch_t *watch, int64_t took_ns) {
  if (took_ns > watch->longest_ns) watch->longest_ns = took_ns;
  watch->usual_ns = watch->longest_ns < watch->deadline_ns ? watch->longest_ns : watch->deadline_ns;
  if (took_ns <= watch->deadline_ns) return;
  watch->late++;
  if (watch->on_violation != NULL) watch->on_violation(watch, TIDE_VIOLATION_LATE, took_ns - watch->deadline_ns);
}

/* now_ns: taken after the last callback. A run of it without an instance under way is of one that was given up as
 * missing, or of none. The beginning that is read here is written again two instances later at the earliest. */
static void end(tide_chain_watch_t *watch, int64_t now_ns) {
  const uint32_t number = __atomic_load_n(&watch->started, __ATOMIC_ACQUIRE);
  if (number == watch->over) return;
  const int64_t took_ns = now_ns - *(const volatile int64_t *)&watch->since_ns[number & 1u]; /* read in one piece */
  __atomic_store_n(&watch->over, number, __ATOMIC_RELAXED);
  if (took_ns > watch->usual_ns) note_unusual(watch, took_ns);
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
  if (first->begins != NULL || last->ends != NULL) return TIDE_ERROR_EXISTS;
  watch->deadline_ns = chain->deadline_ns;
  watch->begin = begin;
  watch->end = end;
  first->begins = last->ends = watch;
  return TIDE_OK;
}

tide_chain_watch_counters_t tide_chain_watch_counters(const tide_chain_watch_t *watch) {
  const uint32_t started = __atomic_load_n(&watch->started, __ATOMIC_RELAXED);
  const uint32_t over = __atomic_load_n(&watch->over, __ATOMIC_RELAXED);
  const uint32_t missing = __atomic_load_n(&watch->missing, __ATOMIC_RELAXED);
  const uint32_t not_ended = missing + (over != started ? 1u : 0u);
  return (tide_chain_watch_counters_t){started, started - not_ended, watch->late, missing, watch->longest_ns};
}
