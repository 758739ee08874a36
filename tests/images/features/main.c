/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of a feature: a board that publishes is linked without a feature (FEATURE 0), and with one.
 * scripts/sizes.py prints the difference of the sizes. The pools are those of tide/pools.h, with room for the objects
 * that are used. */
#define FEATURE_NONE 0
#define FEATURE_SUBSCRIPTION 1
#define FEATURE_SERVICE 2
#define FEATURE_CLIENT 3
#define FEATURE_ACTION_SERVER 4
#define FEATURE_ACTION_CLIENT 5
#define FEATURE_PARAMETERS 6
#define FEATURE_LIFECYCLE 7
#define FEATURE_GRAPH 8
#define FEATURE_DIAGNOSTICS 9
#define FEATURE_WATCH 10
#define FEATURE_TRACE 11
#define FEATURE_RTPS 12 /* a subscription, and the RTPS wire instead of the UART */

#define TIDE_NODES 1
#define TIDE_PUBLISHERS (1 + (FEATURE == FEATURE_DIAGNOSTICS || FEATURE == FEATURE_TRACE))
#define TIDE_SUBSCRIPTIONS (FEATURE == FEATURE_SUBSCRIPTION || FEATURE == FEATURE_RTPS)
#define TIDE_SERVICES (FEATURE == FEATURE_SERVICE)
#define TIDE_CLIENTS (FEATURE == FEATURE_CLIENT)
#define TIDE_TIMERS (1 + (FEATURE == FEATURE_DIAGNOSTICS))
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_ACTION_SERVERS (FEATURE == FEATURE_ACTION_SERVER)
#define TIDE_ACTION_CLIENTS (FEATURE == FEATURE_ACTION_CLIENT)
#define TIDE_PARAMETER_SERVERS (FEATURE == FEATURE_PARAMETERS)
#define TIDE_LIFECYCLE_NODES (FEATURE == FEATURE_LIFECYCLE)
#if FEATURE == FEATURE_GRAPH
#define TIDE_GRAPH_BYTES 1024
#endif
#define TIDE_DEFINE_POOLS
#if FEATURE == FEATURE_RTPS
#define TIDE_RTPS_WRITERS 1
#define TIDE_RTPS_READERS 1
#define TIDE_RTPS_PEERS 4
#define TIDE_RTPS_SAMPLE_BYTES 256
#define TIDE_DEFINE_RTPS
#endif
#include <example_interfaces/action/fibonacci.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc_lifecycle/rclc_lifecycle.h>
#include <rclc_parameter/rclc_parameter.h>
#include <rmw_microros/rmw_microros.h>
#include <sim_interfaces/srv/twice.h>
#include <std_msgs/msg/int32.h>
#include <string.h>

#include "tide/chain_watch.h"
#include "tide/pools.h"
#include "tide/rclc_diagnostics.h"
#include "tide/rclc_rtps.h"
#include "tide/rclc_trace.h"
#include "tide/status.h"

static rclc_support_t support;
static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_timer_t timer;
static rclc_executor_t executor;
static std_msgs__msg__Int32 message;

static void publish(rcl_timer_t *expired, int64_t last_call_time) {
  (void)expired;
  (void)last_call_time;
  message.data++;
  (void)rcl_publish(&publisher, &message, NULL);
}

