/* SPDX-License-Identifier: Apache-2.0 */
/* Optional status messages of a program: diagnostics and trace. Each message is sent at once or not at all, in any send
 * mode, and half of the pool is reserved for other messages. */
#include <string.h>

#include "internal.h"
#include "rclc/publisher.h"
#include "rclc/timer.h"
#include "tide/chain_watch.h"
#include "tide/rclc_diagnostics.h"
#include "tide/rclc_trace.h"

/* ---- shared functions ---- */

/* Another publisher may use the entry if the support has ended. */
static bool is_open(const rcl_publisher_t *publisher, const tide_message_type_t *type) {
  return rcl_publisher_is_valid(publisher) && publisher->impl->type == type;
}

static bool may_send(const tide_support_t *support) {
  const uintptr_t critical = tide_compat_enter();
  const bool may = support->session.state == TIDE_SESSION_READY && tide_compat_has_room_locked(support, 0u);
  tide_compat_leave(critical);
  return may;
}

/* Calls on_turn each time the timer expires. If the timer cannot be created, the publisher is closed. */
static rcl_ret_t start_timer(rcl_timer_t *timer, int64_t period_ns, rcl_timer_callback_t on_turn,
                             rclc_support_t *support, rclc_executor_t *executor, rcl_publisher_t *publisher,
                             rcl_node_t *node) {
  rcl_ret_t result = rclc_timer_init_default(timer, support, (uint64_t)period_ns, on_turn);
  if (result == RCL_RET_OK) {
    result = rclc_executor_add_timer(executor, timer);
    if (result != RCL_RET_OK) (void)rcl_timer_fini(timer);
  }
  if (result != RCL_RET_OK) {
    (void)rcl_publisher_fini(publisher, node);
    publisher->impl = NULL;
  }
  return result;
}

/* ---- diagnostics ---- */

enum { VALUES = 14, WARNED_REPORTS = 10, LANES = 8, LINK = 0, MEMORY = 1, FIRST_EXECUTOR = 2, DECIMAL_DIGITS = 20 };
enum { LEVEL_OK = 0, LEVEL_WARNING = 1 };

typedef struct value {
  const char *key;
  const char *of;   /* prefix of the key; null: no prefix */
  const char *text; /* null: the value is the number */
  uint64_t number;
} value_t;

typedef struct status {
  const char *part; /* follows the name of the node */
  uint32_t number;  /* follows `part`; 0: no number */
  const char *message;
  uint8_t level;
  int64_t stamp_ns;
  uint32_t count;
  value_t values[VALUES];
} status_t;

/* For each status: the total number of errors, and for how many reports it remains a warning. */
typedef struct alarm {
  uint32_t troubles;
  uint8_t reports_left;
} alarm_t;

static struct {
  rcl_publisher_t publisher;
  rcl_timer_t timer;
  const char *node_name; /* "/namespace/node" */
  uint32_t key;
  rclc_executor_t *executors[TIDE_DIAGNOSTICS_EXECUTORS];
  size_t executor_count;
  const tide_chain_t *chains[TIDE_DIAGNOSTICS_CHAINS];
  size_t chain_count;
  size_t next, next_object;
  uint32_t period_ms;
  alarm_t link, memory, of_executors[TIDE_DIAGNOSTICS_EXECUTORS], lanes[LANES];
  struct {
    uint64_t used_ns;
    int64_t told_ns;
  } before[LANES];
  tide_diagnostics_counters_t counters;
  status_t status;
} diagnostics;

/* ---- diagnostic_msgs/msg/DiagnosticArray ---- */

/* Writes a string of several pieces, after its total length. */
static void put_texts(tide_cdr_t *cdr, const char *const *pieces, size_t count) {
  size_t length = 0u;
  for (size_t index = 0; index < count; index++) length += strlen(pieces[index]);
  tide_cdr_put_u32(cdr, (uint32_t)length + 1u);
  for (size_t index = 0; index < count; index++) tide_cdr_put_bytes(cdr, pieces[index], strlen(pieces[index]));
  tide_cdr_put_u8(cdr, 0u);
}

static void put_text(tide_cdr_t *cdr, const char *text) { put_texts(cdr, &text, 1u); }

