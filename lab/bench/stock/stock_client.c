/* SPDX-License-Identifier: Apache-2.0 */
/* The stock client library (microxrcedds_client), which lab/bench/end_to_end.py measures for comparison: this project's
 * own program, written against the public headers of that library. It is built only by hand, with a given installation
 * (see CMakeLists.txt here).
 *
 *   stock_client PORT publish best_effort|reliable BYTES MESSAGES
 *   stock_client PORT request
 *
 * The line protocol is that of lab/bench/end_to_end_client.c, which describes it. MESSAGES is the number of messages
 * that the program packs into a datagram before it sends the datagram (best effort), or that it passes to the stream
 * before it runs the session (reliable). With 1, each message is sent separately. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucdr/microcdr.h>
#include <uxr/client/client.h>

#define HISTORY 64
#define BUFFER_BYTES (UXR_CONFIG_UDP_TRANSPORT_MTU * HISTORY)
#define PAYLOAD_BYTES_MAXIMUM 1400u
#define NUMBER_CHARACTERS 8u
#define TICK_NS INT64_C(1000000)
#define COUNT_MAXIMUM 100000
#define ANSWER_MS 2000

static uxrUDPTransport transport;
static uxrSession session;
static uxrStreamId reliable_output, reliable_input, best_effort_output;
static uint8_t reliable_output_bytes[BUFFER_BYTES], reliable_input_bytes[BUFFER_BYTES];
static uint8_t best_effort_bytes[UXR_CONFIG_UDP_TRANSPORT_MTU];
static int64_t round_trips_ns[COUNT_MAXIMUM];
static uint64_t replies;

static const uxrQoS_t service_qos = {UXR_DURABILITY_VOLATILE, UXR_RELIABILITY_RELIABLE, UXR_HISTORY_KEEP_LAST, 10};

static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t time_ns) {
  const struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void fail(const char *what) {
  fprintf(stderr, "stock_client: %s\n", what);
  exit(EXIT_FAILURE);
}

/* Reads the next line of one or two numbers; returns false at the end of the input. */
static bool next_order(double *first, double *second) {
  char line[64], *rest = line;
  (void)fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return false;
  *first = strtod(line, &rest);
  *second = strtod(rest, NULL);
  return true;
}

static void require_status(uint16_t request, const char *what) {
  uint8_t status = UXR_STATUS_NONE;
  if (!uxr_run_session_until_all_status(&session, ANSWER_MS, &request, &status, 1)) fail(what);
}

static void on_reply(uxrSession *from, uxrObjectId object, uint16_t request, uint16_t reply, ucdrBuffer *bytes,
                     uint16_t length, void *context) {
  (void)from, (void)object, (void)request, (void)reply, (void)bytes, (void)length, (void)context;
  replies++;
}

static uxrObjectId start(const char *port) {
  const char *domain = getenv("ROS_DOMAIN_ID");
  if (!uxr_init_udp_transport(&transport, UXR_IPv4, "127.0.0.1", port)) fail("no socket");
  uxr_init_session(&session, &transport.comm, 0x5742C001u);
  uxr_set_reply_callback(&session, on_reply, NULL);
  if (!uxr_create_session(&session)) fail("no session with the agent");
  reliable_output = uxr_create_output_reliable_stream(&session, reliable_output_bytes, BUFFER_BYTES, HISTORY);
  reliable_input = uxr_create_input_reliable_stream(&session, reliable_input_bytes, BUFFER_BYTES, HISTORY);
  best_effort_output = uxr_create_output_best_effort_stream(&session, best_effort_bytes, sizeof best_effort_bytes);
  const uxrObjectId participant = uxr_object_id(1, UXR_PARTICIPANT_ID);
  const uint16_t number = (uint16_t)(domain == NULL ? 0 : strtoul(domain, NULL, 10));
  require_status(
      uxr_buffer_create_participant_bin(&session, reliable_output, participant, number, "throughput", UXR_REPLACE),
      "no participant");
  return participant;
}

