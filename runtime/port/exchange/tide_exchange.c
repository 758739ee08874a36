/* SPDX-License-Identifier: Apache-2.0 */
#include "tide_exchange.h"

#include <inttypes.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide/port.h"
#include "tide/rclc.h"
#include "tide/status.h"

#define TIDE_NODES 1
#define TIDE_PUBLISHERS (TIDE_EXCHANGE_CHAINS + 2)
#define TIDE_SUBSCRIPTIONS (TIDE_EXCHANGE_CHAINS + 1)
#define TIDE_TIMERS (TIDE_EXCHANGE_CHAINS + 1)
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_EXECUTOR_LANES TIDE_EXCHANGE_CHAINS
#define TIDE_STREAMS (TIDE_EXCHANGE_CHAINS + 1)
/* Enough slots that no queue has to drop a sample; the agent waits instead. */
#define TIDE_SLOTS 32
#define TIDE_SUBSCRIPTION_DEPTH TIDE_SLOTS
#define TIDE_SMALL_NODES 24
#define TIDE_LARGE_NODES 2
#define TIDE_LARGE_NODE_BYTES 512
#define TIDE_REASSEMBLIES 1
#define TIDE_REASSEMBLY_BYTES 512
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define NAME "board_exchange"
#define STEP_MS 5 /* period of the timers; `tide soak` decides which expiries publish */
#define REPORT_MS 200
#define DIGITS 6
#define LETTERS_MAXIMUM 60
#define TEXT_BYTES 256
#define BURST 40 /* messages: more than a window and the pool hold */
#define SYNCS 20
#define ANSWER_MS 10000 /* long, because the computer may be busy */
#define ENTITY_MS ANSWER_MS
#define ATTEMPTS 6u /* attempts to open a session, because the agent may start late */

typedef struct text_message {
  std_msgs__msg__String message;
  char bytes[TEXT_BYTES];
} text_message_t;

typedef struct flow {
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  rcl_timer_t timer;
  text_message_t outgoing, incoming;
  uint32_t steps, sent, refused;
  uint32_t next; /* the highest number received plus one */
  uint32_t missing, twice, wrong;
} flow_t;

static const char *const chain_names[TIDE_EXCHANGE_CHAINS] = {"low", "middle", "high"};
static const tide_exchange_board_t *board;
static flow_t flows[TIDE_EXCHANGE_CHAINS];
static struct {
  uint32_t count, every, rounds; /* count 0: no plan received yet; written last, because lanes read the plan
                                    concurrently */
} plan;
static struct {
  uint32_t rounds;
  size_t memory_first, memory_last;
  uint32_t refused, polls, removal_us;
  uint32_t pings, pings_failed, ping_us, sync_us;
} found;
static rclc_support_t support;
static rcl_node_t node;
static rclc_executor_t executor;
static rcl_publisher_t reports, burst;
static rcl_subscription_t words;
static rcl_timer_t report_timer;
static text_message_t report, word;
static bool has_result, is_ending;
static volatile bool pinging, ping_over;

static uint32_t planned(void) { return __atomic_load_n(&plan.count, __ATOMIC_ACQUIRE); }
static int64_t now_ns(void) { return tide_port_platform()->now_ns(tide_port_platform()->context); }
static uint32_t us_since(int64_t begin_ns) { return (uint32_t)((now_ns() - begin_ns) / 1000); }

/* Returns 0 if the step succeeded; otherwise the code of this step. */
static int step(rcl_ret_t result, int code, const char *what) {
  if (result == RCL_RET_OK) return 0;
  printf("exchange: %s: %s\n", what, tide_status_text(tide_rclc_last_status()));
  return code;
}

#define TRY(result, code, what)                 \
  do {                                          \
    const int code_ = step(result, code, what); \
    if (code_ != 0) return code_;               \
  } while (0)

static void bind(text_message_t *text) {
  text->message.data.data = text->bytes;
  text->message.data.size = 0;
  text->message.data.capacity = sizeof text->bytes;
}