/* Writes the digits at the end of `text`, whose last character is a NUL, and returns the first digit. */
static const char *decimal(uint64_t number, char text[DECIMAL_DIGITS + 1]) {
  char *at = text + DECIMAL_DIGITS;
  *at = '\0';
  do *--at = (char)('0' + number % 10u);
  while ((number /= 10u) > 0u);
  return at;
}

static const char *hexadecimal(uint32_t number, char text[9]) {
  static const char digits[] = "0123456789ABCDEF";
  for (unsigned index = 0u; index < 8u; index++) text[index] = digits[number >> (28u - 4u * index) & 0xFu];
  text[8] = '\0';
  return text;
}

static void put_value(tide_cdr_t *cdr, const value_t *value) {
  const char *const key[] = {value->of == NULL ? "" : value->of, value->key};
  char text[DECIMAL_DIGITS + 1];
  put_texts(cdr, key, 2u);
  put_text(cdr, value->text != NULL ? value->text : decimal(value->number, text));
}

static void put_name(tide_cdr_t *cdr, const status_t *status) {
  char text[DECIMAL_DIGITS + 1];
  const char *number = status->number == 0u ? "" : decimal(status->number, text);
  const char *const name[] = {diagnostics.node_name + 1, ": ", status->part, number};
  put_texts(cdr, name, 4u);
}

static void encode_array(tide_cdr_t *cdr, const void *untyped) {
  const status_t *status = untyped;
  const int64_t second_ns = 1000000000;
  char key[9];
  tide_cdr_put_u32(cdr, (uint32_t)(status->stamp_ns / second_ns));
  tide_cdr_put_u32(cdr, (uint32_t)(status->stamp_ns % second_ns));
  put_text(cdr, ""); /* frame */
  tide_cdr_put_u32(cdr, 1u);
  tide_cdr_put_u8(cdr, status->level);
  put_name(cdr, status);
  put_text(cdr, status->message);
  put_text(cdr, hexadecimal(diagnostics.key, key)); /* the client's name in the agent's reports */
  tide_cdr_put_u32(cdr, status->count);
  for (uint32_t index = 0u; index < status->count; index++) put_value(cdr, &status->values[index]);
}

static const tide_message_type_t array_type = TIDE_COMPAT_MESSAGE_TYPE(
    "diagnostic_msgs", "DiagnosticArray", sizeof(status_t), encode_array, tide_compat_decode_nothing);
static const rosidl_message_type_support_t array_support = TIDE_COMPAT_MESSAGE_SUPPORT(array_type);

/* ---- contents of each status ---- */

static void begin_status(const char *part, uint32_t number) {
  diagnostics.status = (status_t){.part = part, .number = number, .message = "as usual"};
}

static void add_value(const char *of, const char *key, const char *text, uint64_t number) {
  status_t *status = &diagnostics.status;
  if (status->count == VALUES) return;
  status->values[status->count++] = (value_t){key, of, text, number};
}

static void add_of(const char *of, const char *key, uint64_t number) { add_value(of, key, NULL, number); }
static void add(const char *key, uint64_t number) { add_value(NULL, key, NULL, number); }

static void judge(alarm_t *alarm, uint32_t troubles, const char *message) {
  if (troubles != alarm->troubles) alarm->reports_left = WARNED_REPORTS;
  alarm->troubles = troubles;
  if (alarm->reports_left == 0u) return;
  alarm->reports_left--;
  diagnostics.status.level = LEVEL_WARNING;
  diagnostics.status.message = message;
}

static void tell_link(tide_session_t *session) {
  tide_link_counters_t link;
  memset(&link, 0, sizeof link);
  (void)tide_port_link_counters(session, &link);
  const uintptr_t critical = tide_compat_enter();
  const tide_session_counters_t own = session->counters;
  const tide_transmitter_counters_t out = session->daemon.transmitter.counters;
  const tide_receiver_counters_t in = session->daemon.receiver.counters;
  const int64_t round_trip_ns = session->ping_round_trip_ns, sync_ns = session->time_sync.round_trip_ns;
  const bool synchronised = session->time_sync.exchanges > 0u;
  tide_compat_leave(critical);
  begin_status("link", 0u);
  add("sessions", (uint64_t)own.connects);
  add("mtu bytes", session->config.mtu);
  add("times the link was lost", link.cuts);
  add("frames out", out.frames);
  add("frames sent again", out.retransmissions);
  add("frames in", in.frames);
  add("checksum errors", in.checksum_errors);
  add("frames malformed", in.malformed);
  add("frames missing", in.gaps);
  if (round_trip_ns >= 0) add("ping us", (uint64_t)round_trip_ns / 1000u);
  add("clock synchronised", synchronised ? 1u : 0u);
  if (synchronised) add("clock round trip us", (uint64_t)sync_ns / 1000u);
  judge(&diagnostics.link, link.cuts + in.checksum_errors + in.malformed + in.gaps, "frames were damaged or lost");
}

