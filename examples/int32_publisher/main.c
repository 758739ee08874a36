/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes a counter once a second, as std_msgs/Int32 on the topic "counter". This is plain micro-ROS and uses nothing
   specific to tide. */
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

static rcl_publisher_t publisher;
static std_msgs__msg__Int32 message;

static void timer_callback(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  if (rcl_publish(&publisher, &message, NULL) == RCL_RET_OK) printf("sent: %d\n", (int)message.data);
  fflush(stdout);
  message.data++;
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "int32_publisher", "", &support));
  CHECK(rclc_publisher_init_default(&publisher, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32), "counter"));

  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1000), timer_callback));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  CHECK(rclc_executor_spin(&executor));

  CHECK(rclc_executor_fini(&executor));
  CHECK(rcl_publisher_fini(&publisher, &node));
  CHECK(rcl_timer_fini(&timer));
  CHECK(rcl_node_fini(&node));
  CHECK(rclc_support_fini(&support));
  return EXIT_SUCCESS;
}
