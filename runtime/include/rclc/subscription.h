/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__SUBSCRIPTION_H_
#define RCLC__SUBSCRIPTION_H_

#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

rcl_ret_t rclc_subscription_init_default(rcl_subscription_t *subscription, rcl_node_t *node,
                                         const rosidl_message_type_support_t *type_support, const char *topic_name);
rcl_ret_t rclc_subscription_init_best_effort(rcl_subscription_t *subscription, rcl_node_t *node,
                                             const rosidl_message_type_support_t *type_support, const char *topic_name);
rcl_ret_t rclc_subscription_init(rcl_subscription_t *subscription, rcl_node_t *node,
                                 const rosidl_message_type_support_t *type_support, const char *topic_name,
                                 const rmw_qos_profile_t *qos_profile);

TIDE_EXTERN_C_END
#endif
