/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest test of the runtime on a Cortex-M: a session with an agent over the UART, a timer, and a
 * reliable publisher. Ends with exit code 0 when every message was acknowledged by the agent. */
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <std_msgs/msg/int32.h>

#include "board.h"
#include "tide/rclc.h"

#define MESSAGES 20
#define LINGER_MS 2000 /* the writer stays for late readers */

static rcl_publisher_t publisher;
static std_msgs__msg__Int32 message;
static int32_t refused;

static void publish_next(rcl_timer_t *timer, int64_t last_call_time) {
  (void)last_call_time;
  if (message.data == MESSAGES) {
    rcl_timer_cancel(timer);
    return;
  }
  message.data++;
  if (rcl_publish(&publisher, &message, NULL) != RCL_RET_OK) refused++;
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();

  if (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) return 2;
  if (rclc_node_init_default(&node, "smoke", "", &support) != RCL_RET_OK) return 3;
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  rmw_qos_profile_t qos = rmw_qos_profile_default; /* kept for a reader that discovers the new writer late */
  qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  qos.depth = MESSAGES;
  if (rclc_publisher_init(&publisher, &node, type, "cortex_m", &qos) != RCL_RET_OK) return 4;
  if (rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(50), publish_next) != RCL_RET_OK) return 5;
  if (rclc_executor_init(&executor, &support.context, 1, &allocator) != RCL_RET_OK) return 6;
  if (rclc_executor_add_timer(&executor, &timer) != RCL_RET_OK) return 7;
  board_print("publishing\n");

  bool canceled = false;
  while (!canceled) {
    if (rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100)) != RCL_RET_OK) return 8;
    rcl_timer_is_canceled(&timer, &canceled);
  }
  for (int i = 0; i < 50 && !tide_daemon_is_idle(&tide_rclc_support_session(&support)->daemon, 0); i++) {
    rclc_executor_spin_some(&executor, RCL_MS_TO_NS(20));
  }
  rclc_sleep_ms(LINGER_MS);
  bool delivered = tide_daemon_is_idle(&tide_rclc_support_session(&support)->daemon, 0);
  rclc_executor_fini(&executor);
  rcl_publisher_fini(&publisher, &node);
  rcl_node_fini(&node);
  rclc_support_fini(&support);
  return refused != 0 ? 9 : delivered ? 0 : 10;
}
