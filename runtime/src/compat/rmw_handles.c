/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of the layer below, which programs only pass on. */
#include "internal.h"
#include "rmw_microros/rmw_microros.h"

bool rcl_node_is_valid(const rcl_node_t *node) { return tide_compat_is_node(node); }

rmw_publisher_t *rcl_publisher_get_rmw_handle(const rcl_publisher_t *publisher) {
  return rcl_publisher_is_valid(publisher) ? (rmw_publisher_t *)(void *)publisher->impl : NULL;
}

rmw_subscription_t *rcl_subscription_get_rmw_handle(const rcl_subscription_t *subscription) {
  return rcl_subscription_is_valid(subscription) ? (rmw_subscription_t *)(void *)subscription->impl : NULL;
}

rmw_node_t *rcl_node_get_rmw_handle(const rcl_node_t *node) {
  return tide_compat_is_node(node) ? (rmw_node_t *)(void *)node->impl : NULL;
}

rmw_ret_t rmw_uros_set_publisher_session_timeout(rmw_publisher_t *publisher, int session_timeout) {
  rcl_publisher_t program = {(tide_publisher_handle_t *)(void *)publisher};
  return tide_rclc_publisher_set_wait_ms(&program, session_timeout);
}