static void tell_memory(tide_session_t *session) {
  const uintptr_t critical = tide_compat_enter();
  const tide_transmitter_counters_t out = session->daemon.transmitter.counters;
  const tide_receiver_counters_t in = session->daemon.receiver.counters;
  const uint32_t in_use = session->daemon.transmitter.nodes_in_use, held = session->held_count;
  const uint32_t dropped_by_agent = session->counters.samples_too_large;
  const uint32_t undelivered = session->counters.undelivered;
  tide_compat_leave(critical);
  begin_status("memory", 0u);
  add("nodes", session->daemon.transmitter.config.node_count);
  add("nodes in use", in_use);
  add("most nodes in use", out.nodes_in_use_maximum);
  add("messages kept for the agent", held);
  add("messages refused, no node", out.refused_full);
  add("messages refused, too large", out.refused_large);
  add("messages replaced", out.evicted);
  add("messages expired", out.expired);
  add("slots", session->daemon.receiver.config.slot_count);
  add("frames dropped, no slot", in.overflow_dropped);
  add("messages received, too large", in.reassembly_too_large);
  add("messages not sent by the agent, too large", dropped_by_agent);
  add("requests and replies without a receiver", undelivered);
  const uint32_t troubles = out.refused_full + out.refused_large + out.evicted + out.expired + in.overflow_dropped +
                            in.reassembly_too_large + dropped_by_agent + undelivered;
  judge(&diagnostics.memory, troubles, "messages were refused or lost");
}

static void add_measured(tide_executor_t *executor) {
  const tide_measure_t *measure = executor->config.measure;
  tide_measurement_t measured;
  for (size_t place = 0; measure != NULL && diagnostics.status.count < VALUES; place++) {
    const int found = tide_executor_get_measurement(executor, place, &measured);
    if (found < 0) return;
    if (found > 0 && measured.name != NULL) {
      add_of(measured.name, ", longest ns", tide_measure_ns(measure, measured.maximum));
    }
  }
}

/* Adds the late and missing instances of each chain that the program watches (tide/chain_watch.h). */
static void add_watched(tide_executor_t *executor, alarm_t *alarm) {
  uint32_t troubles = 0u;
  const char *name = NULL;
  tide_chain_watch_counters_t counters;
  int found;
  for (size_t place = 0; (found = tide_executor_get_watch(executor, place, &name, &counters)) >= 0; place++) {
    if (found == 0) continue;
    add_of(name, ", late", counters.late);
    add_of(name, ", missing", counters.missing);
    troubles += counters.late + counters.missing;
  }
  judge(alarm, troubles, "an instance of a chain was late or missing");
}

/* Adds the status of an executor. Returns false if the executor has ended. */
static bool tell_executor(size_t index) {
  tide_executor_t *core = tide_rclc_executor_core(diagnostics.executors[index]);
  if (core == NULL) return false;
  tide_executor_counters_t counters;
  tide_executor_get_counters(core, &counters);
  begin_status("executor ", (uint32_t)index + 1u);
  add("lanes", core->config.lane_count);
  add("policy", core->config.policy);
  add("send mode", diagnostics.publisher.impl->support->send);
  add("callbacks run", counters.callbacks_run);
  add("timers expired", counters.timers_expired);
  add("times asleep", counters.sleeps);
  add_watched(core, &diagnostics.of_executors[index]);
  add_measured(core);
  return true;
}

/* Adds the status of a lane of the first executor. One of that executor's lanes runs this function, so the hooks of its
 * lanes are valid. Returns false if the lane has no budget. */