#if FEATURE == FEATURE_SUBSCRIPTION || FEATURE == FEATURE_RTPS
static rcl_subscription_t subscription;
static std_msgs__msg__Int32 heard;
static void hear(const void *sample) { (void)sample; }
static bool add_feature(void) {
  return rclc_subscription_init_default(&subscription, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32),
                                        "heard") == RCL_RET_OK &&
         rclc_executor_add_subscription(&executor, &subscription, &heard, hear, ON_NEW_DATA) == RCL_RET_OK;
}
#elif FEATURE == FEATURE_SERVICE
static rcl_service_t service;
static sim_interfaces__srv__Twice_Request request;
static sim_interfaces__srv__Twice_Response response;
static void serve(const void *asked, void *answer) {
  ((sim_interfaces__srv__Twice_Response *)answer)->twice =
      2 * ((const sim_interfaces__srv__Twice_Request *)asked)->number;
}
static bool add_feature(void) {
  return rclc_service_init_default(&service, &node, ROSIDL_GET_SRV_TYPE_SUPPORT(sim_interfaces, srv, Twice), "twice") ==
             RCL_RET_OK &&
         rclc_executor_add_service(&executor, &service, &request, &response, serve) == RCL_RET_OK;
}
#elif FEATURE == FEATURE_CLIENT
static rcl_client_t client;
static sim_interfaces__srv__Twice_Request request;
static sim_interfaces__srv__Twice_Response response;
static void hear(const void *answer) {
  int64_t number = 0;
  (void)answer;
  (void)rcl_send_request(&client, &request, &number);
}
static bool add_feature(void) {
  return rclc_client_init_default(&client, &node, ROSIDL_GET_SRV_TYPE_SUPPORT(sim_interfaces, srv, Twice), "twice") ==
             RCL_RET_OK &&
         rclc_executor_add_client(&executor, &client, &response, hear) == RCL_RET_OK;
}
#elif FEATURE == FEATURE_ACTION_SERVER
static rclc_action_server_t server;
static example_interfaces__action__Fibonacci_SendGoal_Request goals[1];
static rcl_ret_t on_goal(rclc_action_goal_handle_t *goal, void *context) {
  static example_interfaces__action__Fibonacci_GetResult_Response result;
  static example_interfaces__action__Fibonacci_FeedbackMessage feedback;
  (void)context;
  (void)rclc_action_publish_feedback(goal, &feedback);
  (void)rclc_action_send_result(goal, GOAL_STATE_SUCCEEDED, &result);
  return RCL_RET_ACTION_GOAL_ACCEPTED;
}
static bool add_feature(void) {
  const rosidl_action_type_support_t *type = ROSIDL_GET_ACTION_TYPE_SUPPORT(example_interfaces, Fibonacci);
  return rclc_action_server_init_default(&server, &node, &support, type, "fibonacci") == RCL_RET_OK &&
         rclc_executor_add_action_server(&executor, &server, 1, goals, sizeof goals[0], on_goal, NULL, NULL) ==
             RCL_RET_OK;
}
#elif FEATURE == FEATURE_ACTION_CLIENT
static rclc_action_client_t client;
static example_interfaces__action__Fibonacci_SendGoal_Request goal;
static example_interfaces__action__Fibonacci_GetResult_Response result;
static example_interfaces__action__Fibonacci_FeedbackMessage feedback;
static void on_answer(rclc_action_goal_handle_t *handle, bool accepted, void *context) {
  (void)handle;
  (void)accepted;
  (void)context;
}
static void on_result(rclc_action_goal_handle_t *handle, void *response, void *context) {
  (void)handle;
  (void)response;
  (void)context;
}
static bool add_feature(void) {
  const rosidl_action_type_support_t *type = ROSIDL_GET_ACTION_TYPE_SUPPORT(example_interfaces, Fibonacci);
  return rclc_action_client_init_default(&client, &node, type, "fibonacci") == RCL_RET_OK &&
         rclc_executor_add_action_client(&executor, &client, 1, &result, &feedback, on_answer, NULL, on_result, NULL,
                                         NULL) == RCL_RET_OK &&
         rclc_action_send_goal_request(&client, &goal, NULL) == RCL_RET_OK;
}
#elif FEATURE == FEATURE_PARAMETERS
static rclc_parameter_server_t server;
static bool on_change(const Parameter *before, const Parameter *after, void *context) {
  (void)before;
  (void)after;
  (void)context;
  return true;
}
static bool add_feature(void) {
  return rclc_parameter_server_init_default(&server, &node) == RCL_RET_OK &&
         rclc_executor_add_parameter_server(&executor, &server, on_change) == RCL_RET_OK &&
         rclc_add_parameter(&server, "gain", RCLC_PARAMETER_DOUBLE) == RCL_RET_OK;
}
#elif FEATURE == FEATURE_LIFECYCLE
static rclc_lifecycle_node_t lifecycle;
static rcl_lifecycle_state_machine_t machine;
static rclc_lifecycle_service_context_t context = {&lifecycle};
static int on_transition(void) { return RCL_RET_OK; }
static bool add_feature(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  machine = rcl_lifecycle_get_zero_initialized_state_machine();
  return rclc_make_node_a_lifecycle_node(&lifecycle, &node, &machine, &allocator, true) == RCL_RET_OK &&
         rclc_lifecycle_register_on_configure(&lifecycle, on_transition) == RCL_RET_OK &&
         rclc_lifecycle_init_get_state_server(&context, &executor) == RCL_RET_OK &&
         rclc_lifecycle_init_get_available_states_server(&context, &executor) == RCL_RET_OK &&
         rclc_lifecycle_init_change_state_server(&context, &executor) == RCL_RET_OK;
}
#elif FEATURE == FEATURE_GRAPH
static size_t listeners;
static bool add_feature(void) { return rcl_count_subscribers(&node, "/said", &listeners) == RCL_RET_OK; }
#elif FEATURE == FEATURE_DIAGNOSTICS
static bool add_feature(void) { return tide_rclc_diagnostics_init(&node, &support, &executor, 1000u) == RCL_RET_OK; }
#elif FEATURE == FEATURE_WATCH
static tide_chain_watch_t watch;
static bool add_feature(void) {
  tide_chain_t chain;
  tide_callback_t *callback = tide_rclc_timer_callback(&timer);
  return tide_chain_init(&chain, "said", 1, RCL_MS_TO_NS(50), RCL_MS_TO_NS(50)) == TIDE_OK &&
         tide_chain_watch(&watch, &chain, callback, callback) == TIDE_OK;
}
#elif FEATURE == FEATURE_TRACE
static bool add_feature(void) {
  static tide_trace_ring_t rings[2];
  static tide_trace_record_t records[2][64];
  static const tide_trace_settings_t settings = {.rings = rings,
                                                 .ring_count = 2,
                                                 .records = records[0],
                                                 .records_a_ring = 64,
                                                 .period_ms = 50,
                                                 .most_messages = 2,
                                                 .chains_only = true};
  return tide_rclc_trace_init(&node, &support, &executor, &settings) == RCL_RET_OK;
}
#else
static bool add_feature(void) { return true; }
#endif

