/* SPDX-License-Identifier: Apache-2.0 */
/* The trace's publisher. Only programs that initialise it have this file. */
#include <string.h>

#include "background.h"
#include "rclc/publisher.h"
#include "rclc/timer.h"
#include "tide/rclc_trace.h"

#if TIDE_TRACE

#define CLOCK_PERIOD_NS INT64_C(1000000000)
#define LONGEST_WAIT_NS INT64_C(1000000000)
/* Of a frame around the octets: header with key, submessage with two ids, and the sequence's three counts. */
#define FRAME_BYTES (8u + 8u + 12u)
/* Of those the ones in a node. */
#define NODE_BYTES (8u + 12u)
#define NS_PER_US INT64_C(1000)

typedef struct octets {
  const uint8_t *bytes;
  uint32_t count;
} octets_t;

static struct {
  rcl_publisher_t publisher;
  rcl_timer_t timer;
  rclc_executor_t *executors[TIDE_TRACE_EXECUTORS];
  size_t executor_count;
  tide_trace_settings_t settings;
  size_t rings_used;
  size_t next_ring; /* with which the next message begins */
  tide_trace_instances_t instances;
  tide_trace_ring_t clock;
  tide_trace_record_t clock_records[4];
  int64_t clock_told_ns, sent_ns;
  bool clock_told;
  tide_trace_counters_t counters;
  uint8_t message[TIDE_TRACE_MESSAGE_BYTES];
} trace;

/* ---- std_msgs/msg/UInt8MultiArray ---- */

static void encode_octets(tide_cdr_t *cdr, const void *untyped) {
  const octets_t *octets = untyped;
  tide_cdr_put_u32(cdr, 0u); /* dimensions */
  tide_cdr_put_u32(cdr, 0u); /* offset of the data */
  tide_cdr_put_u32(cdr, octets->count);
  tide_cdr_put_bytes(cdr, octets->bytes, octets->count);
}

static void decode_nothing(tide_cdr_t *cdr, void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

static const tide_message_type_t octets_type = {
    .package = "std_msgs",
    .kind = "msg",
    .name = "UInt8MultiArray",
    .dds_name = "std_msgs::msg::dds_::UInt8MultiArray_",
    .structure_bytes = sizeof(octets_t),
    .encode = encode_octets,
    .decode = decode_nothing,
};
static const rosidl_message_type_support_t octets_type_support = {TIDE_TYPESUPPORT_IDENTIFIER, &octets_type,
                                                                  get_message_typesupport_handle_function};

/* ---- a message ---- */

static int64_t now_ns(void) { return tide_platform_now_ns(tide_port_platform()); }

/* Another publisher may have the place since the support ended. */
static bool is_open(void) {
  return rcl_publisher_is_valid(&trace.publisher) && trace.publisher.impl->type == &octets_type;
}

static size_t room_of_message(const tide_support_t *support) {
  const tide_transmitter_config_t *config = &support->session.daemon.transmitter.config;
  const uint32_t node_bytes = config->classes[config->class_count - 1u].node_bytes;
  if (config->message_bytes < FRAME_BYTES || node_bytes < NODE_BYTES) return 0u;
  const size_t frame = config->message_bytes - FRAME_BYTES, node = node_bytes - NODE_BYTES;
  const size_t room = frame < node ? frame : node;
  return room < sizeof trace.message ? room : sizeof trace.message;
}

static uint32_t count_waiting(void) {
  uint32_t waiting = 0u;
  for (size_t index = 0; index < trace.rings_used; index++) {
    const tide_trace_ring_t *ring = &trace.settings.rings[index];
    waiting += __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE) - ring->read;
  }
  return waiting;
}

static size_t take_block(tide_trace_ring_t *ring, int left_out, size_t used, size_t room) {
  uint32_t passed = 0u;
  const size_t bytes = tide_trace_next_block(ring, left_out, trace.message + used, room - used, &passed);
  if (passed > 0u) tide_trace_pass(ring, bytes, passed);
  return bytes;
}

/* Whose trace it is, as the agent calls it, and both clocks, read without anything in between. */
static void put_clocks(tide_session_t *session) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  const tide_time_sync_t sync = session->time_sync;
  const int64_t time_ns = now_ns();
  tide_platform_exit(platform, critical);
  (void)tide_trace_put(&trace.clock, TIDE_TRACE_CLIENT, 0u, session->config.key, 0u, time_ns);
  (void)tide_trace_put(&trace.clock, TIDE_TRACE_CLOCK, 0u, 0u, 0u, time_ns);
  if (sync.exchanges > 0u) {
    const uint32_t round_trip_us = (uint32_t)(sync.round_trip_ns / NS_PER_US);
    (void)tide_trace_put(&trace.clock, TIDE_TRACE_CLOCK, 0u, round_trip_us, 1u, time_ns + sync.offset_ns);
  }
  trace.clock_told_ns = time_ns;
  trace.clock_told = true;
}

