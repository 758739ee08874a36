/* SPDX-License-Identifier: Apache-2.0 */
#include "executor_sched_internal.h"
#include "tide/rclc.h"

static rcl_ret_t add_timer(const sched_record_t *record, tide_priority_t priority) {
  const rcl_ret_t result = rclc_executor_add_timer(record->executor, record->object);
  return result == RCL_RET_OK ? tide_rclc_timer_set_priority(record->object, priority) : result;
}

static void its_own(void) {} /* a timer has had its callback since its init */

rcl_ret_t rclc_executor_add_timer_sched(rclc_executor_t *executor, rcl_timer_t *timer,
                                        const rclc_executor_sched_parameter_t *sparam) {
  if (timer == NULL || timer->impl == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const sched_record_t record = {.executor = executor, .object = timer, .callback = its_own, .add = add_timer};
  return tide_compat_add_sched(&record, sparam);
}
