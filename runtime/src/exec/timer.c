/* SPDX-License-Identifier: Apache-2.0 */
/* Timers. A timer that is not canceled is either in timer_list, waiting for next_ns, or ready because next_ns has
 * come; it goes back to timer_list when its callback starts. So an expiry costs one move however long the timer
 * waits for its turn, and the overrun rule is applied once, at the start of the run. */
#include "exec.h"

/* A timer that is not canceled is in timer_list, or ready, or both when the program notified it. */
static bool is_armed(const tide_timer_t *timer) {
  return tide_queue_contains(&timer->expiry_entry) || timer->callback.pending > 0u;
}

static tide_timer_t *timer_of_expiry(tide_queue_entry_t *entry) {
  return (tide_timer_t *)(void *)((char *)entry - offsetof(tide_timer_t, expiry_entry));
}

/* Many timers due at once: the critical section is left between them, so that it stays short. */
int64_t tide_exec_move_due_timers(tide_executor_t *executor, tide_band_t *band, int64_t now_ns, uintptr_t *lock) {
  tide_queue_entry_t *head = tide_queue_head(&band->timer_list);
  while (head != NULL && head->key <= now_ns) {
    tide_timer_t *timer = timer_of_expiry(tide_queue_pop(&band->timer_list));
    TIDE_INVARIANT(!timer->canceled && timer->callback.band == band && timer->next_ns <= now_ns);
    tide_exec_make_ready(&timer->callback, timer->next_ns);
    TIDE_COUNT(executor->counters.timers_expired, 1u);
    head = tide_queue_head(&band->timer_list);
    if (head != NULL && head->key <= now_ns) {
      exec_unlock(executor, *lock);
      *lock = exec_lock(executor);
      head = tide_queue_head(&band->timer_list);
    }
  }
  return head == NULL ? TIDE_FOREVER : head->key;
}

static void schedule(tide_timer_t *timer, int64_t next_ns) {
  timer->next_ns = next_ns;
  const int status = tide_queue_push(&timer->callback.band->timer_list, &timer->expiry_entry, next_ns);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK && is_armed(timer));
}

static void count_skipped(tide_timer_t *timer, int64_t periods) {
  const int64_t room = (int64_t)(UINT32_MAX - timer->skipped);
  timer->skipped += (uint32_t)exec_minimum(periods, room);
}

static void schedule_next(tide_timer_t *timer, int64_t now_ns) {
  int64_t next_ns = timer->next_ns;
  if (timer->overrun == TIDE_OVERRUN_SKIP && now_ns - next_ns >= timer->period_ns) {
    const int64_t missed = (int64_t)((uint64_t)(now_ns - next_ns) / (uint64_t)timer->period_ns);
    count_skipped(timer, missed);
    next_ns += missed * timer->period_ns;
  }
  TIDE_INVARIANT(next_ns >= timer->next_ns && (next_ns - timer->next_ns) % timer->period_ns == 0);
  schedule(timer, exec_after(next_ns, timer->period_ns));
}

int64_t tide_exec_timer_started(tide_callback_t *callback, int64_t now_ns) {
  tide_timer_t *timer = exec_timer_of(callback);
  const int64_t since_last_run_ns = now_ns - timer->last_call_ns;
  timer->last_call_ns = now_ns;
  if (!timer->canceled && !tide_queue_contains(&timer->expiry_entry)) { /* else ready by a notify, not by an expiry */
    schedule_next(timer, now_ns);
  }
  return since_last_run_ns;
}

void tide_exec_timer_set_up(tide_callback_t *callback, int64_t now_ns) {
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    tide_timer_t *timer = exec_timer_of(callback);
    timer->expiry_entry = (tide_queue_entry_t){0};
    timer->skipped = 0;
    timer->last_call_ns = now_ns;
  }
}

void tide_exec_timer_forget(tide_callback_t *callback) {
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    tide_queue_remove(&callback->band->timer_list, &exec_timer_of(callback)->expiry_entry);
  }
}

void tide_exec_timer_change_band(tide_callback_t *callback, tide_band_t *band) {
  tide_queue_entry_t *entry = callback->kind == TIDE_CALLBACK_TIMER ? &exec_timer_of(callback)->expiry_entry : NULL;
  if (entry != NULL && tide_queue_contains(entry)) {
    tide_queue_remove(&callback->band->timer_list, entry);
    const int status = tide_queue_push(&band->timer_list, entry, entry->key);
    (void)status;
    TIDE_INVARIANT(status == TIDE_OK);
  }
}

