/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that the policies share: collection, running, sleeping; rounds. */
#include <string.h>

#include "exec.h"
#include "exec_trace.h"
#include "tide/chain_watch.h"

#define NEEDS_OLDEST (TIDE_BATCH || TIDE_READYSET)
#define DEFAULT_SPIN_TIMEOUT_NS INT64_C(1000000000)

static bool is_complete(const tide_platform_t *platform) {
  if (TIDE_STATIC_PLATFORM) {
    return true;
  }
  return platform != NULL && platform->now_ns != NULL && platform->critical_enter != NULL &&
         platform->critical_exit != NULL && platform->event_init != NULL && platform->event_set != NULL &&
         platform->event_wait != NULL;
}

static bool is_consistent(const tide_source_t *source) {
  return source->most_urgent == NULL ||
         (source->process_most_urgent != NULL && (!NEEDS_OLDEST || source->process_oldest != NULL));
}

static bool is_known(tide_policy_t policy) { return (unsigned)policy <= (unsigned)TIDE_POLICY_READYSET; }

/* Whether the policy and what else there is go together. */
static bool is_possible(const tide_executor_t *executor, tide_policy_t policy) {
  switch (policy) {
    case TIDE_POLICY_TIDE:
      return true;
    case TIDE_POLICY_BATCH:
      return TIDE_BATCH && executor->config.lane_count == 1u;
    case TIDE_POLICY_READYSET:
      return TIDE_READYSET && executor->band_count == 1u && executor->trigger == tide_trigger_any &&
             executor->always_list == NULL;
  }
  return false;
}

static bool has_storage(const tide_executor_config_t *config) {
  return config->callbacks != NULL && config->ready_storage != NULL && config->timer_storage != NULL &&
         config->callback_count > 0u && config->callback_count <= UINT16_MAX && config->lanes != NULL &&
         config->lane_count > 0u;
}

static void choose_lock(tide_executor_t *executor, const tide_platform_t *platform) {
  if (TIDE_STATIC_PLATFORM) {
    return;
  }
  executor->splits = platform->lanes_enter != NULL;
  executor->enter = executor->splits ? platform->lanes_enter : platform->critical_enter;
  executor->exit = executor->splits ? platform->lanes_exit : platform->critical_exit;
}

static bool has_known_patience(const tide_executor_config_t *config) {
#if TIDE_PATIENCE
  return config->patience_ns >= 0;
#else
  (void)config;
  return true;
#endif
}

int tide_executor_init(tide_executor_t *executor, const tide_executor_config_t *config) {
  if (TIDE_CONFIG_CHECKS && (executor == NULL || config == NULL || !is_complete(config->platform) ||
                             !is_consistent(&config->source) || !has_storage(config) || config->spin_timeout_ns < 0 ||
                             !has_known_patience(config) || !is_known(config->policy))) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (config->lane_count > 1u && !TIDE_LANES) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  memset(executor, 0, sizeof *executor);
  executor->config = *config;
  executor->trigger = TIDE_TRIGGERS ? tide_trigger_any : NULL;
  choose_lock(executor, config->platform);
  if (config->spin_timeout_ns == 0) {
    executor->config.spin_timeout_ns = DEFAULT_SPIN_TIMEOUT_NS;
  }
  if (!tide_exec_set_up_lanes(executor)) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (exec_splits(executor) && executor->band_count < config->lane_count) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  return is_possible(executor, config->policy) ? TIDE_OK : TIDE_ERROR_UNSUPPORTED;
}

int tide_executor_set_trigger(tide_executor_t *executor, tide_trigger_t trigger, void *object) {
  if (executor == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  const bool any_only = !TIDE_TRIGGERS || exec_has_lanes(executor) || exec_is_readyset(executor);
  if (any_only && trigger != NULL && trigger != tide_trigger_any) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  executor->trigger = TIDE_TRIGGERS && trigger == NULL ? tide_trigger_any : trigger;
  executor->trigger_object = object;
  tide_executor_wake(executor);
  return TIDE_OK;
}

static bool is_in_round(const tide_executor_t *executor) {
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    if (__atomic_load_n(&executor->config.lanes[index].busy, EXEC_ACQUIRE)) {
      return true;
    }
  }
  return false;
}

int tide_executor_set_policy(tide_executor_t *executor, tide_policy_t policy) {
  if (executor == NULL || !is_known(policy)) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (is_in_round(executor)) {
    return TIDE_ERROR_STATE;
  }
  if (!is_possible(executor, policy)) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  const uintptr_t lock = exec_lock(executor);
  for (size_t index = 0; index < executor->count; index++) {
    tide_exec_set_leave(executor->config.callbacks[index]);
  }
  executor->config.policy = policy;
  for (size_t index = 0; index < executor->count; index++) {
    if (executor->config.callbacks[index]->pending > 0u) {
      tide_exec_enqueue(executor->config.callbacks[index]);
    }
  }
  exec_unlock(executor, lock);
  return TIDE_OK;
}