static bool tell_lane(size_t index) {
  const tide_executor_t *core = tide_rclc_executor_core(diagnostics.executors[0]);
  if (core == NULL || index >= core->config.lane_count || index >= LANES) return false;
  const tide_lane_t *lane = &core->config.lanes[index];
  if (lane->budget.read == NULL) return false;
  tide_budget_counters_t counters;
  bool high = true;
  memset(&counters, 0, sizeof counters);
  lane->budget.read(lane->budget.context, &counters, &high);
  const int64_t time_ns = tide_compat_now_ns(), since_ns = time_ns - diagnostics.before[index].told_ns;
  const uint64_t used_ns = counters.used_ns - diagnostics.before[index].used_ns;
  begin_status("lane ", (uint32_t)index + 1u);
  add("least level", lane->settings.least_level);
  add("budget us", (uint64_t)lane->settings.runtime_ns / 1000u);
  add("period us", (uint64_t)lane->settings.period_ns / 1000u);
  if (diagnostics.before[index].told_ns != 0 && since_ns > 0)
    add("used, per mille", used_ns * 1000u / (uint64_t)since_ns);
  add("has budget left", high ? 1u : 0u);
  add("times used up", counters.exhaustions);
  add("times replenished", counters.replenishments);
  add("times without a place", counters.denied);
  add("used ms", counters.used_ns / 1000000u);
  add("without budget ms", counters.low_ns / 1000000u);
  add("overrun us", counters.overrun_ns / 1000u);
  diagnostics.before[index].used_ns = counters.used_ns;
  diagnostics.before[index].told_ns = time_ns;
  judge(&diagnostics.lanes[index], (uint32_t)counters.denied, "more to replenish than places for it");
  return true;
}

/* ---- the table of objects: chains, publishers and callbacks, of which each period reports one ---- */

static void begin_object(const char *kind, size_t index, const char *name, tide_priority_t priority) {
  begin_status("object ", (uint32_t)index + 1u);
  diagnostics.status.message = kind;
  add_value(NULL, "name", name, 0u);
  add("priority", priority);
}

static void add_callback(const tide_callback_t *callback) {
  uint64_t runs = 0u;
  int64_t longest_ns = 0;
  for (size_t index = 0; index < diagnostics.executor_count; index++) {
    tide_executor_t *core = tide_rclc_executor_core(diagnostics.executors[index]);
    if (core == NULL || callback->executor != core) continue;
    tide_executor_get_execution(core, callback, &runs, &longest_ns);
    add("executor", (uint64_t)index + 1u);
  }
  add("runs", runs);
  add("longest ns", (uint64_t)longest_ns);
}

static void tell_callback(const char *kind, size_t index, const char *name, const tide_callback_t *callback) {
  begin_object(kind, index, name, callback->priority);
  add_callback(callback);
}

/* Makes the status of the object with this index. Returns the number of objects. The calls that create and finalise
 * objects belong to the set-up, which no lane overlaps. */
static size_t tell_object(size_t wanted) {
  const tide_publisher_handle_t *own = diagnostics.publisher.impl;
  const tide_timer_handle_t *own_timer = diagnostics.timer.impl;
  size_t count = 0u;
  for (size_t index = 0; index < diagnostics.chain_count; index++) {
    const tide_chain_t *chain = diagnostics.chains[index];
    if (count++ != wanted) continue;
    begin_object("chain", wanted, chain->name, TIDE_PRIORITY(chain->level, 0u));
    add("period ns", (uint64_t)chain->period_ns);
    add("deadline ns", (uint64_t)chain->deadline_ns);
  }
  for (size_t index = 0; index < tide_pools.publisher_count; index++) {
    const tide_publisher_handle_t *one = &tide_pools.publishers[index];
    if (one->support != own->support || one == own || count++ != wanted) continue;
    begin_object("publisher", wanted, one->topic.name + strlen("rt"), one->writer.priority);
  }
  for (size_t index = 0; index < tide_pools.timer_count; index++) {
    const tide_timer_handle_t *one = &tide_pools.timers[index];
    if (one->support != own->support || one == own_timer || count++ != wanted) continue;
    tell_callback("timer", wanted, "", &one->timer.callback);
    add("period ns", (uint64_t)one->timer.period_ns);
  }
  for (size_t index = 0; index < tide_pools.subscription_count; index++) {
    const tide_subscription_handle_t *one = &tide_pools.subscriptions[index];
    if (one->support != own->support || count++ != wanted) continue;
    tell_callback("subscription", wanted, one->topic.name + strlen("rt"), &one->callback);
  }
  for (size_t index = 0; index < tide_pools.guard_count; index++) {
    const tide_guard_handle_t *one = &tide_pools.guards[index];
    if (one->support != own->support || count++ != wanted) continue;
    tell_callback("event", wanted, "", &one->callback);
  }
  for (size_t index = 0; index < tide_pools.service_count; index++) {
    const tide_service_end_t *one = &tide_pools.services[index].end;
    if (one->support != own->support || count++ != wanted) continue;
    tell_callback("service", wanted, one->request_topic + strlen("rq"), &one->callback);
  }
  for (size_t index = 0; index < tide_pools.client_count; index++) {
    const tide_service_end_t *one = &tide_pools.clients[index].end;
    if (one->support != own->support || count++ != wanted) continue;
    tell_callback("client", wanted, one->request_topic + strlen("rq"), &one->callback);
  }
  return count;
}

