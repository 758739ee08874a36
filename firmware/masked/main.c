/* SPDX-License-Identifier: Apache-2.0 */
/* How long does the runtime mask interrupts? Publishes reliable messages and hears their echo, first with one timer,
 * then with many, and prints the longest critical section of each part; run it with -icount shift=5, where an
 * instruction takes 32 ns. Interrupts that are more urgent than the runtime are never masked (firmware/clock). */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_TIMERS 64
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_DEFINE_POOLS
#include <std_msgs/msg/int32.h>

#include "board.h"
#include "platform.h"
#include "tide/pools.h"

#define MESSAGES 60
#define PERIOD_MS 25

static rclc_support_t support;
static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_timer_t timers[TIDE_TIMERS];
static rclc_executor_t executor;
static std_msgs__msg__Int32 said, heard;

static void publish(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  said.data++;
  (void)rcl_publish(&publisher, &said, NULL);
}

static void idle(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
}

static void hear(const void *message) { (void)message; }

static void print(uint32_t number, const char *what) {
  char text[12], *digits = text + sizeof text - 1;
  *digits = '\0';
  do *--digits = (char)('0' + number % 10u);
  while ((number /= 10u) != 0u);
  board_print(digits);
  board_print(what);
}

/* Until so many more messages were published. */
static int run(size_t handles) {
  const int32_t end = said.data + MESSAGES;
  (void)tide_cortex_m_masked_maximum();
  while (said.data < end) {
    if (rclc_executor_spin_some(&executor, RCL_MS_TO_NS(PERIOD_MS)) != RCL_RET_OK) return 10;
  }
  print(tide_cortex_m_masked_maximum() * 40u / 32u, " instructions masked at most, ");
  print((uint32_t)handles, " timers\n");
  return 0;
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  if (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) return 2;
  if (rclc_node_init_default(&node, "masked", "", &support) != RCL_RET_OK) return 3;
  if (rclc_publisher_init_default(&publisher, &node, type, "said") != RCL_RET_OK) return 4;
  if (rclc_subscription_init_default(&subscription, &node, type, "heard") != RCL_RET_OK) return 5;
  if (rclc_executor_init(&executor, &support.context, TIDE_HANDLES, &allocator) != RCL_RET_OK) return 6;
  if (rclc_executor_add_subscription(&executor, &subscription, &heard, hear, ON_NEW_DATA) != RCL_RET_OK) return 7;
  for (size_t i = 0; i < TIDE_TIMERS; i++) {
    const bool first = i == 0;
    if (rclc_timer_init_default(&timers[i], &support, RCL_MS_TO_NS(PERIOD_MS + i), first ? publish : idle) !=
        RCL_RET_OK)
      return 8;
    if (rclc_executor_add_timer(&executor, &timers[i]) != RCL_RET_OK) return 9;
    if (!first) continue;
    const int result = run(1);
    if (result != 0) return result;
  }
  return run(TIDE_TIMERS);
}
