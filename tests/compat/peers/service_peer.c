/* SPDX-License-Identifier: Apache-2.0 */
/* A board with a service and a client of the type test_msgs/BasicTypes, for tests with real ROS 2. A reply contains
 * int64_value + int32_value as int64_value, string_value unchanged, and the key of the answering board as uint64_value.
 *
 *   service_peer (--udp PORT | --rtps ADDRESS --domain N) --key N [--node NAME] [--serve NAME]
 *     [--ask NAME --period-ms N --bytes N --at-once N]
 *
 * If bool_value is true in a request, a timer answers it later. The client sends no request while --at-once requests
 * have no reply; 0 means no limit. The program prints requests and replies as lines of JSON; on SIGTERM it prints the
 * counters and ends. */
#include <test_msgs/srv/basic_types.h>
#include <tide/rclc_service.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_SERVICES 1
#define TIDE_CLIENTS 1
#define TIDE_CLIENT_REQUESTS 64
#define TIDE_SERVICE_DEPTH 16
#define TIDE_TIMERS 2
#define TIDE_LARGE_NODE_BYTES 6144
#define TIDE_REASSEMBLY_BYTES 6144
#define TIDE_RTPS_WRITERS 2
#define TIDE_RTPS_READERS 2
#define TIDE_RTPS_FRAMES 16
#define TIDE_RTPS_HISTORY 16
#define TIDE_RTPS_SAMPLE_BYTES 6144
#define TIDE_DEFINE_RTPS

#include "peer.h"

#define TEXT_BYTES 5000
#define LATE_MAXIMUM 64
#define LATE_PERIOD_MS 10

typedef struct late {
  rmw_request_id_t id;
  int64_t sum;
} late_t;

static int64_t asked, replied, at_once, text_bytes = 10;
static rcl_service_t service;
static rcl_client_t client;
static late_t late[LATE_MAXIMUM];
static size_t late_count;
static char texts[5][TEXT_BYTES + 1];
static test_msgs__srv__BasicTypes_Request incoming, outgoing;
static test_msgs__srv__BasicTypes_Response answer, late_answer, reply;

static void on_request(const void *request, rmw_request_id_t *id, void *response) {
  const test_msgs__srv__BasicTypes_Request *given = request;
  test_msgs__srv__BasicTypes_Response *made = response;
  made->int64_value = given->int64_value + given->int32_value;
  made->uint64_value = (uint64_t)key;
  made->string_value.size = given->string_value.size;
  memcpy(made->string_value.data, given->string_value.data, given->string_value.size + 1);
  printf("{\"served\": %" PRId64 "}\n", given->int64_value);
  fflush(stdout);
  if (!given->bool_value || late_count == LATE_MAXIMUM) return;
  late[late_count++] = (late_t){*id, made->int64_value};
  require(tide_rclc_service_defer(&service), "deferring");
}

/* Answers the waiting requests, the latest one first. */
static void send_late(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(timer);
  RCLC_UNUSED(last_call_time);
  while (late_count > 0) {
    late_answer.int64_value = late[late_count - 1].sum;
    late_answer.uint64_value = (uint64_t)key;
    if (rcl_send_response(&service, &late[late_count - 1].id, &late_answer) != RCL_RET_OK) return;
    late_count--;
  }
}

static void ask(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(timer);
  RCLC_UNUSED(last_call_time);
  if (at_once != 0 && asked - replied >= at_once) return;
  outgoing.int64_value = asked + 1;
  outgoing.int32_value = (int32_t)key;
  memset(outgoing.string_value.data, 'a' + (int)(asked % 26), (size_t)text_bytes);
  outgoing.string_value.data[text_bytes] = '\0';
  outgoing.string_value.size = (size_t)text_bytes;
  int64_t number = 0;
  if (rcl_send_request(&client, &outgoing, &number) == RCL_RET_OK) asked++;
}

/* The program counts its requests, so that it can check the number in a reply. */
static void on_reply(const void *response, rmw_request_id_t *id) {
  replied++;
  const test_msgs__srv__BasicTypes_Response *given = response;
  const char letter = (char)('a' + (int)((id->sequence_number - 1) % 26));
  const bool right = given->int64_value == id->sequence_number + key &&
                     given->string_value.size == (size_t)text_bytes && given->string_value.data[0] == letter;
  printf("{\"reply\": %" PRId64 ", \"by\": %" PRIu64 ", \"right\": %s}\n", id->sequence_number, given->uint64_value,
         right ? "true" : "false");
  fflush(stdout);
}

static void give_text(rosidl_runtime_c__String *string, size_t place) {
  string->data = texts[place];
  string->capacity = sizeof texts[place];
}

static void print_end(bool serves, bool asks) {
  tide_service_counters_t served = {0};
  tide_client_counters_t got = {0};
  if (serves) require(tide_rclc_service_get_counters(&service, &served), "counting");
  if (asks) require(tide_rclc_client_get_counters(&client, &got), "counting");
  printf("{\"event\": \"end\", \"reconnects\": %" PRIu32 ", \"served\": %" PRIu32 ", \"responses_lost\": %" PRIu32
         ", \"asked\": %" PRId64 ", \"unanswered\": %" PRIu32 ", \"forgotten\": %" PRIu32 ", \"unexpected\": %" PRIu32
         ", \"dropped\": %" PRIu32 "}\n",
         tide_rclc_support_session(&support)->counters.reconnects, served.received, served.responses_lost, asked,
         got.unanswered, got.forgotten, got.unexpected, served.dropped + got.dropped);
  fflush(stdout);
}

int main(int argc, char **argv) {
  const char *serves = NULL, *asks = NULL;
  int64_t period_ms = 100;
  const peer_option_t own[] = {{.name = "serve", .text = &serves},          {.name = "ask", .text = &asks},
                               {.name = "period-ms", .number = &period_ms}, {.name = "bytes", .number = &text_bytes},
                               {.name = "at-once", .number = &at_once},     {0}};
  connect_board(argc, argv, own, "", 4);
  if (text_bytes <= 0 || text_bytes > TEXT_BYTES || period_ms <= 0) return 2;
  end_by_signal();
  give_text(&incoming.string_value, 0);
  give_text(&outgoing.string_value, 1);
  give_text(&answer.string_value, 2);
  give_text(&late_answer.string_value, 3);
  give_text(&reply.string_value, 4);
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(test_msgs, srv, BasicTypes);
  rcl_timer_t late_timer = rcl_get_zero_initialized_timer(), ask_timer = rcl_get_zero_initialized_timer();
  if (serves != NULL) {
    require(rclc_service_init_default(&service, &node, type, serves), "service");
    require(rclc_executor_add_service_with_request_id(&executor, &service, &incoming, &answer, on_request), "adding");
    require(rclc_timer_init_default(&late_timer, &support, RCL_MS_TO_NS(LATE_PERIOD_MS), send_late), "timer");
    require(rclc_executor_add_timer(&executor, &late_timer), "adding");
  }
  if (asks != NULL) {
    require(rclc_client_init_default(&client, &node, type, asks), "client");
    require(rclc_executor_add_client_with_request_id(&executor, &client, &reply, on_reply), "adding");
    require(rclc_timer_init_default(&ask_timer, &support, RCL_MS_TO_NS(period_ms), ask), "timer");
    require(rclc_executor_add_timer(&executor, &ask_timer), "adding");
  }
  tell_ready();
  while (!interrupted) (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(20));
  print_end(serves != NULL, asks != NULL);
  require(rclc_executor_fini(&executor), "finishing");
  require(rclc_support_fini(&support), "goodbye");
  return 0;
}