static uxrObjectId create_writer(uxrObjectId participant, bool reliable) {
  const uxrObjectId topic = uxr_object_id(1, UXR_TOPIC_ID), publisher = uxr_object_id(1, UXR_PUBLISHER_ID);
  const uxrObjectId writer = uxr_object_id(1, UXR_DATAWRITER_ID);
  const uxrQoS_t qos = {UXR_DURABILITY_VOLATILE, reliable ? UXR_RELIABILITY_RELIABLE : UXR_RELIABILITY_BEST_EFFORT,
                        UXR_HISTORY_KEEP_LAST, 10};
  require_status(uxr_buffer_create_topic_bin(&session, reliable_output, topic, participant, "rt/throughput",
                                             "std_msgs::msg::dds_::String_", UXR_REPLACE),
                 "no topic");
  require_status(uxr_buffer_create_publisher_bin(&session, reliable_output, publisher, participant, UXR_REPLACE),
                 "no publisher");
  require_status(
      uxr_buffer_create_datawriter_bin(&session, reliable_output, writer, publisher, topic, qos, UXR_REPLACE),
      "no writer");
  return writer;
}

typedef struct plan {
  uxrObjectId writer;
  bool reliable;
  uint32_t bytes, messages, packed;
  uint64_t published;
} plan_t;

static void put_message(ucdrBuffer *buffer, uint64_t number, uint32_t bytes) {
  static char text[PAYLOAD_BYTES_MAXIMUM];
  const uint32_t length = bytes - (uint32_t)sizeof length;
  if (text[NUMBER_CHARACTERS] == 0) memset(text, 'x', sizeof text);
  for (unsigned place = 0; place < NUMBER_CHARACTERS; place++) {
    text[place] = "0123456789abcdef"[number >> (4u * (NUMBER_CHARACTERS - 1u - place)) & 15u];
  }
  (void)ucdr_serialize_uint32_t(buffer, length);
  (void)ucdr_serialize_array_char(buffer, text, length - 1u);
  (void)ucdr_serialize_char(buffer, 0);
}

static bool try_publish(plan_t *plan) {
  const uxrStreamId stream = plan->reliable ? reliable_output : best_effort_output;
  ucdrBuffer buffer;
  if (uxr_prepare_output_stream(&session, stream, plan->writer, &buffer, plan->bytes) == UXR_INVALID_REQUEST_ID) {
    return false;
  }
  put_message(&buffer, plan->published, plan->bytes);
  plan->published++;
  plan->packed++;
  return true;
}

static void send_all(plan_t *plan) {
  if (plan->reliable) {
    if (!uxr_run_session_until_confirm_delivery(&session, ANSWER_MS)) fail("reliable messages were not confirmed");
  } else {
    uxr_flash_output_streams(&session);
  }
  plan->packed = 0;
}

/* Adds a message to the stream; if the stream is full, sends the messages in it first. */
static void publish(plan_t *plan) {
  if (!try_publish(plan)) {
    send_all(plan);
    if (!try_publish(plan)) fail("a message does not fit");
  }
  if (plan->packed >= plan->messages) send_all(plan);
}

static void run_publish(plan_t *plan, double seconds, double rate) {
  const uint64_t before = plan->published;
  const int64_t start_ns = now_ns(), end_ns = start_ns + (int64_t)(seconds * 1e9);
  for (int64_t time_ns = start_ns; time_ns < end_ns; time_ns = now_ns()) {
    if (rate <= 0.0) {
      for (int burst = 0; burst < 16; burst++) publish(plan);
      continue;
    }
    const uint64_t due = before + (uint64_t)((double)(time_ns - start_ns) * rate / 1e9);
    while (plan->published < due) publish(plan);
    if (plan->packed != 0) send_all(plan);
    sleep_until(time_ns + TICK_NS);
  }
  send_all(plan);
  printf("{\"published\": %" PRIu64 ", \"sending_ns\": %" PRId64 "}\n", plan->published - before, now_ns() - start_ns);
}

