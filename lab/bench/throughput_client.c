/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the agent that publishes as fast as it can, or waits for answers, and prints the result as one line of
 * JSON. lab/bench/throughput.py starts it together with the agent and prints the tables.
 *
 *   throughput_client PORT best_effort|reliable BYTES SECONDS
 *   throughput_client PORT ping|echo BYTES COUNT     echo: the program subscribes to what it publishes
 *   throughput_client PORT ping_at|echo_at BYTES HZ  the same at a rate, for two seconds: processor time
 *   throughput_client PORT urgent BYTES COUNT        duration of a real-time thread's publish, one every millisecond,
 *                                                    while another thread floods the link with 1,000 B
 *   throughput_client PORT urgent_alone BYTES COUNT  the same without the other thread
 *   ... BUSY_POLL_US LINK_PRIORITY                   as in tide_link_address_t; by default 0
 *
 * BYTES is the size of the serialised message. A rate is measured until the agent has answered a ping sent after all
 * messages (best effort), or has acknowledged them all (reliable). */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <sched.h>
#include <std_msgs/msg/string.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define TIDE_SMALL_NODES 64
#define TIDE_LARGE_NODES 64
#define TIDE_SLOTS 64
#define TIDE_REASSEMBLIES 4
#define TIDE_REASSEMBLY_BYTES 4096
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/status.h>

#define BYTES_MINIMUM 5u /* the length, and the end of the text */
#define BYTES_MAXIMUM 2000u
#define COUNT_MAXIMUM 100000
#define ANSWER_MS 2000
#define AT_A_RATE_NS INT64_C(2000000000)
#define FLOOD_BYTES 1000u

static rclc_support_t support;
static rcl_init_options_t options;
static rcl_node_t node;
static rcl_publisher_t publisher, flood_publisher;
static rcl_subscription_t subscription;
static rclc_executor_t executor;
static rcl_allocator_t allocator;
static std_msgs__msg__String outgoing, incoming;
static char outgoing_text[BYTES_MAXIMUM], incoming_text[BYTES_MAXIMUM];
static std_msgs__msg__String flood_message;
static atomic_bool flood_over;
static atomic_ullong flood_published;
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

static void start(const char *port, bool reliable, bool echo, size_t bytes, int busy_poll_us, int link_priority) {
  allocator = rcl_get_default_allocator();
  options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, allocator));
  CHECK(rmw_uros_options_set_udp_address("127.0.0.1", port, rcl_init_options_get_rmw_init_options(&options)));
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  CHECK(tide_rclc_options_set_busy_poll(link, busy_poll_us));
  CHECK(tide_rclc_options_set_link_priority(link, link_priority));
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
  tide_session_t *session = tide_rclc_support_session(&support);
  const tide_transmitter_counters_t *counters = &session->daemon.transmitter.counters;
  tide_link_counters_t link = {0};
  (void)tide_port_link_counters(session, &link);
  printf("{\"published\": %" PRIu64 ", \"sending_ns\": %" PRId64 ", \"total_ns\": %" PRId64
         ", \"frames\": %u, \"retransmissions\": %u, \"batches\": %u, \"link_priority\": %d, \"busy_poll_us\": %d}\n",
         published, sent_ns - start_ns, done_ns - start_ns, (unsigned)counters->frames,
         (unsigned)counters->retransmissions, (unsigned)link.batches, link.thread_priority, (int)link.busy_poll_us);
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

static void sleep_until(int64_t time_ns) {
  const struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
  }
}

static int64_t processor_ns(void) {
  struct rusage usage;
  (void)getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

static void sort_and_print(size_t count, const char *more) {
  qsort(round_trips_ns, count, sizeof *round_trips_ns, ascending);
  printf("{\"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64 "%s}\n", round_trips_ns[count / 2u],
         round_trips_ns[count * 99u / 100u], round_trips_ns[count - 1u], more);
}

static void print_at_a_rate(void (*round_trip)(void), double hertz) {
  const int64_t period_ns = (int64_t)(1e9 / hertz), start_ns = now_ns(), end_ns = start_ns + AT_A_RATE_NS;
  const int64_t before_ns = processor_ns();
  size_t count = 0;
  for (int64_t next_ns = start_ns; next_ns < end_ns && count < COUNT_MAXIMUM; next_ns += period_ns) {
    sleep_until(next_ns);
    const int64_t asked_ns = now_ns();
    round_trip();
    round_trips_ns[count++] = now_ns() - asked_ns;
  }
  char more[100];
  (void)snprintf(more, sizeof more, ", \"processor_ns\": %" PRId64 ", \"total_ns\": %" PRId64,
                 processor_ns() - before_ns, now_ns() - start_ns);
  sort_and_print(count, more);
}

