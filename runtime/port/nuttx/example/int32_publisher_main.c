/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes a number each second on /nuttx_int32_publisher, until the agent has acknowledged the number given as
 * argument. */
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <std_msgs/msg/int32.h>
#include <stdio.h>
#include <stdlib.h>

#include "tide/rclc.h"
#include "tide/status.h"

static rcl_publisher_t publisher;
static std_msgs__msg__Int32 message;
static rclc_executor_t executor;
static long wanted;

static void on_timer(rcl_timer_t *timer, int64_t since_ns) {
  (void)timer;
  (void)since_ns;
  if (rcl_publish(&publisher, &message, NULL) == RCL_RET_OK) message.data++;
  if (wanted > 0 && message.data >= wanted) tide_executor_stop(tide_rclc_executor_core(&executor));
}

static int fail(const char *what) {
  printf("%s: %s\n", what, tide_status_text(tide_rclc_last_status()));
  return 1;
}

int main(int argc, char *argv[]) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rclc_support_t support;
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  const char *device = argc > 2 ? argv[2] : CONFIG_TIDE_EXAMPLE_DEVICE;
  wanted = argc > 1 ? atol(argv[1]) : 0;
  message.data = 0;
  executor = rclc_executor_get_zero_initialized_executor();
  if (rcl_init_options_init(&options, allocator) != RCL_RET_OK ||
      tide_rclc_options_set_serial(rcl_init_options_get_rmw_init_options(&options), device, 115200) != RCL_RET_OK ||
      rclc_support_init_with_options(&support, 0, NULL, &options, &allocator) != RCL_RET_OK)
    return fail("no session");
  if (rclc_node_init_default(&node, "int32_publisher", "", &support) != RCL_RET_OK ||
      rclc_publisher_init_default(&publisher, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32),
                                  "nuttx_int32_publisher") != RCL_RET_OK ||
      rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(wanted > 0 ? 20 : 1000), on_timer) != RCL_RET_OK ||
      rclc_executor_init(&executor, &support.context, 1, &allocator) != RCL_RET_OK ||
      rclc_executor_add_timer(&executor, &timer) != RCL_RET_OK)
    return fail("not set up");
  if (rclc_executor_spin(&executor) != RCL_RET_OK) return fail("spin");
  printf("published %ld\n", (long)message.data);
  (void)rclc_executor_fini(&executor);
  (void)rcl_timer_fini(&timer);
  (void)rcl_publisher_fini(&publisher, &node);
  (void)rcl_node_fini(&node);
  return rclc_support_fini(&support) == RCL_RET_OK ? 0 : fail("end");
}