static int ascending(const void *left, const void *right) {
  const int64_t difference = *(const int64_t *)left - *(const int64_t *)right;
  return difference < 0 ? -1 : difference > 0;
}

static uxrObjectId create_requester(uxrObjectId participant) {
  const uxrObjectId requester = uxr_object_id(1, UXR_REQUESTER_ID);
  const uxrDeliveryControl control = {.max_samples = UXR_MAX_SAMPLES_UNLIMITED};
  require_status(
      uxr_buffer_create_requester_bin(&session, reliable_output, requester, participant, "throughput",
                                      "std_srvs::srv::dds_::SetBool_Request_", "std_srvs::srv::dds_::SetBool_Response_",
                                      "rq/throughputRequest", "rr/throughputReply", service_qos, UXR_REPLACE),
      "no requester");
  (void)uxr_buffer_request_data(&session, reliable_output, requester, reliable_input, &control);
  (void)uxr_run_session_time(&session, 100);
  return requester;
}

static bool call(uxrObjectId requester, int64_t limit_ns) {
  const uint64_t wanted = replies + 1u;
  uint8_t request = 1;
  (void)uxr_buffer_request(&session, reliable_output, requester, &request, sizeof request);
  while (replies < wanted && now_ns() < limit_ns) (void)uxr_run_session_until_data(&session, 100);
  return replies >= wanted;
}

/* A request is lost if DDS has not discovered the server yet, so the first request is repeated. */
static void run_requests(uxrObjectId requester, size_t count) {
  for (int attempt = 0; !call(requester, now_ns() + ANSWER_MS * INT64_C(500000)); attempt++) {
    if (attempt == 20) fail("no reply came");
  }
  size_t lost = 0;
  for (size_t index = 0; index < count; index++) {
    const int64_t asked_ns = now_ns();
    if (!call(requester, asked_ns + ANSWER_MS * INT64_C(1000000))) lost++;
    round_trips_ns[index] = now_ns() - asked_ns;
  }
  qsort(round_trips_ns, count, sizeof *round_trips_ns, ascending);
  printf("{\"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 ", \"max_ns\": %" PRId64 ", \"lost\": %zu}\n",
         round_trips_ns[count / 2u], round_trips_ns[count * 99u / 100u], round_trips_ns[count - 1u], lost);
}

int main(int count, char **arguments) {
  const bool publishes = count == 6 && strcmp(arguments[2], "publish") == 0;
  const bool requests = count == 3 && strcmp(arguments[2], "request") == 0;
  if (!publishes && !requests) {
    fprintf(stderr,
            "usage: stock_client PORT publish best_effort|reliable BYTES MESSAGES\n"
            "       stock_client PORT request\n");
    return 2;
  }
  plan_t plan = {.reliable = publishes && strcmp(arguments[3], "reliable") == 0,
                 .bytes = publishes ? (uint32_t)strtoul(arguments[4], NULL, 10) : 16u,
                 .messages = publishes ? (uint32_t)strtoul(arguments[5], NULL, 10) : 1u};
  if (plan.bytes < 4u + NUMBER_CHARACTERS + 1u || plan.bytes > PAYLOAD_BYTES_MAXIMUM) fail("no such size");
  const uxrObjectId participant = start(arguments[1]);
  uxrObjectId requester = {0};
  if (publishes) plan.writer = create_writer(participant, plan.reliable);
  if (requests) requester = create_requester(participant);
  printf("{\"ready\": true, \"version\": \"%s\"}\n", UXR_CLIENT_VERSION_STR);
  for (double first, second; next_order(&first, &second);) {
    if (publishes) run_publish(&plan, first, second);
    if (requests) {
      run_requests(requester, first < 1.0 ? 1u : first > COUNT_MAXIMUM ? COUNT_MAXIMUM : (size_t)first);
    }
  }
  (void)uxr_delete_session(&session);
  return EXIT_SUCCESS;
}
