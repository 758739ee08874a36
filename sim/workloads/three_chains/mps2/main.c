/* SPDX-License-Identifier: Apache-2.0 */
/* Plays round trips on a Cortex-M in the simulated world, such as examples/three_chains. For each chain, a timer
 * samples and publishes, a ROS 2 node answers, and a subscription acts on the answer. The plan selects the tide
 * executor, the batch executor, or a preemptive lane for each level. `tide run --on qemu` and `tide lab reproduce
 * pods-... --on qemu` start this program.
 *
 * Execution times are counted in instructions, so a callback takes the same processor time however often it is
 * preempted. */
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <string.h>

#include "board.h"
#include "chip.h"
#include "lanes.h"
#include "measure.h"
#include "platform.h"
#include "tide/measure.h"
#include "tide/message.h"
#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/status.h"
#include "world.h"

#ifndef PLAN_CHAINS
#define PLAN_CHAINS 16
#endif
#ifndef PLAN_PAYLOAD_BYTES
#define PLAN_PAYLOAD_BYTES 4096
#endif
#define TIDE_PUBLISHERS PLAN_CHAINS
#define TIDE_SUBSCRIPTIONS PLAN_CHAINS
#define TIDE_TIMERS PLAN_CHAINS
#define TIDE_NODES 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_EXECUTOR_LANES 7
#define TIDE_STREAMS (PLAN_CHAINS + 1)
#define TIDE_SLOTS (2 * PLAN_CHAINS)
#define TIDE_SMALL_NODES (3 * PLAN_CHAINS)
#define TIDE_LARGE_NODES PLAN_CHAINS
#define TIDE_LARGE_NODE_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_REASSEMBLY_BYTES (PLAN_PAYLOAD_BYTES + 16)
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
TIDE_DEFINE_LANE_BUDGETS(5, 8);

#define GRACE_PERIODS 4u /* time after the last release for instances that are still under way */
#define SETTLE_NS INT64_C(200000000)

/* ---- samples: the program generates their bytes itself, so that a frame has exactly the size of the plan. A sample
 * begins with the numbers of the chain and of the instance, in binary. ---- */

#define MARK_BYTES 6u

typedef struct payload {
  uint8_t bytes[PLAN_PAYLOAD_BYTES];
  uint32_t count;
} payload_t;

static void encode(tide_cdr_t *cdr, const void *message) {
  const payload_t *payload = message;
  tide_cdr_put_bytes(cdr, payload->bytes, payload->count);
}

static void decode(tide_cdr_t *cdr, void *message) {
  payload_t *payload = message;
  const size_t rest = tide_cdr_remaining(cdr);
  payload->count = (uint32_t)(rest < sizeof payload->bytes ? rest : sizeof payload->bytes);
  tide_cdr_get_bytes(cdr, payload->bytes, payload->count);
}

static const tide_message_type_t string = {.package = "std_msgs",
                                           .kind = "msg",
                                           .name = "String",
                                           .dds_name = "std_msgs::msg::dds_::String_",
                                           .structure_bytes = sizeof(payload_t),
                                           .encode = encode,
                                           .decode = decode};

static const rosidl_message_type_support_t payload_type = {TIDE_TYPESUPPORT_IDENTIFIER, &string, NULL};

static void put(uint8_t *place, uint32_t value, unsigned octets) {
  for (unsigned octet = 0; octet < octets; octet++) place[octet] = (uint8_t)(value >> 8 * octet);
}

static uint32_t get(const uint8_t *place, unsigned octets) {
  uint32_t value = 0;
  for (unsigned octet = 0; octet < octets; octet++) value |= (uint32_t)place[octet] << 8 * octet;
  return value;
}

/* Sets the constant parts of a sample: its size and its filler bytes. */
static void payload_prepare(payload_t *payload, uint32_t bytes) {
  memset(payload->bytes, '.', bytes);
  payload->count = bytes;
}

static void payload_mark(payload_t *payload, uint32_t chain, uint32_t number) {
  put(payload->bytes, chain, 2);
  put(payload->bytes + 2, number, 4);
}

/* Returns false if the payload belongs to another chain. */
static bool payload_find(const payload_t *payload, uint32_t chain, uint32_t *number) {
  if (payload->count < MARK_BYTES || get(payload->bytes, 2) != chain) return false;
  *number = get(payload->bytes + 2, 4);
  return true;
}

/* ---- the system ---- */

typedef struct chain {
  const world_chain_t *plan;
  tide_chain_t priorities;
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  rcl_timer_t timer;
  payload_t request, reply;
  tide_measurement_t sample_times, act_times;
  char sample_name[WORLD_NAME_BYTES + 8], act_name[WORLD_NAME_BYTES + 8], reply_topic[WORLD_NAME_BYTES + 8];
} chain_t;

