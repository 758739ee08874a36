/* SPDX-License-Identifier: Apache-2.0 */
/* A chain that is more urgent than the rest: a timer samples, ROS 2 answers, a callback acts. */
#include <micro_ros_arduino.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <std_msgs/msg/int32.h>
#include <tide/rclc.h>

rcl_publisher_t request;
rcl_subscription_t answer;
rcl_timer_t timer;
rclc_executor_t executor;
rclc_support_t support;
rcl_node_t node;
std_msgs__msg__Int32 sample, received;
tide_chain_t chain;

void on_sample(rcl_timer_t *, int64_t) {
  sample.data = analogRead(A0);
  (void)rcl_publish(&request, &sample, NULL);
}

void on_answer(const void *message) {
  digitalWrite(LED_BUILTIN, static_cast<const std_msgs__msg__Int32 *>(message)->data > 0 ? HIGH : LOW);
}

void setup() {
  pinMode(LED_BUILTIN, OUTPUT);
  set_microros_transports();
  rcl_allocator_t allocator = rcl_get_default_allocator();
  while (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) delay(500);
  rclc_node_init_default(&node, "first_chain", "", &support);
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  rclc_publisher_init_default(&request, &node, type, "request");
  rclc_subscription_init_default(&answer, &node, type, "answer");
  rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(100), on_sample);
  rclc_executor_init(&executor, &support.context, 2, &allocator);
  rclc_executor_add_timer(&executor, &timer);
  rclc_executor_add_subscription(&executor, &answer, &received, on_answer, ON_NEW_DATA);

  tide_chain_init(&chain, "first", 2, RCL_MS_TO_NS(100), RCL_MS_TO_NS(50));
  tide_rclc_chain_add_timer(&chain, &timer);
  tide_rclc_chain_add_publisher(&chain, &request);
  tide_rclc_chain_add_subscription(&chain, &answer);
}

void loop() { rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100)); }