static void *flood(void *argument) {
  (void)argument;
  while (!atomic_load(&flood_over)) {
    if (rcl_publish(&flood_publisher, &flood_message, NULL) == RCL_RET_OK) atomic_fetch_add(&flood_published, 1u);
  }
  return NULL;
}

static void print_urgent(bool alone, size_t count) {
  pthread_t thread;
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  CHECK(rclc_publisher_init_best_effort(&flood_publisher, &node, type, "flood"));
  CHECK(tide_rclc_publisher_set_priority(&flood_publisher, TIDE_PRIORITY(1, 0)));
  CHECK(tide_rclc_publisher_set_priority(&publisher, TIDE_PRIORITY(9, 0)));
  flood_message = outgoing;
  flood_message.data.size = FLOOD_BYTES - BYTES_MINIMUM;
  if (!alone && pthread_create(&thread, NULL, flood, NULL) != 0) exit(EXIT_FAILURE);
  const int status = tide_posix_set_scheduling(SCHED_FIFO, 50, TIDE_POSIX_ANY_CPU);
  const int64_t start_ns = now_ns();
  for (size_t index = 0; index < count; index++) {
    sleep_until(start_ns + (int64_t)index * 1000000);
    const int64_t before_ns = now_ns();
    CHECK(rcl_publish(&publisher, &outgoing, NULL));
    round_trips_ns[index] = now_ns() - before_ns;
  }
  const double seconds = (double)(now_ns() - start_ns) / 1e9;
  atomic_store(&flood_over, true);
  if (!alone) (void)pthread_join(thread, NULL);
  char more[100];
  (void)snprintf(more, sizeof more, ", \"real_time\": %s, \"flood_per_s\": %.0f", status == TIDE_OK ? "true" : "false",
                 (double)atomic_load(&flood_published) / seconds);
  sort_and_print(count, more);
}

static void print_round_trips(void (*round_trip)(void), size_t count) {
  for (size_t index = 0; index < count; index++) {
    const int64_t start_ns = now_ns();
    round_trip();
    round_trips_ns[index] = now_ns() - start_ns;
  }
  sort_and_print(count, "");
}

int main(int count, char **arguments) {
  const bool known = count == 5 || count == 7;
  const char *mode = known ? arguments[2] : "";
  const size_t bytes = known ? strtoul(arguments[3], NULL, 10) : 0u;
  const double amount = known ? strtod(arguments[4], NULL) : 0.0;
  const int busy_poll_us = count == 7 ? (int)strtol(arguments[5], NULL, 10) : 0;
  const int link_priority = count == 7 ? (int)strtol(arguments[6], NULL, 10) : 0;
  const bool reliable = strcmp(mode, "reliable") == 0, ping = strcmp(mode, "ping") == 0;
  const bool ping_at = strcmp(mode, "ping_at") == 0, echo_at = strcmp(mode, "echo_at") == 0;
  const bool alone = strcmp(mode, "urgent_alone") == 0, urgent = alone || strcmp(mode, "urgent") == 0;
  const bool echo = strcmp(mode, "echo") == 0, rate = reliable || strcmp(mode, "best_effort") == 0;
  if ((!rate && !ping && !echo && !ping_at && !echo_at && !urgent) || bytes < BYTES_MINIMUM || bytes > BYTES_MAXIMUM ||
      amount <= 0.0 || (!rate && amount > COUNT_MAXIMUM)) {
    fprintf(stderr,
            "usage: throughput_client PORT best_effort|reliable BYTES SECONDS [BUSY_POLL_US LINK_PRIORITY]\n"
            "       throughput_client PORT ping|echo|urgent|urgent_alone BYTES COUNT [BUSY_POLL_US LINK_PRIORITY]\n"
            "       throughput_client PORT ping_at|echo_at BYTES HZ [BUSY_POLL_US LINK_PRIORITY]\n");
    return 2;
  }
  start(arguments[1], reliable, echo || echo_at, bytes, busy_poll_us, link_priority);
  const size_t times = amount < 1.0 ? 1u : (size_t)amount;
  if (rate) print_rate(amount);
  if (echo || echo_at) wait_for_first_echo();
  if (ping || echo) print_round_trips(ping ? round_trip_of_ping : round_trip_of_echo, times);
  if (ping_at || echo_at) print_at_a_rate(ping_at ? round_trip_of_ping : round_trip_of_echo, amount);
  if (urgent) print_urgent(alone, times);
  CHECK(rclc_support_fini(&support));
  CHECK(rcl_init_options_fini(&options));
  return EXIT_SUCCESS;
}
