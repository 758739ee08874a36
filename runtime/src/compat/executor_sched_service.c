/* SPDX-License-Identifier: Apache-2.0 */
#include "executor_sched_internal.h"
#include "tide/rclc_service.h"

static rcl_ret_t add_service(const sched_record_t *record, tide_priority_t priority) {
  const rcl_ret_t result = rclc_executor_add_service(record->executor, record->object, record->message,
                                                     record->response, (rclc_service_callback_t)record->callback);
  return result == RCL_RET_OK ? tide_rclc_service_set_priority(record->object, priority) : result;
}

rcl_ret_t rclc_executor_add_service_sched(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                          void *response_msg, rclc_service_callback_t callback,
                                          const rclc_executor_sched_parameter_t *sparam) {
  if (service == NULL || service->impl == NULL || request_msg == NULL || response_msg == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  const sched_record_t record = {.executor = executor,
                                 .object = service,
                                 .message = request_msg,
                                 .response = response_msg,
                                 .callback = (void (*)(void))callback,
                                 .add = add_service};
  return tide_compat_add_sched(&record, sparam);
}