void tide_executor_get_counters(tide_executor_t *executor, tide_executor_counters_t *counters) {
  const uintptr_t lock = exec_lock(executor);
  *counters = executor->counters;
  exec_unlock(executor, lock);
}

exec_view_t tide_exec_collect(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns) {
  tide_band_t *band = lane->band;
  uintptr_t lock = exec_lock(executor);
  if (TIDE_LANES && lane->idle) {
    tide_exec_become_busy(lane);
  }
  exec_take_arrivals(executor);
  const int64_t next_expiry_ns = tide_exec_move_due_timers(executor, band, now_ns, &lock);
  tide_queue_entry_t *head = tide_queue_head(&band->ready_list);
  if (exec_is_readyset(executor) && head == NULL) {
    tide_exec_set_refresh(executor);
    head = tide_queue_head(&band->ready_list);
    TIDE_COUNT(executor->counters.set_updates, head != NULL ? 1u : 0u);
  }
  const exec_view_t view = {.head = head == NULL ? TIDE_PRIORITY_NONE : exec_callback_of(head)->priority,
                            .ready_count = executor->ready_count,
                            .prompt_count = executor->prompt_count,
                            .notifications = executor->notifications,
                            .next_expiry_ns = next_expiry_ns};
  if (TIDE_LANES && head == NULL && band->only == NULL) {
    lane->sleeps_until_ns = next_expiry_ns;
    tide_exec_become_idle(lane);
  }
  exec_unlock(executor, lock);
  return view;
}

int64_t tide_exec_poll_source(const tide_executor_t *executor) {
  const tide_source_t *source = &executor->config.source;
  return source->poll == NULL ? TIDE_FOREVER : source->poll(source->context);
}

int32_t tide_exec_most_urgent(const tide_executor_t *executor, const tide_band_t *band) {
  const tide_source_t *source = &executor->config.source;
  return source->most_urgent == NULL ? TIDE_PRIORITY_NONE
                                     : source->most_urgent(source->context, band->least, band->most);
}

bool tide_exec_triggers(tide_executor_t *executor, const exec_view_t *view) {
  if (!TIDE_TRIGGERS || executor->trigger == tide_trigger_any) {
    return view->ready_count > 0u;
  }
  const bool triggers = executor->trigger(executor->config.callbacks, executor->count, executor->trigger_object);
  TIDE_COUNT(executor->counters.trigger_false, triggers ? 0u : 1u);
  return triggers;
}

void tide_exec_sleep(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  TIDE_INVARIANT(lane->running == NULL && lane->busy && (!exec_is_tide(executor) || lane->round_first == NULL));
  exec_count(executor, &executor->counters.sleeps);
  if (TIDE_LANES && lane->budget.block != NULL) {
    lane->budget.block(lane->budget.context);
  }
  (void)tide_platform_event_wait(executor->config.platform, &lane->event, deadline_ns);
  if (TIDE_LANES && lane->budget.ready != NULL) {
    lane->budget.ready(lane->budget.context);
  }
}

/* Locked. Takes one pending start; false when there is nothing to run any more: a timer of the round was canceled
 * meanwhile. */
static bool begin(tide_lane_t *lane, tide_callback_t *callback, int64_t now_ns) {
  TIDE_INVARIANT(callback->executor != NULL && !tide_queue_contains(&callback->ready_entry));
  exec_leave_round(callback);
  if (TIDE_READYSET) {
    callback->in_set = false;
  }
  if (callback->pending == 0u && (!TIDE_TRIGGERS || !callback->always)) {
    return false;
  }
  exec_occupy(lane, callback);
  if (TIDE_MEASUREMENT) {
    callback->start_ns = now_ns;
  }
  if (callback->pending == 0u) {
    return true;
  }
  tide_exec_take_pending(callback);
  if (TIDE_MEASUREMENT) {
    callback->ready_ns = callback->ready_since_ns;
  }
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    lane->since_last_run_ns = tide_exec_timer_started(callback, now_ns);
  }
  if (callback->pending > 0u) {
    tide_exec_enqueue(callback);
  }
  return true;
}

/* Locked. */
static void note_run(tide_callback_t *callback, int64_t start_ns, int64_t end_ns) {
  callback->end_ns = end_ns;
  callback->runs++;
  if (end_ns - start_ns > callback->execution_maximum_ns) {
    callback->execution_maximum_ns = end_ns - start_ns;
  }
}