/* ---- messages ---- A message consists of a number, in messages to the agent also the number expected next, and
 * letters computed from the first number. */

static size_t put_number(char *bytes, uint32_t number) {
  for (size_t digit = DIGITS; digit-- > 0u; number /= 10u) bytes[digit] = (char)('0' + number % 10u);
  return DIGITS;
}

static char letter(uint32_t number, size_t place) { return (char)('a' + (number + place) % 26u); }

static void fill(text_message_t *text, uint32_t number, uint32_t expected) {
  size_t size = put_number(text->bytes, number);
  size += put_number(text->bytes + size, expected);
  for (const size_t end = size + number % LETTERS_MAXIMUM; size < end; size++) text->bytes[size] = letter(number, size);
  text->bytes[size] = '\0';
  text->message.data.size = size;
}

/* The number, or -1 if the message is not intact. */
static int64_t number_of(const text_message_t *text) {
  uint32_t number = 0;
  if (text->message.data.size < DIGITS) return -1;
  for (size_t digit = 0; digit < DIGITS; digit++) {
    if (text->bytes[digit] < '0' || text->bytes[digit] > '9') return -1;
    number = number * 10u + (uint32_t)(text->bytes[digit] - '0');
  }
  if (text->message.data.size != DIGITS + number % LETTERS_MAXIMUM) return -1;
  for (size_t place = DIGITS; place < text->message.data.size; place++)
    if (text->bytes[place] != letter(number, place)) return -1;
  return number;
}

/* ---- callbacks ---- */

static void on_period(rcl_timer_t *timer, int64_t since_ns) {
  (void)since_ns;
  flow_t *flow = &flows[(size_t)((const char *)timer - (const char *)&flows[0].timer) / sizeof flows[0]];
  if (planned() == 0u || flow->sent == plan.count || ++flow->steps % plan.every != 0u) return;
  fill(&flow->outgoing, flow->sent, flow->next);
  if (rcl_publish(&flow->publisher, &flow->outgoing.message, NULL) == RCL_RET_OK) {
    flow->sent++;
  } else {
    flow->refused++; /* the same number is sent again */
  }
}

static void on_message(const void *message, void *context) {
  (void)message;
  flow_t *flow = context;
  const int64_t number = number_of(&flow->incoming);
  if (number < 0) {
    flow->wrong++;
  } else if (number < flow->next) {
    flow->twice++;
  } else {
    flow->missing += (uint32_t)number - flow->next;
    flow->next = (uint32_t)number + 1u;
  }
}

static void on_word(const void *message) {
  (void)message;
  char *end;
  word.bytes[word.message.data.size < TEXT_BYTES ? word.message.data.size : TEXT_BYTES - 1u] = '\0';
  if (strcmp(word.bytes, has_result ? "bye" : "end") == 0) {
    is_ending = true;
    tide_executor_stop(tide_rclc_executor_core(&executor));
  } else if (plan.count == 0u && !has_result && strncmp(word.bytes, "plan ", 5u) == 0) {
    const unsigned long count = strtoul(word.bytes + 5, &end, 10), period_ms = strtoul(end, &end, 10);
    plan.rounds = (uint32_t)strtoul(end, NULL, 10);
    plan.every = period_ms > STEP_MS ? (uint32_t)period_ms / STEP_MS : 1u;
    __atomic_store_n(&plan.count, (uint32_t)count, __ATOMIC_RELEASE);
  }
}

static bool is_over(void) {
  if (plan.count == 0u) return false;
  for (size_t index = 0; index < TIDE_EXCHANGE_CHAINS; index++)
    if (flows[index].sent < plan.count || flows[index].next < plan.count) return false;
  return true;
}

