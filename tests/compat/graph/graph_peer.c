/* SPDX-License-Identifier: Apache-2.0 */
/* A board that looks at the ROS 2 graph, for tests against real ROS 2: graph_peer --udp PORT|--serial DEVICE (921,600
 * baud). It publishes and subscribes "numbers", asks the service "sums", and prints what it sees ten times a second. */
#include <rcl/graph.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <std_srvs/srv/set_bool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tide/rclc.h>
#include <tide/status.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_CLIENTS 1
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_GRAPH_BYTES 16384
#define TIDE_REASSEMBLY_BYTES 16384
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>

static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_client_t client;
static unsigned changes;

static void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "graph_peer: %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

static void on_change(void) { changes++; }

static void look(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  size_t publishers, subscriptions;
  bool served;
  if (rcl_count_publishers(&node, "/numbers", &publishers) != RCL_RET_OK) return; /* no graph yet */
  require(rcl_count_subscribers(&node, "/numbers", &subscriptions), "counting");
  require(rcl_subscription_get_publisher_count(&subscription, &publishers), "counting publishers");
  require(rcl_publisher_get_subscription_count(&publisher, &subscriptions), "counting subscriptions");
  require(rcl_service_server_is_available(&node, &client, &served), "asking for the service");
  printf("{\"publishers\": %zu, \"subscriptions\": %zu, \"served\": %s, \"changes\": %u}\n", publishers, subscriptions,
         served ? "true" : "false", changes);
  fflush(stdout);
}

int main(int count, char **words) {
  const bool serial = count == 3 && strcmp(words[1], "--serial") == 0;
  if (count != 3 || (!serial && strcmp(words[1], "--udp") != 0)) {
    fprintf(stderr, "usage: graph_peer --udp PORT|--serial DEVICE\n");
    return 2;
  }
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator), "options");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  require(serial ? tide_rclc_options_set_serial(link, words[2], 921600)
                 : rmw_uros_options_set_udp_address("127.0.0.1", words[2], link),
          "the address");
  rclc_support_t support;
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  require(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator), "connecting");
  require(rclc_node_init_default(&node, "peer", "", &support), "the node");
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  require(rclc_publisher_init_default(&publisher, &node, type, "numbers"), "the publisher");
  require(rclc_subscription_init_default(&subscription, &node, type, "numbers"), "the subscription");
  const rosidl_service_type_support_t *service = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
  require(rclc_client_init_default(&client, &node, service, "sums"), "the client");
  require(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(100), look), "the timer");
  require(rclc_executor_init(&executor, &support.context, 2, &allocator), "the executor");
  require(rclc_executor_add_timer(&executor, &timer), "adding");
  rcl_guard_condition_t *changed = (rcl_guard_condition_t *)rcl_node_get_graph_guard_condition(&node);
  if (changed == NULL) require(RCL_RET_ERROR, "the graph");
  require(rclc_executor_add_guard_condition(&executor, changed, on_change), "adding the guard condition");
  printf("{\"event\": \"ready\"}\n");
  fflush(stdout);
  require(rclc_executor_spin(&executor), "spinning");
  return 0;
}
