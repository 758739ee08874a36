/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the pools in the sizes of tide/pools.h, which includes this header if TIDE_DEFINE_POOLS is defined. */
#ifndef TIDE_POOL_STORAGE_H
#define TIDE_POOL_STORAGE_H

#include "tide/pool_handles.h"
#if TIDE_ACTIONS_ALL > 0
#include "tide/pool_actions.h"
#endif
#if TIDE_GRAPH_BYTES > 0
#include "tide/pool_graph.h"
#endif
#if TIDE_PARAMETER_SERVERS > 0
#include "tide/pool_parameters.h"
#endif

TIDE_EXTERN_C_BEGIN

#define TIDE_PLACES(count) ((count) > 0 ? (count) : 1)
static struct {
  tide_support_t support;
  tide_node_handle_t nodes[TIDE_PLACES(TIDE_NODES)];
  tide_publisher_handle_t publishers[TIDE_PLACES(TIDE_PUBLISHERS_ALL)];
  tide_subscription_handle_t subscriptions[TIDE_PLACES(TIDE_SUBSCRIPTIONS_ALL)];
  tide_timer_handle_t timers[TIDE_PLACES(TIDE_TIMERS)];
  tide_guard_handle_t guards[TIDE_PLACES(TIDE_GUARD_CONDITIONS_ALL)];
  tide_executor_handle_t executors[TIDE_PLACES(TIDE_EXECUTORS)];
  tide_lane_t lanes[TIDE_PLACES(TIDE_EXECUTORS * TIDE_EXECUTOR_LANES)];
  rclc_executor_handle_t handles[TIDE_PLACES(TIDE_HANDLES)];
  tide_callback_t *callbacks[TIDE_PLACES(TIDE_HANDLES)];
  tide_queue_entry_t *ready[TIDE_PLACES(TIDE_HANDLES * TIDE_EXECUTOR_LANES)],
      *timer[TIDE_PLACES(TIDE_HANDLES * TIDE_EXECUTOR_LANES)];
  tide_object_t *objects[TIDE_PLACES(TIDE_OBJECT_COUNT)];
  tide_node_t data_nodes[TIDE_PLACES(TIDE_NODE_COUNT)];
  tide_queue_entry_t *execution[TIDE_PLACES(TIDE_NODE_COUNT)], *pending[TIDE_PLACES(TIDE_NODE_COUNT)],
      *noted[TIDE_PLACES(TIDE_SLOTS)];
  tide_output_stream_t output_streams[TIDE_STREAMS_ALL];
  tide_input_stream_t input_streams[TIDE_STREAMS_ALL];
  tide_slot_t slots[TIDE_PLACES(TIDE_SLOTS)];
  tide_reassembly_t reassemblies[TIDE_PLACES(TIDE_REASSEMBLIES)];
  char node_names[TIDE_PLACES(TIDE_NODES)][2][TIDE_NAME_BYTES];
  char publisher_names[TIDE_PLACES(TIDE_PUBLISHERS_ALL)][TIDE_NAME_BYTES];
  char subscription_names[TIDE_PLACES(TIDE_SUBSCRIPTIONS_ALL)][TIDE_NAME_BYTES];
  tide_sample_t samples[TIDE_PLACES(TIDE_SUBSCRIPTIONS_ALL * TIDE_SUBSCRIPTION_DEPTH)];
  uint8_t custom[TIDE_PLACES(TIDE_CUSTOM_TRANSPORT * TIDE_CUSTOM_LINK_STORAGE_BYTES(TIDE_MTU_BYTES))];
} tide_pool_memory;

/* The messages themselves, separate from the runtime's bookkeeping. */
static struct {
  uint64_t small_nodes[TIDE_PLACES((TIDE_SMALL_NODES * TIDE_SMALL_NODE_BYTES + 7) / 8)];
  uint64_t large_nodes[TIDE_PLACES((TIDE_LARGE_NODES * TIDE_LARGE_NODE_BYTES + 7) / 8)];
  uint64_t slot_bytes[(TIDE_SLOTS * TIDE_MTU_BYTES + 7) / 8];
  uint64_t reassembly_bytes[TIDE_PLACES((TIDE_REASSEMBLIES * TIDE_REASSEMBLY_BYTES + 7) / 8)];
} tide_message_memory;