/* The end of a run can make another one possible on a lane of another band: of its group, or of the callback itself
 * when its priority has changed. */
static tide_lane_t *lane_of_next(const tide_group_t *group, const tide_callback_t *callback, const tide_lane_t *lane) {
  if (!TIDE_LANES) {
    return NULL;
  }
  const tide_callback_t *next = group != NULL ? group->offered : callback;
  const bool elsewhere = next != NULL && next->band != lane->band && tide_queue_contains(&next->ready_entry);
  return elsewhere ? tide_exec_pick(next->band) : NULL;
}

static void end(tide_executor_t *executor, tide_lane_t *lane, int64_t start_ns, int64_t end_ns) {
  const tide_executor_config_t *config = &executor->config;
  uintptr_t lock = exec_lock(executor);
  TIDE_COUNT(executor->counters.callbacks_run, 1u);
  if (TIDE_MEASUREMENT && !lane->forgotten) {
    note_run(lane->running, start_ns, end_ns);
  }
  if (TIDE_MEASUREMENT && config->on_end != NULL) {
    exec_unlock(executor, lock);
    config->on_end(config->context, lane->running, end_ns);
    lock = exec_lock(executor);
  }
  const tide_group_t *group = lane->group;
  TIDE_INVARIANT(group == NULL || group->taken_by == lane);
  tide_callback_t *callback = lane->forgotten ? NULL : lane->running;
  exec_vacate(lane, callback);
  tide_lane_t *wanted = lane_of_next(group, callback, lane);
  exec_unlock(executor, lock);
  if (wanted != NULL) {
    tide_exec_wake_lane(executor, wanted);
  }
}

static void execute(const tide_lane_t *lane, tide_callback_t *callback) {
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    exec_timer_of(callback)->on_expiry(exec_timer_of(callback), lane->since_last_run_ns);
  } else {
    callback->execute(callback, callback->context);
  }
}

static void run(tide_executor_t *executor, tide_lane_t *lane, tide_callback_t *callback, int64_t start_ns) {
  const tide_executor_config_t *config = &executor->config;
  tide_measurement_t *measurement = TIDE_MEASUREMENT && config->measure != NULL ? callback->measurement : NULL;
  tide_chain_watch_t *ends = TIDE_MEASUREMENT ? callback->ends : NULL;
  const tide_priority_t priority = callback->priority; /* it may be removed while it runs */
  exec_trace_start(executor, lane, callback, start_ns);
  if (TIDE_MEASUREMENT && config->on_start != NULL) {
    config->on_start(config->context, callback, start_ns);
  }
  if (TIDE_MEASUREMENT && callback->begins != NULL) callback->begins->begin(callback->begins, callback);
  if (measurement != NULL) {
    const exec_measured_t measured = tide_exec_measure_begin(executor);
    execute(lane, callback);
    tide_exec_measure_end(executor, measurement, &measured);
  } else {
    execute(lane, callback);
  }
  const int64_t end_ns = TIDE_MEASUREMENT ? exec_now(executor) : 0;
  if (ends != NULL) ends->end(ends, end_ns);
  exec_trace_end(lane, priority, end_ns);
  end(executor, lane, start_ns, end_ns);
}

/* A lane that takes a callback leaves the rest, and frames, to one that is idle. */
static void call_for_help(tide_executor_t *executor, tide_band_t *band, tide_lane_t *help) {
  if (!TIDE_LANES) {
    return;
  }
  if (help == NULL && band->only == NULL && tide_exec_most_urgent(executor, band) != TIDE_PRIORITY_NONE) {
    const uintptr_t lock = exec_lock(executor);
    help = tide_exec_pick(band);
    exec_unlock(executor, lock);
  }
  tide_exec_wake_lane(executor, help);
}

/* Locked; unlocks. Returns 1 when the head of the ready_list has run, else 0. */
static int run_head(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns, bool updated, uintptr_t lock) {
  tide_queue_entry_t *head = tide_queue_pop(&lane->band->ready_list);
  TIDE_INVARIANT(head == NULL || exec_callback_of(head)->pending > 0u);
  TIDE_INVARIANT(head == NULL || exec_callback_of(head)->band == lane->band);
  TIDE_INVARIANT(lane->busy && !lane->idle);
  const bool runs = head != NULL && begin(lane, exec_callback_of(head), now_ns);
  TIDE_COUNT(executor->counters.rounds, runs ? 1u : 0u);
  TIDE_COUNT(executor->counters.set_updates, runs && updated ? 1u : 0u);
  tide_lane_t *help = tide_exec_pick_for_rest(lane->band);
  exec_unlock(executor, lock);
  if (!runs) {
    if (TIDE_LANES) {
      tide_exec_wake_lane(executor, help);
    }
    return 0;
  }
  call_for_help(executor, lane->band, help);
  run(executor, lane, exec_callback_of(head), now_ns);
  return 1;
}

