/* SPDX-License-Identifier: Apache-2.0 */
/* A board without an agent. It publishes a counter on "up" every 50 ms. It publishes on "back" each number that it
 * receives on "down", and the length of each text that it receives on "text". The second word of the command line is
 * the ROS domain (sim/lwip/ethernet.h). */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 2
#define TIDE_SUBSCRIPTIONS 2
#define TIDE_SUBSCRIPTION_DEPTH 10 /* of rmw_qos_profile_default */
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TEXT_BYTES 2000 /* takes more than one frame */
#define TIDE_REASSEMBLIES 1
#define TIDE_REASSEMBLY_BYTES (TEXT_BYTES + 100)
#define TIDE_DEFINE_POOLS
#define TIDE_RTPS_WRITERS 2
#define TIDE_RTPS_READERS 2
#define TIDE_RTPS_HISTORY 10
#define TIDE_RTPS_SAMPLE_BYTES (TEXT_BYTES + 100)
#define TIDE_DEFINE_RTPS
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <std_msgs/msg/int32.h>
#include <std_msgs/msg/string.h>
#include <stdlib.h>

#include "board.h"
#include "ethernet.h"
#include "tide/pools.h"
#include "tide/rclc_rtps.h"

static rclc_support_t support;
static rcl_node_t node;
static rcl_publisher_t up, back;
static rcl_subscription_t down, text;
static rcl_timer_t timer;
static rclc_executor_t executor;
static std_msgs__msg__Int32 number, received;
static char characters[TEXT_BYTES + 1];
static std_msgs__msg__String received_text = {.data = {.data = characters, .capacity = sizeof characters}};

static void count(rcl_timer_t *expired, int64_t since_ns) {
  (void)expired;
  (void)since_ns;
  if (rcl_publish(&up, &number, NULL) == RCL_RET_OK) number.data++;
}

static void send_back(const void *message) {
  if (rcl_publish(&back, message, NULL) != RCL_RET_OK) board_print("a number was not sent back\n");
}

static void measure(const void *message) {
  const std_msgs__msg__Int32 length = {.data = (int32_t)((const std_msgs__msg__String *)message)->data.size};
  send_back(&length);
}

int main(void) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  if (rcl_init_options_init(&options, allocator) != RCL_RET_OK) return 1;
  if (tide_rclc_options_set_rtps(rcl_init_options_get_rmw_init_options(&options), ethernet_start(1)) != RMW_RET_OK)
    return 2;
  if (rcl_init_options_set_domain_id(&options, (size_t)atoi(ethernet_start(2))) != RCL_RET_OK) return 3;
  if (rclc_support_init_with_options(&support, 0, NULL, &options, &allocator) != RCL_RET_OK) return 4;
  if (rclc_node_init_default(&node, "ethernet_board", "", &support) != RCL_RET_OK) return 5;
  if (rclc_publisher_init_default(&up, &node, type, "up") != RCL_RET_OK) return 6;
  if (rclc_publisher_init_default(&back, &node, type, "back") != RCL_RET_OK) return 7;
  if (rclc_subscription_init_default(&down, &node, type, "down") != RCL_RET_OK) return 8;
  if (rclc_subscription_init_default(&text, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String), "text") !=
      RCL_RET_OK)
    return 14;
  if (rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(50), count) != RCL_RET_OK) return 9;
  if (rclc_executor_init(&executor, &support.context, 3, &allocator) != RCL_RET_OK) return 10;
  if (rclc_executor_add_timer(&executor, &timer) != RCL_RET_OK) return 11;
  if (rclc_executor_add_subscription(&executor, &down, &received, send_back, ON_NEW_DATA) != RCL_RET_OK) return 12;
  if (rclc_executor_add_subscription(&executor, &text, &received_text, measure, ON_NEW_DATA) != RCL_RET_OK) return 15;
  return rclc_executor_spin(&executor) == RCL_RET_OK ? 0 : 13;
}
