/* SPDX-License-Identifier: Apache-2.0 */
/* Spinning: rounds until the stop, of one lane or of several. */
#include "exec.h"

static int64_t deadline_of_spin(const tide_executor_t *executor) {
  return !TIDE_TRIGGERS || executor->trigger == tide_trigger_any
             ? TIDE_FOREVER
             : exec_after(exec_now(executor), executor->config.spin_timeout_ns);
}

/* True when the spin of this lane is over. The stop is used up when every lane has seen it. */
static bool leaves(tide_executor_t *executor, tide_lane_t *lane) {
  if (!TIDE_LANES) {
    return exec_exchange(&executor->stopped, false);
  }
  if (!exec_is_stopped(executor)) {
    return false;
  }
  bool all = true;
  const uintptr_t lock = exec_lock(executor);
  lane->left = true;
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    all = all && executor->config.lanes[index].left;
  }
  for (size_t index = 0; all && index < exec_lane_count(executor); index++) {
    executor->config.lanes[index].left = false;
  }
  if (all) {
    __atomic_store_n(&executor->stopped, false, EXEC_RELEASE);
  }
  exec_unlock(executor, lock);
  return true;
}

/* When a lane that never waits has something to do again; locked only while it looks. */
static int64_t next_round_ns(tide_executor_t *executor, const tide_lane_t *lane) {
  if (tide_exec_most_urgent(executor, lane->band) != TIDE_PRIORITY_NONE) {
    return 0;
  }
  const int64_t source_ns = tide_exec_poll_source(executor);
  const uintptr_t lock = exec_lock(executor);
  const tide_queue_entry_t *expiry = tide_queue_head(&lane->band->timer_list);
  const int64_t next_ns = tide_queue_head(&lane->band->ready_list) != NULL ? 0
                          : expiry == NULL                                 ? TIDE_FOREVER
                                                                           : expiry->key;
  exec_unlock(executor, lock);
  return exec_minimum(next_ns, source_ns);
}

/* A stack that all lanes share cannot keep a lane that waits. */
static int spin_without_waiting(tide_executor_t *executor, tide_lane_t *lane, size_t index) {
  lane->over = leaves(executor, lane);
  if (lane->over) {
    return TIDE_OK;
  }
  const int result = tide_executor_lane_round(executor, index, 0);
  TIDE_INVARIANT(lane->running == NULL);
  lane->next_round_ns = result > 0 ? 0 : next_round_ns(executor, lane);
  return result >= 0 || result == TIDE_ERROR_TIMEOUT ? TIDE_OK : result;
}

int tide_executor_spin_lane(tide_executor_t *executor, size_t index) {
  if (executor == NULL || executor->config.lanes == NULL || index >= executor->config.lane_count) {
    return TIDE_ERROR_ARGUMENT;
  }
  tide_lane_t *lane = &executor->config.lanes[index];
  if (__atomic_load_n(&lane->busy, EXEC_ACQUIRE)) {
    return TIDE_ERROR_STATE; /* before it could take the stop that is meant for the outer spin */
  }
  if (TIDE_LANES && lane->returns) {
    return spin_without_waiting(executor, lane, index);
  }
  while (!leaves(executor, lane)) {
    const int result = tide_executor_lane_round(executor, index, deadline_of_spin(executor));
    if (result < 0 && result != TIDE_ERROR_TIMEOUT) {
      return result;
    }
  }
  return TIDE_OK;
}

int tide_executor_spin(tide_executor_t *executor) {
  return executor != NULL && exec_has_lanes(executor) ? TIDE_ERROR_UNSUPPORTED : tide_executor_spin_lane(executor, 0);
}

void tide_executor_stop(tide_executor_t *executor) {
  __atomic_store_n(&executor->stopped, true, EXEC_RELEASE);
  tide_executor_wake(executor);
}