/* Each ring in turn gives what it has, so that none waits for ever behind a busy one. */
static size_t fill_message(size_t used, size_t room) {
  const int left_out = trace.settings.chains_only ? 0 : TIDE_TRACE_ALL_LEVELS;
  for (size_t turn = 0; turn < trace.rings_used; turn++) {
    tide_trace_ring_t *ring = &trace.settings.rings[(trace.next_ring + turn) % trace.rings_used];
    for (size_t bytes = 1u; bytes > 0u; used += bytes) bytes = take_block(ring, left_out, used, room);
  }
  trace.next_ring = trace.next_ring + 1u < trace.rings_used ? trace.next_ring + 1u : 0u;
  return used;
}

/* False: there is nothing more to send. */
static bool send_message(const tide_publisher_handle_t *publisher) {
  const size_t room = room_of_message(publisher->support);
  size_t used = 0u;
  if (!trace.clock_told || now_ns() - trace.clock_told_ns >= CLOCK_PERIOD_NS) {
    put_clocks(&publisher->support->session);
    used = take_block(&trace.clock, TIDE_TRACE_ALL_LEVELS, 0u, room);
  }
  used = fill_message(used, room);
  if (used == 0u) return false;
  const octets_t octets = {trace.message, (uint32_t)used};
  const bool sent = tide_compat_send_now(publisher, &octets) == TIDE_OK;
  uint32_t *counter = sent ? &trace.counters.messages : &trace.counters.lost;
  __atomic_store_n(counter, *counter + 1u, __ATOMIC_RELAXED);
  return true;
}

static bool may_send(const tide_support_t *support) {
  const uintptr_t critical = tide_platform_enter(tide_port_platform());
  const bool may = support->session.state == TIDE_SESSION_READY && tide_compat_has_room_locked(support, 0u);
  tide_platform_exit(tide_port_platform(), critical);
  return may;
}

static void on_turn(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  if (!is_open()) return;
  const tide_publisher_handle_t *publisher = trace.publisher.impl;
  const uint32_t waiting = count_waiting();
  const bool few = waiting < TIDE_TRACE_BLOCK_RECORDS;
  if (waiting == 0u || (few && now_ns() - trace.sent_ns < LONGEST_WAIT_NS)) return;
  trace.sent_ns = now_ns();
  for (uint32_t number = 0; number < trace.settings.most_messages; number++) {
    if (!may_send(publisher->support)) {
      __atomic_store_n(&trace.counters.held, trace.counters.held + 1u, __ATOMIC_RELAXED);
      return;
    }
    if (!send_message(publisher)) return;
  }
}

/* ---- life ---- */

static bool is_usable(const tide_trace_settings_t *settings) {
  const uint32_t count = settings == NULL ? 0u : settings->records_a_ring;
  return settings != NULL && settings->rings != NULL && settings->ring_count > 0u &&
         settings->ring_count < TIDE_TRACE_CLOCK_SOURCE && settings->records != NULL && count >= 2u &&
         (count & (count - 1u)) == 0u && settings->period_ms > 0u && settings->most_messages > 0u;
}

static void init_ring(size_t index) {
  tide_trace_record_t *records = &trace.settings.records[index * trace.settings.records_a_ring];
  (void)tide_trace_init(&trace.settings.rings[index], records, trace.settings.records_a_ring, &trace.instances,
                        trace.settings.place, (uint16_t)index);
}

static void set_daemon_trace(tide_support_t *support, tide_trace_ring_t *ring) {
  const uintptr_t critical = tide_platform_enter(tide_port_platform());
  support->session.daemon.trace = ring;
  tide_platform_exit(tide_port_platform(), critical);
}

static int add_lanes(rclc_executor_t *executor) {
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  if (trace.executor_count == TIDE_TRACE_EXECUTORS) return TIDE_ERROR_FULL;
  trace.executors[trace.executor_count++] = executor;
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    if (trace.rings_used == trace.settings.ring_count) return TIDE_ERROR_FULL;
    init_ring(trace.rings_used);
    config->lanes[lane].trace = &trace.settings.rings[trace.rings_used++];
  }
  return TIDE_OK;
}

