/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges numbered messages of three types in both directions, reliably, at full speed or at a given period. Small
 * messages have streams of their own, so they can overtake images, between whose fragments they are sent. The content
 * and order of every message are checked; duplicates and losses are counted.
 *
 *   exchange --udp 8888 --string 1000 --imu 1000 --image 100
 *   exchange --serial /dev/ttyUSB0 --baud 921600 --string 1000 --period-ms 20
 *
 * Publishes on exchange/NAME/up and subscribes to exchange/NAME/down. Prints a line of JSON when it is ready, then
 * waits for a line on standard input. For every line "probe" before that one, it publishes message 999999 of each type:
 * only its arrival shows that DDS has matched the agent's writers with a reader. The program prints a line for each
 * received message, and one at the end, when all messages have been sent, acknowledged and received. Then it waits for
 * another line, because messages may still be under way from the agent to ROS 2, and would be lost with the writer. A
 * count of 0 means that the exchange does not end. */
#include <inttypes.h>

#include "sample.h"

#define TIDE_NODES 1
#define TIDE_PUBLISHERS SAMPLE_KINDS
#define TIDE_SUBSCRIPTIONS SAMPLE_KINDS
#define TIDE_TIMERS 1
#define TIDE_SMALL_NODES 16
#define TIDE_SMALL_NODE_BYTES 512
#define TIDE_LARGE_NODES 3
#define TIDE_LARGE_NODE_BYTES 40200
#define TIDE_REASSEMBLIES 2
#define TIDE_REASSEMBLY_BYTES 40200
#define TIDE_MTU_BYTES 1024
#define TIDE_SLOTS 64
#include "peer.h"

#define NOT_ASKED (-1)
#define PROBE 999999
#define TOPIC_BYTES 40
#define PUBLISH_WAIT_MS 5
#define IDLE_WAIT_MS 5

typedef struct flow {
  const sample_kind_t *kind;
  int64_t count; /* number of messages; 0: no end; NOT_ASKED: the type is not used */
  uint32_t sent, received, wrong, skipped, repeated;
  int64_t last;
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
} flow_t;

static flow_t flows[SAMPLE_KINDS];

static void on_message(const void *message, void *context) {
  (void)message;
  flow_t *flow = context;
  const int64_t index = flow->kind->check();
  flow->received++;
  if (index < 0) {
    flow->wrong++;
  } else if (index <= flow->last) {
    flow->repeated++;
  } else {
    flow->skipped += (uint32_t)(index - flow->last - 1);
    flow->last = index;
  }
  printf("{\"%s\": %" PRId64 "}\n", flow->kind->name, index);
  fflush(stdout);
}

static bool may_send(const flow_t *flow) {
  return flow->count == 0 || (flow->count > 0 && flow->sent < (uint32_t)flow->count);
}

/* Publishes the next message. If the pool has no room for it, it is tried again later. */
static void send_next(flow_t *flow) {
  if (!may_send(flow)) return;
  flow->kind->fill(flow->sent);
  if (rcl_publish(&flow->publisher, flow->kind->outgoing, NULL) == RCL_RET_OK) flow->sent++;
}

static void on_period(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(timer);
  RCLC_UNUSED(last_call_time);
  for (size_t i = 0; i < SAMPLE_KINDS; i++) send_next(&flows[i]);
}

static bool is_finished(void) {
  for (size_t i = 0; i < SAMPLE_KINDS; i++) {
    const flow_t *flow = &flows[i];
    if (flow->count == 0 || may_send(flow) || (flow->count > 0 && flow->received < flow->count)) return false;
  }
  return tide_session_is_idle(tide_rclc_support_session(&support), 0);
}