/* Never called: the lane calls on_expiry, with the time since the previous run that belongs to this one. */
static void execute_timer(tide_callback_t *callback, void *context) {
  (void)callback;
  (void)context;
}

int tide_executor_add_timer(tide_executor_t *executor, tide_timer_t *timer) {
  if (executor == NULL || timer == NULL || timer->on_expiry == NULL || timer->period_ns < 1) {
    return TIDE_ERROR_ARGUMENT;
  }
  timer->callback.kind = TIDE_CALLBACK_TIMER;
  timer->callback.always = false;
  timer->callback.execute = execute_timer;
  const int status = tide_executor_add(executor, &timer->callback);
  if (status != TIDE_OK) {
    return status;
  }
  return tide_timer_reset(timer);
}

/* Locked. Neither ready nor scheduled afterwards. */
static void disarm(tide_timer_t *timer) {
  tide_exec_clear_ready(&timer->callback);
  tide_queue_remove(&timer->callback.band->timer_list, &timer->expiry_entry);
  TIDE_INVARIANT(!is_armed(timer));
}

/* Locked functions from here to reset: false when the timer is in no executor (any more). */
static bool begin(const tide_timer_t *timer, tide_executor_t **executor, uintptr_t *lock) {
  *executor = exec_owner(&timer->callback);
  if (*executor == NULL) {
    return false;
  }
  *lock = exec_lock(*executor);
  if (timer->callback.executor == *executor) {
    exec_take_arrivals(*executor);
    return true;
  }
  exec_unlock(*executor, *lock);
  return false;
}

/* Leave the critical section and wake a lane of the timer's band. */
static int end_and_wake(tide_timer_t *timer, tide_executor_t *executor, uintptr_t lock) {
  tide_lane_t *lane = tide_exec_pick(timer->callback.band);
  tide_lane_t *next = exec_lane_of_group(&timer->callback);
  exec_unlock(executor, lock);
  tide_exec_wake_lane(executor, lane);
  tide_exec_wake_lane(executor, next);
  return TIDE_OK;
}

/* Arm at first_expiry_ns, or one period from now. */
static int arm(tide_timer_t *timer, int64_t first_expiry_ns) {
  tide_executor_t *executor;
  uintptr_t lock;
  if (timer == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (!begin(timer, &executor, &lock)) {
    return TIDE_ERROR_STATE;
  }
  disarm(timer);
  timer->canceled = false;
  schedule(timer, first_expiry_ns == TIDE_FOREVER ? exec_after(exec_now(executor), timer->period_ns) : first_expiry_ns);
  return end_and_wake(timer, executor, lock);
}

int tide_timer_reset(tide_timer_t *timer) { return arm(timer, TIDE_FOREVER); }

int tide_timer_set_phase(tide_timer_t *timer, int64_t first_expiry_ns) {
  return first_expiry_ns < 0 || first_expiry_ns == TIDE_FOREVER ? TIDE_ERROR_ARGUMENT : arm(timer, first_expiry_ns);
}

int tide_timer_cancel(tide_timer_t *timer) {
  tide_executor_t *executor;
  uintptr_t lock;
  if (timer == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (!begin(timer, &executor, &lock)) {
    return TIDE_ERROR_STATE;
  }
  disarm(timer);
  timer->canceled = true;
  return end_and_wake(timer, executor, lock); /* a trigger may see it */
}

int tide_timer_set_period(tide_timer_t *timer, int64_t period_ns) {
  tide_executor_t *executor;
  uintptr_t lock;
  if (timer == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (!begin(timer, &executor, &lock)) {
    return TIDE_ERROR_STATE;
  }
  if (period_ns >= 1) {
    timer->period_ns = period_ns;
  }
  exec_unlock(executor, lock);
  return period_ns >= 1 ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

int64_t tide_timer_until_next_ns(const tide_timer_t *timer, int64_t now_ns) {
  tide_executor_t *executor;
  uintptr_t lock;
  if (timer == NULL || !begin(timer, &executor, &lock)) {
    return TIDE_FOREVER;
  }
  const int64_t until_ns = timer->canceled ? TIDE_FOREVER : timer->next_ns - now_ns;
  exec_unlock(executor, lock);
  return until_ns;
}
