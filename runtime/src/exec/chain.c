/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: the chain-aware assignment of priorities, and the watch over deadlines (tide/chain_watch.h). */
#include "exec.h"
#include "tide/chain_watch.h"
#include "tide/executor.h"
#include "tide/invariant.h"
#include "tide/status.h"

#define POSITIONS 256
_Static_assert(TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, POSITIONS - 1) <= UINT16_MAX, "a priority holds level and position");

int tide_chain_init(tide_chain_t *chain, const char *name, uint8_t level, int64_t period_ns, int64_t deadline_ns) {
  if (chain == NULL || level < 1u || level > TIDE_LEVEL_MAXIMUM || period_ns < 0 || deadline_ns < 0) {
    return TIDE_ERROR_ARGUMENT;
  }
  *chain = (tide_chain_t){.name = name, .level = level, .period_ns = period_ns, .deadline_ns = deadline_ns};
  return TIDE_OK;
}

static int next_position(const tide_chain_t *chain) {
  if (chain == NULL || chain->level == 0u) return TIDE_ERROR_ARGUMENT;
  const int position = chain->length + chain->remote_before;
  return position >= POSITIONS ? TIDE_ERROR_FULL : position;
}

int tide_chain_add(tide_chain_t *chain, tide_callback_t *callback) {
  const int position = callback == NULL ? TIDE_ERROR_ARGUMENT : next_position(chain);
  if (position < 0) return position;
  const tide_priority_t priority = TIDE_PRIORITY(chain->level, position);
  TIDE_INVARIANT(TIDE_PRIORITY_LEVEL(priority) == chain->level);
  chain->length++;
  if (priority <= callback->priority) return position; /* a callback of several chains keeps its highest priority */
  if (callback->executor == NULL) {
    callback->priority = priority;
  } else {
    (void)tide_executor_set_priority(callback->executor, callback, priority);
  }
  return position;
}

int tide_chain_add_remote(tide_chain_t *chain) {
  const int position = next_position(chain);
  if (position >= 0) chain->remote_before++;
  return position;
}

/* ---- the watch ----
 *
 * The executor calls begin and end through pointers in the watch, so only programs that watch a chain link these
 * functions. Rare paths are separate functions, so that an instance that is in time does not have to save registers. */

#define RARE __attribute__((noinline, cold))

RARE static void note_missing(tide_chain_watch_t *watch, const tide_callback_t *callback) {
  watch->missing++;
  tide_exec_trace_deadline(callback, watch->last->priority, TIDE_VIOLATION_MISSING, callback->ready_ns);
  if (watch->on_violation == NULL) return;
  const int64_t since_ns = watch->since_ns[(watch->started - 1u) & 1u];
  watch->on_violation(watch, TIDE_VIOLATION_MISSING, callback->ready_ns - since_ns);
}

/* Called before the first callback runs, because the last callback may preempt it. */
static void begin(tide_chain_watch_t *watch, const tide_callback_t *callback) {
  const uint32_t before = watch->started;
  watch->since_ns[(before + 1u) & 1u] = callback->ready_ns;
  __atomic_store_n(&watch->started, before + 1u, __ATOMIC_RELEASE);
  if (__atomic_load_n(&watch->over, __ATOMIC_RELAXED) != before) note_missing(watch, callback);
}

RARE static void note_unusual(tide_chain_watch_t *watch, int64_t took_ns, int64_t now_ns) {
  if (took_ns > watch->longest_ns) watch->longest_ns = took_ns;
  watch->usual_ns = watch->longest_ns < watch->deadline_ns ? watch->longest_ns : watch->deadline_ns;
  if (took_ns <= watch->deadline_ns) return;
  watch->late++;
  tide_exec_trace_deadline(watch->last, watch->last->priority, TIDE_VIOLATION_LATE, now_ns);
  if (watch->on_violation != NULL) watch->on_violation(watch, TIDE_VIOLATION_LATE, took_ns - watch->deadline_ns);
}

/* now_ns is taken after the last callback. A run of the last callback without a current instance belongs to an instance
 * that was already counted as missing, or to none. The start time read here is not overwritten until two instances
 * later. */
static void end(tide_chain_watch_t *watch, int64_t now_ns) {
  const uint32_t number = __atomic_load_n(&watch->started, __ATOMIC_ACQUIRE);
  if (number == watch->over) return;
  const int64_t took_ns = now_ns - *(const volatile int64_t *)&watch->since_ns[number & 1u]; /* a single read */
  __atomic_store_n(&watch->over, number, __ATOMIC_RELAXED);
  if (took_ns > watch->usual_ns) note_unusual(watch, took_ns, now_ns);
}

static bool fits(const tide_chain_t *chain, const tide_callback_t *first) {
  if (chain->deadline_ns <= 0 || chain->deadline_ns > chain->period_ns) return false;
  const tide_timer_t *timer = (const tide_timer_t *)(const void *)first; /* first member */
  return first->kind != TIDE_CALLBACK_TIMER || timer->period_ns == chain->period_ns;
}

int tide_chain_watch(tide_chain_watch_t *watch, const tide_chain_t *chain, tide_callback_t *first,
                     tide_callback_t *last) {
  if (TIDE_LEAN) return TIDE_ERROR_UNSUPPORTED;
  if (watch == NULL || chain == NULL || first == NULL || last == NULL || !fits(chain, first)) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (first->executor == NULL || last->executor == NULL) return TIDE_ERROR_STATE;
  if (first->begins != NULL || last->ends != NULL) return TIDE_ERROR_EXISTS;
  watch->deadline_ns = chain->deadline_ns;
  watch->name = chain->name;
  watch->last = last;
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
