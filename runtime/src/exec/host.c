/* SPDX-License-Identifier: Apache-2.0 */
/* What only hosts ask for: an executor whose callbacks come and go in any number, and one that a single thread drives
 * through all its bands. */
#include <string.h>

#include "exec.h"

static void move_queue(tide_queue_t *queue, tide_queue_entry_t **storage, size_t capacity) {
  TIDE_INVARIANT(queue->count <= capacity);
  if (queue->count > 0u) {
    memcpy(storage, queue->entries, queue->count * sizeof(tide_queue_entry_t *));
  }
  queue->entries = storage;
  queue->capacity = capacity;
}

static bool is_first_of_band(const tide_lane_t *lane) { return lane->band == &lane->own_band; }

/* Locked. Bands have their parts of the storage in the order of their first lanes, as tide_exec_set_up_lanes gave them.
 */
static void move_bands(tide_executor_t *executor, tide_queue_entry_t **ready, tide_queue_entry_t **timers,
                       size_t capacity) {
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    const tide_lane_t *lane = &executor->config.lanes[index];
    if (is_first_of_band(lane)) {
      move_queue(&lane->band->ready_list, ready, capacity);
      move_queue(&lane->band->timer_list, timers, capacity);
      ready += capacity;
      timers += capacity;
    }
  }
}

int tide_executor_grow(tide_executor_t *executor, tide_callback_t **callbacks, tide_queue_entry_t **ready_storage,
                       tide_queue_entry_t **timer_storage, size_t callback_count) {
  if (executor == NULL || callbacks == NULL || ready_storage == NULL || timer_storage == NULL ||
      callback_count > UINT16_MAX) {
    return TIDE_ERROR_ARGUMENT;
  }
  int status = TIDE_ERROR_ARGUMENT;
  const uintptr_t lock = exec_lock(executor);
  tide_executor_config_t *config = &executor->config;
  if (callback_count >= config->callback_count) {
    memcpy(callbacks, config->callbacks, executor->count * sizeof(tide_callback_t *));
    move_bands(executor, ready_storage, timer_storage, callback_count);
    config->callbacks = callbacks;
    config->ready_storage = ready_storage;
    config->timer_storage = timer_storage;
    config->callback_count = callback_count;
    status = TIDE_OK;
  }
  exec_unlock(executor, lock);
  return status;
}

int tide_group_grow(tide_executor_t *executor, tide_group_t *group, tide_queue_entry_t **waiting_storage,
                    size_t capacity) {
  if (executor == NULL || group == NULL || waiting_storage == NULL || group->kind != TIDE_GROUP_EXCLUSIVE) {
    return TIDE_ERROR_ARGUMENT;
  }
  int status = TIDE_ERROR_ARGUMENT;
  const uintptr_t lock = exec_lock(executor);
  if (capacity >= group->waiting.capacity) {
    move_queue(&group->waiting, waiting_storage, capacity);
    status = TIDE_OK;
  }
  exec_unlock(executor, lock);
  return status;
}

int64_t tide_executor_next_expiry_ns(tide_executor_t *executor) {
  int64_t next_ns = TIDE_FOREVER;
  const uintptr_t lock = exec_lock(executor);
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    const tide_queue_entry_t *expiry = tide_queue_head(&executor->config.lanes[index].band->timer_list);
    next_ns = expiry == NULL ? next_ns : exec_minimum(next_ns, expiry->key);
  }
  exec_unlock(executor, lock);
  return next_ns;
}

static size_t starts_of(tide_callback_t *callback, int64_t now_ns) {
  if (callback->pending > 0u || callback->kind != TIDE_CALLBACK_TIMER) {
    return callback->pending;
  }
  const tide_timer_t *timer = exec_timer_of(callback);
  return tide_queue_contains(&timer->expiry_entry) && timer->next_ns <= now_ns ? 1u : 0u;
}

size_t tide_executor_count_starts(tide_executor_t *executor, int64_t now_ns) {
  size_t starts = 0;
  const uintptr_t lock = exec_lock(executor);
  exec_take_arrivals(executor);
  for (size_t index = 0; index < executor->count; index++) {
    starts += starts_of(executor->config.callbacks[index], now_ns);
  }
  exec_unlock(executor, lock);
  return starts;
}
