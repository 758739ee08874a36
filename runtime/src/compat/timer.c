/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, timers and guard conditions. */
#include <string.h>

#include "internal.h"
#include "rcl/time.h"
#include "rclc/timer.h"
#include "rmw_microros/time_sync.h"
#include "uxr/client/util/time.h"

int64_t uxr_nanos(void) { return tide_compat_now_ns(); }

int64_t uxr_millis(void) { return uxr_nanos() / 1000000; }

bool rcl_clock_valid(rcl_clock_t *clock) {
  return clock != NULL && clock->type > RCL_CLOCK_UNINITIALIZED && clock->type <= RCL_STEADY_TIME;
}

rcl_ret_t rcl_clock_init(rcl_clock_type_t clock_type, rcl_clock_t *clock, rcl_allocator_t *allocator) {
  (void)allocator;
  if (clock == NULL || clock_type == RCL_CLOCK_UNINITIALIZED) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  clock->type = clock_type;
  return RCL_RET_OK;
}

rcl_ret_t rcl_clock_fini(rcl_clock_t *clock) {
  if (!rcl_clock_valid(clock)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  clock->type = RCL_CLOCK_UNINITIALIZED;
  return RCL_RET_OK;
}

rcl_ret_t rcl_clock_get_now(rcl_clock_t *clock, rcl_time_point_value_t *time_point_value) {
  if (!rcl_clock_valid(clock) || time_point_value == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *time_point_value = clock->type == RCL_STEADY_TIME ? tide_compat_now_ns() : rmw_uros_epoch_nanos();
  return *time_point_value == 0 ? tide_compat_result(TIDE_ERROR_STATE) : RCL_RET_OK;
}

static rcl_ret_t end_clock(rcl_clock_type_t type, rcl_clock_t *clock) {
  if (clock != NULL && clock->type != type) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_ERROR);
  return rcl_clock_fini(clock);
}

rcl_ret_t rcl_ros_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator) {
  return rcl_clock_init(RCL_ROS_TIME, clock, allocator);
}

rcl_ret_t rcl_ros_clock_fini(rcl_clock_t *clock) { return end_clock(RCL_ROS_TIME, clock); }

rcl_ret_t rcl_steady_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator) {
  return rcl_clock_init(RCL_STEADY_TIME, clock, allocator);
}

rcl_ret_t rcl_steady_clock_fini(rcl_clock_t *clock) { return end_clock(RCL_STEADY_TIME, clock); }

rcl_ret_t rcl_system_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator) {
  return rcl_clock_init(RCL_SYSTEM_TIME, clock, allocator);
}

rcl_ret_t rcl_system_clock_fini(rcl_clock_t *clock) { return end_clock(RCL_SYSTEM_TIME, clock); }

rcl_ret_t rcl_difference_times(const rcl_time_point_t *start, const rcl_time_point_t *finish, rcl_duration_t *delta) {
  if (start == NULL || finish == NULL || delta == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (start->clock_type != finish->clock_type) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_ERROR);
  delta->nanoseconds = finish->nanoseconds - start->nanoseconds;
  return RCL_RET_OK;
}

rcutils_ret_t rcutils_steady_time_now(rcutils_time_point_value_t *now) {
  if (now == NULL) return RCUTILS_RET_INVALID_ARGUMENT;
  *now = tide_compat_now_ns();
  return RCUTILS_RET_OK;
}

rcutils_ret_t rcutils_system_time_now(rcutils_time_point_value_t *now) {
  const tide_platform_t *platform = tide_port_platform();
  if (now == NULL) return RCUTILS_RET_INVALID_ARGUMENT;
  *now = platform->wall_ns != NULL ? platform->wall_ns(platform->context) : rmw_uros_epoch_nanos();
  return *now == 0 ? RCUTILS_RET_ERROR : RCUTILS_RET_OK;
}

/* ---- timers ---- */

rcl_timer_t rcl_get_zero_initialized_timer(void) {
  rcl_timer_t timer = {NULL};
  return timer;
}

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  tide_timer_handle_t *handle = (tide_timer_handle_t *)((char *)timer - offsetof(tide_timer_handle_t, timer));
  if (handle->callback != NULL) handle->callback(handle->program, since_last_call_ns);
}

