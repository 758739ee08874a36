/* SPDX-License-Identifier: Apache-2.0 */
/* The RAM for one more object of each kind is the length of an array here, which scripts/sizes.py reads. It does not
 * include payloads of messages. This file is compiled but never linked. */
#define TIDE_DEFINE_POOLS
#include "tide/pool_actions.h"
#include "tide/pools.h"

#define HANDLE_BYTES (sizeof(rclc_executor_handle_t) + 3u * sizeof(void *))
#define TOPIC_BYTES (3u * sizeof(void *) + TIDE_NAME_BYTES)
#define GROWTH(what, bytes) char tide_growth_##what[bytes]

GROWTH(publisher, sizeof(tide_publisher_handle_t) + TOPIC_BYTES);
GROWTH(subscription, sizeof(tide_subscription_handle_t) + TOPIC_BYTES + HANDLE_BYTES + sizeof(tide_sample_t));
#define END_BYTES \
  (sizeof(void *) + 2u * TIDE_SERVICE_NAME_BYTES + HANDLE_BYTES + TIDE_SERVICE_DEPTH * sizeof(tide_sample_t))
GROWTH(service, sizeof(tide_service_handle_t) + END_BYTES);
GROWTH(client, sizeof(tide_client_handle_t) + END_BYTES + TIDE_CLIENT_REQUESTS * sizeof(tide_asked_t));
#define PUBLISHER_BYTES (sizeof(tide_publisher_handle_t) + TOPIC_BYTES)
#define SUBSCRIPTION_BYTES \
  (sizeof(tide_subscription_handle_t) + TOPIC_BYTES + TIDE_SUBSCRIPTION_DEPTH * sizeof(tide_sample_t))
#define PARTS_BYTES (3u * (END_BYTES - HANDLE_BYTES) + HANDLE_BYTES + sizeof(tide_action_t))
GROWTH(action_server, PARTS_BYTES + 3u * sizeof(tide_service_handle_t) + 2u * PUBLISHER_BYTES);
GROWTH(action_client, PARTS_BYTES + 3u * (sizeof(tide_client_handle_t) + TIDE_CLIENT_REQUESTS * sizeof(tide_asked_t)) +
                          SUBSCRIPTION_BYTES);
GROWTH(action_goal, sizeof(tide_goal_t));
GROWTH(action_result, sizeof(tide_action_result_t));
GROWTH(timer, sizeof(tide_timer_handle_t) + HANDLE_BYTES);
GROWTH(guard_condition, sizeof(tide_guard_handle_t) + HANDLE_BYTES);
GROWTH(executor, sizeof(tide_executor_handle_t));
GROWTH(chain, sizeof(tide_chain_t));
GROWTH(stream_each_way, sizeof(tide_output_stream_t) + sizeof(tide_input_stream_t));
GROWTH(message_to_send, sizeof(tide_node_t) + 2u * sizeof(void *));
GROWTH(message_received, sizeof(tide_slot_t) + sizeof(void *));
GROWTH(session_with_support, sizeof(tide_support_t));
