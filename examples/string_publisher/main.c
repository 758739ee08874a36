/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes a line of text twice a second on "chatter", and receives replies on "reply". The memory of the strings is
 * the program's own. This is plain micro-ROS and uses nothing specific to tide. */
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <std_msgs/msg/string.h>
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
static rcl_subscription_t subscription;
static std_msgs__msg__String outgoing, incoming;
static char outgoing_text[64], incoming_text[64];
static int counter;

static void timer_callback(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  outgoing.data.size = (size_t)snprintf(outgoing.data.data, outgoing.data.capacity, "hello %d", counter++);
  if (rcl_publish(&publisher, &outgoing, NULL) == RCL_RET_OK) printf("sent: %s\n", outgoing.data.data);
  fflush(stdout);
}

static void subscription_callback(const void *received) {
  const std_msgs__msg__String *text = received;
  printf("received: %s\n", text->data.data);
  fflush(stdout);
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  CHECK(rclc_node_init_default(&node, "string_publisher", "", &support));
  CHECK(rclc_publisher_init_best_effort(&publisher, &node, type, "chatter"));
  CHECK(rclc_subscription_init_best_effort(&subscription, &node, type, "reply"));

  outgoing.data.data = outgoing_text;
  outgoing.data.capacity = sizeof outgoing_text;
  incoming.data.data = incoming_text;
  incoming.data.capacity = sizeof incoming_text;

  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(500), timer_callback));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  CHECK(rclc_executor_add_subscription(&executor, &subscription, &incoming, subscription_callback, ON_NEW_DATA));
  for (;;) {
    /* The result also reports a reply that is longer than incoming_text. The next reply may fit. */
    if (rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100)) != RCL_RET_OK) {
      fprintf(stderr, "%s\n", rcl_get_error_string().str);
      rcl_reset_error();
    }
  }
}