static void begin(const tide_trace_settings_t *settings) {
  const rcl_publisher_t publisher = trace.publisher;
  memset(&trace, 0, sizeof trace);
  trace.publisher = publisher;
  trace.settings = *settings;
  (void)tide_trace_init(&trace.clock, trace.clock_records, 4u, &trace.instances, settings->place,
                        (uint16_t)TIDE_TRACE_CLOCK_SOURCE);
  init_ring(0u);
  trace.rings_used = 1u;
}

static rcl_ret_t start_timer(rclc_support_t *support, rclc_executor_t *executor, uint32_t period_ms) {
  rcl_ret_t result = rclc_timer_init_default(&trace.timer, support, (uint64_t)RCL_MS_TO_NS(period_ms), on_turn);
  if (result != RCL_RET_OK) return result;
  result = rclc_executor_add_timer(executor, &trace.timer);
  if (result != RCL_RET_OK) (void)rcl_timer_fini(&trace.timer);
  return result;
}

rcl_ret_t tide_rclc_trace_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                               const tide_trace_settings_t *settings) {
  if (!tide_compat_is_node(node) || support == NULL || tide_rclc_executor_core(executor) == NULL ||
      !is_usable(settings)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (is_open()) return tide_compat_result(TIDE_ERROR_EXISTS);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_ret_t result =
      rclc_publisher_init(&publisher, node, &octets_type_support, "~/tide_trace", &rmw_qos_profile_sensor_data);
  if (result != RCL_RET_OK) return result;
  trace.publisher = publisher;
  begin(settings);
  result = start_timer(support, executor, settings->period_ms);
  if (result != RCL_RET_OK) {
    (void)rcl_publisher_fini(&trace.publisher, node);
    trace.publisher.impl = NULL;
    return result;
  }
  (void)add_lanes(executor);
  set_daemon_trace(node->impl->support, &settings->rings[0]);
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_trace_add_executor(rclc_executor_t *executor) {
  if (tide_rclc_executor_core(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return is_open() ? tide_compat_result(add_lanes(executor)) : tide_compat_result(TIDE_ERROR_STATE);
}

static void detach_lanes(rclc_executor_t *executor) {
  tide_executor_t *core = tide_rclc_executor_core(executor);
  for (size_t lane = 0; core != NULL && lane < core->config.lane_count; lane++) {
    core->config.lanes[lane].trace = NULL;
  }
}

rcl_ret_t tide_rclc_trace_fini(rcl_node_t *node) {
  if (!is_open()) return tide_compat_result(TIDE_ERROR_STATE);
  tide_support_t *support = trace.publisher.impl->support;
  const rcl_ret_t result = rcl_publisher_fini(&trace.publisher, node);
  if (result != RCL_RET_OK) return result;
  trace.publisher.impl = NULL;
  set_daemon_trace(support, NULL);
  for (size_t index = 0; index < trace.executor_count; index++) detach_lanes(trace.executors[index]);
  return rcl_timer_fini(&trace.timer);
}

rcl_ret_t tide_rclc_trace_set_priority(tide_priority_t priority) {
  const rcl_ret_t result = tide_rclc_publisher_set_priority(&trace.publisher, priority);
  return result == RCL_RET_OK ? tide_rclc_timer_set_priority(&trace.timer, priority) : result;
}

tide_trace_counters_t tide_rclc_trace_get_counters(void) {
  return (tide_trace_counters_t){.messages = __atomic_load_n(&trace.counters.messages, __ATOMIC_RELAXED),
                                 .lost = __atomic_load_n(&trace.counters.lost, __ATOMIC_RELAXED),
                                 .held = __atomic_load_n(&trace.counters.held, __ATOMIC_RELAXED)};
}

#else

rcl_ret_t tide_rclc_trace_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                               const tide_trace_settings_t *settings) {
  (void)node, (void)support, (void)executor, (void)settings;
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
}

rcl_ret_t tide_rclc_trace_add_executor(rclc_executor_t *executor) {
  (void)executor;
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
}

rcl_ret_t tide_rclc_trace_fini(rcl_node_t *node) {
  (void)node;
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
}

rcl_ret_t tide_rclc_trace_set_priority(tide_priority_t priority) {
  (void)priority;
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
}

tide_trace_counters_t tide_rclc_trace_get_counters(void) { return (tide_trace_counters_t){0}; }

#endif
