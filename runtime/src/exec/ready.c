/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness: who is ready, how many times, and in which order. */
#include "exec.h"

_Static_assert(TIDE_CALLBACK_TIMER < TIDE_CALLBACK_SUBSCRIPTION && TIDE_CALLBACK_SUBSCRIPTION < TIDE_CALLBACK_SERVICE &&
                   TIDE_CALLBACK_SERVICE < TIDE_CALLBACK_CLIENT && TIDE_CALLBACK_CLIENT < TIDE_CALLBACK_GUARD,
               "the order of the kinds is rclcpp's order of execution (policy_readyset.c)");

#define STAMP_BITS 47 /* of the order of arrival: 4 years at a million callbacks a second */
_Static_assert(STAMP_BITS + 8u * sizeof(tide_priority_t) <= 63u, "priority and order share a positive key");

/* ready_count is the number of callbacks with pending > 0, and prompt_count of those that need no frame. O(n). */
static bool counts_hold(const tide_executor_t *executor) {
  size_t ready = 0, prompt = 0;
  for (size_t index = 0; index < executor->count; index++) {
    const tide_callback_t *callback = executor->config.callbacks[index];
    const bool is_ready = callback->pending > 0u;
    const bool needs_frame = callback->kind != TIDE_CALLBACK_TIMER && callback->kind != TIDE_CALLBACK_GUARD;
    ready += is_ready ? 1u : 0u;
    prompt += is_ready && (!needs_frame || callback->local) ? 1u : 0u;
  }
  return ready == executor->ready_count && prompt == executor->prompt_count;
}

/* Where a ready callback is. Tide: in a queue exactly when it may start or waits for its group, and in no round;
 * readyset: in a queue only with in_set; batch: in no queue. */
static bool place_holds(const tide_callback_t *callback) {
  const tide_executor_t *executor = callback->executor;
  const bool queued = tide_queue_contains(&callback->ready_entry);
  if (exec_is_readyset(executor)) return !queued || callback->in_set;
  if (!exec_is_tide(executor)) return !queued;
  if (callback->pending == 0u || exec_is_in_round(callback)) return !queued;
  return queued || callback->running > 0u;
}

static bool needs_no_frame(const tide_callback_t *callback) {
  return callback->kind == TIDE_CALLBACK_TIMER || callback->kind == TIDE_CALLBACK_GUARD || callback->local;
}

/* Triggers read pending without a lock. */
static void set_pending(tide_callback_t *callback, uint32_t pending) {
  __atomic_store_n(&callback->pending, pending, __ATOMIC_RELAXED);
}

/* The most urgent first, and among equals the one that became ready first. */
static int64_t next_key(tide_executor_t *executor, tide_priority_t priority) {
  TIDE_INVARIANT(executor->next_stamp >> STAMP_BITS == 0);
  return ((int64_t)(UINT16_MAX - priority) << STAMP_BITS) | executor->next_stamp++;
}

void tide_exec_enqueue(tide_callback_t *callback) {
  tide_executor_t *executor = callback->executor;
  if (exec_is_readyset(executor)) {
    if (callback->kind == TIDE_CALLBACK_TIMER) {
      tide_exec_set_admit(callback);
    }
  } else if (exec_is_tide(executor) && !tide_queue_contains(&callback->ready_entry)) {
    callback->ready_entry.key = next_key(executor, callback->priority);
    exec_offer(callback);
  }
}

void tide_exec_make_ready(tide_callback_t *callback, int64_t ready_ns) {
  tide_executor_t *executor = callback->executor;
  executor->notifications++;
  if (TIDE_MEASUREMENT) {
    callback->ready_since_ns = ready_ns;
  }
  const bool was_ready = callback->pending > 0u;
  if (callback->pending != UINT32_MAX) {
    set_pending(callback, callback->pending + 1u);
  }
  if (!was_ready) {
    executor->ready_count++;
    executor->prompt_count += needs_no_frame(callback) ? 1u : 0u;
    if (!exec_is_in_round(callback)) {
      tide_exec_enqueue(callback);
    }
  }
  TIDE_INVARIANT(place_holds(callback) && executor->ready_count <= executor->count);
}