static void print_end(void) {
  const tide_session_t *session = tide_rclc_support_session(&support);
  printf("{\"event\": \"end\", \"reconnects\": %" PRIu32 ", \"retransmissions\": %" PRIu32,
         session->counters.reconnects, session->daemon.transmitter.counters.retransmissions);
  for (size_t i = 0; i < SAMPLE_KINDS; i++) {
    const flow_t *flow = &flows[i];
    if (flow->count == NOT_ASKED) continue;
    printf(", \"%s\": {\"sent\": %" PRIu32 ", \"received\": %" PRIu32 ", \"wrong\": %" PRIu32 ", \"skipped\": %" PRIu32
           ", \"repeated\": %" PRIu32 "}",
           flow->kind->name, flow->sent, flow->received, flow->wrong, flow->skipped, flow->repeated);
  }
  puts("}");
  fflush(stdout);
}

static void create_flow(flow_t *flow) {
  rmw_qos_profile_t quality = rmw_qos_profile_default;
  quality.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  char topic[TOPIC_BYTES];
  snprintf(topic, sizeof topic, "exchange/%s/up", flow->kind->name);
  require(rclc_publisher_init(&flow->publisher, &node, flow->kind->type(), topic, &quality), "creating a publisher");
  snprintf(topic, sizeof topic, "exchange/%s/down", flow->kind->name);
  require(rclc_subscription_init(&flow->subscription, &node, flow->kind->type(), topic, &quality),
          "creating a subscription");
  const tide_priority_t priority = TIDE_PRIORITY(flow->kind->level, 0);
  require(tide_rclc_publisher_set_priority(&flow->publisher, priority), "setting a priority");
  require(tide_rclc_publisher_set_wait_ms(&flow->publisher, PUBLISH_WAIT_MS), "setting a limit");
  require(tide_rclc_subscription_set_priority(&flow->subscription, priority), "setting a priority");
  require(rclc_executor_add_subscription_with_context(&executor, &flow->subscription, flow->kind->incoming, on_message,
                                                      flow, ON_NEW_DATA),
          "adding a subscription");
}

static void await_line(void) {
  while (getchar() != '\n' && !feof(stdin)) {}
}

/* Waits for the line that starts the exchange. A probe for which the pool has no room is dropped, because the other
 * side asks for probes until one arrives. */
static void await_start(void) {
  char line[32];
  while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "probe\n") == 0) {
    for (size_t i = 0; i < SAMPLE_KINDS; i++) {
      if (flows[i].count == NOT_ASKED) continue;
      flows[i].kind->fill(PROBE);
      (void)rcl_publish(&flows[i].publisher, flows[i].kind->outgoing, NULL);
    }
    require(rclc_executor_spin_some(&executor, RCL_MS_TO_NS(IDLE_WAIT_MS)), "spinning");
  }
}

int main(int argc, char **argv) {
  for (size_t i = 0; i < SAMPLE_KINDS; i++) {
    flows[i].kind = &sample_kinds[i];
    flows[i].count = NOT_ASKED;
    flows[i].last = -1;
    sample_kinds[i].bind();
  }
  int64_t period_ms = 0;
  const peer_option_t own[] = {{.name = "string", .number = &flows[0].count},
                               {.name = "imu", .number = &flows[1].count},
                               {.name = "image", .number = &flows[2].count},
                               {.name = "period-ms", .number = &period_ms},
                               {.name = NULL}};
  node_name = "exchange";
  end_by_signal();
  connect_board(argc, argv, own, "", SAMPLE_KINDS + 1);
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  for (size_t i = 0; i < SAMPLE_KINDS; i++) {
    if (flows[i].count != NOT_ASKED) create_flow(&flows[i]);
  }
  tell_ready();
  await_start();
  if (period_ms > 0) {
    require(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(period_ms), on_period), "creating the timer");
    require(rclc_executor_add_timer(&executor, &timer), "adding the timer");
  }
  while (!interrupted && !is_finished()) {
    if (period_ms == 0) on_period(NULL, 0);
    bool busy = false;
    for (size_t i = 0; i < SAMPLE_KINDS && period_ms == 0; i++) busy = busy || may_send(&flows[i]);
    require(rclc_executor_spin_some(&executor, busy ? 0 : RCL_MS_TO_NS(IDLE_WAIT_MS)), "spinning");
  }
  print_end();
  await_line();
  require(rclc_executor_fini(&executor), "finishing the executor");
  require(rclc_support_fini(&support), "finishing");
  return 0;
}