static int write_state(char *bytes, size_t size) {
  const tide_session_t *session = tide_rclc_support_session(&support);
  tide_link_counters_t link = {0};
  (void)tide_port_link_counters(tide_rclc_support_session(&support), &link);
  uint32_t refused = 0, missing = 0, twice = 0, wrong = 0;
  for (size_t index = 0; index < TIDE_EXCHANGE_CHAINS; index++) {
    refused += flows[index].refused;
    missing += flows[index].missing;
    twice += flows[index].twice;
    wrong += flows[index].wrong;
  }
  return snprintf(
      bytes, size,
      "{\"count\":%" PRIu32 ",\"sent\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "],\"next\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32
      "],\"refused\":%" PRIu32 ",\"missing\":%" PRIu32 ",\"twice\":%" PRIu32 ",\"wrong\":%" PRIu32 ",\"polls\":%" PRIu32
      ",\"opens\":%" PRIu32 ",\"reconnects\":%" PRIu32 ",\"over\":%d}",
      plan.count, flows[0].sent, flows[1].sent, flows[2].sent, flows[0].next, flows[1].next, flows[2].next, refused,
      missing, twice, wrong, session->counters.polls, link.opens, session->counters.reconnects, is_over());
}

static int write_result(char *bytes, size_t size) {
  return snprintf(bytes, size,
                  "{\"rounds\":%" PRIu32 ",\"memory\":[%lu,%lu],\"refused\":%" PRIu32 ",\"removal_polls\":%" PRIu32
                  ",\"removal_us\":%" PRIu32 ",\"pings\":%" PRIu32 ",\"pings_failed\":%" PRIu32 ",\"ping_us\":%" PRIu32
                  ",\"sync_us\":%" PRIu32 "}",
                  found.rounds, (unsigned long)found.memory_first, (unsigned long)found.memory_last, found.refused,
                  found.polls, found.removal_us, found.pings, found.pings_failed, found.ping_us, found.sync_us);
}

static void on_report(rcl_timer_t *timer, int64_t since_ns) {
  (void)timer;
  (void)since_ns;
  const int size = has_result ? write_result(report.bytes, TEXT_BYTES) : write_state(report.bytes, TEXT_BYTES);
  report.message.data.size = size < TEXT_BYTES ? (size_t)size : TEXT_BYTES - 1u;
  (void)rcl_publish(&reports, &report.message, NULL);
}

/* ---- set-up ---- */

static int open_session(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  node = rcl_get_zero_initialized_node();
  for (unsigned attempt = 1;; attempt++) {
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    TRY(rcl_init_options_init(&options, allocator), 1, "options");
    if (board->choose_link != NULL) {
      TRY(board->choose_link(rcl_init_options_get_rmw_init_options(&options)), 2, "link");
    }
    const rcl_ret_t result = rclc_support_init_with_options(&support, 0, NULL, &options, &allocator);
    (void)rcl_init_options_fini(&options);
    if (result == RCL_RET_OK) break;
    if (attempt == ATTEMPTS) return step(result, 3, "no session");
  }
  rmw_context_t *context = rcl_context_get_rmw_context(&support.context);
  (void)rmw_uros_set_context_entity_creation_session_timeout(context, ENTITY_MS);
  (void)rmw_uros_set_context_entity_destroy_session_timeout(context, ENTITY_MS);
  return step(rclc_node_init_default(&node, NAME, "", &support), 4, "node");
}

static int close_session(void) {
  TRY(rcl_node_fini(&node), 40, "end of the node");
  return step(rclc_support_fini(&support), 41, "end of the session");
}

/* Keep all, so that no message waiting in the agent is dropped for a newer one. Publishers of downward messages keep
 * their messages, so that a restarted agent gets them again. */
