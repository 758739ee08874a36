/* SPDX-License-Identifier: Apache-2.0 */
/* What few programs ask of a timer. */
#include "internal.h"

static tide_timer_handle_t *handle_of(const rcl_timer_t *timer) {
  return timer != NULL && timer->impl != NULL && timer->impl->support != NULL ? timer->impl : NULL;
}

static int64_t now(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_now_ns(platform);
}

static int64_t last_call_of(const tide_timer_t *core) {
  return core->last_call_ns != 0 ? core->last_call_ns : core->next_ns - core->period_ns;
}

rcl_ret_t rcl_timer_get_time_since_last_call(const rcl_timer_t *timer, int64_t *time_since_last_call) {
  const tide_timer_handle_t *handle = handle_of(timer);
  if (handle == NULL) return RCL_RET_TIMER_INVALID;
  if (time_since_last_call == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *time_since_last_call = now() - last_call_of(&handle->timer);
  return RCL_RET_OK;
}

rcl_ret_t rcl_timer_is_ready(const rcl_timer_t *timer, bool *is_ready) {
  const tide_timer_handle_t *handle = handle_of(timer);
  if (handle == NULL) return RCL_RET_TIMER_INVALID;
  if (is_ready == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *is_ready = !handle->timer.canceled && handle->timer.next_ns <= now();
  return RCL_RET_OK;
}

/* Expiries stay on the grid of first expiry and period; those that passed are skipped. */
static void advance(tide_timer_t *core, int64_t now_ns) {
  core->next_ns += core->period_ns;
  if (core->next_ns <= now_ns) core->next_ns += ((now_ns - core->next_ns) / core->period_ns + 1) * core->period_ns;
}

rcl_ret_t rcl_timer_call(rcl_timer_t *timer) {
  tide_timer_handle_t *handle = handle_of(timer);
  if (handle == NULL) return RCL_RET_TIMER_INVALID;
  tide_timer_t *core = &handle->timer;
  if (core->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_STATE);
  if (core->canceled) return RCL_RET_TIMER_CANCELED;
  const int64_t now_ns = now(), since_ns = now_ns - last_call_of(core);
  core->last_call_ns = now_ns;
  advance(core, now_ns);
  if (handle->callback != NULL) handle->callback(timer, since_ns);
  return RCL_RET_OK;
}

rcl_timer_callback_t rcl_timer_get_callback(const rcl_timer_t *timer) {
  const tide_timer_handle_t *handle = handle_of(timer);
  return handle == NULL ? NULL : handle->callback;
}

rcl_timer_callback_t rcl_timer_exchange_callback(rcl_timer_t *timer, const rcl_timer_callback_t new_callback) {
  tide_timer_handle_t *handle = handle_of(timer);
  if (handle == NULL) return NULL;
  const rcl_timer_callback_t old = handle->callback;
  handle->callback = new_callback;
  return old;
}
