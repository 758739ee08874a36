/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the agent that waits for answers, and prints the result as one line of JSON. lab/bench/throughput.py
 * starts it together with the agent and prints the table.
 *
 *   throughput_client PORT ping|echo BYTES COUNT     echo: the program subscribes to what it publishes
 *
 * BYTES is the size of the serialised message. */
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

static void start(const char *port, bool echo, size_t bytes) {
  allocator = rcl_get_default_allocator();
  options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, allocator));
  CHECK(rmw_uros_options_set_udp_address("127.0.0.1", port, rcl_init_options_get_rmw_init_options(&options)));
  CHECK(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  CHECK(rclc_node_init_default(&node, "throughput", "", &support));
  CHECK(rclc_publisher_init_best_effort(&publisher, &node, type, "throughput"));
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

/* DDS matches writer and reader shortly after both were created. */
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
  tide_link_counters_t link = {0};
  (void)tide_port_link_counters(tide_rclc_support_session(&support), &link);
  printf("{\"p50_ns\": %" PRId64 ", \"link_priority\": %d, \"busy_poll_us\": %d}\n", round_trips_ns[count / 2u],
         link.thread_priority, (int)link.busy_poll_us);
}

int main(int count, char **arguments) {
  const bool echo = count == 5 && strcmp(arguments[2], "echo") == 0;
  const size_t bytes = count == 5 ? strtoul(arguments[3], NULL, 10) : 0u;
  const size_t times = count == 5 ? strtoul(arguments[4], NULL, 10) : 0u;
  if ((!echo && (count != 5 || strcmp(arguments[2], "ping") != 0)) || bytes < BYTES_MINIMUM || bytes > BYTES_MAXIMUM ||
      times == 0 || times > COUNT_MAXIMUM) {
    fprintf(stderr, "usage: throughput_client PORT ping|echo BYTES COUNT\n");
    return 2;
  }
  start(arguments[1], echo, bytes);
  if (echo) wait_for_first_echo();
  print_round_trips(echo ? round_trip_of_echo : round_trip_of_ping, times);
  CHECK(rclc_support_fini(&support));
  CHECK(rcl_init_options_fini(&options));
  return EXIT_SUCCESS;
}
