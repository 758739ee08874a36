/* SPDX-License-Identifier: Apache-2.0 */
/* The batch policy: how rclc's default executor behaves on rmw_microxrcedds, kept as an honest baseline. Every round
 * sweeps all handles, as the wait set does. */
#include "exec.h"

/* Handles swept in one critical section. */
#define SWEEP 16u

static bool digest_oldest(tide_executor_t *executor) {
  TIDE_COUNT(executor->counters.frames_digested, 1u);
  return executor->config.source.process_oldest(executor->config.source.context) >= 0;
}

static void sweep_some(tide_executor_t *executor, tide_lane_t *lane, size_t first, size_t end) {
  const uintptr_t lock = exec_lock(executor);
  for (size_t index = first; index < end; index++) {
    tide_callback_t *callback = executor->config.callbacks[index];
    if (callback->pending > 0u || callback->always) {
      tide_exec_round_add(lane, callback);
    }
  }
  exec_unlock(executor, lock);
}

static int run_batch(tide_executor_t *executor, tide_lane_t *lane) {
  for (size_t first = 0; first < executor->count; first += SWEEP) {
    sweep_some(executor, lane, first, executor->count - first < SWEEP ? executor->count : first + SWEEP);
  }
  return tide_exec_run_round(executor, lane);
}

static int64_t limit_of_wait(const tide_executor_t *executor, int64_t now_ns, int64_t deadline_ns) {
  return executor->config.batch_waits_for_new_data
             ? exec_minimum(deadline_ns, exec_after(now_ns, executor->config.spin_timeout_ns))
             : deadline_ns;
}

/* fresh: a frame of this wait made something ready. */
static bool wait_is_over(const tide_executor_t *executor, const exec_view_t *view, bool fresh, bool limit_passed) {
  const bool prompt = !executor->config.batch_waits_for_new_data || fresh || view->prompt_count > 0u;
  return limit_passed || (prompt && view->ready_count > 0u);
}

int tide_exec_round_batch(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  int64_t limit_ns = limit_of_wait(executor, exec_now(executor), deadline_ns);
  uint32_t seen = 0;
  bool fresh = false;
  for (size_t digested = 0;;) {
    const int64_t source_ns = tide_exec_poll_source(executor);
    const int64_t now_ns = exec_now(executor);
    const exec_view_t view = tide_exec_collect(executor, lane, now_ns);
    const bool late = now_ns >= deadline_ns || exec_is_stopped(executor);
    const bool limit_passed = late || now_ns >= limit_ns;
    fresh = fresh || (digested > 0u && view.notifications != seen);
    seen = view.notifications;
    const bool digests = !fresh && (!late || digested < EXEC_DIGESTS_WHEN_LATE);
    if (digests && tide_exec_most_urgent(executor, lane->band) != TIDE_PRIORITY_NONE && digest_oldest(executor)) {
      digested++;
      continue;
    }
    if (wait_is_over(executor, &view, fresh, limit_passed) && tide_exec_triggers(executor, &view)) {
      const int ran = run_batch(executor, lane);
      if (ran > 0) {
        return ran;
      }
    }
    if (late) {
      return exec_idle_result(executor);
    }
    limit_ns = limit_passed ? limit_of_wait(executor, now_ns, deadline_ns) : limit_ns;
    if (!fresh) {
      tide_exec_sleep(executor, lane, exec_minimum(exec_minimum(limit_ns, source_ns), view.next_expiry_ns));
    }
    fresh = false;
    digested = 0;
  }
}
