/* SPDX-License-Identifier: Apache-2.0 */
/* An ordinary micro-ROS sketch: it contains nothing specific to tide. */
#include <micro_ros_arduino.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdio.h>

#include <geometry_msgs/msg/twist.h>
#include <std_msgs/msg/int32.h>

rcl_publisher_t publisher;
rcl_subscription_t subscriber;
std_msgs__msg__Int32 count;
geometry_msgs__msg__Twist twist;
rclc_executor_t executor;
rclc_support_t support;
rcl_allocator_t allocator;
rcl_node_t node;
rcl_timer_t timer;

#define RCCHECK(fn)                 \
  {                                 \
    rcl_ret_t result = fn;          \
    if (result != RCL_RET_OK) {     \
      while (true) delay(100);      \
    }                               \
  }

void expired(rcl_timer_t *expired_timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (expired_timer != NULL) RCCHECK(rcl_publish(&publisher, &count, NULL));
  count.data++;
}

void heard(const void *message) {
  const geometry_msgs__msg__Twist *command = (const geometry_msgs__msg__Twist *)message;
  digitalWrite(13, command->linear.x == 0 ? LOW : HIGH);
}

void setup() {
  set_microros_transports();
  delay(2000);
  allocator = rcl_get_default_allocator();
  RCCHECK(rclc_support_init(&support, 0, NULL, &allocator));
  RCCHECK(rclc_node_init_default(&node, "sketch", "", &support));
  RCCHECK(rclc_publisher_init_default(&publisher, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32), "count"));
  RCCHECK(rclc_subscription_init_default(&subscriber, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(geometry_msgs, msg, Twist), "twist"));
  RCCHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1000), expired));
  RCCHECK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  RCCHECK(rclc_executor_add_timer(&executor, &timer));
  RCCHECK(rclc_executor_add_subscription(&executor, &subscriber, &twist, &heard, ON_NEW_DATA));
}

void loop() { RCCHECK(rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100))); }
