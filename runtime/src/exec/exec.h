/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the executor: what its files share. "Locked" functions are called within exec_lock, which keeps out lanes and
 * threads; "masked" ones within the critical section, which keeps out interrupts, too. On most platforms the two are
 * the same. Where they are not (splits), interrupts change nothing but the list of arrivals, so that all else needs the
 * lock alone: everything whose time grows with the number of callbacks. */
#ifndef TIDE_EXEC_H
#define TIDE_EXEC_H

#include "tide/executor.h"
#include "tide/invariant.h"
#include "tide/status.h"

/* With a single context nobody else is to see stores in their order. */
#define EXEC_ACQUIRE (TIDE_SINGLE_CONTEXT ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE)
#define EXEC_RELEASE (TIDE_SINGLE_CONTEXT ? __ATOMIC_RELAXED : __ATOMIC_RELEASE)

/* What one collection found, read in one critical section. */
typedef struct exec_view {
  int32_t head; /* priority of the head of the band's ready_list, or TIDE_PRIORITY_NONE */
  size_t ready_count, prompt_count;
  uint32_t notifications;
  int64_t next_expiry_ns;
} exec_view_t;

static inline int64_t exec_now(const tide_executor_t *executor) {
  return tide_platform_now_ns(executor->config.platform);
}

#if TIDE_SINGLE_CONTEXT
static inline uintptr_t exec_lock(const tide_executor_t *executor) {
  (void)executor;
  return 0;
}
static inline void exec_unlock(const tide_executor_t *executor, uintptr_t state) {
  (void)executor;
  (void)state;
}
static inline bool exec_splits(const tide_executor_t *executor) {
  (void)executor;
  return false;
}
#elif TIDE_STATIC_PLATFORM
static inline uintptr_t exec_lock(const tide_executor_t *executor) {
  (void)executor;
  return tide_static_lanes_enter();
}
static inline void exec_unlock(const tide_executor_t *executor, uintptr_t state) {
  (void)executor;
  tide_static_lanes_exit(state);
}
static inline bool exec_splits(const tide_executor_t *executor) {
  (void)executor;
  return true;
}
#else
static inline uintptr_t exec_lock(const tide_executor_t *executor) {
  return executor->enter(executor->config.platform->context);
}
static inline void exec_unlock(const tide_executor_t *executor, uintptr_t state) {
  executor->exit(executor->config.platform->context, state);
}
static inline bool exec_splits(const tide_executor_t *executor) { return executor->splits; }
#endif

static inline uintptr_t exec_mask(const tide_executor_t *executor) {
  return tide_platform_enter(executor->config.platform);
}

static inline void exec_unmask(const tide_executor_t *executor, uintptr_t state) {
  tide_platform_exit(executor->config.platform, state);
}

static inline int64_t exec_minimum(int64_t left, int64_t right) { return left < right ? left : right; }

/* left + right, both at least 0, without passing TIDE_FOREVER. */
static inline int64_t exec_after(int64_t left, int64_t right) {
  return left > TIDE_FOREVER - right ? TIDE_FOREVER : left + right;
}

_Static_assert(offsetof(tide_callback_t, ready_entry) == 0u, "exec_callback_of casts");
_Static_assert(offsetof(tide_timer_t, callback) == 0u, "exec_timer_of casts");

static inline tide_callback_t *exec_callback_of(tide_queue_entry_t *ready_entry) {
  return (tide_callback_t *)(void *)ready_entry; /* first member */
}

static inline tide_timer_t *exec_timer_of(tide_callback_t *callback) {
  TIDE_INVARIANT(callback->kind == TIDE_CALLBACK_TIMER);
  return (tide_timer_t *)(void *)callback; /* first member */
}

static inline bool exec_is_stopped(const tide_executor_t *executor) {
  return __atomic_load_n(&executor->stopped, EXEC_ACQUIRE);
}

static inline bool exec_is_tide(const tide_executor_t *executor) {
  return TIDE_BATCH + TIDE_READYSET == 0 || executor->config.policy == TIDE_POLICY_TIDE;
}

static inline bool exec_is_readyset(const tide_executor_t *executor) {
  return TIDE_READYSET && executor->config.policy == TIDE_POLICY_READYSET;
}

static inline size_t exec_lane_count(const tide_executor_t *executor) {
  return TIDE_LANES ? executor->config.lane_count : 1u;
}

static inline bool exec_has_lanes(const tide_executor_t *executor) {
  return TIDE_LANES && executor->config.lane_count > 1u;
}

/* A round of several callbacks: with a trigger, and of the batch policy. */
static inline bool exec_is_in_round(const tide_callback_t *callback) {
  return (TIDE_TRIGGERS || TIDE_BATCH) && callback->in_round;
}

