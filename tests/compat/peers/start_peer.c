/* SPDX-License-Identifier: Apache-2.0 */
/* A board that starts step by step, for tests against real ROS 2: start_peer (--udp PORT | --serial DEVICE (921,600
 * baud)). Before each step it prints its name and waits for a line. Then it publishes a count on "up" and prints
 * messages from "down". */
#include <std_msgs/msg/int32.h>

#include "peer.h"

static rcl_publisher_t publisher;

static void wait_before(const char *step) {
  char line[32];
  printf("{\"event\": \"%s\"}\n", step);
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) exit(0);
}

static void count(rcl_timer_t *timer, int64_t last_call_time) {
  static std_msgs__msg__Int32 message;
  (void)timer;
  (void)last_call_time;
  message.data++;
  (void)rcl_publish(&publisher, &message, NULL);
}

static void hear(const void *message) {
  printf("{\"heard\": %d}\n", (int)((const std_msgs__msg__Int32 *)message)->data);
  fflush(stdout);
}

int main(int word_count, char **words) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  read_options(word_count, words, NULL);
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  std_msgs__msg__Int32 received;
  publisher = rcl_get_zero_initialized_publisher();
  wait_before("support");
  require(rclc_support_init_with_options(&support, 0, NULL, &init_options, &allocator), "the support");
  wait_before("node");
  require(rclc_node_init_default(&node, "peer", "", &support), "the node");
  wait_before("publisher");
  require(rclc_publisher_init_default(&publisher, &node, type, "/up"), "the publisher");
  wait_before("subscription");
  require(rclc_subscription_init_default(&subscription, &node, type, "/down"), "the subscription");
  wait_before("timer");
  require(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(20), count), "the timer");
  wait_before("executor");
  require(rclc_executor_init(&executor, &support.context, 2, &allocator), "the executor");
  require(rclc_executor_add_timer(&executor, &timer), "its timer");
  require(rclc_executor_add_subscription(&executor, &subscription, &received, hear, ON_NEW_DATA), "its subscription");
  wait_before("spin");
  tell_ready();
  require(rclc_executor_spin(&executor), "the spin");
  return 0;
}
