/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "rclc/timer.h"

rcl_timer_t rcl_get_zero_initialized_timer(void) {
  rcl_timer_t timer = {NULL};
  return timer;
}

rcl_ret_t rcl_clock_init(rcl_clock_type_t clock_type, rcl_clock_t *clock, rcl_allocator_t *allocator) {
  (void)allocator;
  if (clock == NULL || clock_type == RCL_CLOCK_UNINITIALIZED) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  clock->type = clock_type;
  return RCL_RET_OK;
}

static tide_timer_handle_t *free_place(void) {
  for (size_t i = 0; i < tide_pools.timer_count; i++) {
    if (tide_pools.timers[i].support != NULL) continue;
    memset(&tide_pools.timers[i], 0, sizeof tide_pools.timers[i]);
    return &tide_pools.timers[i];
  }
  return NULL;
}

static tide_timer_handle_t *handle_of(tide_timer_t *timer) {
  return (tide_timer_handle_t *)((char *)timer - offsetof(tide_timer_handle_t, timer));
}

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  tide_timer_handle_t *handle = handle_of(timer);
  if (handle->callback != NULL) handle->callback(handle->program, since_last_call_ns);
}

rcl_ret_t rcl_timer_init2(rcl_timer_t *timer, rcl_clock_t *clock, rcl_context_t *context, int64_t period,
                          const rcl_timer_callback_t callback, rcl_allocator_t allocator, bool autostart) {
  (void)clock;
  (void)allocator;
  if (timer == NULL || period <= 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(context)) return tide_compat_result(TIDE_ERROR_STATE);
  tide_timer_handle_t *handle = free_place();
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_TIMERS);
  const tide_platform_t *platform = tide_port_platform();
  handle->support = context->impl;
  handle->callback = callback;
  handle->program = timer;
  handle->timer.period_ns = period;
  handle->timer.overrun = TIDE_OVERRUN_SKIP;
  handle->timer.on_expiry = on_expiry;
  handle->timer.canceled = !autostart;
  handle->timer.next_ns = tide_platform_now_ns(platform) + period;
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
    const int status = tide_compat_remove_callback(&core->callback);
    if (status != TIDE_OK) return tide_compat_result(status);
    if (timer->impl->handle != NULL) memset(timer->impl->handle, 0, sizeof *timer->impl->handle);
    timer->impl->handle = NULL;
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
    const tide_platform_t *platform = tide_port_platform();
    core->canceled = false;
    core->next_ns = tide_platform_now_ns(platform) + core->period_ns;
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
  const tide_platform_t *platform = tide_port_platform();
  const int64_t now_ns = tide_platform_now_ns(platform);
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

rcl_ret_t tide_rclc_timer_set_overrun(rcl_timer_t *timer, tide_overrun_t overrun) {
  tide_timer_t *core = timer_of(timer);
  if (core == NULL) return RCL_RET_TIMER_INVALID;
  core->overrun = overrun;
  return RCL_RET_OK;
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
