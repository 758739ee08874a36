/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__SUBSCRIPTION_H_
#define RCL__SUBSCRIPTION_H_

#include "rcl/node.h"
#include "rosidl_runtime_c/message_type_support_struct.h"

TIDE_EXTERN_C_BEGIN

struct tide_subscription_handle;

typedef struct rcl_subscription_s {
  struct tide_subscription_handle *impl;
} rcl_subscription_t;

typedef struct rcl_subscription_options_s {
  rmw_qos_profile_t qos;
  rcl_allocator_t allocator;
} rcl_subscription_options_t;

rcl_subscription_t rcl_get_zero_initialized_subscription(void);
rcl_subscription_options_t rcl_subscription_get_default_options(void);
rcl_ret_t rcl_subscription_options_fini(rcl_subscription_options_t *options);
rcl_ret_t rcl_subscription_init(rcl_subscription_t *subscription, const rcl_node_t *node,
                                const rosidl_message_type_support_t *type_support, const char *topic_name,
                                const rcl_subscription_options_t *options);
/* Like rcl_publisher_fini. */
rcl_ret_t rcl_subscription_fini(rcl_subscription_t *subscription, rcl_node_t *node);
/* Take the oldest sample. RCL_RET_SUBSCRIPTION_TAKE_FAILED: there is no sample. RCL_RET_ERROR: the sample does not fit
 * the message; it is dropped and counted. */
rcl_ret_t rcl_take(const rcl_subscription_t *subscription, void *ros_message, rmw_message_info_t *message_info,
                   rmw_subscription_allocation_t *allocation);
bool rcl_subscription_is_valid(const rcl_subscription_t *subscription);
rmw_subscription_t *rcl_subscription_get_rmw_handle(const rcl_subscription_t *subscription);
/* See rcl/graph.h. */
rcl_ret_t rcl_subscription_get_publisher_count(const rcl_subscription_t *subscription, size_t *publisher_count);
const char *rcl_subscription_get_topic_name(const rcl_subscription_t *subscription);

TIDE_EXTERN_C_END
#endif