static const world_plan_t *plan;
static const world_chain_t *described; /* the chains of the plan, which follow its header in memory */
static chain_t chains[PLAN_CHAINS];
static rclc_support_t support;
static rcl_node_t node;
static rclc_executor_t executor;
static int64_t first_release_ns;
static uint32_t finished;
static world_ending_t ending;
static tide_measure_t measure;
static volatile bool over;

static int64_t now_ns(void) { return tide_port_platform()->now_ns(NULL); }

static void count(uint32_t *counter) {
  const uintptr_t state = tide_port_platform()->critical_enter(NULL);
  ++*counter;
  tide_port_platform()->critical_exit(NULL, state);
}

static void require(rcl_ret_t result, int code) {
  if (result == RCL_RET_OK) return;
  board_print(tide_status_text(tide_rclc_last_status()));
  board_print("\n");
  board_exit(code);
}

/* ---- the callbacks ---- */

static tide_session_t *session(void) { return tide_rclc_support_session(&support); }

static void stop(void) {
  over = true;
  tide_executor_stop(tide_rclc_executor_core(&executor));
}

/* WORLD_SEND_ANSWERED, the baseline of the PoDS paper (sim/README.md): waits until the HEARTBEAT is answered and, if
 * the answer requests the sample again, until the sample was sent again. Received messages are meanwhile processed in
 * order of arrival. */
static void wait_for_answer(uint32_t retransmissions_before) {
  tide_transmitter_t *transmitter = &session()->daemon.transmitter;
  const int64_t deadline_ns = now_ns() + 1000000000;
  tide_event_t nothing = {0};
  for (bool answered = false; !answered && now_ns() < deadline_ns;) {
    while (tide_daemon_most_urgent(&session()->daemon) != TIDE_PRIORITY_NONE)
      (void)tide_daemon_process_oldest(&session()->daemon);
    const uintptr_t state = tide_port_platform()->critical_enter(NULL);
    const tide_output_stream_t *stream = &transmitter->config.streams[0];
    while (stream->id != TIDE_STREAM_RELIABLE(0)) stream++;
    const bool leaves = stream->queued > 0u || (transmitter->busy && transmitter->current_stream == stream &&
                                                transmitter->current_node != NULL);
    const bool asked_again = transmitter->counters.retransmissions != retransmissions_before;
    answered = stream->nodes == 0u || (asked_again && !leaves);
    tide_port_platform()->critical_exit(NULL, state);
    if (!answered) (void)tide_port_platform()->event_wait(NULL, &nothing, now_ns() + 20000);
  }
}

static void publish(chain_t *chain, uint32_t index) {
  const uint32_t retransmissions = session()->daemon.transmitter.counters.retransmissions;
  payload_mark(&chain->request, (uint32_t)(chain - chains), index);
  if (rcl_publish(&chain->publisher, &chain->request, NULL) != RCL_RET_OK) {
    count(&ending.publish_failures);
  } else if (plan->send == WORLD_SEND_ANSWERED && chain->plan->reliable) {
    wait_for_answer(retransmissions);
  }
}

/* The instance is identified by the expiry, not by the start, because a late timer may start in the next period. */
static void on_sample(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)since_last_call_ns;
  const int64_t start_ns = now_ns();
  const uint32_t number = (uint32_t)((const char *)timer - (const char *)&chains[0].timer) / sizeof chains[0];
  chain_t *chain = &chains[number];
  const int64_t since_ns = tide_rclc_timer_callback(timer)->ready_ns - first_release_ns - chain->plan->offset_ns;
  if (since_ns < 0) return;
  const uint32_t index = (uint32_t)(since_ns / chain->plan->period_ns);
  if (index >= plan->periods + GRACE_PERIODS) stop();
  if (index >= plan->periods) return;
  measure_burn(chain->plan->sample_ns);
  publish(chain, index);
  const world_execution_t execution = {number, index, start_ns, now_ns()};
  world_tell(WORLD_SAMPLED, execution.end_ns, &execution, sizeof execution);
}

static void on_act(const void *message, void *context) {
  const int64_t start_ns = now_ns();
  const chain_t *chain = context;
  const uint32_t number = (uint32_t)(chain - chains);
  uint32_t index;
  if (!payload_find(message, number, &index) || index >= plan->periods) {
    count(&ending.strangers);
    return;
  }
  measure_burn(chain->plan->act_ns);
  const world_execution_t execution = {number, index, start_ns, now_ns()};
  world_tell(WORLD_ACTED, execution.end_ns, &execution, sizeof execution);
  count(&finished);
  if (finished == plan->chain_count * plan->periods) stop();
}

/* ---- set-up ---- */

static void name(char *place, const char *chain, const char *of) {
  strcpy(place, chain);
  strcat(place, of);
}

