/* SPDX-License-Identifier: Apache-2.0 */
/* A custom type, robot_msgs/Wheels, is sent twice a second on "wheels" and read back through the agent. The memory of
 * its strings is static: __Storage and __bind are specific to tide, the rest is plain micro-ROS. */
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <robot_msgs/msg/wheels.h>
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
static robot_msgs__msg__Wheels outgoing, incoming;
static robot_msgs__msg__Wheels__Storage outgoing_storage, incoming_storage;

static void on_timer(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  outgoing.left += 0.5;
  outgoing.right -= 0.25;
  outgoing.state.size = (size_t)snprintf(outgoing.state.data, outgoing.state.capacity, "turning");
  if (rcl_publish(&publisher, &outgoing, NULL) == RCL_RET_OK)
    printf("sent: %.2f %.2f\n", outgoing.left, outgoing.right);
  fflush(stdout);
}

static void on_wheels(const void *received) {
  const robot_msgs__msg__Wheels *wheels = received;
  printf("received: %.2f %.2f, %s\n", wheels->left, wheels->right, wheels->state.data);
  fflush(stdout);
}

int main(void) {
  /* Each message gets its memory for strings from a storage of the size that the definition bounds. */
  robot_msgs__msg__Wheels__bind(&outgoing, &outgoing_storage);
  robot_msgs__msg__Wheels__bind(&incoming, &incoming_storage);
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "own_messages", "", &support));
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(robot_msgs, msg, Wheels);
  CHECK(rclc_publisher_init_default(&publisher, &node, type, "wheels"));
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  CHECK(rclc_subscription_init_default(&subscription, &node, type, "wheels"));
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(500), on_timer));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  CHECK(rclc_executor_add_subscription(&executor, &subscription, &incoming, on_wheels, ON_NEW_DATA));
  CHECK(rclc_executor_spin(&executor));
  return EXIT_SUCCESS;
}
