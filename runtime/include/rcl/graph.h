/* SPDX-License-Identifier: Apache-2.0 */
/* Who else is in the ROS 2 graph, by what the agent tells: a message with all nodes and their topics and services, sent
 * again after changes. The first call asks the agent for it, and waits for it as long as creating an object may take
 * (rmw_uros_set_context_entity_creation_session_timeout); later ones look at the newest there is. Calls from one thread
 * at a time.
 *
 * Memory: TIDE_GRAPH_BYTES of tide/pools.h, in which the message has to fit; a larger one is dropped and the older one
 * stays. Codes: RCL_RET_UNSUPPORTED, no such memory; RCL_RET_TIMEOUT, the agent tells of no graph. */
#ifndef RCL__GRAPH_H_
#define RCL__GRAPH_H_

#include "rcl/client.h"
#include "rcl/guard_condition.h"
#include "rcl/node.h"
#include "rcl/publisher.h"
#include "rcl/service.h"
#include "rcl/subscription.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Publishers or subscriptions of this topic, of all nodes. Names as rcl_publisher_init takes them. */
rcl_ret_t rcl_count_publishers(const rcl_node_t *node, const char *topic_name, size_t *count);
rcl_ret_t rcl_count_subscribers(const rcl_node_t *node, const char *topic_name, size_t *count);
/* Whether a node serves what the client asks. */
rcl_ret_t rcl_service_server_is_available(const rcl_node_t *node, const rcl_client_t *client, bool *is_available);
/* Triggered when the graph changes; the runtime's, one for all nodes. Null: refused. */
const rcl_guard_condition_t *rcl_node_get_graph_guard_condition(const rcl_node_t *node);

#ifdef __cplusplus
}
#endif
#endif
