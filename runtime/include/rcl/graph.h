/* SPDX-License-Identifier: Apache-2.0 */
/* The ROS 2 graph as the agent reports it: one message with all nodes and their topics and services, sent again after
 * changes. The first call requests this report from the agent and waits up to the timeout of creating an object
 * (rmw_uros_set_context_entity_creation_session_timeout); later calls use the latest report. Only one thread at a time
 * may make these calls.
 *
 * Memory: the agent's message must fit TIDE_GRAPH_BYTES of tide/pools.h. RCL_RET_ERROR, until one fits: a larger
 * message was dropped (TIDE_ERROR_TOO_LARGE). RCL_RET_UNSUPPORTED: no memory is configured. RCL_RET_TIMEOUT: the agent
 * reports no graph. */
#ifndef RCL__GRAPH_H_
#define RCL__GRAPH_H_

#include "rcl/client.h"
#include "rcl/guard_condition.h"
#include "rcl/node.h"
#include "rcl/publisher.h"
#include "rcl/service.h"
#include "rcl/subscription.h"
#include "rmw/names_and_types.h"

TIDE_EXTERN_C_BEGIN

/* Number of publishers or subscriptions of a topic in all nodes. Names are given as for rcl_publisher_init. */
rcl_ret_t rcl_count_publishers(const rcl_node_t *node, const char *topic_name, size_t *count);
rcl_ret_t rcl_count_subscribers(const rcl_node_t *node, const char *topic_name, size_t *count);
rcl_ret_t rcl_count_clients(const rcl_node_t *node, const char *service_name, size_t *count);
rcl_ret_t rcl_count_services(const rcl_node_t *node, const char *service_name, size_t *count);
/* Wait until the topic has `count` publishers or subscriptions; timeout in ns, negative: for ever. RCL_RET_TIMEOUT: the
 * topic has fewer, and *success is false. */
rcl_ret_t rcl_wait_for_publishers(const rcl_node_t *node, rcl_allocator_t *allocator, const char *topic_name,
                                  size_t count, rcutils_duration_value_t timeout, bool *success);
rcl_ret_t rcl_wait_for_subscribers(const rcl_node_t *node, rcl_allocator_t *allocator, const char *topic_name,
                                   size_t count, rcutils_duration_value_t timeout, bool *success);
/* Sets *is_available: whether a node offers the client's service. */
rcl_ret_t rcl_service_server_is_available(const rcl_node_t *node, const rcl_client_t *client, bool *is_available);
/* Returns the guard condition that is triggered when the graph changes. It belongs to the runtime, which has one for
 * all nodes. Null: one of the errors above, or no guard condition is free. */
const rcl_guard_condition_t *rcl_node_get_graph_guard_condition(const rcl_node_t *node);

/* These calls return names and types in memory of the caller's allocator; release it with the _fini functions.
 * RCL_RET_BAD_ALLOC: the allocator refused. Names are those of ROS 2, even with no_demangle. For a topic with several
 * types, those of its first endpoint are returned. */
typedef rmw_names_and_types_t rcl_names_and_types_t;
typedef rmw_topic_endpoint_info_t rcl_topic_endpoint_info_t;
typedef rmw_topic_endpoint_info_array_t rcl_topic_endpoint_info_array_t;
rcl_names_and_types_t rcl_get_zero_initialized_names_and_types(void);
rcl_ret_t rcl_names_and_types_fini(rcl_names_and_types_t *names_and_types);
rcl_ret_t rcl_get_topic_names_and_types(const rcl_node_t *node, rcl_allocator_t *allocator, bool no_demangle,
                                        rcl_names_and_types_t *topic_names_and_types);
rcl_ret_t rcl_get_service_names_and_types(const rcl_node_t *node, rcl_allocator_t *allocator,
                                          rcl_names_and_types_t *service_names_and_types);
rcl_ret_t rcl_get_publisher_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                    bool no_demangle, const char *node_name, const char *node_namespace,
                                                    rcl_names_and_types_t *topic_names_and_types);
rcl_ret_t rcl_get_subscriber_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                     bool no_demangle, const char *node_name,
                                                     const char *node_namespace,
                                                     rcl_names_and_types_t *topic_names_and_types);
rcl_ret_t rcl_get_service_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                  const char *node_name, const char *node_namespace,
                                                  rcl_names_and_types_t *service_names_and_types);
rcl_ret_t rcl_get_client_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                 const char *node_name, const char *node_namespace,
                                                 rcl_names_and_types_t *service_names_and_types);
rcl_ret_t rcl_get_node_names(const rcl_node_t *node, rcl_allocator_t allocator, rcutils_string_array_t *node_names,
                             rcutils_string_array_t *node_namespaces);
rcl_topic_endpoint_info_array_t rcl_get_zero_initialized_topic_endpoint_info_array(void);
rcl_ret_t rcl_topic_endpoint_info_array_fini(rcl_topic_endpoint_info_array_t *info_array,
                                             rcutils_allocator_t *allocator);
rcl_ret_t rcl_get_publishers_info_by_topic(const rcl_node_t *node, rcutils_allocator_t *allocator,
                                           const char *topic_name, bool no_mangle,
                                           rcl_topic_endpoint_info_array_t *publishers_info);
rcl_ret_t rcl_get_subscriptions_info_by_topic(const rcl_node_t *node, rcutils_allocator_t *allocator,
                                              const char *topic_name, bool no_mangle,
                                              rcl_topic_endpoint_info_array_t *subscriptions_info);

TIDE_EXTERN_C_END
#endif
