/* SPDX-License-Identifier: Apache-2.0 */
/* Events of QoS: there are none. */
#include "rcl/event.h"

#include "internal.h"

rcl_event_t rcl_get_zero_initialized_event(void) {
  const rcl_event_t event = {NULL};
  return event;
}

static rcl_ret_t refuse(const rcl_event_t *event, bool is_of_something, int type, int last_type) {
  if (event == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_EVENT_INVALID);
  if (!is_of_something || type < 0 || type > last_type) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
}

rcl_ret_t rcl_publisher_event_init(rcl_event_t *event, const rcl_publisher_t *publisher,
                                   const rcl_publisher_event_type_t event_type) {
  return refuse(event, rcl_publisher_is_valid(publisher), (int)event_type, RCL_PUBLISHER_MATCHED);
}

rcl_ret_t rcl_subscription_event_init(rcl_event_t *event, const rcl_subscription_t *subscription,
                                      const rcl_subscription_event_type_t event_type) {
  return refuse(event, rcl_subscription_is_valid(subscription), (int)event_type, RCL_SUBSCRIPTION_MATCHED);
}

bool rcl_event_is_valid(const rcl_event_t *event) {
  (void)event;
  return false;
}

rcl_ret_t rcl_take_event(const rcl_event_t *event, void *event_info) {
  (void)event;
  (void)event_info;
  return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_EVENT_INVALID);
}

rcl_ret_t rcl_event_fini(rcl_event_t *event) {
  return event == NULL ? tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_EVENT_INVALID) : RCL_RET_OK;
}
