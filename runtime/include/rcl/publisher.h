/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__PUBLISHER_H_
#define RCL__PUBLISHER_H_

#include "rcl/node.h"
#include "rcl/time.h"
#include "rosidl_runtime_c/message_type_support_struct.h"

TIDE_EXTERN_C_BEGIN

struct tide_publisher_handle;

typedef struct rcl_publisher_s {
  struct tide_publisher_handle *impl;
} rcl_publisher_t;

typedef struct rcl_publisher_options_s {
  rmw_qos_profile_t qos;
  rcl_allocator_t allocator;
} rcl_publisher_options_t;

rcl_publisher_t rcl_get_zero_initialized_publisher(void);
rcl_publisher_options_t rcl_publisher_get_default_options(void);
rcl_ret_t rcl_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                             const rosidl_message_type_support_t *type_support, const char *topic_name,
                             const rcl_publisher_options_t *options);
/* RCL_RET_ERROR with TIDE_ERROR_FULL: no pool buffer was free to request the removal from the agent. The publisher is
 * still valid: try again.
 */
rcl_ret_t rcl_publisher_fini(rcl_publisher_t *publisher, rcl_node_t *node);
/* Serialises the message into the daemon's pool and returns. The call never waits for the wire (see
 * tide_rclc_support_set_send for other modes). When the pool is full, a reliable publisher waits for a free buffer, at
 * most for the time set by tide_rclc_publisher_set_wait_ms; a best-effort publisher does not wait. Any thread may call
 * it. RCL_RET_ERROR with tide_rclc_last_status: TIDE_ERROR_FULL, _TOO_LARGE, _DISCONNECTED. */
rcl_ret_t rcl_publish(const rcl_publisher_t *publisher, const void *ros_message,
                      rmw_publisher_allocation_t *allocation);
/* Waits until the agent has acknowledged all published messages (best effort: until they have been sent); timeout in
 * ns, negative: for ever. RCL_RET_TIMEOUT: the time has passed. */
rcl_ret_t rcl_publisher_wait_for_all_acked(const rcl_publisher_t *publisher, rcl_duration_value_t timeout);
bool rcl_publisher_is_valid(const rcl_publisher_t *publisher);
/* Returns the argument for the rmw_uros_set_publisher_* calls, valid as long as the publisher; null: the publisher is
 * invalid. */
rmw_publisher_t *rcl_publisher_get_rmw_handle(const rcl_publisher_t *publisher);
/* See rcl/graph.h. */
rcl_ret_t rcl_publisher_get_subscription_count(const rcl_publisher_t *publisher, size_t *subscription_count);
const char *rcl_publisher_get_topic_name(const rcl_publisher_t *publisher);

TIDE_EXTERN_C_END
#endif
