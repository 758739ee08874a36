/* SPDX-License-Identifier: Apache-2.0 */
/* Prints each std_msgs/Int32 of the topic "counter". This is plain micro-ROS and uses nothing specific to tide. */
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
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

static rcl_subscription_t subscription;
static std_msgs__msg__Int32 message;

static void subscription_callback(const void *received) {
  const std_msgs__msg__Int32 *number = received;
  printf("received: %d\n", (int)number->data);
  fflush(stdout);
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "int32_subscriber", "", &support));
  CHECK(rclc_subscription_init_default(&subscription, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32),
                                       "counter"));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  CHECK(rclc_executor_add_subscription(&executor, &subscription, &message, subscription_callback, ON_NEW_DATA));
  CHECK(rclc_executor_spin(&executor));

  CHECK(rclc_executor_fini(&executor));
  CHECK(rcl_subscription_fini(&subscription, &node));
  CHECK(rcl_node_fini(&node));
  CHECK(rclc_support_fini(&support));
  return EXIT_SUCCESS;
}
