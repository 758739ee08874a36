/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

bool rclc_executor_trigger_any(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  (void)obj;
  for (unsigned int i = 0; i < size; i++) {
    if (handles[i].initialized && handles[i].data_available) return true;
  }
  return false;
}

bool rclc_executor_trigger_all(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  (void)obj;
  for (unsigned int i = 0; i < size; i++) {
    if (handles[i].initialized && !handles[i].data_available) return false;
  }
  return true;
}

bool rclc_executor_trigger_one(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  for (unsigned int i = 0; i < size; i++) {
    if (handles[i].initialized && handles[i].data_available && rclc_executor_handle_get_ptr(&handles[i]) == obj) {
      return true;
    }
  }
  return false;
}

bool rclc_executor_trigger_always(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  (void)handles;
  (void)size;
  (void)obj;
  return true;
}

/* The program's function sees the executor's handles, wherever the program keeps that executor; what is ready is told
 * by the runtime's callbacks. */
bool tide_compat_ask_program(tide_callback_t *const *callbacks, size_t count, void *object) {
  tide_executor_handle_t *executor = object;
  for (size_t i = 0; i < count; i++) {
    rclc_executor_handle_t *handle = callbacks[i]->context;
    handle->data_available = tide_callback_is_ready(callbacks[i]);
  }
  return executor->trigger(tide_pools.handles + executor->first, (unsigned int)executor->count,
                           executor->trigger_object);
}

rcl_ret_t rclc_executor_set_trigger(rclc_executor_t *executor, rclc_executor_trigger_t trigger_function,
                                    void *trigger_object) {
  if (executor == NULL || executor->impl == NULL || trigger_function == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_executor_handle_t *handle = executor->impl;
  handle->trigger = trigger_function;
  handle->trigger_object = trigger_object;
  if (handle->rounds != NULL) {
    return tide_compat_result(tide_executor_set_trigger(&handle->core, handle->rounds->begin, handle));
  }
  if (trigger_function == rclc_executor_trigger_any) {
    return tide_compat_result(tide_executor_set_trigger(&handle->core, tide_trigger_any, NULL));
  }
  return tide_compat_result(tide_executor_set_trigger(&handle->core, tide_compat_ask_program, handle));
}
