/* SPDX-License-Identifier: Apache-2.0 */
/* The agent ends and returns, and no object has to be created again. Publishes a counter ten times a second on
 * "kept_counter", and pings the agent once a second. This is plain micro-ROS and uses nothing specific to tide, but
 * with the micro-ROS library the program would have to end the session and create all objects again. */
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                   \
  do {                                                                \
    rcl_ret_t result = (call);                                        \
    if (result != RCL_RET_OK) {                                       \
      fprintf(stderr, "%s: %s\n", #call, rcl_get_error_string().str); \
      return EXIT_FAILURE;                                            \
    }                                                                 \
  } while (0)

static rcl_publisher_t publisher;
static std_msgs__msg__Int32 message;
static unsigned refused;

/* A refused message keeps its number, so the next attempt sends it. */
static void on_timer(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  if (rcl_publish(&publisher, &message, NULL) == RCL_RET_OK) {
    message.data++;
  } else {
    refused++;
  }
}

static void say(bool here) {
  printf("the agent is %s: %d accepted, %u refused\n", here ? "here" : "away", (int)message.data, refused);
  fflush(stdout);
}

int main(int count, char **words) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, allocator));
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  CHECK(rmw_uros_options_set_udp_address(count > 1 ? words[1] : "127.0.0.1", count > 2 ? words[2] : "8888", link));
  rclc_support_t support;
  CHECK(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "reconnection", "", &support));
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  CHECK(rclc_publisher_init_default(&publisher, &node, type, "kept_counter"));
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(100), on_timer));
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));

  bool here = false;
  for (unsigned round = 0; true; round++) {
    const rcl_ret_t result = rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100));
    if (result != RCL_RET_OK && result != RCL_RET_TIMEOUT) return EXIT_FAILURE;
    if (round % 10u != 0u) continue;
    const bool answered = rmw_uros_ping_agent(200, 2) == RMW_RET_OK;
    if (answered != here) say(answered);
    here = answered;
  }
}