static inline void exec_leave_round(tide_callback_t *callback) {
  if (TIDE_TRIGGERS || TIDE_BATCH) {
    callback->in_round = false;
  }
}

static inline bool exec_exchange(bool *flag, bool value) {
  if (!TIDE_SINGLE_CONTEXT) {
    return __atomic_exchange_n(flag, value, __ATOMIC_ACQUIRE);
  }
  const bool before = *flag;
  *flag = value;
  return before;
}

/* Add and remove may come from other threads. */
static inline tide_executor_t *exec_owner(const tide_callback_t *callback) {
  return __atomic_load_n(&callback->executor, EXEC_ACQUIRE);
}

/* ready.c */
void tide_exec_make_ready(tide_callback_t *callback, int64_t ready_ns); /* locked */
/* Masked; the lane to wake, or null. from: whose callback does it; null: anybody else. */
tide_lane_t *tide_exec_notify(tide_callback_t *callback, const tide_lane_t *from, int64_t ready_ns);
void tide_exec_take_all_arrivals(tide_executor_t *executor); /* locked; one copy serves all */
static inline bool exec_has_arrivals(const tide_executor_t *executor) {
  return !TIDE_SINGLE_CONTEXT && __atomic_load_n(&executor->arrivals, __ATOMIC_RELAXED) != NULL;
}
static inline void exec_take_arrivals(tide_executor_t *executor) {
  if (exec_has_arrivals(executor)) {
    tide_exec_take_all_arrivals(executor);
  }
}
void tide_exec_mark_local(tide_callback_t *callback);   /* locked */
void tide_exec_take_pending(tide_callback_t *callback); /* locked */
void tide_exec_clear_ready(tide_callback_t *callback);  /* locked */
void tide_exec_enqueue(tide_callback_t *callback);      /* locked; where the policy keeps a ready_list */
void tide_exec_round_add(tide_lane_t *lane, tide_callback_t *callback); /* locked */
void tide_exec_round_forget(tide_callback_t *callback);                 /* locked */

/* band.c; locked: the lane to wake for something of the band, or null. */
tide_lane_t *tide_exec_pick(tide_band_t *band);

/* group.c; all locked. A callback that is ready is offered (in the ready_list of its band), or waits: in its group, or
 * for its own end. */
void tide_exec_offer_in_group(tide_callback_t *callback);
void tide_exec_withdraw_from_group(tide_callback_t *callback);
void tide_exec_occupy_group(tide_lane_t *lane, tide_group_t *group);
void tide_exec_vacate_group(tide_group_t *group);

/* With one lane nothing can overlap, and groups change nothing. */
static inline tide_group_t *exec_group_of(const tide_callback_t *callback) {
  return callback->group != NULL && exec_has_lanes(callback->executor) ? callback->group : NULL;
}

/* The list has a place for each callback of the executor. */
static inline void exec_show(tide_callback_t *callback) {
  TIDE_INVARIANT(callback->executor != NULL && callback->pending > 0u);
  const int status = tide_queue_push(&callback->band->ready_list, &callback->ready_entry, callback->ready_entry.key);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK);
}

static inline void exec_hide(tide_callback_t *callback) {
  tide_queue_remove(&callback->band->ready_list, &callback->ready_entry);
}

static inline void exec_offer(tide_callback_t *callback) {
  if (exec_group_of(callback) != NULL) {
    tide_exec_offer_in_group(callback);
  } else if (callback->running == 0u) {
    exec_show(callback);
  }
}

static inline void exec_withdraw(tide_callback_t *callback) {
  if (exec_group_of(callback) != NULL) {
    tide_exec_withdraw_from_group(callback);
  } else {
    exec_hide(callback);
  }
}

/* Locked. When a callback of a group was taken back, the next one of the group may be another lane's: the lane to wake,
 * or null. */
static inline tide_lane_t *exec_lane_of_group(const tide_callback_t *callback) {
  const tide_group_t *group = exec_group_of(callback);
  return group != NULL && group->offered != NULL ? tide_exec_pick(group->offered->band) : NULL;
}

/* It starts. */
static inline void exec_occupy(tide_lane_t *lane, tide_callback_t *callback) {
  tide_group_t *group = exec_group_of(callback);
  TIDE_INVARIANT(lane->running == NULL && !tide_queue_contains(&callback->ready_entry));
  TIDE_INVARIANT(callback->running == 0u || (group != NULL && group->kind == TIDE_GROUP_REENTRANT));
  TIDE_INVARIANT(callback->running < exec_lane_count(callback->executor));
  lane->running = callback;
  lane->forgotten = false;
  callback->running++;
  if (!TIDE_LANES) {
    return;
  }
  lane->group = NULL;
  if (group != NULL) {
    tide_exec_occupy_group(lane, group);
  }
}

