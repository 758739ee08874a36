/* SPDX-License-Identifier: Apache-2.0 */
/* The tide policy: one collection, one callback, most urgent first. */
#include "exec.h"

/* A frame gives way to a ready callback that is more urgent. At equal priority one frame a round goes first, as the
 * ring of frames must not fill up behind a busy priority, and all those whose readers keep the last few: a callback
 * that was slow is given what came meanwhile, not what came first. */
static bool frame_goes_first(const tide_executor_t *executor, const tide_lane_t *lane, int32_t head, size_t digested) {
  const tide_source_t *source = &executor->config.source;
  const int32_t frame = tide_exec_most_urgent(executor, lane->band);
  if (frame == TIDE_PRIORITY_NONE || frame != head || digested == 0u)
    return frame != TIDE_PRIORITY_NONE && frame >= head;
  return source->is_welcome != NULL && digested < EXEC_DIGESTS_WHEN_LATE &&
         source->is_welcome(source->context, lane->band->least, lane->band->most);
}

static bool digest_most_urgent(tide_executor_t *executor, const tide_lane_t *lane) {
  const tide_source_t *source = &executor->config.source;
  exec_count(executor, &executor->counters.frames_digested);
  const int result = source->process_most_urgent(source->context, lane->band->least, lane->band->most);
  tide_exec_wake_other_bands(executor, lane);
  return result >= 0;
}

/* The head and all always callbacks form the round. */
static void open_round_with_head(tide_executor_t *executor, tide_lane_t *lane) {
  const uintptr_t lock = exec_lock(executor);
  tide_queue_entry_t *head = tide_queue_head(&lane->band->ready_list);
  if (head != NULL) {
    tide_exec_round_add(lane, exec_callback_of(head));
    for (tide_callback_t *callback = executor->always_list; callback != NULL; callback = callback->always_next) {
      tide_exec_round_add(lane, callback);
    }
  }
  exec_unlock(executor, lock);
}

static bool has_always(const tide_executor_t *executor) {
  return TIDE_TRIGGERS && __atomic_load_n(&executor->always_list, __ATOMIC_RELAXED) != NULL;
}

static int run_most_urgent(tide_executor_t *executor, tide_lane_t *lane) {
  if (!has_always(executor)) {
    return tide_exec_run_head(executor, lane, true);
  }
  open_round_with_head(executor, lane);
  return tide_exec_run_round(executor, lane);
}

static int round_with_source(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  size_t digested = 0;
  for (;;) {
    const int64_t source_ns = tide_exec_poll_source(executor);
    const int64_t now_ns = exec_now(executor);
    const exec_view_t view = tide_exec_collect(executor, lane, now_ns);
    const bool late = now_ns >= deadline_ns || exec_is_stopped(executor);
    const bool digests = !late || digested < EXEC_DIGESTS_WHEN_LATE;
    if (digests && frame_goes_first(executor, lane, view.head, digested) && digest_most_urgent(executor, lane)) {
      digested++;
    } else if (view.head != TIDE_PRIORITY_NONE) {
      const int ran = run_most_urgent(executor, lane);
      if (ran > 0) {
        return ran;
      }
    } else if (late) {
      return exec_idle_result(executor);
    } else {
      tide_exec_sleep(executor, lane, exec_minimum(exec_minimum(deadline_ns, source_ns), view.next_expiry_ns));
      digested = 0;
    }
  }
}

static bool has_source(const tide_executor_t *executor) {
  return executor->config.source.most_urgent != NULL || executor->config.source.poll != NULL;
}

/* Nobody has to be asked what is new: who notifies a callback puts it into the set itself. */
static int round_any(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  for (bool waited = false; TIDE_LANES && !has_source(executor) && !has_always(executor); waited = true) {
    const int64_t now_ns = exec_now(executor);
    int64_t look_again_ns = now_ns;
    if (tide_exec_choose(executor, lane, now_ns, waited, &look_again_ns) > 0) {
      return 1;
    }
    if (now_ns >= deadline_ns || exec_is_stopped(executor)) {
      return exec_idle_result(executor);
    }
    tide_exec_sleep(executor, lane, exec_minimum(deadline_ns, look_again_ns));
  }
  return round_with_source(executor, lane, deadline_ns);
}

static void open_round_with_all(tide_executor_t *executor, tide_lane_t *lane) {
  for (bool more = true; more;) {
    const uintptr_t lock = exec_lock(executor);
    tide_queue_entry_t *head = tide_queue_head(&lane->band->ready_list);
    if (head != NULL) {
      tide_exec_round_add(lane, exec_callback_of(head));
    }
    exec_unlock(executor, lock);
    more = head != NULL;
  }
  for (tide_callback_t *callback = executor->always_list; callback != NULL; callback = callback->always_next) {
    const uintptr_t lock = exec_lock(executor);
    tide_exec_round_add(lane, callback);
    exec_unlock(executor, lock);
  }
}

static bool frame_is_next(const tide_executor_t *executor, const tide_lane_t *lane, int32_t head, size_t digested) {
  const bool all_first =
      executor->all_frames_first && tide_exec_most_urgent(executor, lane->band) != TIDE_PRIORITY_NONE;
  return (all_first && digested < EXEC_DIGESTS_WHEN_LATE) || frame_goes_first(executor, lane, head, digested);
}

/* While the trigger is false every frame is digested, in order of urgency: it may be the one that is missing. */
static int round_triggered(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  size_t digested = 0;
  for (;;) {
    const int64_t source_ns = tide_exec_poll_source(executor);
    const int64_t now_ns = exec_now(executor);
    const exec_view_t view = tide_exec_collect(executor, lane, now_ns);
    const bool late = now_ns >= deadline_ns || exec_is_stopped(executor);
    const bool digests = !late || digested < EXEC_DIGESTS_WHEN_LATE;
    if (digests && frame_is_next(executor, lane, view.head, digested) && digest_most_urgent(executor, lane)) {
      digested++;
      continue;
    }
    if ((view.ready_count > 0u || late) && tide_exec_triggers(executor, &view)) {
      open_round_with_all(executor, lane);
      const int ran = tide_exec_run_round(executor, lane);
      if (ran > 0) {
        return ran;
      }
    }
    if (digests && tide_exec_most_urgent(executor, lane->band) != TIDE_PRIORITY_NONE &&
        digest_most_urgent(executor, lane)) {
      digested++;
    } else if (late) {
      return exec_idle_result(executor);
    } else {
      tide_exec_sleep(executor, lane, exec_minimum(exec_minimum(deadline_ns, source_ns), view.next_expiry_ns));
      digested = 0;
    }
  }
}

int tide_exec_round_tide(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  return !TIDE_TRIGGERS || executor->trigger == tide_trigger_any ? round_any(executor, lane, deadline_ns)
                                                                 : round_triggered(executor, lane, deadline_ns);
}
