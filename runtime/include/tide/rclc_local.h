/* SPDX-License-Identifier: Apache-2.0 */
/* Local delivery through the rclc interface: publishers and subscriptions of one process that do not need the agent to
 * reach each other (tide/local.h has the rules of the queues and of memory; depth is that of the QoS).
 *
 *   tide_rclc_publisher_init(&publisher, &node, type, "points", &rmw_qos_profile_default, TIDE_REACH_LOCAL);
 *   tide_rclc_subscription_init(&subscription, &node, type, "points", &rmw_qos_profile_default, TIDE_REACH_LOCAL);
 *   rclc_executor_add_subscription(&executor, &subscription, &message, callback, ON_NEW_DATA);
 *   rcl_publish(&publisher, &points, NULL);
 *
 * Copies. A message of fixed size (no string, no sequence) is delivered in place. The callback gets a pointer to the
 * published message, valid until the callback returns, not to the memory passed when the subscription was added.
 * rcl_publish copies once; a publisher that borrows (rcl_borrow_loaned_message) does not copy. Other messages are kept
 * serialised, as received ones are, and decoded into the memory passed when the subscription was added.
 *
 * Delivery:            subscription AGENT    LOCAL    BOTH
 *   publisher AGENT          by the agent    -        by the agent
 *             LOCAL          -               locally  locally
 *             BOTH           by the agent    locally  refused, whichever comes second (TIDE_ERROR_UNSUPPORTED): the
 *                                                     subscription would receive each message twice
 * BOTH subscriptions deliver messages in the order of arrival.
 *
 * Memory: TIDE_LOCAL_TOPICS and the sizes after it in <tide/pools.h>; without local topics none. With LOCAL, a
 * publisher or subscription needs no object on the agent and causes no traffic. Further causes of an error
 * (tide_rclc_last_status): TIDE_ERROR_CAPACITY_LOCAL_TOPICS, _LOCAL_MESSAGES, TIDE_ERROR_TOO_LARGE (more than
 * TIDE_LOCAL_MESSAGE_BYTES), TIDE_ERROR_EXISTS (the topic has another type). */
#ifndef TIDE_RCLC_LOCAL_H
#define TIDE_RCLC_LOCAL_H

#include <rclc/rclc.h>

#include "tide/local.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_reach { TIDE_REACH_AGENT, TIDE_REACH_LOCAL, TIDE_REACH_BOTH } tide_reach_t;

/* rclc_publisher_init and rclc_subscription_init are these functions with TIDE_REACH_AGENT. */
rcl_ret_t tide_rclc_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                                   const rosidl_message_type_support_t *type_support, const char *topic_name,
                                   const rmw_qos_profile_t *qos_profile, tide_reach_t reach);
rcl_ret_t tide_rclc_subscription_init(rcl_subscription_t *subscription, rcl_node_t *node,
                                      const rosidl_message_type_support_t *type_support, const char *topic_name,
                                      const rmw_qos_profile_t *qos_profile, tide_reach_t reach);

/* The topic's counters, over all its publishers and subscriptions in this process. */
rcl_ret_t tide_rclc_publisher_local_counters(const rcl_publisher_t *publisher, tide_local_counters_t *counters);
/* Number of messages that this subscription's full queue dropped. */
uint32_t tide_rclc_subscription_local_dropped(const rcl_subscription_t *subscription);

/* Like the functions of rcl: borrow a message, fill it, publish it or return it. The publisher must be LOCAL or BOTH,
 * and its messages of fixed size (RCL_RET_UNSUPPORTED otherwise). TIDE_ERROR_FULL: more loans at once than
 * TIDE_EXECUTOR_LANES; such a refusal is counted. */
bool rcl_publisher_can_loan_messages(const rcl_publisher_t *publisher);
rcl_ret_t rcl_borrow_loaned_message(const rcl_publisher_t *publisher, const rosidl_message_type_support_t *type_support,
                                    void **ros_message);
rcl_ret_t rcl_return_loaned_message_from_publisher(const rcl_publisher_t *publisher, void *loaned_message);
rcl_ret_t rcl_publish_loaned_message(const rcl_publisher_t *publisher, void *ros_message,
                                     rmw_publisher_allocation_t *allocation);

TIDE_EXTERN_C_END
#endif