/* Masked. In constant time: the queues are for whoever takes the arrivals. */
static void note_arrival(tide_callback_t *callback, int64_t ready_ns) {
  tide_executor_t *executor = callback->executor;
  if (callback->arrived != UINT32_MAX) {
    __atomic_store_n(&callback->arrived, callback->arrived + 1u, __ATOMIC_RELAXED);
  }
  callback->arrived_ns = ready_ns;
  if (callback->arriving) {
    return;
  }
  callback->arriving = true;
  callback->arrived_next = NULL;
  if (executor->arrivals == NULL) {
    __atomic_store_n(&executor->arrivals, callback, __ATOMIC_RELAXED);
  } else {
    TIDE_INVARIANT(executor->arrivals_last != NULL && executor->arrivals_last->arrived_next == NULL);
    executor->arrivals_last->arrived_next = callback;
  }
  executor->arrivals_last = callback;
}

static void make_readier(tide_callback_t *callback, uint32_t times) {
  const uint32_t room = UINT32_MAX - callback->pending;
  set_pending(callback, callback->pending + (times < room ? times : room));
  callback->executor->notifications += times;
}

/* One that was removed, or taken back, has arrived no times. */
__attribute__((noinline)) void tide_exec_take_all_arrivals(tide_executor_t *executor) {
  while (__atomic_load_n(&executor->arrivals, __ATOMIC_RELAXED) != NULL) {
    const uintptr_t mask = exec_mask(executor);
    tide_callback_t *callback = executor->arrivals;
    const uint32_t times = callback->arrived;
    const int64_t ready_ns = callback->arrived_ns;
    TIDE_INVARIANT(callback->arriving);
    callback->arriving = false;
    callback->arrived = 0u;
    executor->arrivals = callback->arrived_next;
    exec_unmask(executor, mask);
    if (times > 0u) {
      TIDE_INVARIANT(callback->executor == executor);
      tide_exec_make_ready(callback, ready_ns);
      make_readier(callback, times - 1u);
    }
  }
}

static void forget_arrival(tide_callback_t *callback) {
  if (exec_splits(callback->executor)) {
    const uintptr_t mask = exec_mask(callback->executor);
    __atomic_store_n(&callback->arrived, 0u, __ATOMIC_RELAXED);
    exec_unmask(callback->executor, mask);
  }
}

/* One that waits for its group, or for its own end, is offered by the lane for which it waits. */
static bool is_offered(const tide_callback_t *callback) {
  const tide_group_t *group = exec_group_of(callback);
  const bool first = group == NULL || group->kind == TIDE_GROUP_REENTRANT || group->offered == callback;
  return first && tide_queue_contains(&callback->ready_entry);
}

/* The only lane of the band looks for it before it sleeps. Of several, the lane of `from` takes the only one that is
 * ready, unless another one that looks anyway is faster. */
static bool needs_no_lane(const tide_callback_t *callback, const tide_lane_t *from, int64_t now_ns) {
  const tide_band_t *band = callback->band;
  if (!TIDE_PATIENCE) return false;
  if (!TIDE_LANES || !exec_is_tide(callback->executor)) return false;
  const bool own = from != NULL && from->running != NULL && from->band == band;
  if (band->only != NULL) return own;
  if (!is_offered(callback)) return true;
  return own && callback->pending == 1u && band->ready_list.count == 1u && tide_exec_looks_soon(band, now_ns);
}

tide_lane_t *tide_exec_notify(tide_callback_t *callback, const tide_lane_t *from, int64_t ready_ns) {
  if (exec_splits(callback->executor)) {
    note_arrival(callback, ready_ns);
    return tide_exec_pick(callback->band);
  }
  tide_exec_make_ready(callback, ready_ns);
  return needs_no_lane(callback, from, ready_ns) ? NULL : tide_exec_pick(callback->band);
}

void tide_exec_mark_local(tide_callback_t *callback) {
  const bool prompt_before = needs_no_frame(callback);
  callback->local = true;
  if (!prompt_before && callback->executor != NULL && callback->pending > 0u) {
    callback->executor->prompt_count++;
  }
}

static void not_ready_any_more(tide_callback_t *callback) {
  tide_executor_t *executor = callback->executor;
  TIDE_INVARIANT(executor->ready_count > 0u && (executor->prompt_count > 0u || !needs_no_frame(callback)));
  executor->ready_count--;
  executor->prompt_count -= needs_no_frame(callback) ? 1u : 0u;
}

void tide_exec_take_pending(tide_callback_t *callback) {
  TIDE_INVARIANT(callback->pending > 0u);
  set_pending(callback, callback->pending - 1u);
  if (callback->pending == 0u) {
    not_ready_any_more(callback);
  }
}

void tide_exec_clear_ready(tide_callback_t *callback) {
  forget_arrival(callback);
  if (callback->pending != 0u) {
    set_pending(callback, 0u);
    not_ready_any_more(callback);
  }
  tide_exec_set_leave(callback);
  TIDE_INVARIANT(!tide_queue_contains(&callback->ready_entry) && counts_hold(callback->executor));
}