static bool tell_next_object(void) {
  const size_t wanted = diagnostics.next_object++;
  size_t count = tell_object(wanted);
  if (wanted >= count) { /* the last one was reported, or objects have ended */
    diagnostics.next_object = 1u;
    if (count > 0u) count = tell_object(0u);
  }
  if (count > 0u) add("objects", count);
  return count > 0u;
}

/* ---- a report ---- */

static size_t count_lanes(void) {
  const tide_executor_t *core = tide_rclc_executor_core(diagnostics.executors[0]);
  const size_t lanes = core == NULL ? 0u : core->config.lane_count;
  return lanes < LANES ? lanes : LANES;
}

/* Returns false if there is nothing to report. */
static bool make_status(size_t place, tide_session_t *session) {
  if (place == LINK) {
    tell_link(session);
  } else if (place == MEMORY) {
    tell_memory(session);
  } else if (place < FIRST_EXECUTOR + diagnostics.executor_count) {
    return tell_executor(place - FIRST_EXECUTOR);
  } else if (place < FIRST_EXECUTOR + diagnostics.executor_count + count_lanes()) {
    return tell_lane(place - FIRST_EXECUTOR - diagnostics.executor_count);
  } else {
    return tell_next_object();
  }
  return true;
}

static void count(uint32_t *counter) { __atomic_store_n(counter, *counter + 1u, __ATOMIC_RELAXED); }

static void send_status(const tide_publisher_handle_t *publisher) {
  const tide_session_t *session = &publisher->support->session;
  const uintptr_t critical = tide_compat_enter();
  const int64_t offset_ns = session->time_sync.exchanges > 0u ? session->time_sync.offset_ns : -tide_compat_now_ns();
  diagnostics.status.stamp_ns = tide_compat_now_ns() + offset_ns;
  tide_compat_leave(critical);
  const bool sent = may_send(publisher->support) && tide_compat_send_now(publisher, &diagnostics.status) == TIDE_OK;
  count(sent ? &diagnostics.counters.published : &diagnostics.counters.left_out);
}

static void on_turn(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  if (!is_open(&diagnostics.publisher, &array_type)) return;
  const tide_publisher_handle_t *publisher = diagnostics.publisher.impl;
  const size_t places = FIRST_EXECUTOR + diagnostics.executor_count + count_lanes() + 1u;
  for (size_t tried = 0; tried < places; tried++) {
    const size_t place = diagnostics.next % places;
    diagnostics.next = (place + 1u) % places;
    if (!make_status(place, &publisher->support->session)) continue;
    send_status(publisher);
    return;
  }
}

/* ---- life ---- */

static size_t count_statuses(void) {
  size_t count = FIRST_EXECUTOR + diagnostics.executor_count + 1u; /* 1: the table of objects */
  const tide_executor_t *core = tide_rclc_executor_core(diagnostics.executors[0]);
  for (size_t lane = 0; lane < count_lanes(); lane++) {
    count += core->config.lanes[lane].settings.scheduling == TIDE_SCHEDULING_SPORADIC;
  }
  return count;
}

static int64_t turn_ns(void) { return RCL_MS_TO_NS((int64_t)diagnostics.period_ms) / (int64_t)count_statuses(); }

