/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long the runtime masks interrupts. It publishes reliable messages and receives their echo, with 10, 100
 * and 1,000 timers. It prints the longest critical section of each part (including the registration of the part's
 * timers), the longest section that only excludes lanes, and finally the instructions of a publish. Before that, it
 * prints the longest sections of an executor alone, which are much shorter than those for a frame. Run it with -icount
 * shift=5, with which an instruction takes 32 ns. Interrupts that are more urgent than the runtime are never masked
 * (tests/images/clock). */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_TIMERS 1000
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_DEFINE_POOLS
#include <std_msgs/msg/int32.h>
#include <string.h>

#include "board.h"
#include "chip.h"
#include "platform.h"
#include "tide/pools.h"
#include "tide/status.h"

#define MESSAGES 60
#define PERIOD_MS 25

static rclc_support_t support;
static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_timer_t timers[TIDE_TIMERS];
static rclc_executor_t executor;
static std_msgs__msg__Int32 said, heard;
static uint32_t publish_ticks = UINT32_MAX; /* the shortest publish, which no interrupt has lengthened */
static uint32_t line_ticks;                 /* those of its ticks that emulate the line */

static void publish(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  said.data++;
  const uint32_t line_before = board_line_ticks(), before = tide_chip_ticks();
  (void)rcl_publish(&publisher, &said, NULL);
  const uint32_t ticks = tide_chip_ticks() - before;
  if (ticks >= publish_ticks) return;
  publish_ticks = ticks;
  line_ticks = board_line_ticks() - line_before;
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

static uint32_t instructions(uint32_t ticks) { return ticks * 40u / 32u; }

static void print_maxima(const char *what, size_t handles) {
  board_print(what);
  print((uint32_t)handles, " timers: ");
  print(instructions(tide_cortex_m_masked_maximum()), " instructions masked at most, lanes ");
  print(instructions(tide_cortex_m_lanes_locked_maximum()), "\n");
}

/* ---- an executor alone: each expiry notifies another callback, as an interrupt could ---- */

static struct {
  tide_executor_t executor;
  tide_lane_t lane;
  tide_callback_t *callbacks[TIDE_TIMERS + 1];
  tide_queue_entry_t *ready[TIDE_TIMERS + 1], *expiries[TIDE_TIMERS + 1];
  tide_timer_t timers[TIDE_TIMERS];
  tide_callback_t told;
} alone;

static void tell(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  tide_executor_notify(&alone.told);
}

static void be_told(tide_callback_t *callback, void *context) {
  (void)callback;
  (void)context;
}

static int run_alone(size_t handles) {
  const tide_executor_config_t config = {.platform = &tide_cortex_m_platform,
                                         .callbacks = alone.callbacks,
                                         .ready_storage = alone.ready,
                                         .timer_storage = alone.expiries,
                                         .callback_count = TIDE_TIMERS + 1,
                                         .lanes = &alone.lane,
                                         .lane_count = 1};
  memset(&alone, 0, sizeof alone);
  alone.told.kind = TIDE_CALLBACK_GUARD;
  alone.told.execute = be_told;
  if (tide_executor_init(&alone.executor, &config) != TIDE_OK) return 11;
  (void)tide_cortex_m_masked_maximum();
  (void)tide_cortex_m_lanes_locked_maximum();
  if (tide_executor_add(&alone.executor, &alone.told) != TIDE_OK) return 12;
  for (size_t i = 0; i < handles; i++) {
    alone.timers[i].period_ns = RCL_MS_TO_NS(1 + i % 7);
    alone.timers[i].on_expiry = tell;
    alone.timers[i].callback.priority = (tide_priority_t)(i * 7u % handles);
    if (tide_executor_add_timer(&alone.executor, &alone.timers[i]) != TIDE_OK) return 13;
  }
  for (size_t round = 0; round < 3u * TIDE_TIMERS; round++)
    if (tide_executor_round(&alone.executor, TIDE_FOREVER) < 0) return 14;
  print_maxima("alone, ", handles);
  return 0;
}

/* ---- the whole runtime ---- */

/* Adds timers up to this number of handles. Then runs until a number of further messages has been published. */
static int run(size_t handles) {
  static size_t added;
  const int32_t end = said.data + MESSAGES;
  (void)tide_cortex_m_masked_maximum();
  (void)tide_cortex_m_lanes_locked_maximum();
  for (; added < handles; added++) {
    if (rclc_timer_init_default(&timers[added], &support, RCL_MS_TO_NS(PERIOD_MS + added),
                                added == 0 ? publish : idle) != RCL_RET_OK)
      return 8;
    if (rclc_executor_add_timer(&executor, &timers[added]) != RCL_RET_OK) return 9;
  }
  while (said.data < end) {
    if (rclc_executor_spin_some(&executor, RCL_MS_TO_NS(PERIOD_MS)) != RCL_RET_OK) return 10;
  }
  print_maxima("", handles);
  return 0;
}

int main(void) {
  static const size_t sizes[] = {10, 100, TIDE_TIMERS};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const int result = run_alone(sizes[i]);
    if (result != 0) return result;
  }
  rcl_allocator_t allocator = rcl_get_default_allocator();
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  if (rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK) return 2;
  if (rclc_node_init_default(&node, "masked", "", &support) != RCL_RET_OK) return 3;
  if (rclc_publisher_init_default(&publisher, &node, type, "said") != RCL_RET_OK) return 4;
  if (rclc_subscription_init_default(&subscription, &node, type, "heard") != RCL_RET_OK) return 5;
  if (rclc_executor_init(&executor, &support.context, TIDE_HANDLES, &allocator) != RCL_RET_OK) return 6;
  if (rclc_executor_add_subscription(&executor, &subscription, &heard, hear, ON_NEW_DATA) != RCL_RET_OK) return 7;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const int result = run(sizes[i]);
    if (result != 0) return result;
  }
  board_print("a publish: ");
  print(instructions(publish_ticks), " instructions, and ");
  print(instructions(line_ticks), " of them for the emulated line\n");
  return 0;
}
