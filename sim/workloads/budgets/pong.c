/* SPDX-License-Identifier: Apache-2.0 */
#include "pong.h"

#include <rclc/executor_sched.h>
#include <std_msgs/msg/int32.h>
#include <stdio.h>

#include "tide/pools.h"
#include "tide/rclc.h"
#include "tide/status.h"

#define CHECK(call)                                   \
  do {                                                \
    if ((call) != RCL_RET_OK) return complain(#call); \
  } while (0)

typedef struct end {
  rcl_subscription_t ping;
  rcl_publisher_t pong;
  std_msgs__msg__Int32 received, answer;
  char ping_topic[24], pong_topic[24];
  uint32_t greetings;
} end_t;

static const pong_plan_t *plan;
static const pong_place_t *place;
static lane_result_t results[PONG_LANES];
static end_t ends[PONG_LANES];
static rclc_support_t support;
static rcl_node_t node;
static rclc_executor_t executor;

static const char *complain(const char *call) {
  static char text[256];
  (void)snprintf(text, sizeof text, "%.160s: %.80s", call, tide_status_text(tide_rclc_last_status()));
  return text;
}

/* Ping sends this until each topic works in both directions. */
static void greet(end_t *end, int32_t greeting) {
  end->greetings++;
  end->answer.data = greeting;
  (void)rclc_executor_publish(&end->pong, &end->answer, NULL);
}

static void answer(int32_t lane, const std_msgs__msg__Int32 *ping) {
  if (ping->data < 0) {
    greet(&ends[lane], ping->data);
    return;
  }
  place->start_time();
  place->work(lane);
  ends[lane].answer.data = ping->data;
  if (place->is_over() || rclc_executor_publish(&ends[lane].pong, &ends[lane].answer, NULL) != RCL_RET_OK) return;
  results[lane].replies++;
  results[lane].cpu_ns = place->cpu_ns(lane);
}

static void on_ping_0(const void *ping) { answer(0, ping); }
static void on_ping_1(const void *ping) { answer(1, ping); }
static void on_ping_2(const void *ping) { answer(2, ping); }
static void on_ping_3(const void *ping) { answer(3, ping); }
static const rclc_subscription_callback_t callbacks[PONG_LANES] = {on_ping_0, on_ping_1, on_ping_2, on_ping_3};

static rclc_executor_sched_parameter_t schedule(const lane_plan_t *lane) {
  rclc_executor_sched_parameter_t parameter = {.policy = lane->budget_ns > 0 ? SCHED_SPORADIC : SCHED_FIFO};
  parameter.param.sched_priority = lane->priority;
  parameter.param.sched_ss_low_priority = lane->low_priority;
  parameter.param.sched_ss_init_budget.tv_nsec = lane->budget_ns;
  parameter.param.sched_ss_repl_period.tv_nsec = lane->period_ns;
  parameter.param.sched_ss_max_repl = plan->replenishments;
  return parameter;
}

static const char *open_lane(int32_t index, bool reliable) {
  const rosidl_message_type_support_t *const type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  const lane_plan_t *const lane = &plan->lanes[index];
  end_t *const end = &ends[index];
  (void)snprintf(end->ping_topic, sizeof end->ping_topic, "%s_ping", lane->name);
  (void)snprintf(end->pong_topic, sizeof end->pong_topic, "%s_pong", lane->name);
  const rmw_qos_profile_t *const qos = reliable ? &rmw_qos_profile_default : &rmw_qos_profile_sensor_data;
  CHECK(rclc_publisher_init(&end->pong, &node, type, end->pong_topic, qos));
  CHECK(rclc_subscription_init(&end->ping, &node, type, end->ping_topic, qos));
  const rclc_executor_sched_parameter_t parameter = schedule(lane);
  CHECK(rclc_executor_add_subscription_sched(&executor, &end->ping, &end->received, callbacks[index], ON_NEW_DATA,
                                             &parameter));
  return NULL;
}

const char *pong_open(const pong_plan_t *wanted, bool reliable, const pong_place_t *where,
                      rcl_init_options_t *options) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  const char *wrong = NULL;
  plan = wanted;
  place = where;
  CHECK(rclc_support_init_with_options(&support, 0, NULL, options, &allocator));
  node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "pong", "", &support));
  executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, (size_t)plan->lane_count, &allocator));
  for (int32_t lane = 0; lane < plan->lane_count && wrong == NULL; lane++) wrong = open_lane(lane, reliable);
  return wrong;
}

const char *pong_run(void) {
  CHECK(rclc_executor_start_multi_threading_for_nuttx(&executor));
  for (int32_t lane = 0; lane < plan->lane_count; lane++) {
    const tide_reader_t *const reader = &ends[lane].ping.impl->reader;
    results[lane].pings = reader->received + reader->account.dropped - ends[lane].greetings;
    results[lane].overwritten = reader->account.dropped + reader->dropped;
  }
  return NULL;
}

void pong_stop(void) { tide_executor_stop(tide_rclc_executor_core(&executor)); }

lane_result_t *pong_results(void) { return results; }
