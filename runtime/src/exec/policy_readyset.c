/* SPDX-License-Identifier: Apache-2.0 */
/* The readyset policy: rclcpp's default executors as the literature models them, kept as an honest baseline.
 *
 * The set is the band's ready_list and what waits behind it in groups: a callback in it has in_set. It leaves the set
 * when it starts, and what is pending beyond that waits for the next polling point; timers have no more than one
 * expiry pending and get their place when it comes. A polling point is when a lane finds the ready_list empty: then the
 * set holds at most what may not run now (blocked by its group or by its own run), which keeps its place. */
#include "exec.h"

/* Frames digested at one polling point: what a flood brings meanwhile is for the next one. */
#define FRAMES_A_POLL 64u
#define INDEX_BITS 16
_Static_assert(sizeof(((tide_callback_t *)0)->index) * 8u == INDEX_BITS, "the key holds kind and index");

/* Kinds are numbered in rclcpp's order. */
static int64_t key_of(const tide_callback_t *callback) {
  TIDE_INVARIANT(callback->index < callback->executor->count);
  return ((int64_t)callback->kind << INDEX_BITS) | callback->index;
}

void tide_exec_set_admit(tide_callback_t *callback) {
  if (!callback->in_set) {
    callback->in_set = true;
    callback->ready_entry.key = key_of(callback);
    exec_offer(callback);
  }
}

void tide_exec_set_leave(tide_callback_t *callback) {
  exec_withdraw(callback);
  TIDE_INVARIANT(!tide_queue_contains(&callback->ready_entry));
  callback->in_set = false;
}

void tide_exec_set_reorder(tide_executor_t *executor) {
  for (size_t index = 0; index < executor->count; index++) {
    tide_callback_t *callback = executor->config.callbacks[index];
    if (callback->in_set) {
      tide_exec_set_leave(callback);
      tide_exec_set_admit(callback);
    }
  }
}

void tide_exec_set_refresh(tide_executor_t *executor) {
  for (size_t index = 0; index < executor->count; index++) {
    if (executor->config.callbacks[index]->pending > 0u) {
      tide_exec_set_admit(executor->config.callbacks[index]);
    }
  }
}

/* What is in the set when the lane comes to choose, timers included. */
static bool has_eligible(tide_executor_t *executor, const tide_lane_t *lane, bool waited) {
  uintptr_t lock = exec_lock(executor);
  const int64_t now_ns = exec_now(executor);
  const tide_queue_entry_t *expiry = tide_queue_head(&lane->band->timer_list);
  TIDE_COUNT(executor->counters.set_updates, waited && expiry != NULL && expiry->key <= now_ns ? 1u : 0u);
  exec_take_arrivals(executor);
  (void)tide_exec_move_due_timers(executor, lane->band, now_ns, &lock);
  const bool any = tide_queue_head(&lane->band->ready_list) != NULL;
  exec_unlock(executor, lock);
  return any;
}

static void digest_all(tide_executor_t *executor, const tide_lane_t *lane) {
  const tide_source_t *source = &executor->config.source;
  for (size_t digested = 0;
       digested < FRAMES_A_POLL && tide_exec_most_urgent(executor, lane->band) != TIDE_PRIORITY_NONE; digested++) {
    exec_count(executor, &executor->counters.frames_digested);
    if (source->process_oldest(source->context) < 0) {
      return;
    }
  }
}

int tide_exec_round_readyset(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  for (bool waited = false;; waited = true) {
    const int64_t source_ns = tide_exec_poll_source(executor);
    if (!has_eligible(executor, lane, waited)) {
      digest_all(executor, lane);
    }
    const int64_t now_ns = exec_now(executor);
    const exec_view_t view = tide_exec_collect(executor, lane, now_ns); /* refreshes the set when nothing is eligible */
    if (view.head != TIDE_PRIORITY_NONE) {
      const int ran = tide_exec_run_head(executor, lane, false); /* counted at the polling point */
      if (ran > 0) {
        return ran;
      }
    } else if (now_ns >= deadline_ns || exec_is_stopped(executor)) {
      return exec_idle_result(executor);
    } else {
      tide_exec_sleep(executor, lane, exec_minimum(exec_minimum(deadline_ns, source_ns), view.next_expiry_ns));
    }
  }
}