static int create_flow(size_t index) {
  flow_t *flow = &flows[index];
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  rmw_qos_profile_t up = rmw_qos_profile_default, down = rmw_qos_profile_default;
  up.history = down.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  down.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  char topic[48];
  bind(&flow->outgoing);
  bind(&flow->incoming);
  (void)snprintf(topic, sizeof topic, NAME "/%s/up", chain_names[index]);
  TRY(rclc_publisher_init(&flow->publisher, &node, type, topic, &up), 10, "publisher");
  TRY(tide_rclc_publisher_set_wait_ms(&flow->publisher, 0), 11, "publisher");
  (void)snprintf(topic, sizeof topic, NAME "/%s/down", chain_names[index]);
  TRY(rclc_subscription_init(&flow->subscription, &node, type, topic, &down), 12, "subscription");
  return step(rclc_timer_init_default(&flow->timer, &support, RCL_MS_TO_NS(STEP_MS), on_period), 13, "timer");
}

static int add_flow(size_t index) {
  flow_t *flow = &flows[index];
  const tide_priority_t priority = TIDE_PRIORITY(index + 1u, 0);
  TRY(rclc_executor_add_timer(&executor, &flow->timer), 14, "timer");
  TRY(rclc_executor_add_subscription_with_context(&executor, &flow->subscription, &flow->incoming.message, on_message,
                                                  flow, ON_NEW_DATA),
      15, "subscription");
  TRY(tide_rclc_timer_set_priority(&flow->timer, priority), 16, "priority");
  TRY(tide_rclc_publisher_set_priority(&flow->publisher, priority), 17, "priority");
  return step(tide_rclc_subscription_set_priority(&flow->subscription, priority), 18, "priority");
}

static int choose_lanes(void) {
  tide_lane_settings_t lanes[TIDE_EXCHANGE_CHAINS];
  if (board->priorities[0] == 0) return 0;
  for (size_t index = 0; index < TIDE_EXCHANGE_CHAINS; index++)
    lanes[index] = (tide_lane_settings_t){.least_level = (uint8_t)(index + 1u),
                                          .scheduling = TIDE_SCHEDULING_FIFO,
                                          .priority = board->priorities[index],
                                          .may_run_normally = true};
  return step(tide_rclc_executor_set_lanes(&executor, lanes, TIDE_EXCHANGE_CHAINS), 19, "lanes");
}

static int create_reports(void) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
  bind(&report);
  bind(&word);
  TRY(rclc_publisher_init_default(&reports, &node, type, NAME "/report"), 20, "report");
  TRY(tide_rclc_publisher_set_wait_ms(&reports, 0), 21, "report");
  TRY(rclc_subscription_init_default(&words, &node, type, NAME "/word"), 22, "word");
  TRY(rclc_timer_init_default(&report_timer, &support, RCL_MS_TO_NS(REPORT_MS), on_report), 23, "timer of the report");
  TRY(rclc_executor_add_timer(&executor, &report_timer), 24, "timer of the report");
  return step(rclc_executor_add_subscription(&executor, &words, &word.message, on_word, ON_NEW_DATA), 25, "word");
}

static int remove_reports(void) {
  (void)rcl_timer_fini(&report_timer);
  TRY(rcl_publisher_fini(&reports, &node), 26, "end of the report");
  return step(rcl_subscription_fini(&words, &node), 27, "end of the word");
}

/* ---- tests after all messages have arrived ---- */

static void ping(void *argument) {
  (void)argument;
  do { /* one ping at least, even if this thread starts after the other has finished */
    const int64_t begin_ns = now_ns();
    const bool good = rmw_uros_ping_agent(ANSWER_MS, 1) == RMW_RET_OK;
    const uint32_t took_us = us_since(begin_ns);
    found.pings++;
    found.pings_failed += !good;
    if (took_us > found.ping_us) found.ping_us = took_us;
  } while (pinging);
  ping_over = true;
}

static int ask_side_by_side(void) {
  pinging = true;
  ping_over = board->start_thread == NULL;
  if (!ping_over && !board->start_thread(ping, NULL)) return 31;
  for (unsigned count = 0; count < SYNCS; count++) {
    const int64_t begin_ns = now_ns();
    TRY(rmw_uros_sync_session(ANSWER_MS), 32, "time");
    const uint32_t took_us = us_since(begin_ns);
    if (took_us > found.sync_us) found.sync_us = took_us;
  }
  pinging = false;
  while (!ping_over) (void)rmw_uros_ping_agent(ANSWER_MS, 1);
  return 0;
}

