/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a session, its objects and preemptive lanes repeatedly. After each round, the kernel's heap must be
 * as full as after the first one. In each round a publisher is removed while the window of its stream is full, and the
 * number of session polls during the removal is printed. At the same time, another task pings the agent, and the main
 * task requests the agent's time. */
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>

#include "board.h"
#include "measure.h"
#include "tide/rclc.h"
#include "tide/status.h"
#include "tide_freertos.h"

#define TIDE_PUBLISHERS 2
#define TIDE_TIMERS 2
#define TIDE_EXECUTOR_LANES 2
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define ROUNDS 100
#define BURST 24
#define ASKED 5
#define ATTEMPTS 10u /* to open a session: the agent may start late */

int64_t __real_tide_session_poll(tide_session_t *session);
int64_t __wrap_tide_session_poll(tide_session_t *session);

static volatile uint32_t polls;
static rcl_publisher_t publishers[2];
static rclc_executor_t executor;
static uint32_t calls[2];
static volatile bool asking;
static volatile uint32_t answers;
static int64_t longest_ping_ns, longest_sync_ns;

int64_t __wrap_tide_session_poll(tide_session_t *session) {
  polls++;
  return __real_tide_session_poll(session);
}

static int64_t now_ns(void) { return tide_port_platform()->now_ns(tide_port_platform()->context); }

static void require(rcl_ret_t result, int code) {
  if (result != RCL_RET_OK) board_exit(code);
}

static void publish(unsigned which) {
  const std_msgs__msg__Int32 message = {.data = (int32_t)calls[which]++};
  (void)rcl_publish(&publishers[which], &message, NULL);
}

static void on_urgent(rcl_timer_t *timer, int64_t since_ns) {
  (void)timer;
  (void)since_ns;
  publish(0);
}

static void on_slow(rcl_timer_t *timer, int64_t since_ns) {
  (void)timer;
  (void)since_ns;
  publish(1);
  if (calls[1] >= 3u) tide_executor_stop(tide_rclc_executor_core(&executor));
}

static void ping_task(void *argument) {
  (void)argument;
  while (asking) {
    const int64_t begin_ns = now_ns();
    if (rmw_uros_ping_agent(1000, 1) != RMW_RET_OK) board_exit(30);
    const int64_t took_ns = now_ns() - begin_ns;
    if (took_ns > longest_ping_ns) longest_ping_ns = took_ns;
    answers++;
  }
  vTaskDelete(NULL);
}

static void ask_side_by_side(void) {
  asking = true;
  if (xTaskCreate(ping_task, "ping", 1024, NULL, uxTaskPriorityGet(NULL), NULL) != pdPASS) board_exit(31);
  for (unsigned count = 0; count < ASKED; count++) {
    const int64_t begin_ns = now_ns();
    if (rmw_uros_sync_session(1000) != RMW_RET_OK) board_exit(32);
    const int64_t took_ns = now_ns() - begin_ns;
    if (took_ns > longest_sync_ns) longest_sync_ns = took_ns;
  }
  asking = false;
  for (unsigned count = 0; count < 200u && answers < 1u; count++) vTaskDelay(10);
  vTaskDelay(20); /* lets the task end and the idle task free its memory */
}

static void remove_with_a_full_window(rcl_node_t *node) {
  rcl_publisher_t burst = rcl_get_zero_initialized_publisher();
  const std_msgs__msg__Int32 message = {.data = 1};
  require(rcl_publisher_fini(&publishers[1], node), 20);
  require(rclc_publisher_init_default(&burst, node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32), "burst"), 21);
  (void)tide_rclc_publisher_set_wait_ms(&burst, 0);
  uint32_t refused = 0;
  for (unsigned count = 0; count < BURST; count++) refused += rcl_publish(&burst, &message, NULL) != RCL_RET_OK;
  const uint32_t before = polls;
  const int64_t begin_ns = now_ns();
  require(rcl_publisher_fini(&burst, node), 22);
  const int64_t took_ns = now_ns() - begin_ns;
  measure_print("removal: refused ", refused, "");
  measure_print(" polls ", (int64_t)(polls - before), "");
  measure_print(" ns ", took_ns, "\n");
}

static void run_round(unsigned round) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_timer_t timers[2] = {rcl_get_zero_initialized_timer(), rcl_get_zero_initialized_timer()};
  static const char *const topics[] = {"urgent", "slow"};
  void (*const callbacks[])(rcl_timer_t *, int64_t) = {on_urgent, on_slow};
  executor = rclc_executor_get_zero_initialized_executor();
  calls[0] = calls[1] = 0;
  for (unsigned attempt = 1; rclc_support_init(&support, 0, NULL, &allocator) != RCL_RET_OK; attempt++)
    if (attempt == ATTEMPTS) {
      measure_print("no session in round ", round, ": ");
      board_print(tide_status_text(tide_rclc_last_status()));
      board_exit(3);
    }
  require(rclc_node_init_default(&node, "reopen", "", &support), 4);
  require(rclc_executor_init(&executor, &support.context, 2, &allocator), 5);
  const tide_lane_settings_t lanes[] = {
      {.least_level = 0, .scheduling = TIDE_SCHEDULING_FIFO, .priority = 2},
      {.least_level = 2, .scheduling = TIDE_SCHEDULING_FIFO, .priority = 3},
  };
  require(tide_rclc_executor_set_lanes(&executor, lanes, 2), 6);
  for (unsigned which = 0; which < 2u; which++) {
    require(rclc_publisher_init_default(&publishers[which], &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32),
                                        topics[which]),
            7);
    require(rclc_timer_init_default(&timers[which], &support, RCL_MS_TO_NS(which == 0 ? 5 : 12), callbacks[which]), 8);
    require(rclc_executor_add_timer(&executor, &timers[which]), 9);
    require(tide_rclc_timer_set_priority(&timers[which], TIDE_PRIORITY(which == 0 ? 2 : 1, 0)), 10);
  }
  require(rclc_executor_spin(&executor), 11);
  if (calls[0] < 3u) board_exit(12);
  if (round == 0u) {
    ask_side_by_side();
    remove_with_a_full_window(&node);
  }
  require(rclc_executor_fini(&executor), 13);
  for (unsigned which = 0; which < 2u; which++) (void)rcl_timer_fini(&timers[which]);
  require(rcl_publisher_fini(&publishers[0], &node), 14);
  if (round > 0u) require(rcl_publisher_fini(&publishers[1], &node), 15);
  require(rcl_node_fini(&node), 16);
  require(rclc_support_fini(&support), 17);
}

int main(void) {
  const size_t before = xPortGetFreeHeapSize();
  for (unsigned round = 0; round < ROUNDS; round++) {
    run_round(round);
    if (xPortGetFreeHeapSize() != before) {
      measure_print("bytes missing in the heap: ", (int64_t)before - (int64_t)xPortGetFreeHeapSize(), "");
      measure_print(" after round ", round, "\n");
      return 2;
    }
  }
  measure_print("pings ", answers, "");
  measure_print(" longest ns ", longest_ping_ns, "");
  measure_print(" longest sync ns ", longest_sync_ns, "\n");
  measure_print("rounds ", ROUNDS, "\n");
  return 0;
}