rcl_ret_t rcl_timer_init2(rcl_timer_t *timer, rcl_clock_t *clock, rcl_context_t *context, int64_t period,
                          const rcl_timer_callback_t callback, rcl_allocator_t allocator, bool autostart) {
  (void)clock;
  (void)allocator;
  if (timer == NULL || period <= 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(context)) return tide_compat_result(TIDE_ERROR_STATE);
  size_t place = 0;
  while (place < tide_pools.timer_count && tide_pools.timers[place].support != NULL) place++;
  if (place == tide_pools.timer_count) return tide_compat_result(TIDE_ERROR_CAPACITY_TIMERS);
  tide_timer_handle_t *handle = &tide_pools.timers[place];
  memset(handle, 0, sizeof *handle);
  handle->support = context->impl;
  handle->callback = callback;
  handle->program = timer;
  handle->timer.period_ns = period;
  handle->timer.on_expiry = on_expiry;
  handle->timer.canceled = !autostart;
  handle->timer.next_ns = tide_compat_now_ns() + period;
  timer->impl = handle;
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_init(rcl_timer_t *timer, rcl_clock_t *clock, rcl_context_t *context, int64_t period,
                         const rcl_timer_callback_t callback, rcl_allocator_t allocator) {
  return rcl_timer_init2(timer, clock, context, period, callback, allocator, true);
}

rcl_ret_t rclc_timer_init_default2(rcl_timer_t *timer, rclc_support_t *support, const uint64_t timeout_ns,
                                   const rcl_timer_callback_t callback, bool autostart) {
  if (support == NULL || timeout_ns > (uint64_t)INT64_MAX / 2u) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return rcl_timer_init2(timer, &support->clock, &support->context, (int64_t)timeout_ns, callback,
                         rcl_get_default_allocator(), autostart);
}

rcl_ret_t rclc_timer_init_default(rcl_timer_t *timer, rclc_support_t *support, const uint64_t timeout_ns,
                                  const rcl_timer_callback_t callback) {
  return rclc_timer_init_default2(timer, support, timeout_ns, callback, true);
}

static tide_timer_t *timer_of(const rcl_timer_t *timer) {
  if (timer == NULL || timer->impl == NULL || timer->impl->support == NULL) return NULL;
  return &timer->impl->timer;
}

rcl_ret_t rcl_timer_fini(rcl_timer_t *timer) {
  if (timer == NULL) return RCL_RET_OK; /* as rcl */
  tide_timer_t *core = timer_of(timer);
  if (core != NULL) {
    const int status = tide_compat_leave_executor(&core->callback, &timer->impl->handle);
    if (status != TIDE_OK) return tide_compat_result(status);
    timer->impl->support = NULL;
  }
  timer->impl = NULL;
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_cancel(rcl_timer_t *timer) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (core->callback.executor == NULL) {
    core->canceled = true;
    return RCL_RET_OK;
  }
  return tide_compat_result(tide_timer_cancel(core));
}

rcl_ret_t rcl_timer_is_canceled(const rcl_timer_t *timer, bool *is_canceled) {
  const tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (is_canceled == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *is_canceled = core->canceled;
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_reset(rcl_timer_t *timer) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (core->callback.executor == NULL) {
    core->canceled = false;
    core->next_ns = tide_compat_now_ns() + core->period_ns;
    return RCL_RET_OK;
  }
  return tide_compat_result(tide_timer_reset(core));
}

rcl_ret_t rcl_timer_exchange_period(const rcl_timer_t *timer, int64_t new_period, int64_t *old_period) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (old_period == NULL || new_period <= 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *old_period = core->period_ns;
  if (core->callback.executor == NULL) {
    core->period_ns = new_period;
    return RCL_RET_OK;
  }
  return tide_compat_result(tide_timer_set_period(core, new_period));
}

rcl_ret_t rcl_timer_get_period(const rcl_timer_t *timer, int64_t *period) {
  const tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (period == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *period = core->period_ns;
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_get_time_until_next_call(rcl_timer_t *timer, int64_t *time_until_next_call) {
  const tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (time_until_next_call == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (core->canceled) return RCL_RET_TIMER_CANCELED;
  const int64_t now_ns = tide_compat_now_ns();
  *time_until_next_call =
      core->callback.executor == NULL ? core->next_ns - now_ns : tide_timer_until_next_ns(core, now_ns);
  return RCL_RET_OK;
}

tide_callback_t *tide_rclc_timer_callback(const rcl_timer_t *timer) {
  tide_timer_t *core = timer_of(timer);
  return core != NULL && core->callback.executor != NULL ? &core->callback : NULL;
}

rcl_ret_t tide_rclc_timer_set_priority(rcl_timer_t *timer, tide_priority_t priority) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (core->callback.executor == NULL) {
    core->callback.priority = priority;
    return RCL_RET_OK;
  }
  return tide_compat_result(tide_executor_set_priority(core->callback.executor, &core->callback, priority));
}

rcl_ret_t tide_rclc_timer_set_phase(rcl_timer_t *timer, int64_t first_expiry_ns) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (core->callback.executor == NULL) {
    core->next_ns = first_expiry_ns;
    return RCL_RET_OK;
  }
  return tide_compat_result(tide_timer_set_phase(core, first_expiry_ns));
}

static int64_t last_call_of(const tide_timer_t *core) {
  return core->last_call_ns != 0 ? core->last_call_ns : core->next_ns - core->period_ns;
}

rcl_ret_t rcl_timer_get_time_since_last_call(const rcl_timer_t *timer, int64_t *time_since_last_call) {
  const tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (time_since_last_call == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *time_since_last_call = tide_compat_now_ns() - last_call_of(core);
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_is_ready(const rcl_timer_t *timer, bool *is_ready) {
  const tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (is_ready == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *is_ready = !core->canceled && core->next_ns <= tide_compat_now_ns();
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_call(rcl_timer_t *timer) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  if (core->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_STATE);
  if (core->canceled) return RCL_RET_TIMER_CANCELED;
  const int64_t now_ns = tide_compat_now_ns(), since_ns = now_ns - last_call_of(core);
  core->last_call_ns = now_ns;
  /* Expiries stay on the grid given by the first expiry and the period; grid points that have passed are skipped. */
  core->next_ns += core->period_ns;
  if (core->next_ns <= now_ns) core->next_ns += ((now_ns - core->next_ns) / core->period_ns + 1) * core->period_ns;
  if (timer->impl->callback != NULL) timer->impl->callback(timer, since_ns);
  return RCL_RET_OK;
}

rcl_timer_callback_t rcl_timer_get_callback(const rcl_timer_t *timer) {
  return timer_of(timer) == NULL ? NULL : timer->impl->callback;
}

rcl_timer_callback_t rcl_timer_exchange_callback(rcl_timer_t *timer, const rcl_timer_callback_t new_callback) {
  if (timer_of(timer) == NULL) return NULL;
  const rcl_timer_callback_t old = timer->impl->callback;
  timer->impl->callback = new_callback;
  return old;
}

/* ---- guard conditions ---- */

rcl_guard_condition_t rcl_get_zero_initialized_guard_condition(void) {
  rcl_guard_condition_t guard = {NULL};
  return guard;
}

rcl_guard_condition_options_t rcl_guard_condition_get_default_options(void) {
  rcl_guard_condition_options_t options;
  options.allocator = rcl_get_default_allocator();
  return options;
}

rcl_ret_t rcl_guard_condition_init(rcl_guard_condition_t *guard_condition, rcl_context_t *context,
                                   const rcl_guard_condition_options_t options) {
  (void)options;
  if (guard_condition == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(context)) return tide_compat_result(TIDE_ERROR_STATE);
  for (size_t i = 0; i < tide_pools.guard_count; i++) {
    tide_guard_handle_t *handle = &tide_pools.guards[i];
    if (handle->support != NULL) continue;
    memset(handle, 0, sizeof *handle);
    handle->support = context->impl;
    guard_condition->impl = handle;
    return RCL_RET_OK;
  }
  return tide_compat_result(TIDE_ERROR_CAPACITY_GUARD_CONDITIONS);
}

rcl_ret_t rcl_guard_condition_fini(rcl_guard_condition_t *guard_condition) {
  if (guard_condition == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_guard_handle_t *handle = guard_condition->impl;
  if (handle != NULL && handle->support != NULL) {
    const int status = tide_compat_leave_executor(&handle->callback, &handle->handle);
    if (status != TIDE_OK) return tide_compat_result(status);
    handle->support = NULL;
  }
  guard_condition->impl = NULL;
  return RCL_RET_OK;
}

/* Any thread may call it. Several triggers before the callback has begun count as one. */
rcl_ret_t rcl_trigger_guard_condition(rcl_guard_condition_t *guard_condition) {
  if (guard_condition == NULL || guard_condition->impl == NULL || guard_condition->impl->support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_guard_handle_t *handle = guard_condition->impl;
  if (handle->callback.executor == NULL) {
    __atomic_store_n(&handle->triggered_early, true, __ATOMIC_RELEASE);
    tide_compat_wake_waiters(handle->support); /* because the guard condition may be in a wait set */
  } else if (!tide_callback_is_ready(&handle->callback)) {
    tide_executor_notify(&handle->callback);
  }
  return RCL_RET_OK;
}
