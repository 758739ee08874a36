/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__PUBLISHER_H_
#define RCLC__PUBLISHER_H_

#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

rcl_ret_t rclc_publisher_init_default(rcl_publisher_t *publisher, const rcl_node_t *node,
                                      const rosidl_message_type_support_t *type_support, const char *topic_name);
rcl_ret_t rclc_publisher_init_best_effort(rcl_publisher_t *publisher, const rcl_node_t *node,
                                          const rosidl_message_type_support_t *type_support, const char *topic_name);
rcl_ret_t rclc_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                              const rosidl_message_type_support_t *type_support, const char *topic_name,
                              const rmw_qos_profile_t *qos_profile);

TIDE_EXTERN_C_END
#endif