rcl_ret_t tide_rclc_diagnostics_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                                     uint32_t period_ms) {
  if (!tide_compat_is_node(node) || support == NULL || tide_rclc_executor_core(executor) == NULL || period_ms == 0u) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (is_open(&diagnostics.publisher, &array_type)) return tide_compat_result(TIDE_ERROR_EXISTS);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  const rcl_ret_t result = rclc_publisher_init_default(&publisher, node, &array_support, "/diagnostics");
  if (result != RCL_RET_OK) return result;
  memset(&diagnostics, 0, sizeof diagnostics);
  diagnostics.publisher = publisher;
  diagnostics.node_name = node->impl->full_name;
  diagnostics.key = node->impl->support->session.config.key;
  diagnostics.executors[0] = executor;
  diagnostics.executor_count = 1u;
  diagnostics.period_ms = period_ms;
  return start_timer(&diagnostics.timer, turn_ns(), on_turn, support, executor, &diagnostics.publisher, node);
}

rcl_ret_t tide_rclc_diagnostics_add_executor(rclc_executor_t *executor) {
  if (tide_rclc_executor_core(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!is_open(&diagnostics.publisher, &array_type)) return tide_compat_result(TIDE_ERROR_STATE);
  if (diagnostics.executor_count == TIDE_DIAGNOSTICS_EXECUTORS) return tide_compat_result(TIDE_ERROR_FULL);
  diagnostics.executors[diagnostics.executor_count++] = executor;
  int64_t before_ns = 0;
  return rcl_timer_exchange_period(&diagnostics.timer, turn_ns(), &before_ns);
}

rcl_ret_t tide_rclc_diagnostics_add_chain(const tide_chain_t *chain) {
  if (chain == NULL || chain->name == NULL || chain->level == 0u) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!is_open(&diagnostics.publisher, &array_type)) return tide_compat_result(TIDE_ERROR_STATE);
  if (diagnostics.chain_count == TIDE_DIAGNOSTICS_CHAINS) return tide_compat_result(TIDE_ERROR_FULL);
  diagnostics.chains[diagnostics.chain_count++] = chain;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_diagnostics_fini(rcl_node_t *node) {
  if (!is_open(&diagnostics.publisher, &array_type)) return tide_compat_result(TIDE_ERROR_STATE);
  const rcl_ret_t result = rcl_publisher_fini(&diagnostics.publisher, node);
  if (result != RCL_RET_OK) return result;
  diagnostics.publisher.impl = NULL;
  return rcl_timer_fini(&diagnostics.timer);
}

tide_diagnostics_counters_t tide_rclc_diagnostics_get_counters(void) {
  return (tide_diagnostics_counters_t){
      .published = __atomic_load_n(&diagnostics.counters.published, __ATOMIC_RELAXED),
      .left_out = __atomic_load_n(&diagnostics.counters.left_out, __ATOMIC_RELAXED),
  };
}

/* ---- the trace ---- */

#if TIDE_TRACE

#define CLOCK_PERIOD_NS INT64_C(1000000000)
#define LONGEST_WAIT_NS INT64_C(1000000000)
/* Overhead of a frame: the header with the key, the submessage with two ids, and the three counts of the sequence. */
#define FRAME_BYTES (8u + 8u + 12u)
/* The part of this overhead that is stored in a node. */
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
  size_t next_ring; /* index of the ring from which the next message is filled first */
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
  tide_cdr_put_u32(cdr, 0u); /* data_offset of the layout */
  tide_cdr_put_u32(cdr, octets->count);
  tide_cdr_put_bytes(cdr, octets->bytes, octets->count);
}

static const tide_message_type_t octets_type = TIDE_COMPAT_MESSAGE_TYPE("std_msgs", "UInt8MultiArray", sizeof(octets_t),
                                                                        encode_octets, tide_compat_decode_nothing);
static const rosidl_message_type_support_t octets_support = TIDE_COMPAT_MESSAGE_SUPPORT(octets_type);

/* ---- a message ---- */

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

/* Writes the client's key and both clocks, read in succession. */
static void put_clocks(tide_session_t *session) {
  const uintptr_t critical = tide_compat_enter();
  const tide_time_sync_t sync = session->time_sync;
  const int64_t time_ns = tide_compat_now_ns();
  tide_compat_leave(critical);
  (void)tide_trace_put(&trace.clock, TIDE_TRACE_CLIENT, 0u, session->config.key, 0u, time_ns);
  (void)tide_trace_put(&trace.clock, TIDE_TRACE_CLOCK, 0u, 0u, 0u, time_ns);
  if (sync.exchanges > 0u) {
    const uint32_t round_trip_us = (uint32_t)(sync.round_trip_ns / NS_PER_US);
    (void)tide_trace_put(&trace.clock, TIDE_TRACE_CLOCK, 0u, round_trip_us, 1u, time_ns + sync.offset_ns);
  }
  trace.clock_told_ns = time_ns;
  trace.clock_told = true;
}