static int remove_with_a_full_window(void) {
  tide_session_t *session = tide_rclc_support_session(&support);
  TRY(rclc_publisher_init_default(&burst, &node, ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String), NAME "/burst"), 33,
      "publisher");
  (void)tide_rclc_publisher_set_wait_ms(&burst, 0);
  fill(&flows[0].outgoing, LETTERS_MAXIMUM - 1u, 0);
  for (unsigned count = 0; count < BURST; count++)
    found.refused += rcl_publish(&burst, &flows[0].outgoing.message, NULL) != RCL_RET_OK;
  const uint32_t before = session->counters.polls;
  const int64_t begin_ns = now_ns();
  TRY(rcl_publisher_fini(&burst, &node), 34, "removal");
  const int code = remove_reports(); /* needs more requests than there are entries, so the call has to wait for an
                                        entry */
  if (code != 0) return code;
  found.removal_us = us_since(begin_ns);
  found.polls = session->counters.polls - before;
  return 0;
}

static int exchange_messages(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  int code = open_session();
  if (code != 0) return code;
  TRY(rclc_executor_init(&executor, &support.context, TIDE_HANDLES, &allocator), 5, "executor");
  if ((code = choose_lanes()) != 0) return code;
  for (size_t index = 0; index < TIDE_EXCHANGE_CHAINS; index++)
    if ((code = create_flow(index)) != 0 || (code = add_flow(index)) != 0) return code;
  if ((code = create_reports()) != 0) return code;
  TRY(rclc_executor_spin(&executor), 6, "spin");
  if (!is_ending) return 7;
  if ((code = ask_side_by_side()) != 0) return code;
  TRY(rclc_executor_fini(&executor), 8, "end of the executor");
  if ((code = remove_with_a_full_window()) != 0) return code;
  for (size_t index = 0; index < TIDE_EXCHANGE_CHAINS; index++) {
    (void)rcl_timer_fini(&flows[index].timer);
    TRY(rcl_publisher_fini(&flows[index].publisher, &node), 9, "end of a publisher");
    TRY(rcl_subscription_fini(&flows[index].subscription, &node), 9, "end of a subscription");
  }
  return close_session();
}

static int open_and_close(void) {
  for (; found.rounds < plan.rounds; found.rounds++) {
    int code = open_session();
    if (code != 0) return code;
    const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String);
    TRY(rclc_publisher_init_default(&reports, &node, type, NAME "/opened"), 35, "publisher");
    (void)rcl_publish(&reports, &flows[0].outgoing.message, NULL);
    TRY(rcl_publisher_fini(&reports, &node), 36, "end of a publisher");
    if ((code = close_session()) != 0) return code;
    if (board->memory_used != NULL) found.memory_last = board->memory_used();
    if (found.rounds == 0u) found.memory_first = found.memory_last;
  }
  return 0;
}

static int tell_result(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  has_result = true;
  int code = open_session();
  if (code != 0) return code;
  TRY(rclc_executor_init(&executor, &support.context, TIDE_HANDLES, &allocator), 5, "executor");
  if ((code = create_reports()) != 0) return code;
  TRY(rclc_executor_spin(&executor), 6, "spin");
  TRY(rclc_executor_fini(&executor), 8, "end of the executor");
  code = remove_reports();
  return code != 0 ? code : close_session();
}

int tide_exchange(const tide_exchange_board_t *the_board) {
  board = the_board;
  int code = exchange_messages();
  if (code == 0) code = open_and_close();
  if (code == 0) code = tell_result();
  printf("exchange: %s %d\n", code == 0 ? "over" : "stopped with code", code);
  return code;
}
