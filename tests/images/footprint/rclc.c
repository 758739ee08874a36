/* SPDX-License-Identifier: Apache-2.0 */
/* The program of native.c on the rclc interface, with pools of the same sizes. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_NAME_BYTES 32
#define TIDE_SUBSCRIPTION_DEPTH 1
#define TIDE_SMALL_NODES 2
#define TIDE_SMALL_NODE_BYTES 64
#define TIDE_LARGE_NODES 3
#define TIDE_LARGE_NODE_BYTES 128
#define TIDE_MTU_BYTES 128
#define TIDE_SLOTS 4
#define TIDE_REASSEMBLIES 0
#define TIDE_STREAMS 1
#ifdef FOOTPRINT_CUSTOM /* the board has a custom transport */
#define TIDE_CUSTOM_TRANSPORT 1
#else
#define TIDE_CUSTOM_TRANSPORT 0
#endif
#define TIDE_DEFINE_POOLS
#include <std_msgs/msg/int32.h>

#include "board.h"
#include "tide/pools.h"

#define HEARD_ENOUGH 20

#ifdef FOOTPRINT_CUSTOM
int board_use_line(void);
#else
#include "uart.h"

static int board_use_line(void) { return 0; }
static uint8_t piece[32], ring[64];
const tide_uart_board_t tide_uart_board = {&TIDE_CHIP_UART, piece, sizeof piece, ring, sizeof ring};
#endif

static rclc_support_t support;
static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_timer_t timer;
static rclc_executor_t executor;
static std_msgs__msg__Int32 said, heard;

static void publish(rcl_timer_t *expired, int64_t last_call_time) {
  (void)expired;
  (void)last_call_time;
  said.data = heard.data + 1;
  (void)rcl_publish(&publisher, &said, NULL);
}

static void hear(const void *message) {
  (void)message; /* the message is in `heard` */
  if (heard.data >= HEARD_ENOUGH) tide_executor_stop(tide_rclc_executor_core(&executor));
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  const rmw_qos_profile_t *qos = FOOTPRINT_RELIABLE ? &rmw_qos_profile_default : &rmw_qos_profile_sensor_data;
  if (board_use_line() != 0) return 1;
  if (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) return 2;
  if (rclc_node_init_default(&node, "footprint", "", &support) != RCL_RET_OK) return 3;
  if (rclc_publisher_init(&publisher, &node, type, "said", qos) != RCL_RET_OK) return 4;
  if (rclc_subscription_init(&subscription, &node, type, "heard", qos) != RCL_RET_OK) return 5;
  if (rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(50), publish) != RCL_RET_OK) return 6;
  if (rclc_executor_init(&executor, &support.context, 2, &allocator) != RCL_RET_OK) return 7;
  if (rclc_executor_add_timer(&executor, &timer) != RCL_RET_OK) return 8;
  if (rclc_executor_add_subscription(&executor, &subscription, &heard, hear, ON_NEW_DATA) != RCL_RET_OK) return 9;
  return rclc_executor_spin(&executor) == RCL_RET_OK ? 0 : 10;
}
