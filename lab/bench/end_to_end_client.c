/* SPDX-License-Identifier: Apache-2.0 */
/* tide's client as lab/bench/end_to_end.py measures it: an rclc program that publishes, or calls a service.
 *
 *   end_to_end_client PORT publish best_effort|reliable BYTES MESSAGES
 *   end_to_end_client PORT request
 *
 * This line protocol is also used by benchmark clients of other libraries. ROS_DOMAIN_ID names the domain, if the
 * library sends one. The program creates its entities and prints {"ready": true}, optionally with the "version" of its
 * library. Then it answers each line of its standard input with one line, and ends at the end of the input:
 *
 *   SECONDS RATE   It publishes std_msgs/String on /throughput for SECONDS, RATE messages a second in steps of a
 *                  millisecond, or as fast as it can if RATE is 0. The answer is {"published": N, "sending_ns": NS},
 *                  where NS is the time until everything has been sent (best effort) or acknowledged (reliable).
 *   COUNT          It calls the service /throughput (std_srvs/SetBool) COUNT times, one call after the other. The
 *                  answer is {"p50_ns": NS, "p99_ns": NS, "max_ns": NS}.
 *
 * BYTES is the size of the serialised message. Its text begins with the message's number, counted from 0, in 8
 * hexadecimal digits. MESSAGES is the number of messages that the program packs into a datagram. In this program, the
 * library packs waiting reliable messages (tide_rclc_support_set_packing) unless MESSAGES is 1; then each message is a
 * datagram of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/string.h>
#include <std_srvs/srv/set_bool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIDE_SMALL_NODES 64
#define TIDE_LARGE_NODES 64
#define TIDE_SLOTS 64
#define TIDE_CLIENTS 1
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/status.h>

#define NUMBER_CHARACTERS 8u
#define BYTES_MINIMUM (4u + NUMBER_CHARACTERS + 1u) /* the length, the number, and the null character */
#define BYTES_MAXIMUM 1400u
#define COUNT_MAXIMUM 100000u
#define TICK_NS INT64_C(1000000)
#define ANSWER_MS 2000

static rclc_support_t support;
static rcl_init_options_t options;
static rcl_allocator_t allocator;
static rcl_node_t node;
static rcl_publisher_t publisher;
static rcl_client_t client;
static rclc_executor_t executor;
static std_msgs__msg__String message;
static char text[BYTES_MAXIMUM];
static std_srvs__srv__SetBool_Request request;
static std_srvs__srv__SetBool_Response response;
static int64_t round_trips_ns[COUNT_MAXIMUM];
static uint64_t published, replies;

static int64_t now_ns(void) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->now_ns(platform->context);
}

static void sleep_until(int64_t time_ns) {
  const struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
}

static void fail(const char *what) {
  fprintf(stderr, "end_to_end_client: %s: %s\n", what, tide_status_text(tide_rclc_last_status()));
  exit(EXIT_FAILURE);
}
#define CHECK(call) \
  if ((call) != RCL_RET_OK) fail(#call)

/* Reads the next line of one or two numbers; returns false at the end of the input. */
static bool next_order(double *first, double *second) {
  char line[64], *rest = line;
  (void)fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return false;
  *first = strtod(line, &rest);
  *second = strtod(rest, NULL);
  return true;
}

static void start(const char *port) {
  allocator = rcl_get_default_allocator();
  options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, allocator));
  CHECK(rmw_uros_options_set_udp_address("127.0.0.1", port, rcl_init_options_get_rmw_init_options(&options)));
  CHECK(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));
  CHECK(rclc_node_init_default(&node, "throughput", "", &support));
}

static void wait_until_sent(void) {
  tide_session_t *session = tide_rclc_support_session(&support);
  const int64_t limit_ns = now_ns() + INT64_C(20000000000);
  if (tide_session_wait_idle(session, 0, limit_ns, tide_port_pump(session)) != TIDE_OK) {
    fail("the last messages were not taken");
  }
}

static void publish(void) {
  for (unsigned place = 0; place < NUMBER_CHARACTERS; place++) {
    text[place] = "0123456789abcdef"[published >> (4u * (NUMBER_CHARACTERS - 1u - place)) & 15u];
  }
  CHECK(rcl_publish(&publisher, &message, NULL));
  published++;
}