/* It has ended; callback is null when it was removed meanwhile. */
static inline void exec_vacate(tide_lane_t *lane, tide_callback_t *callback) {
  TIDE_INVARIANT(lane->running != NULL && (callback == NULL || callback == lane->running));
  lane->running = NULL;
  if (TIDE_LANES && lane->group != NULL) {
    tide_exec_vacate_group(lane->group);
    lane->group = NULL;
  }
  if (callback == NULL) {
    return;
  }
  TIDE_INVARIANT(callback->running > 0u && callback->executor != NULL);
  callback->running--;
  const tide_executor_t *executor = callback->executor;
  const bool keeps_place =
      exec_is_tide(executor) ? callback->pending > 0u && !exec_is_in_round(callback) : callback->in_set;
  if (keeps_place && exec_group_of(callback) == NULL && !tide_queue_contains(&callback->ready_entry)) {
    exec_show(callback);
  }
}

/* band.c */
bool tide_exec_set_up_lanes(tide_executor_t *executor);
tide_band_t *tide_exec_band_of(const tide_executor_t *executor, tide_priority_t priority);
void tide_exec_become_idle(tide_lane_t *lane);                                /* locked */
void tide_exec_become_busy(tide_lane_t *lane);                                /* locked */
tide_lane_t *tide_exec_pick_for_rest(tide_band_t *band);                      /* locked: for what is left */
int64_t tide_exec_idle_until(const tide_band_t *band);                        /* locked: for a lane that becomes idle */
bool tide_exec_looks_soon(const tide_band_t *band, int64_t now_ns);           /* locked: an idle lane, by itself */
void tide_exec_wake_lane(const tide_executor_t *executor, tide_lane_t *lane); /* null: does nothing */
void tide_exec_wake_other_bands(tide_executor_t *executor, const tide_lane_t *lane);

/* timer.c */
int64_t tide_exec_move_due_timers(tide_executor_t *executor, tide_band_t *band, int64_t now_ns,
                                  uintptr_t *lock);                         /* locked */
int64_t tide_exec_timer_started(tide_callback_t *callback, int64_t now_ns); /* locked; time since the previous run */
void tide_exec_timer_set_up(tide_callback_t *callback, int64_t now_ns);     /* locked; when it is added */
void tide_exec_timer_forget(tide_callback_t *callback);                     /* locked */
void tide_exec_timer_change_band(tide_callback_t *callback, tide_band_t *band); /* locked */

/* executor.c */
exec_view_t tide_exec_collect(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns);
int64_t tide_exec_poll_source(const tide_executor_t *executor);
int32_t tide_exec_most_urgent(const tide_executor_t *executor, const tide_band_t *band);
bool tide_exec_triggers(tide_executor_t *executor, const exec_view_t *view);
static inline void exec_count(const tide_executor_t *executor, uint64_t *counter) {
  if (!TIDE_COUNTERS) {
    return;
  }
  const bool shared = exec_has_lanes(executor);
  const uintptr_t lock = shared ? exec_lock(executor) : 0u;
  ++*counter;
  if (shared) {
    exec_unlock(executor, lock);
  }
}
void tide_exec_sleep(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns);
int tide_exec_run_head(tide_executor_t *executor, tide_lane_t *lane,
                       bool updated); /* for the count of updates of the set */
/* The most urgent callback of an executor without a source, in one critical section, with an update of the set only
 * when something may be new: 1 when it has run, else 0 and the lane is idle until it looks again. waited: since its
 * last callback. */
int tide_exec_choose(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns, bool waited, int64_t *look_again_ns);
int tide_exec_run_round(tide_executor_t *executor, tide_lane_t *lane);
static inline int exec_idle_result(const tide_executor_t *executor) {
  return exec_is_stopped(executor) ? 0 : TIDE_ERROR_TIMEOUT;
}

/* policy_readyset.c; locked */
void tide_exec_set_admit(tide_callback_t *callback);
void tide_exec_set_leave(tide_callback_t *callback);
void tide_exec_set_refresh(tide_executor_t *executor);
void tide_exec_set_reorder(tide_executor_t *executor); /* after a change of the order of registration */

/* measure.c: around a callback that has a measurement. */
typedef struct exec_measured {
  uint64_t begin, around;
} exec_measured_t;
exec_measured_t tide_exec_measure_begin(const tide_executor_t *executor);
void tide_exec_measure_end(const tide_executor_t *executor, tide_measurement_t *measurement,
                           const exec_measured_t *measured);

/* policy_tide.c, policy_batch.c, policy_readyset.c */
int tide_exec_round_tide(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns);
int tide_exec_round_batch(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns);
int tide_exec_round_readyset(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns);

/* A flood of frames that make nothing ready holds a round beyond its deadline for no longer than this. */
#define EXEC_DIGESTS_WHEN_LATE 64u

#endif