/* Later in the round than `other`: less urgent (tide), registered later (batch). */
static bool runs_after(const tide_callback_t *callback, const tide_callback_t *other) {
  return exec_is_tide(callback->executor) ? callback->priority <= other->priority : callback->index > other->index;
}

void tide_exec_round_add(tide_lane_t *lane, tide_callback_t *callback) {
  if (callback->in_round) {
    return;
  }
  exec_withdraw(callback);
  callback->in_round = true;
  tide_callback_t **place = &lane->round_first;
  if (lane->round_last != NULL && runs_after(callback, lane->round_last)) {
    place = &lane->round_last->round_next;
  }
  while (*place != NULL && runs_after(callback, *place)) {
    place = &(*place)->round_next;
  }
  callback->round_next = *place;
  *place = callback;
  if (callback->round_next == NULL) {
    lane->round_last = callback;
  }
  TIDE_INVARIANT(lane->round_first != NULL && lane->round_last != NULL && lane->round_last->round_next == NULL);
  TIDE_INVARIANT(place_holds(callback));
}

static void unlink_from_lane(tide_lane_t *lane, tide_callback_t *callback) {
  tide_callback_t *previous = NULL;
  for (tide_callback_t *other = lane->round_first; other != NULL; previous = other, other = other->round_next) {
    if (other == callback) {
      *(previous == NULL ? &lane->round_first : &previous->round_next) = callback->round_next;
      lane->round_last = lane->round_last == callback ? previous : lane->round_last;
      return;
    }
  }
}

void tide_exec_round_forget(tide_callback_t *callback) {
  if (!exec_is_in_round(callback)) {
    return;
  }
  const tide_executor_config_t *config = &callback->executor->config;
  for (size_t index = 0; index < exec_lane_count(callback->executor) && callback->in_round; index++) {
    unlink_from_lane(&config->lanes[index], callback);
  }
  TIDE_INVARIANT(!tide_queue_contains(&callback->ready_entry));
  callback->in_round = false;
}

static void notify(tide_callback_t *callback, size_t from) {
  tide_executor_t *executor = callback == NULL ? NULL : exec_owner(callback);
  if (executor == NULL) {
    return;
  }
  const int64_t now_ns = exec_now(executor);
  tide_lane_t *lane = NULL;
  const uintptr_t mask = exec_mask(executor);
  if (callback->executor == executor) {
    const tide_lane_t *own = from < exec_lane_count(executor) ? &executor->config.lanes[from] : NULL;
    lane = tide_exec_notify(callback, own, now_ns);
  }
  exec_unmask(executor, mask);
  tide_exec_wake_lane(executor, lane);
}

void tide_executor_notify(tide_callback_t *callback) { notify(callback, SIZE_MAX); }
void tide_executor_notify_from(tide_callback_t *callback, size_t lane) { notify(callback, lane); }

/* Locked. */
static void change_priority(tide_callback_t *callback, tide_priority_t priority) {
  if (exec_is_readyset(callback->executor)) {
    callback->priority = priority; /* of no consequence, and there is one band */
    return;
  }
  const bool waits = callback->pending > 0u && !exec_is_in_round(callback);
  tide_band_t *band = tide_exec_band_of(callback->executor, priority);
  exec_withdraw(callback);
  callback->priority = priority;
  if (band != callback->band) {
    tide_exec_timer_change_band(callback, band);
    callback->band = band;
  }
  if (waits) {
    tide_exec_enqueue(callback);
  }
  TIDE_INVARIANT(place_holds(callback));
  TIDE_INVARIANT(priority >= callback->band->least && priority <= callback->band->most);
}

int tide_executor_set_priority(tide_executor_t *executor, tide_callback_t *callback, tide_priority_t priority) {
  if (executor == NULL || callback == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  int status = TIDE_ERROR_NOT_FOUND;
  tide_lane_t *lane = NULL, *next = NULL;
  const uintptr_t lock = exec_lock(executor);
  if (callback->executor == executor) {
    exec_take_arrivals(executor);
    const tide_band_t *before = callback->band;
    change_priority(callback, priority);
    lane = callback->band == before ? NULL : tide_exec_pick(callback->band);
    next = exec_lane_of_group(callback);
    status = TIDE_OK;
  }
  exec_unlock(executor, lock);
  tide_exec_wake_lane(executor, lane);
  tide_exec_wake_lane(executor, next);
  return status;
}
