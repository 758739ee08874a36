/* SPDX-License-Identifier: Apache-2.0 */
/* A board that reads the ROS 2 graph, for tests against real ROS 2: graph_peer --udp PORT|--serial DEVICE (921,600
 * baud). It publishes and subscribes "numbers", calls the service "sums", and prints the graph ten times a second. */
#include <rcl/graph.h>
#include <std_msgs/msg/int32.h>
#include <std_srvs/srv/set_bool.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_CLIENTS 1
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_GRAPH_BYTES 16384
#define TIDE_REASSEMBLY_BYTES 16384

#include "peer.h"

static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_client_t client;
static unsigned changes;

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
  connect_board(count, words, NULL, "", 2);
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  require(rclc_publisher_init_default(&publisher, &node, type, "numbers"), "the publisher");
  require(rclc_subscription_init_default(&subscription, &node, type, "numbers"), "the subscription");
  const rosidl_service_type_support_t *service = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
  require(rclc_client_init_default(&client, &node, service, "sums"), "the client");
  require(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(100), look), "the timer");
  require(rclc_executor_add_timer(&executor, &timer), "adding");
  rcl_guard_condition_t *changed = (rcl_guard_condition_t *)rcl_node_get_graph_guard_condition(&node);
  if (changed == NULL) require(RCL_RET_ERROR, "the graph");
  require(rclc_executor_add_guard_condition(&executor, changed, on_change), "adding the guard condition");
  tell_ready();
  require(rclc_executor_spin(&executor), "spinning");
  return 0;
}