/* Takes records from the rings in turn, so that none waits for ever while another one is always full. */
static size_t fill_message(size_t used, size_t room) {
  const int left_out = trace.settings.chains_only ? 0 : TIDE_TRACE_ALL_LEVELS;
  for (size_t turn = 0; turn < trace.rings_used; turn++) {
    tide_trace_ring_t *ring = &trace.settings.rings[(trace.next_ring + turn) % trace.rings_used];
    for (size_t bytes = 1u; bytes > 0u; used += bytes) bytes = take_block(ring, left_out, used, room);
  }
  trace.next_ring = trace.next_ring + 1u < trace.rings_used ? trace.next_ring + 1u : 0u;
  return used;
}

/* Returns false if there is nothing more to send. */
static bool send_message(const tide_publisher_handle_t *publisher) {
  const size_t room = room_of_message(publisher->support);
  size_t used = 0u;
  if (!trace.clock_told || tide_compat_now_ns() - trace.clock_told_ns >= CLOCK_PERIOD_NS) {
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

static void on_trace_turn(rcl_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  if (!is_open(&trace.publisher, &octets_type)) return;
  const tide_publisher_handle_t *publisher = trace.publisher.impl;
  const uint32_t waiting = count_waiting();
  const bool few = waiting < TIDE_TRACE_BLOCK_RECORDS;
  if (waiting == 0u || (few && tide_compat_now_ns() - trace.sent_ns < LONGEST_WAIT_NS)) return;
  trace.sent_ns = tide_compat_now_ns();
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
  const uintptr_t critical = tide_compat_enter();
  support->session.daemon.trace = ring;
  tide_compat_leave(critical);
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

rcl_ret_t tide_rclc_trace_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                               const tide_trace_settings_t *settings) {
  if (!tide_compat_is_node(node) || support == NULL || tide_rclc_executor_core(executor) == NULL ||
      !is_usable(settings)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (is_open(&trace.publisher, &octets_type)) return tide_compat_result(TIDE_ERROR_EXISTS);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_ret_t result =
      rclc_publisher_init(&publisher, node, &octets_support, "~/tide_trace", &rmw_qos_profile_sensor_data);
  if (result != RCL_RET_OK) return result;
  trace.publisher = publisher;
  begin(settings);
  result = start_timer(&trace.timer, RCL_MS_TO_NS((int64_t)settings->period_ms), on_trace_turn, support, executor,
                       &trace.publisher, node);
  if (result != RCL_RET_OK) return result;
  (void)add_lanes(executor);
  set_daemon_trace(node->impl->support, &settings->rings[0]);
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_trace_add_executor(rclc_executor_t *executor) {
  if (tide_rclc_executor_core(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return is_open(&trace.publisher, &octets_type) ? tide_compat_result(add_lanes(executor))
                                                 : tide_compat_result(TIDE_ERROR_STATE);
}

static void detach_lanes(rclc_executor_t *executor) {
  tide_executor_t *core = tide_rclc_executor_core(executor);
  for (size_t lane = 0; core != NULL && lane < core->config.lane_count; lane++) {
    core->config.lanes[lane].trace = NULL;
  }
}

rcl_ret_t tide_rclc_trace_fini(rcl_node_t *node) {
  if (!is_open(&trace.publisher, &octets_type)) return tide_compat_result(TIDE_ERROR_STATE);
  tide_support_t *support = trace.publisher.impl->support;
  const rcl_ret_t result = rcl_publisher_fini(&trace.publisher, node);
  if (result != RCL_RET_OK) return result;
  trace.publisher.impl = NULL;
  set_daemon_trace(support, NULL);
  for (size_t index = 0; index < trace.executor_count; index++) detach_lanes(trace.executors[index]);
  return rcl_timer_fini(&trace.timer);
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

tide_trace_counters_t tide_rclc_trace_get_counters(void) { return (tide_trace_counters_t){0}; }

#endif
