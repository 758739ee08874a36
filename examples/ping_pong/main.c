/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a stamped ping every two seconds, answers pings of others, and counts the pongs to its own: std_msgs/Header on
 * "ping" and "pong". First waits for the agent and prints the agent's time. This is plain micro-ROS and uses nothing
 * specific to tide. */
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/header.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                   \
  do {                                                                \
    rcl_ret_t result = (call);                                        \
    if (result != RCL_RET_OK) {                                       \
      fprintf(stderr, "%s: %s\n", #call, rcl_get_error_string().str); \
      return EXIT_FAILURE;                                            \
    }                                                                 \
  } while (0)

#define NAME_BYTES 50

static rcl_publisher_t ping_publisher, pong_publisher;
static rcl_subscription_t ping_subscription, pong_subscription;
static std_msgs__msg__Header outgoing, incoming_ping, incoming_pong;
static char outgoing_name[NAME_BYTES], ping_name[NAME_BYTES], pong_name[NAME_BYTES];
static int sequence, pongs;
static const int device = 1;

static void bind(std_msgs__msg__Header *header, char *name) {
  header->frame_id.data = name;
  header->frame_id.capacity = NAME_BYTES;
}

static void timer_callback(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  int length = snprintf(outgoing.frame_id.data, outgoing.frame_id.capacity, "%d_%d", ++sequence, device);
  outgoing.frame_id.size = (size_t)length;
  int64_t time_ns = rmw_uros_epoch_nanos();
  outgoing.stamp.sec = (int32_t)(time_ns / 1000000000);
  outgoing.stamp.nanosec = (uint32_t)(time_ns % 1000000000);
  pongs = 0;
  if (rcl_publish(&ping_publisher, &outgoing, NULL) == RCL_RET_OK) printf("ping: %s\n", outgoing.frame_id.data);
  fflush(stdout);
}

static void ping_callback(const void *received) {
  const std_msgs__msg__Header *ping = received;
  if (strcmp(ping->frame_id.data, outgoing.frame_id.data) == 0) return;
  if (rcl_publish(&pong_publisher, ping, NULL) == RCL_RET_OK) printf("pong: %s\n", ping->frame_id.data);
  fflush(stdout);
}

static void pong_callback(const void *received) {
  const std_msgs__msg__Header *pong = received;
  if (strcmp(pong->frame_id.data, outgoing.frame_id.data) != 0) return;
  printf("pongs to %s: %d\n", pong->frame_id.data, ++pongs);
  fflush(stdout);
}

int main(void) {
  while (rmw_uros_ping_agent(200, 5) != RMW_RET_OK) puts("waiting for the agent");

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));
  CHECK(rmw_uros_sync_session(1000));
  printf("the agent's time is %lld ms since 1970\n", (long long)rmw_uros_epoch_millis());

  rcl_node_t node = rcl_get_zero_initialized_node();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Header);
  CHECK(rclc_node_init_default(&node, "ping_pong", "", &support));
  CHECK(rclc_publisher_init_default(&ping_publisher, &node, type, "/ping"));
  CHECK(rclc_publisher_init_best_effort(&pong_publisher, &node, type, "/pong"));
  CHECK(rclc_subscription_init_best_effort(&ping_subscription, &node, type, "/ping"));
  CHECK(rclc_subscription_init_best_effort(&pong_subscription, &node, type, "/pong"));
  bind(&outgoing, outgoing_name);
  bind(&incoming_ping, ping_name);
  bind(&incoming_pong, pong_name);

  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(2000), timer_callback));
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 3, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  CHECK(rclc_executor_add_subscription(&executor, &ping_subscription, &incoming_ping, ping_callback, ON_NEW_DATA));
  CHECK(rclc_executor_add_subscription(&executor, &pong_subscription, &incoming_pong, pong_callback, ON_NEW_DATA));
  CHECK(rclc_executor_spin(&executor));
  return EXIT_SUCCESS;
}