static void create_chain(chain_t *chain, const world_chain_t *description) {
  chain->plan = description;
  payload_prepare(&chain->request, description->payload_bytes);
  const rmw_qos_profile_t *reliable = &rmw_qos_profile_default, *best_effort = &rmw_qos_profile_sensor_data;
  name(chain->reply_topic, description->name, "_reply");
  require(rclc_publisher_init(&chain->publisher, &node, &payload_type, description->name,
                              description->reliable ? reliable : best_effort),
          10);
  require(rclc_subscription_init(&chain->subscription, &node, &payload_type, chain->reply_topic,
                                 description->reply_reliable ? reliable : best_effort),
          11);
  require(rclc_timer_init_default(&chain->timer, &support, (uint64_t)description->period_ns, on_sample), 12);
}

static bool is_used(unsigned level) {
  bool used = false;
  for (uint32_t index = 0; index < plan->chain_count; index++) used = used || described[index].level == level;
  return used;
}

/* Settings of the lane for a level: priorities follow the levels. A lane that has used up its budget runs at priority
 * 1, below all lanes with budget left.
 */
static tide_lane_settings_t lane_of(unsigned level, size_t place) {
  if (plan->budget_ns == 0)
    return (tide_lane_settings_t){
        .least_level = (uint8_t)level, .scheduling = TIDE_SCHEDULING_FIFO, .priority = (int)place + 1};
  return (tide_lane_settings_t){.least_level = (uint8_t)level,
                                .scheduling = TIDE_SCHEDULING_SPORADIC,
                                .priority = (int)place + 2,
                                .low_priority = 1,
                                .runtime_ns = plan->budget_ns,
                                .period_ns = plan->budget_period_ns};
}

/* Chooses a lane for each level, or one lane for all callbacks. */
static void choose_lanes(void) {
  tide_lane_settings_t lanes[TIDE_EXECUTOR_LANES];
  size_t lane_count = 0;
  if (!plan->lanes) lanes[lane_count++] = lane_of(0, 0);
  for (unsigned level = 1; plan->lanes && level <= TIDE_LEVEL_MAXIMUM; level++) {
    if (!is_used(level)) continue;
    if (lane_count == TIDE_EXECUTOR_LANES) board_exit(13);
    lanes[lane_count] = lane_of(level, lane_count);
    lane_count++;
  }
  require(tide_rclc_executor_set_lanes(&executor, lanes, lane_count), 14);
}

static void register_handles(void) {
  for (uint32_t index = 0; index < plan->chain_count; index++)
    require(rclc_executor_add_timer(&executor, &chains[index].timer), 15);
  for (uint32_t index = 0; index < plan->chain_count; index++) {
    chain_t *chain = &chains[index];
    require(rclc_executor_add_subscription_with_context(&executor, &chain->subscription, &chain->reply, on_act, chain,
                                                        ON_NEW_DATA),
            16);
  }
}

static void name_chains(void) {
  for (uint32_t index = 0; index < plan->chain_count; index++) {
    chain_t *chain = &chains[index];
    const world_chain_t *description = chain->plan;
    tide_chain_init(&chain->priorities, description->name, description->level, description->period_ns,
                    description->period_ns);
    require(tide_rclc_chain_add_timer(&chain->priorities, &chain->timer), 17);
    require(tide_rclc_chain_add_publisher(&chain->priorities, &chain->publisher), 18);
    tide_chain_add_remote(&chain->priorities);
    require(tide_rclc_chain_add_subscription(&chain->priorities, &chain->subscription), 19);
  }
}

/* Sets the options of the plan for sending, which come from the PoDS paper (sim/README.md). Call this before the chains
 * begin, when no messages are in transfer. */
static void choose_manners(void) {
  static const tide_send_t sends[] = {[WORLD_SEND_ASYNCHRONOUS] = TIDE_SEND_ASYNCHRONOUS,
                                      [WORLD_SEND_STOCK] = TIDE_SEND_STOCK,
                                      [WORLD_SEND_BLOCKING] = TIDE_SEND_STOCK_BLOCKING,
                                      [WORLD_SEND_ANSWERED] = TIDE_SEND_ASYNCHRONOUS};
  tide_transmitter_config_t *transmitter = &session()->daemon.transmitter.config;
  for (uint32_t index = 0; index < plan->chain_count; index++) {
    const world_chain_t *description = &described[index];
    if (description->hold) require(tide_rclc_support_hold_level(&support, description->level, true), 24);
  }
  transmitter->heartbeat_delay_ns = plan->heartbeat_delay_ns;
  tide_rclc_executor_core(&executor)->config.batch_waits_for_new_data = plan->batch_waits;
  require(tide_rclc_support_set_send(&support, sends[plan->send]), 20);
}