#if FEATURE == FEATURE_RTPS
/* A network controller with a buffer for a datagram in each direction. The figures do not include a driver. */
static volatile struct {
  uint32_t received, sent; /* bytes in the buffer; 0: none */
  uint8_t address[4];
} controller;
static uint8_t received[TIDE_RTPS_DATAGRAM_BYTES], sent[TIDE_RTPS_DATAGRAM_BYTES];
static tide_rtps_agent_t agent;

static bool start(void *context, uint32_t domain, tide_participant_config_t *config) {
  static const uint8_t prefix[TIDE_RTPS_PREFIX_BYTES] = {TIDE_RTPS_VENDOR >> 8, TIDE_RTPS_VENDOR & 0xFF, 1};
  (void)context;
  memcpy(config->prefix, prefix, sizeof config->prefix);
  memcpy(config->address, (const uint8_t *)controller.address, sizeof config->address);
  return domain == 0;
}
static bool open_wire(struct uxrCustomTransport *transport) {
  tide_rtps_agent_config_t config = tide_rtps_memory;
  (void)transport;
  config.start = start;
  tide_rtps_agent_init(&agent, &config);
  return true;
}
static bool close_wire(struct uxrCustomTransport *transport) {
  (void)transport;
  tide_rtps_agent_close(&agent, tide_platform_now_ns(tide_port_platform()));
  return true;
}
static size_t write_wire(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)transport;
  (void)error;
  return tide_rtps_agent_write(&agent, bytes, count, tide_platform_now_ns(tide_port_platform()), 0) ? count : 0;
}
static size_t read_wire(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                        uint8_t *error) {
  const int64_t now_ns = tide_platform_now_ns(tide_port_platform());
  int64_t deadline_ns;
  tide_rtps_datagram_t datagram = {.bytes = sent};
  (void)transport;
  (void)count;
  (void)timeout_ms;
  (void)error;
  if (tide_rtps_agent_is_up(&agent) && controller.received != 0) {
    uint8_t address[4];
    memcpy(address, (const uint8_t *)controller.address, sizeof address);
    tide_participant_receive(&agent.participant, received, controller.received, address, now_ns);
  }
  if (tide_rtps_agent_is_up(&agent) && tide_participant_poll(&agent.participant, now_ns, &datagram))
    controller.sent = (uint32_t)datagram.length;
  return tide_rtps_agent_read(&agent, bytes, now_ns, &deadline_ns);
}
static bool choose_wire(void) {
  return rmw_uros_set_custom_transport(false, NULL, open_wire, close_wire, write_wire, read_wire) == RMW_RET_OK;
}
#else
static bool choose_wire(void) { return true; }
#endif

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  if (!choose_wire()) return 1;
  if (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) return 2;
  if (rclc_node_init_default(&node, "features", "", &support) != RCL_RET_OK) return 3;
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  if (rclc_publisher_init_default(&publisher, &node, type, "said") != RCL_RET_OK) return 4;
  if (rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(50), publish) != RCL_RET_OK) return 5;
  if (rclc_executor_init(&executor, &support.context, 8, &allocator) != RCL_RET_OK) return 6;
  if (rclc_executor_add_timer(&executor, &timer) != RCL_RET_OK) return 7;
  if (!add_feature()) return 8;
  return rclc_executor_spin(&executor) == RCL_RET_OK ? 0 : 9;
}
