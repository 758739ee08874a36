/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"

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
    const int status = tide_compat_remove_callback(&handle->callback);
    if (status != TIDE_OK) return tide_compat_result(status);
  }
  guard_condition->impl = NULL;
  if (handle == NULL || handle->support == NULL) return RCL_RET_OK;
  if (handle->handle != NULL) memset(handle->handle, 0, sizeof *handle->handle);
  handle->handle = NULL;
  handle->support = NULL;
  return RCL_RET_OK;
}

/* Any thread. Triggers that come before the callback has begun are one. */
rcl_ret_t rcl_trigger_guard_condition(rcl_guard_condition_t *guard_condition) {
  if (guard_condition == NULL || guard_condition->impl == NULL || guard_condition->impl->support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_guard_handle_t *handle = guard_condition->impl;
  if (handle->callback.executor == NULL) {
    __atomic_store_n(&handle->triggered_early, true, __ATOMIC_RELEASE);
    tide_compat_wake_waiters(handle->support); /* it may be in a wait set */
  } else if (!tide_callback_is_ready(&handle->callback)) {
    tide_executor_notify(&handle->callback);
  }
  return RCL_RET_OK;
}