static void measure_executions(void) {
  tide_measure_init(&measure, tide_port_measure_clock());
  tide_rclc_executor_core(&executor)->config.measure = &measure;
  for (uint32_t index = 0; index < plan->chain_count; index++) {
    chain_t *chain = &chains[index];
    name(chain->sample_name, chain->plan->name, "/sample");
    name(chain->act_name, chain->plan->name, "/act");
    chain->sample_times.name = chain->sample_name;
    chain->act_times.name = chain->act_name;
    tide_rclc_timer_callback(&chain->timer)->measurement = &chain->sample_times;
    tide_rclc_subscription_callback(&chain->subscription)->measurement = &chain->act_times;
  }
}

static bool has_lanes(void) { return plan->lanes || plan->budget_ns > 0; }

static void set_up(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator), 3);
  require(tide_rclc_options_set_serial(rcl_init_options_get_rmw_init_options(&options), "", plan->baud), 4);
  require(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator), 5);
  require(rclc_node_init_default(&node, "three_chains", "", &support), 6);
  for (uint32_t index = 0; index < plan->chain_count; index++) create_chain(&chains[index], &described[index]);
  require(rclc_executor_init(&executor, &support.context, 2u * plan->chain_count, &allocator), 7);
  require(tide_rclc_executor_set_policy(&executor, plan->batch ? TIDE_POLICY_BATCH : TIDE_POLICY_TIDE), 8);
  if (has_lanes()) choose_lanes();
  register_handles();
  if (!plan->batch) name_chains(); /* the batch executor ignores levels */
  measure_executions();
  choose_manners();
}

static void release_timers(void) {
  first_release_ns = now_ns() + SETTLE_NS;
  world_tell(WORLD_BEGIN, first_release_ns, NULL, 0);
  for (uint32_t index = 0; index < plan->chain_count; index++)
    require(tide_rclc_timer_set_phase(&chains[index].timer, first_release_ns + described[index].offset_ns), 21);
}

/* ---- results ---- */

static void tell_times(const tide_measurement_t *times) {
  char line[TIDE_MEASUREMENT_LINE_BYTES];
  world_tell(WORLD_TIMES, now_ns(), line, tide_measurement_line(times, &measure, line, sizeof line));
}

static void tell_budget(size_t lane) {
  const tide_budget_t *budget = tide_port_lane_budget(lane);
  if (budget == NULL) return;
  const tide_budget_counters_t *counters = &budget->counters;
  const tide_lane_t *lanes = tide_rclc_executor_core(&executor)->config.lanes;
  const world_budget_t told = {lanes[lane].settings.least_level,
                               0,
                               counters->exhaustions,
                               counters->used_ns,
                               counters->low_ns,
                               counters->overrun_ns};
  world_tell(WORLD_BUDGET, now_ns(), &told, sizeof told);
}

static void tell_results(void) {
  for (uint32_t index = 0; index < plan->chain_count; index++) {
    tell_times(&chains[index].sample_times);
    tell_times(&chains[index].act_times);
  }
  for (size_t lane = 0; has_lanes() && lane < tide_rclc_executor_core(&executor)->config.lane_count; lane++)
    tell_budget(lane);
  world_tell(WORLD_END, now_ns(), &ending, sizeof ending);
}

/* Returns false if image and plan have different versions, or if the plan exceeds the pools. */
static bool is_playable(void) {
  const uint32_t count = plan->chain_count;
  described = (const world_chain_t *)(plan + 1);
  bool playable = count <= PLAN_CHAINS && plan->bytes == sizeof *plan + count * sizeof *described;
  for (uint32_t index = 0; playable && index < count; index++) {
    playable =
        described[index].payload_bytes <= PLAN_PAYLOAD_BYTES && described[index].reply_bytes <= PLAN_PAYLOAD_BYTES;
  }
  return playable;
}

int main(void) {
  measure_mark_stack();
  plan = world_open();
  if (plan == NULL || !is_playable()) return 2;
  if (plan->batch && plan->budget_ns > 0) return 25; /* the batch executor has no lanes, and so no budgets */
  if (plan->instruction_ns > 0u) measure_set_instruction_ns(plan->instruction_ns);
  set_up();
  (void)world_ask(WORLD_READY, now_ns(), NULL, 0);
  (void)tide_cortex_m_masked_maximum();
  release_timers();
  if (has_lanes()) {
    require(rclc_executor_spin(&executor), 22);
  } else {
    while (!over) require(rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100)), 23);
  }
  ending.masked_maximum = measure_instructions((int64_t)tide_cortex_m_masked_maximum() * TIDE_CHIP_TICK_NS);
  ending.stack_bytes = measure_stack_used();
  tell_results();
  return 0;
}
