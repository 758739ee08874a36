/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered messages both ways on the topics of all chains, with a lane for each level: what this program publishes
 * reliably and what it receives is counted one by one, through any number of restarts of the agent. A publish that
 * finds no place in the pool is tried again with the next period, with the same number. `tide run --on qemu --messages`
 * starts it; the plan is that of sim/workloads/three_chains/mps2, with `periods` messages of each chain each way. */
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>

#include "board.h"
#include "line.h"
#include "measure.h"
#include "payload.h"
#include "plan.h"
#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/status.h"
#include "world.h"

#define TIDE_PUBLISHERS PLAN_CHAINS
#define TIDE_SUBSCRIPTIONS PLAN_CHAINS
#define TIDE_TIMERS PLAN_CHAINS
#define TIDE_NODES 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_EXECUTOR_LANES 7
#define TIDE_STREAMS (PLAN_CHAINS + 1)
#define TIDE_SLOTS (2 * PLAN_CHAINS)
/* A sample stays in its slot: so a queue never has to give one up, and the agent waits instead. */
#define TIDE_SUBSCRIPTION_DEPTH TIDE_SLOTS
#define TIDE_SMALL_NODES (3 * PLAN_CHAINS)
#define TIDE_LARGE_NODES PLAN_CHAINS
#define TIDE_LARGE_NODE_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_REASSEMBLY_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define SETTLE_NS INT64_C(200000000)

typedef struct flow {
  const plan_chain_t *plan;
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  rcl_timer_t timer;
  payload_t outgoing, incoming;
  world_flow_t told;
  uint32_t next; /* behind the highest number received */
} flow_t;

static plan_t plan;
static flow_t flows[PLAN_CHAINS];
static rclc_support_t support;
static rcl_node_t node;
static rclc_executor_t executor;

static int64_t now_ns(void) { return tide_port_platform()->now_ns(NULL); }

static void require(rcl_ret_t result, int code) {
  if (result == RCL_RET_OK) return;
  board_print(tide_status_text(tide_rclc_last_status()));
  board_print("\n");
  board_exit(code);
}

/* ---- the callbacks ---- */

static bool is_over(void) {
  for (uint32_t index = 0; index < plan.count; index++) {
    if (flows[index].told.sent < plan.periods || flows[index].next < plan.periods) return false;
  }
  return tide_session_is_idle(tide_rclc_support_session(&support), 0);
}

static void on_period(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  flow_t *flow = &flows[(uint32_t)((const char *)timer - (const char *)&flows[0].timer) / sizeof flows[0]];
  if (flow->told.sent == plan.periods) {
    if (is_over()) tide_executor_stop(tide_rclc_executor_core(&executor));
    return;
  }
  payload_mark(&flow->outgoing, false, flow->told.chain, flow->told.sent);
  if (rcl_publish(&flow->publisher, &flow->outgoing, NULL) == RCL_RET_OK) {
    flow->told.sent++;
  } else {
    flow->told.refused++;
  }
}

static void on_message(const void *message, void *context) {
  const int64_t start_ns = now_ns();
  flow_t *flow = context;
  uint32_t number;
  if (!payload_find(message, false, flow->told.chain, &number) || number >= plan.periods ||
      !payload_is_whole(message, flow->plan->reply_bytes)) {
    flow->told.wrong++;
    return;
  }
  flow->told.received++;
  if (number >= flow->next) flow->next = number + 1u;
  const world_execution_t received = {flow->told.chain, number, start_ns, now_ns()};
  world_tell(WORLD_ACTED, received.end_ns, &received, sizeof received);
}

/* ---- set-up ---- */

/* Keep all: nothing that waits in the agent gives way to what is newer. What comes down is kept by who published it, so
 * that the agent's successor can have it again. */
static void create_flow(uint32_t index) {
  flow_t *flow = &flows[index];
  const plan_chain_t *description = &plan.chains[index];
  rmw_qos_profile_t up = description->reliable ? rmw_qos_profile_default : rmw_qos_profile_sensor_data;
  up.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  rmw_qos_profile_t down = description->reply_reliable ? rmw_qos_profile_default : rmw_qos_profile_sensor_data;
  down.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  if (description->reply_reliable) down.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  flow->plan = description;
  flow->told.chain = index;
  payload_prepare(&flow->outgoing, false, description->payload_bytes);
  require(rclc_publisher_init(&flow->publisher, &node, &payload_type, description->topic, &up), 10);
  require(tide_rclc_publisher_set_wait_ms(&flow->publisher, 0), 11);
  require(rclc_subscription_init(&flow->subscription, &node, &payload_type, description->reply_topic, &down), 12);
  require(rclc_timer_init_default(&flow->timer, &support, (uint64_t)description->period_ns, on_period), 13);
}

static void choose_lanes(void) {
  tide_lane_settings_t lanes[TIDE_EXECUTOR_LANES];
  size_t lane_count = 0;
  for (unsigned level = 0; level <= TIDE_LEVEL_MAXIMUM; level++) {
    bool used = false;
    for (uint32_t index = 0; index < plan.count; index++) used = used || plan.chains[index].level == level;
    if (used && lane_count < TIDE_EXECUTOR_LANES) {
      lanes[lane_count] = (tide_lane_settings_t){
          .least_level = (uint8_t)level, .scheduling = TIDE_SCHEDULING_FIFO, .priority = (int)lane_count + 1};
      lane_count++;
    }
  }
  require(tide_rclc_executor_set_lanes(&executor, lanes, lane_count), 14);
}

static void register_flow(flow_t *flow) {
  const tide_priority_t priority = TIDE_PRIORITY(flow->plan->level, 0);
  require(rclc_executor_add_timer(&executor, &flow->timer), 15);
  require(rclc_executor_add_subscription_with_context(&executor, &flow->subscription, &flow->incoming, on_message, flow,
                                                      ON_NEW_DATA),
          16);
  require(tide_rclc_timer_set_priority(&flow->timer, priority), 17);
  require(tide_rclc_publisher_set_priority(&flow->publisher, priority), 18);
  require(tide_rclc_subscription_set_priority(&flow->subscription, priority), 19);
}

static void set_up(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator), 3);
  require(tide_rclc_options_set_serial(rcl_init_options_get_rmw_init_options(&options), "", plan.baud), 4);
  require(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator), 5);
  require(rclc_node_init_default(&node, "exchange", "", &support), 6);
  for (uint32_t index = 0; index < plan.count; index++) create_flow(index);
  require(rclc_executor_init(&executor, &support.context, 2u * plan.count, &allocator), 7);
  choose_lanes();
  for (uint32_t index = 0; index < plan.count; index++) register_flow(&flows[index]);
}

int main(void) {
  measure_mark_stack();
  const char *text = world_open();
  if (text == NULL || !plan_read(text, &plan)) return 2;
  line_choose(false);
  set_up();
  (void)world_ask(WORLD_READY, now_ns(), NULL, 0);
  for (uint32_t index = 0; index < plan.count; index++)
    require(tide_rclc_timer_set_phase(&flows[index].timer, now_ns() + SETTLE_NS), 20);
  require(rclc_executor_spin(&executor), 21);
  for (uint32_t index = 0; index < plan.count; index++) {
    flows[index].told.dropped = flows[index].subscription.impl->reader.dropped;
    world_tell(WORLD_FLOW, now_ns(), &flows[index].told, sizeof flows[index].told);
  }
  const world_ending_t ending = {.stack_bytes = measure_stack_used()};
  world_tell(WORLD_END, now_ns(), &ending, sizeof ending);
  return 0;
}
