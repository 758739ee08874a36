/* SPDX-License-Identifier: Apache-2.0 */
/* QoS events. micro-ROS agents report no events, so an event cannot be initialised, as with the stock client. The
 * header exists for programs that also work without events. */
#ifndef RCL__EVENT_H_
#define RCL__EVENT_H_

#include "rcl/publisher.h"
#include "rcl/subscription.h"

TIDE_EXTERN_C_BEGIN

typedef enum rcl_publisher_event_type_e {
  RCL_PUBLISHER_OFFERED_DEADLINE_MISSED,
  RCL_PUBLISHER_LIVELINESS_LOST,
  RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS,
  RCL_PUBLISHER_INCOMPATIBLE_TYPE,
  RCL_PUBLISHER_MATCHED
} rcl_publisher_event_type_t;

typedef enum rcl_subscription_event_type_e {
  RCL_SUBSCRIPTION_REQUESTED_DEADLINE_MISSED,
  RCL_SUBSCRIPTION_LIVELINESS_CHANGED,
  RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS,
  RCL_SUBSCRIPTION_MESSAGE_LOST,
  RCL_SUBSCRIPTION_INCOMPATIBLE_TYPE,
  RCL_SUBSCRIPTION_MATCHED
} rcl_subscription_event_type_t;

typedef struct rcl_event_s {
  void *impl;
} rcl_event_t;

rcl_event_t rcl_get_zero_initialized_event(void);
/* RCL_RET_UNSUPPORTED; RCL_RET_INVALID_ARGUMENT for an invalid publisher, subscription or type. */
rcl_ret_t rcl_publisher_event_init(rcl_event_t *event, const rcl_publisher_t *publisher,
                                   const rcl_publisher_event_type_t event_type);
rcl_ret_t rcl_subscription_event_init(rcl_event_t *event, const rcl_subscription_t *subscription,
                                      const rcl_subscription_event_type_t event_type);
bool rcl_event_is_valid(const rcl_event_t *event); /* false */
/* RCL_RET_EVENT_INVALID. */
rcl_ret_t rcl_take_event(const rcl_event_t *event, void *event_info);
rcl_ret_t rcl_event_fini(rcl_event_t *event);

TIDE_EXTERN_C_END
#endif