/* Empty pools take no memory. */
#if TIDE_GROUPS > 0
static struct {
  tide_group_handle_t groups[TIDE_GROUPS];
  tide_queue_entry_t *waiting[TIDE_GROUPS * TIDE_HANDLES];
} tide_group_memory;
#endif
#if TIDE_SERVICES_ALL + TIDE_CLIENTS_ALL > 0
static struct {
  tide_service_handle_t services[TIDE_PLACES(TIDE_SERVICES_ALL)];
  tide_client_handle_t clients[TIDE_PLACES(TIDE_CLIENTS_ALL)];
  char names[TIDE_SERVICES_ALL + TIDE_CLIENTS_ALL][2][TIDE_SERVICE_NAME_BYTES];
  tide_sample_t samples[(TIDE_SERVICES_ALL + TIDE_CLIENTS_ALL) * TIDE_SERVICE_DEPTH];
  tide_asked_t asked[TIDE_PLACES(TIDE_CLIENTS_ALL * TIDE_CLIENT_REQUESTS)];
} tide_service_memory;
#endif
#if TIDE_ACTIONS_ALL > 0
static struct {
  tide_action_t actions[TIDE_ACTIONS_ALL];
  tide_goal_t goals[TIDE_PLACES(TIDE_ACTION_GOALS)];
  tide_action_result_t results[TIDE_PLACES(TIDE_ACTION_RESULTS)];
  uint8_t bytes[TIDE_PLACES(TIDE_ACTION_RESULTS)][TIDE_ACTION_RESULT_BYTES];
} tide_action_memory;
static const tide_action_pools_t tide_action_pools = {
    .actions = tide_action_memory.actions,
    .goals = tide_action_memory.goals,
    .results = tide_action_memory.results,
    .result_bytes = &tide_action_memory.bytes[0][0],
    .result_capacity = TIDE_ACTION_RESULT_BYTES,
    .action_count = TIDE_ACTIONS_ALL,
    .goal_count = TIDE_ACTION_GOALS,
    .result_count = TIDE_ACTION_RESULTS,
    .release = tide_compat_release_actions,
    .remove = tide_compat_remove_action,
};
#endif
#if TIDE_LOCAL_TOPICS > 0
static struct {
  tide_local_topic_handle_t topics[TIDE_LOCAL_TOPICS];
  tide_local_end_t ends[TIDE_PLACES(TIDE_LOCAL_SUBSCRIPTIONS)];
  tide_local_message_t *queues[TIDE_PLACES(TIDE_LOCAL_SUBSCRIPTIONS * TIDE_SUBSCRIPTION_DEPTH)];
  char names[TIDE_LOCAL_TOPICS][TIDE_NAME_BYTES];
  tide_local_pool_t pool;
  uint64_t messages[TIDE_PLACES(TIDE_LOCAL_STORAGE_BYTES(TIDE_LOCAL_MESSAGES, TIDE_LOCAL_MESSAGE_BYTES) / 8)];
} tide_local_memory;
#endif

#if TIDE_GRAPH_BYTES > 0
static uint64_t tide_graph_memory[(TIDE_GRAPH_BYTES + 7) / 8];
const tide_graph_pool_t tide_graph_pool = {(uint8_t *)tide_graph_memory, TIDE_GRAPH_BYTES};
#endif
#if TIDE_PARAMETER_SERVERS > 0
#define TIDE_PARAMETER_ITEMS (TIDE_PARAMETERS + (TIDE_PARAMETERS > 24 ? 0 : 8))
static struct {
  tide_parameter_server_t servers[TIDE_PARAMETER_SERVERS];
  tide_parameter_t parameters[TIDE_PLACES(TIDE_PARAMETERS)];
  char names[TIDE_PARAMETERS + TIDE_PARAMETER_SERVERS][TIDE_PARAMETER_NAME_BYTES];
  char texts[TIDE_PLACES(2 * TIDE_PARAMETERS * TIDE_PARAMETER_TEXT_BYTES)];
  uint8_t items[TIDE_PARAMETER_SERVERS * TIDE_PARAMETER_SERVICE_COUNT * TIDE_PARAMETER_ITEMS];
} tide_parameter_memory;
const tide_parameter_pools_t tide_parameter_pools = {
    .servers = tide_parameter_memory.servers,
    .parameters = tide_parameter_memory.parameters,
    .names = &tide_parameter_memory.names[0][0],
    .texts = tide_parameter_memory.texts,
    .items = tide_parameter_memory.items,
    .server_count = TIDE_PARAMETER_SERVERS,
    .parameter_count = TIDE_PARAMETERS,
    .item_count = TIDE_PARAMETER_ITEMS,
    .name_bytes = TIDE_PARAMETER_NAME_BYTES,
    .text_bytes = TIDE_PARAMETER_TEXT_BYTES,
};
#endif

static const tide_size_class_t tide_pool_classes[2] = {
    {(uint8_t *)tide_message_memory.small_nodes, TIDE_SMALL_NODE_BYTES, TIDE_SMALL_NODES},
    {(uint8_t *)tide_message_memory.large_nodes, TIDE_LARGE_NODE_BYTES, TIDE_LARGE_NODES}};