int tide_exec_run_head(tide_executor_t *executor, tide_lane_t *lane, bool updated) {
  const int64_t now_ns = exec_now(executor);
  const uintptr_t lock = exec_lock(executor);
  return run_head(executor, lane, now_ns, updated, lock);
}

int tide_exec_choose(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns, bool waited,
                     int64_t *look_again_ns) {
  uintptr_t lock = exec_lock(executor);
  const tide_queue_entry_t *expiry = tide_queue_head(&lane->band->timer_list);
  const bool updates = exec_has_arrivals(executor) || (expiry != NULL && expiry->key <= now_ns);
  if (TIDE_LANES && lane->idle) {
    tide_exec_become_busy(lane);
  }
  if (updates) {
    exec_take_arrivals(executor);
    (void)tide_exec_move_due_timers(executor, lane->band, now_ns, &lock);
  }
  if (tide_queue_head(&lane->band->ready_list) != NULL) {
    return run_head(executor, lane, now_ns, updates || waited, lock);
  }
  lane->sleeps_until_ns = tide_exec_idle_until(lane->band);
  *look_again_ns = lane->sleeps_until_ns;
  tide_exec_become_idle(lane);
  exec_unlock(executor, lock);
  return 0;
}

static tide_callback_t *take_first(tide_lane_t *lane) {
  tide_callback_t *first = lane->round_first;
  if (first != NULL) {
    lane->round_first = first->round_next;
    lane->round_last = lane->round_first == NULL ? NULL : lane->round_last;
    TIDE_INVARIANT(first->in_round && (lane->round_first == NULL) == (lane->round_last == NULL));
    first->round_next = NULL;
  }
  return first;
}

int tide_exec_run_round(tide_executor_t *executor, tide_lane_t *lane) {
  int ran = 0;
  for (;;) {
    const int64_t now_ns = exec_now(executor);
    const uintptr_t lock = exec_lock(executor);
    exec_take_arrivals(executor);
    tide_callback_t *callback = take_first(lane);
    const bool runs = callback != NULL && begin(lane, callback, now_ns);
    exec_unlock(executor, lock);
    if (callback == NULL) {
      break;
    }
    if (runs) {
      run(executor, lane, callback, now_ns);
      ran++;
    }
  }
  TIDE_COUNT(executor->counters.rounds, ran > 0 ? 1u : 0u);
  TIDE_COUNT(executor->counters.set_updates, ran > 0 ? 1u : 0u);
  return ran;
}

/* A lane that leaves with nothing done is not idle any more; what it was picked for is another's. */
static void stop_waiting(tide_executor_t *executor, tide_lane_t *lane) {
  if (!TIDE_LANES || lane->band->only != NULL) {
    return;
  }
  const uintptr_t lock = exec_lock(executor);
  tide_exec_become_busy(lane);
  tide_lane_t *help = tide_exec_pick_for_rest(lane->band);
  exec_unlock(executor, lock);
  tide_exec_wake_lane(executor, help);
}

int tide_executor_lane_round(tide_executor_t *executor, size_t index, int64_t deadline_ns) {
  if (executor == NULL || executor->config.lanes == NULL || index >= executor->config.lane_count) {
    return TIDE_ERROR_ARGUMENT;
  }
  tide_lane_t *lane = &executor->config.lanes[index];
  if (exec_exchange(&lane->busy, true)) {
    return TIDE_ERROR_STATE;
  }
  const int result = exec_is_tide(executor)       ? tide_exec_round_tide(executor, lane, deadline_ns)
                     : exec_is_readyset(executor) ? tide_exec_round_readyset(executor, lane, deadline_ns)
                                                  : tide_exec_round_batch(executor, lane, deadline_ns);
  if (result <= 0) {
    stop_waiting(executor, lane);
  }
  TIDE_INVARIANT(lane->running == NULL && lane->round_first == NULL && lane->group == NULL);
  __atomic_store_n(&lane->busy, false, EXEC_RELEASE);
  return result;
}

int tide_executor_round(tide_executor_t *executor, int64_t deadline_ns) {
  return executor != NULL && exec_has_lanes(executor) ? TIDE_ERROR_UNSUPPORTED
                                                      : tide_executor_lane_round(executor, 0, deadline_ns);
}