static void create_publisher(bool reliable, size_t bytes, bool packs) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  CHECK(reliable ? rclc_publisher_init_default(&publisher, &node, type, "throughput")
                 : rclc_publisher_init_best_effort(&publisher, &node, type, "throughput"));
  CHECK(tide_rclc_publisher_set_wait_ms(&publisher, ANSWER_MS));
  CHECK(tide_rclc_support_set_packing(&support, packs));
  memset(text, 'x', sizeof text);
  message.data.data = text;
  message.data.capacity = sizeof text;
  message.data.size = bytes - 5u;
}

static void run_publish(double seconds, double rate) {
  const uint64_t before = published;
  const int64_t start_ns = now_ns(), end_ns = start_ns + (int64_t)(seconds * 1e9);
  for (int64_t time_ns = start_ns; time_ns < end_ns; time_ns = now_ns()) {
    if (rate <= 0.0) {
      for (int burst = 0; burst < 16; burst++) publish();
      continue;
    }
    const uint64_t due = before + (uint64_t)((double)(time_ns - start_ns) * rate / 1e9);
    while (published < due) publish();
    sleep_until(time_ns + TICK_NS);
  }
  wait_until_sent();
  printf("{\"published\": %" PRIu64 ", \"sending_ns\": %" PRId64 "}\n", published - before, now_ns() - start_ns);
}

static int ascending(const void *left, const void *right) {
  const int64_t difference = *(const int64_t *)left - *(const int64_t *)right;
  return difference < 0 ? -1 : difference > 0;
}

static void on_response(const void *answer) {
  (void)answer;
  replies++;
}

static void create_client(void) {
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool);
  CHECK(rclc_client_init_default(&client, &node, type, "/throughput"));
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  CHECK(rclc_executor_add_client(&executor, &client, &response, on_response));
  request.data = true;
}

/* The first call also waits until DDS has found the server. */
static void call(int64_t limit_ns) {
  const uint64_t wanted = replies + 1u;
  int64_t number = 0;
  CHECK(rcl_send_request(&client, &request, &number));
  while (replies < wanted) {
    if (now_ns() > limit_ns) fail("a reply did not come");
    (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100));
  }
}

static void run_requests(size_t count) {
  call(now_ns() + ANSWER_MS * INT64_C(10000000));
  for (size_t index = 0; index < count; index++) {
    const int64_t asked_ns = now_ns();
    call(asked_ns + ANSWER_MS * INT64_C(1000000));
    round_trips_ns[index] = now_ns() - asked_ns;
  }
  qsort(round_trips_ns, count, sizeof *round_trips_ns, ascending);
  printf("{\"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64 "}\n", round_trips_ns[count / 2u],
         round_trips_ns[count * 99u / 100u], round_trips_ns[count - 1u]);
}

int main(int count, char **arguments) {
  const bool publishes = count == 6 && strcmp(arguments[2], "publish") == 0 && strtoul(arguments[5], NULL, 10) > 0;
  const bool requests = count == 3 && strcmp(arguments[2], "request") == 0;
  const size_t bytes = publishes ? strtoul(arguments[4], NULL, 10) : BYTES_MINIMUM;
  if ((!publishes && !requests) || bytes < BYTES_MINIMUM || bytes > BYTES_MAXIMUM) {
    fprintf(stderr,
            "usage: end_to_end_client PORT publish best_effort|reliable BYTES MESSAGES (BYTES: %u to %u)\n"
            "       end_to_end_client PORT request\n",
            BYTES_MINIMUM, BYTES_MAXIMUM);
    return 2;
  }
  start(arguments[1]);
  if (publishes) create_publisher(strcmp(arguments[3], "reliable") == 0, bytes, strcmp(arguments[5], "1") != 0);
  if (requests) create_client();
  printf("{\"ready\": true}\n");
  for (double first, second; next_order(&first, &second);) {
    if (publishes) run_publish(first, second);
    if (requests) run_requests(first < 1.0 ? 1u : first > COUNT_MAXIMUM ? COUNT_MAXIMUM : (size_t)first);
  }
  CHECK(rclc_support_fini(&support));
  CHECK(rcl_init_options_fini(&options));
  return EXIT_SUCCESS;
}