#ifndef TIDE_POOLS_LINKAGE
#define TIDE_POOLS_LINKAGE
#endif
TIDE_POOLS_LINKAGE const tide_pools_t tide_pools = {
    .support = &tide_pool_memory.support,
    .nodes = tide_pool_memory.nodes,
    .publishers = tide_pool_memory.publishers,
    .subscriptions = tide_pool_memory.subscriptions,
    .timers = tide_pool_memory.timers,
    .guards = tide_pool_memory.guards,
    .executors = tide_pool_memory.executors,
    .lanes = tide_pool_memory.lanes,
    .handles = tide_pool_memory.handles,
    .callbacks = tide_pool_memory.callbacks,
    .ready_storage = tide_pool_memory.ready,
    .timer_storage = tide_pool_memory.timer,
    .objects = tide_pool_memory.objects,
    .data_nodes = tide_pool_memory.data_nodes,
    .execution_storage = tide_pool_memory.execution,
    .pending_storage = tide_pool_memory.pending,
    .noted_storage = tide_pool_memory.noted,
    .classes = tide_pool_classes,
    .output_streams = tide_pool_memory.output_streams,
    .input_streams = tide_pool_memory.input_streams,
    .slots = tide_pool_memory.slots,
    .slot_storage = (uint8_t *)tide_message_memory.slot_bytes,
    .reassemblies = tide_pool_memory.reassemblies,
    .reassembly_storage = (uint8_t *)tide_message_memory.reassembly_bytes,
    .reassembly_bytes = TIDE_REASSEMBLY_BYTES,
    .node_names = &tide_pool_memory.node_names[0][0][0],
    .publisher_names = &tide_pool_memory.publisher_names[0][0],
    .subscription_names = &tide_pool_memory.subscription_names[0][0],
    .samples = tide_pool_memory.samples,
#if TIDE_GROUPS > 0
    .groups = tide_group_memory.groups,
    .group_storage = tide_group_memory.waiting,
    .group_count = TIDE_GROUPS,
#endif
#if TIDE_SERVICES_ALL + TIDE_CLIENTS_ALL > 0
    .services = tide_service_memory.services,
    .clients = tide_service_memory.clients,
    .service_names = &tide_service_memory.names[0][0][0],
    .service_samples = tide_service_memory.samples,
    .asked = tide_service_memory.asked,
    .service_count = TIDE_SERVICES_ALL,
    .client_count = TIDE_CLIENTS_ALL,
    .client_request_count = TIDE_CLIENT_REQUESTS,
    .service_name_bytes = TIDE_SERVICE_NAME_BYTES,
    .service_depth = TIDE_SERVICE_DEPTH,
#endif
#if TIDE_LOCAL_TOPICS > 0
    .local_topics = tide_local_memory.topics,
    .local_ends = tide_local_memory.ends,
    .local_queues = tide_local_memory.queues,
    .local_names = &tide_local_memory.names[0][0],
    .local_pool = &tide_local_memory.pool,
    .local_storage = tide_local_memory.messages,
    .local_message_count = TIDE_LOCAL_MESSAGES,
    .local_message_bytes = TIDE_LOCAL_MESSAGE_BYTES,
    .local_topic_count = TIDE_LOCAL_TOPICS,
    .local_end_count = TIDE_LOCAL_SUBSCRIPTIONS,
#endif
#if TIDE_ACTIONS_ALL > 0
    .actions = &tide_action_pools,
#endif
    .custom_storage = TIDE_CUSTOM_TRANSPORT ? tide_pool_memory.custom : NULL,
    .custom_bytes = sizeof tide_pool_memory.custom,
    .connect_timeout_ms = TIDE_CONNECT_TIMEOUT_MS,
    .node_count = TIDE_NODES,
    .publisher_count = TIDE_PUBLISHERS_ALL,
    .subscription_count = TIDE_SUBSCRIPTIONS_ALL,
    .timer_count = TIDE_TIMERS,
    .guard_count = TIDE_GUARD_CONDITIONS_ALL,
    .executor_count = TIDE_EXECUTORS,
    .lane_count = TIDE_EXECUTOR_LANES,
    .handle_count = TIDE_HANDLES,
    .object_count = TIDE_OBJECT_COUNT,
    .data_node_count = TIDE_NODE_COUNT,
    .class_count = 2,
    .stream_count = TIDE_STREAMS_ALL,
    .slot_count = TIDE_SLOTS,
    .reassembly_count = TIDE_REASSEMBLIES,
    .mtu_bytes = TIDE_MTU_BYTES,
    .name_bytes = TIDE_NAME_BYTES,
    .subscription_depth = TIDE_SUBSCRIPTION_DEPTH,
    .window = TIDE_WINDOW,
};

TIDE_EXTERN_C_END
#endif
