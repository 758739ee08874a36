/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the agent that publishes as fast as it can, or waits for answers, and prints what it saw as one line of
 * JSON. bench/throughput.py starts it beside the agent and makes the tables.
 *
 *   throughput_client PORT best_effort|reliable BYTES SECONDS
 *   throughput_client PORT ping|echo BYTES COUNT     echo: the program subscribes to what it publishes
 *
 * BYTES are those of the serialised message. A rate counts until the agent has answered a ping that was sent after
 * everything else (best effort), or has acknowledged everything (reliable). */
#include <inttypes.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIDE_SMALL_NODES 64
#define TIDE_LARGE_NODES 64
#define TIDE_SLOTS 64
#define TIDE_REASSEMBLIES 4
#define TIDE_REASSEMBLY_BYTES 4096
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>
#include <tide/rclc.h>
#include <tide/status.h>

#define BYTES_MINIMUM 5u /* the length, and the end of the text */
#define BYTES_MAXIMUM 2000u
#define COUNT_MAXIMUM 100000
#define ANSWER_MS 2000

static rclc_support_t support;
static rcl_init_options_t options;
static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rclc_executor_t executor;
static rcl_allocator_t allocator;
static std_msgs__msg__String outgoing, incoming;
static char outgoing_text[BYTES_MAXIMUM], incoming_text[BYTES_MAXIMUM];
static int64_t round_trips_ns[COUNT_MAXIMUM];
static uint64_t answers;

static int64_t now_ns(void) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->now_ns(platform->context);
}

static void check(rcl_ret_t result, const char *what) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "throughput_client: %s: %s\n", what, tide_status_text(tide_rclc_last_status()));
  exit(EXIT_FAILURE);
}
#define CHECK(call) check((call), #call)

static void on_message(const void *message) {
  (void)message;
  answers++;
}

static void start(const char *port, bool reliable, bool echo, size_t bytes) {
  allocator = rcl_get_default_allocator();
  options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, allocator));
  CHECK(rmw_uros_options_set_udp_address("127.0.0.1", port, rcl_init_options_get_rmw_init_options(&options)));
  CHECK(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  CHECK(rclc_node_init_default(&node, "throughput", "", &support));
  CHECK(reliable ? rclc_publisher_init_default(&publisher, &node, type, "throughput")
                 : rclc_publisher_init_best_effort(&publisher, &node, type, "throughput"));
  CHECK(tide_rclc_publisher_set_wait_ms(&publisher, ANSWER_MS));
  memset(outgoing_text, 'x', sizeof outgoing_text);
  outgoing.data.data = outgoing_text;
  outgoing.data.capacity = sizeof outgoing_text;
  outgoing.data.size = bytes - BYTES_MINIMUM;
  incoming.data.data = incoming_text;
  incoming.data.capacity = sizeof incoming_text;
  if (!echo) return;
  CHECK(rclc_subscription_init_best_effort(&subscription, &node, type, "throughput"));
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  CHECK(rclc_executor_add_subscription(&executor, &subscription, &incoming, on_message, ON_NEW_DATA));
}

static void wait_until_sent(void) {
  tide_session_t *session = tide_rclc_support_session(&support);
  const int64_t limit_ns = now_ns() + INT64_C(20000000000);
  if (tide_session_wait_idle(session, 0, limit_ns, tide_port_pump(session)) == TIDE_OK) return;
  fprintf(stderr, "throughput_client: the last messages were not taken\n");
  exit(EXIT_FAILURE);
}

static void print_rate(double seconds) {
  const int64_t start_ns = now_ns(), end_ns = start_ns + (int64_t)(seconds * 1e9);
  uint64_t published = 0;
  while (now_ns() < end_ns) {
    for (int burst = 0; burst < 16; burst++) {
      CHECK(rcl_publish(&publisher, &outgoing, NULL));
      published++;
    }
  }
  wait_until_sent();
  const int64_t sent_ns = now_ns();
  CHECK(rmw_uros_ping_agent(ANSWER_MS, 1));
  const int64_t done_ns = now_ns();
  const tide_transmitter_counters_t *counters = &tide_rclc_support_session(&support)->daemon.transmitter.counters;
  printf("{\"published\": %" PRIu64 ", \"sending_ns\": %" PRId64 ", \"total_ns\": %" PRId64
         ", \"frames\": %u, \"retransmissions\": %u}\n",
         published, sent_ns - start_ns, done_ns - start_ns, (unsigned)counters->frames,
         (unsigned)counters->retransmissions);
}

static int ascending(const void *left, const void *right) {
  const int64_t difference = *(const int64_t *)left - *(const int64_t *)right;
  return difference < 0 ? -1 : difference > 0;
}

static void round_trip_of_ping(void) { CHECK(rmw_uros_ping_agent(ANSWER_MS, 1)); }

static void round_trip_of_echo(void) {
  const uint64_t wanted = answers + 1u;
  const int64_t limit_ns = now_ns() + ANSWER_MS * INT64_C(1000000);
  CHECK(rcl_publish(&publisher, &outgoing, NULL));
  while (answers < wanted) {
    if (now_ns() > limit_ns) {
      fprintf(stderr, "throughput_client: an echo did not come\n");
      exit(EXIT_FAILURE);
    }
    (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100));
  }
}

/* DDS matches writer and reader a moment after both are there. */
static void wait_for_first_echo(void) {
  for (int attempt = 0; attempt < 100 && answers == 0u; attempt++) {
    CHECK(rcl_publish(&publisher, &outgoing, NULL));
    (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50));
  }
  for (uint64_t before = answers + 1u; before != answers;) {
    before = answers;
    (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50));
  }
}

static void print_round_trips(void (*round_trip)(void), size_t count) {
  for (size_t index = 0; index < count; index++) {
    const int64_t start_ns = now_ns();
    round_trip();
    round_trips_ns[index] = now_ns() - start_ns;
  }
  qsort(round_trips_ns, count, sizeof *round_trips_ns, ascending);
  printf("{\"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64 "}\n", round_trips_ns[count / 2u],
         round_trips_ns[count * 99u / 100u], round_trips_ns[count - 1u]);
}

int main(int count, char **arguments) {
  const char *mode = count == 5 ? arguments[2] : "";
  const size_t bytes = count == 5 ? strtoul(arguments[3], NULL, 10) : 0u;
  const double amount = count == 5 ? strtod(arguments[4], NULL) : 0.0;
  const bool reliable = strcmp(mode, "reliable") == 0, ping = strcmp(mode, "ping") == 0;
  const bool echo = strcmp(mode, "echo") == 0, rate = reliable || strcmp(mode, "best_effort") == 0;
  if ((!rate && !ping && !echo) || bytes < BYTES_MINIMUM || bytes > BYTES_MAXIMUM || amount <= 0.0 ||
      (!rate && amount > COUNT_MAXIMUM)) {
    fprintf(stderr, "usage: throughput_client PORT best_effort|reliable BYTES SECONDS | ping|echo BYTES COUNT\n");
    return 2;
  }
  start(arguments[1], reliable, echo, bytes);
  if (rate) print_rate(amount);
  if (echo) wait_for_first_echo();
  if (!rate) print_round_trips(ping ? round_trip_of_ping : round_trip_of_echo, amount < 1.0 ? 1u : (size_t)amount);
  CHECK(rclc_support_fini(&support));
  CHECK(rcl_init_options_fini(&options));
  return EXIT_SUCCESS;
}
