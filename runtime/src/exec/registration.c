/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks come and go, also while lanes run, and while lanes run them. */
#include <string.h>

#include "exec.h"

/* Of one that was never added the index may be anything. */
static bool is_registered(const tide_executor_t *executor, const tide_callback_t *callback) {
  return callback->index < executor->count && executor->config.callbacks[callback->index] == callback;
}

/* Each callback knows its place and its executor; those that are in no executor are not in the table. O(n). */
static bool table_holds(const tide_executor_t *executor) {
  for (size_t index = 0; index < executor->count; index++) {
    const tide_callback_t *callback = executor->config.callbacks[index];
    if (callback->index != index || callback->executor != executor) return false;
  }
  return executor->count <= executor->config.callback_count && executor->ready_count <= executor->count;
}

static tide_lane_t *lane_that_runs(const tide_executor_t *executor, const tide_callback_t *callback) {
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    if (executor->config.lanes[index].running == callback) {
      return &executor->config.lanes[index];
    }
  }
  return NULL;
}

/* One that is added again while lanes still run it, itself too, goes on as if it had not been removed. */
static void recognise(const tide_executor_t *executor, tide_callback_t *callback) {
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    tide_lane_t *lane = &executor->config.lanes[index];
    if (lane->running == callback) {
      lane->forgotten = false;
      callback->running++;
    }
  }
}

static int check_addition(const tide_executor_t *executor, const tide_callback_t *callback) {
  const tide_group_t *group = TIDE_LANES ? callback->group : NULL;
  if (group != NULL && group->members > 0u && group->executor != executor) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (is_registered(executor, callback)) {
    return TIDE_ERROR_EXISTS;
  }
  if (callback->always && (!TIDE_TRIGGERS || exec_has_lanes(executor) || exec_is_readyset(executor))) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  const bool group_full =
      group != NULL && group->kind == TIDE_GROUP_EXCLUSIVE && group->members == group->waiting.capacity;
  return executor->count == executor->config.callback_count || group_full ? TIDE_ERROR_FULL : TIDE_OK;
}

/* But for the executor, which is stored last: who notifies it meanwhile reads it without the lock. */
static void clear(tide_callback_t *callback) {
  const size_t rest = offsetof(tide_callback_t, band);
  callback->in_round = callback->in_set = callback->arriving = false;
  __atomic_store_n(&callback->pending, 0u, __ATOMIC_RELAXED);
  memset((uint8_t *)callback + rest, 0, sizeof *callback - rest);
}

static void insert(tide_executor_t *executor, tide_callback_t *callback) {
  clear(callback);
  callback->ready_entry = (tide_queue_entry_t){0};
  callback->band = tide_exec_band_of(executor, callback->priority);
  callback->index = (uint16_t)executor->count;
  tide_exec_timer_set_up(callback, exec_now(executor));
  recognise(executor, callback);
  executor->config.callbacks[executor->count++] = callback;
  if (TIDE_LANES && callback->group != NULL) {
    callback->group->members++;
    callback->group->executor = executor;
  }
  if (TIDE_TRIGGERS && callback->always) {
    callback->always_next = executor->always_list;
    __atomic_store_n(&executor->always_list, callback, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&callback->executor, executor, EXEC_RELEASE);
  TIDE_INVARIANT(table_holds(executor));
  TIDE_INVARIANT((lane_that_runs(executor, callback) != NULL) == (callback->running > 0u));
}

int tide_executor_add(tide_executor_t *executor, tide_callback_t *callback) {
  if (executor == NULL || callback == NULL || callback->execute == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  const uintptr_t lock = exec_lock(executor);
  const int status = check_addition(executor, callback);
  if (status == TIDE_OK) {
    insert(executor, callback);
  }
  exec_unlock(executor, lock);
  return status;
}

static void forget_always(tide_executor_t *executor, const tide_callback_t *callback) {
  tide_callback_t **place = &executor->always_list;
  while (*place != NULL && *place != callback) {
    place = &(*place)->always_next;
  }
  if (*place != NULL) {
    __atomic_store_n(place, callback->always_next, __ATOMIC_RELAXED);
  }
}

/* Whoever notifies it from now on finds that it is in no executor; what was notified until now is not run. */
static void leave_executor(tide_executor_t *executor, tide_callback_t *callback) {
  if (!exec_splits(executor)) {
    __atomic_store_n(&callback->executor, NULL, EXEC_RELEASE);
    return;
  }
  const uintptr_t mask = exec_mask(executor);
  callback->arrived = 0u;
  __atomic_store_n(&callback->executor, NULL, EXEC_RELEASE);
  exec_unmask(executor, mask);
  exec_take_arrivals(executor); /* it does not stay among them */
}

/* Locked; it is not ready any more. */
static void take_out(tide_executor_t *executor, tide_callback_t *callback) {
  TIDE_INVARIANT(callback->pending == 0u && callback->executor == executor);
  tide_exec_timer_forget(callback);
  tide_exec_round_forget(callback);
  forget_always(executor, callback);
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    tide_lane_t *lane = &executor->config.lanes[index];
    lane->forgotten = lane->forgotten || lane->running == callback;
  }
  if (TIDE_LANES && callback->group != NULL) {
    TIDE_INVARIANT(callback->group->members > 0u && callback->group->offered != callback);
    callback->group->members--;
  }
  leave_executor(executor, callback);
  executor->count--;
  for (size_t later = callback->index; later < executor->count; later++) {
    executor->config.callbacks[later] = executor->config.callbacks[later + 1u];
    executor->config.callbacks[later]->index = (uint16_t)later;
  }
  if (exec_is_readyset(executor)) {
    tide_exec_set_reorder(executor);
  }
  TIDE_INVARIANT(table_holds(executor) && !is_registered(executor, callback));
}

static int remove_callback(tide_executor_t *executor, tide_callback_t *callback, bool idle_only) {
  if (executor == NULL || callback == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  int status = TIDE_OK;
  tide_lane_t *next = NULL;
  const uintptr_t lock = exec_lock(executor);
  if (!is_registered(executor, callback)) {
    status = TIDE_ERROR_NOT_FOUND;
  } else if (idle_only && callback->running > 0u) {
    status = TIDE_ERROR_STATE;
  } else {
    tide_exec_clear_ready(callback);
    next = exec_lane_of_group(callback);
    take_out(executor, callback);
  }
  exec_unlock(executor, lock);
  tide_exec_wake_lane(executor, next);
  return status;
}

int tide_executor_remove(tide_executor_t *executor, tide_callback_t *callback) {
  return remove_callback(executor, callback, false);
}

int tide_executor_remove_idle(tide_executor_t *executor, tide_callback_t *callback) {
  return remove_callback(executor, callback, true);
}

bool tide_executor_is_running(tide_executor_t *executor, const tide_callback_t *callback) {
  if (executor == NULL || callback == NULL) {
    return false;
  }
  const uintptr_t lock = exec_lock(executor);
  const bool running = lane_that_runs(executor, callback) != NULL;
  exec_unlock(executor, lock);
  return running;
}
