/* SPDX-License-Identifier: Apache-2.0 */
#include "executor_sched_internal.h"
#include "tide/rclc.h"

static rcl_ret_t add_guard_condition(const sched_record_t *record, tide_priority_t priority) {
  rcl_guard_condition_t *condition = record->object;
  const rcl_ret_t result =
      rclc_executor_add_guard_condition(record->executor, condition, (rclc_gc_callback_t)record->callback);
  if (result != RCL_RET_OK) return result;
  return tide_compat_result(
      tide_executor_set_priority(tide_rclc_executor_core(record->executor), &condition->impl->callback, priority));
}

rcl_ret_t rclc_executor_add_guard_condition_sched(rclc_executor_t *executor, rcl_guard_condition_t *gc,
                                                  rclc_gc_callback_t callback,
                                                  const rclc_executor_sched_parameter_t *sparam) {
  if (gc == NULL || gc->impl == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const sched_record_t record = {
      .executor = executor, .object = gc, .callback = (void (*)(void))callback, .add = add_guard_condition};
  return tide_compat_add_sched(&record, sparam);
}
