/* SPDX-License-Identifier: Apache-2.0 */
/* Publications, requests and replies; QoS, strings, threads. */
#include <string.h>

#include "behaviours.h"

static rmw_qos_profile_t profile(bool reliable, bool keeps, size_t depth) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.reliability = reliable ? RMW_QOS_POLICY_RELIABILITY_RELIABLE : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  qos.durability = keeps ? RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL : RMW_QOS_POLICY_DURABILITY_VOLATILE;
  qos.depth = depth;
  return qos;
}

/* Publishes 4 messages and returns how many of them reach a subscription, which is created before or, if `is_late`,
 * after them. */
static int received(rmw_qos_profile_t of_publisher, rmw_qos_profile_t of_subscription, bool is_late) {
  const char *topic = fresh("qos");
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  std_msgs__msg__Int32 message;
  rclc_executor_t executor = executor_of(1);
  if (rclc_publisher_init(&publisher, &node, INT32, topic, &of_publisher) != RCL_RET_OK) return -1;
  if (is_late)
    for (int i = 0; i < 4; i++) (void)publish_int32(&publisher, i);
  if (rclc_subscription_init(&subscription, &node, INT32, topic, &of_subscription) != RCL_RET_OK) return -2;
  (void)rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ON_NEW_DATA);
  sleep_ms(300);
  if (!is_late)
    for (int i = 0; i < 4; i++) {
      (void)publish_int32(&publisher, i);
      sleep_ms(20);
    }
  seen = 0;
  spin_for(&executor, 500);
  const int count = seen;
  (void)rclc_executor_fini(&executor);
  (void)rcl_subscription_fini(&subscription, &node);
  (void)rcl_publisher_fini(&publisher, &node);
  return count;
}

static void qos_reliability(void) {
  connect_node();
  for (int of_publisher = 0; of_publisher < 2; of_publisher++)
    for (int of_subscription = 0; of_subscription < 2; of_subscription++)
      say(" %s to %s %d", of_publisher ? "reliable" : "best effort", of_subscription ? "reliable" : "best effort",
          received(profile(of_publisher, false, 10), profile(of_subscription, false, 10), false));
}

static void qos_durability(void) {
  connect_node();
  for (int of_publisher = 0; of_publisher < 2; of_publisher++)
    for (int of_subscription = 0; of_subscription < 2; of_subscription++)
      say(" %s to late %s %d", of_publisher ? "kept" : "volatile", of_subscription ? "kept" : "volatile",
          received(profile(true, of_publisher, 10), profile(true, of_subscription, 10), true));
}

static void qos_depth(void) {
  connect_node();
  for (size_t depth = 0; depth < 4; depth++)
    say(" kept %zu: %d", depth, received(profile(true, true, depth), profile(true, true, 10), true));
}

static void qos_times(void) {
  connect_node();
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  qos.deadline.nsec = 100000000;
  say_code("deadline", rclc_publisher_init(&publisher, &node, INT32, fresh("t"), &qos));
  qos.lifespan.nsec = 100000000;
  publisher = rcl_get_zero_initialized_publisher();
  say_code("lifespan", rclc_publisher_init(&publisher, &node, INT32, fresh("t"), &qos));
  qos = rmw_qos_profile_default;
  qos.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  publisher = rcl_get_zero_initialized_publisher();
  say_code("keep all", rclc_publisher_init(&publisher, &node, INT32, fresh("t"), &qos));
}

static void messages_that_wait(void) {
  connect_node();
  const char *topic = fresh("wait");
  rcl_publisher_t publisher = publisher_of(topic);
  rcl_subscription_t subscription = subscription_of(topic);
  rclc_executor_t executor = executor_of(1);
  std_msgs__msg__Int32 message;
  (void)rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ON_NEW_DATA);
  sleep_ms(300);
  for (int i = 0; i < 5; i++) (void)publish_int32(&publisher, i);
  sleep_ms(300);
  (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(100));
  say(" one spin_some takes %d of 5", seen);
  spin_for(&executor, 1000);
  say(", then %d, last %d", seen, (int)last_value);
}

static void takes(void) {
  connect_node();
  rcl_subscription_t subscription = subscription_of(fresh("t"));
  std_msgs__msg__Int32 message;
  rmw_message_info_t info;
  say_code("nothing there", rcl_take(&subscription, &message, &info, NULL));
  say_code("no message", rcl_take(&subscription, NULL, &info, NULL));
}

static std_msgs__msg__String text_of(char *data, size_t size, size_t capacity) {
  std_msgs__msg__String message;
  memset(&message, 0, sizeof message);
  message.data.data = data;
  message.data.size = size;
  message.data.capacity = capacity;
  return message;
}

static char received_text[64];
static void on_text(const void *message) {
  const std_msgs__msg__String *text = message;
  seen++;
  say(" \"%s\" of %zu", text->data.data, text->data.size);
}

static void strings(void) {
  connect_node();
  const char *topic = fresh("text");
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  (void)rclc_publisher_init_default(&publisher, &node, STRING, topic);
  (void)rclc_subscription_init_default(&subscription, &node, STRING, topic);
  rclc_executor_t executor = executor_of(1);
  std_msgs__msg__String message = text_of(received_text, 0, 6);
  (void)rclc_executor_add_subscription(&executor, &subscription, &message, on_text, ON_NEW_DATA);
  sleep_ms(300);
  char hello[] = "hello", longer[] = "longer", empty[] = "";
  const std_msgs__msg__String sent[] = {text_of(hello, 5, 6), text_of(hello, 6, 6),  text_of(empty, 0, 1),
                                        text_of(NULL, 0, 0),  text_of(longer, 6, 7), text_of(hello, 5, 6)};
  const char *const what[] = {"usual", "NUL counted", "empty", "no memory", "too long", "after it"};
  for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
    say(" %s:", what[i]);
    say_code("publish", rcl_publish(&publisher, &sent[i], NULL));
    const int before = seen;
    spin_until(&executor, before + 1);
    if (seen == before) say(" nothing");
  }
}

static int answers, requests;
static int64_t last_number;
static void on_request(const void *request, void *response) {
  requests++;
  ((std_srvs__srv__SetBool_Response *)response)->success = ((const std_srvs__srv__SetBool_Request *)request)->data;
}
static void on_response(const void *response) {
  answers += ((const std_srvs__srv__SetBool_Response *)response)->success;
}

static void services(void) {
  connect_node();
  const char *name = fresh("service");
  rcl_client_t client = rcl_get_zero_initialized_client();
  say_code("client", rclc_client_init_default(&client, &node, SET_BOOL, name));
  std_srvs__srv__SetBool_Request request = {true}, taken;
  std_srvs__srv__SetBool_Response response, given;
  memset(&response, 0, sizeof response);
  memset(&given, 0, sizeof given);
  rclc_executor_t executor = executor_of(2);
  (void)rclc_executor_add_client(&executor, &client, &response, on_response);
  say_code("without server", rcl_send_request(&client, &request, &last_number));
  spin_for(&executor, 300);
  rmw_request_id_t header;
  say(" answers %d", answers);
  say_code("take", rcl_take_response(&client, &header, &response));
  rcl_service_t service = rcl_get_zero_initialized_service();
  say_code("service", rclc_service_init_default(&service, &node, SET_BOOL, name));
  (void)rclc_executor_add_service(&executor, &service, &taken, &given, on_request);
  sleep_ms(500);
  answers = requests = 0;
  int64_t numbers[3];
  for (int i = 0; i < 3; i++) (void)rcl_send_request(&client, &request, &numbers[i]);
  spin_for(&executor, 1500);
  say(" 3 requests: %d served, %d answered, numbers rise by %d %d", requests, answers, (int)(numbers[1] - numbers[0]),
      (int)(numbers[2] - numbers[1]));
  say_code("null", rcl_send_request(&client, NULL, &last_number));
  say_code("client ends", rcl_client_fini(&client, &node));
  say_code("service ends", rcl_service_fini(&service, &node));
}

static rcl_publisher_t *shared[4];
static int refused[4];
static void *publish_many(void *place) {
  const int number = (int)(intptr_t)place;
  for (int i = 0; i < 100; i++) refused[number] += publish_int32(shared[number], i) != RCL_RET_OK;
  return NULL;
}

static void say_threads(void) {
  thread_t threads[4];
  for (int i = 0; i < 4; i++) threads[i] = start_thread(publish_many, (void *)(intptr_t)i);
  int sum = 0;
  for (int i = 0; i < 4; i++) {
    join_thread(threads[i]);
    sum += refused[i];
  }
  say(" 4 threads, 100 each: %d refused", sum);
}

static void threads_with_publishers_of_their_own(void) {
  connect_node();
  static rcl_publisher_t publishers[4];
  for (int i = 0; i < 4; i++) {
    publishers[i] = publisher_of(fresh("thread"));
    shared[i] = &publishers[i];
  }
  say_threads();
}

static void threads_with_one_publisher(void) {
  connect_node();
  static rcl_publisher_t publisher;
  publisher = publisher_of(fresh("thread"));
  for (int i = 0; i < 4; i++) shared[i] = &publisher;
  say_threads();
}

static void publishing_beside_a_spin(void) {
  connect_node();
  const char *topic = fresh("beside");
  static rcl_publisher_t publisher;
  publisher = publisher_of(topic);
  rcl_subscription_t subscription = subscription_of(topic);
  rclc_executor_t executor = executor_of(1);
  std_msgs__msg__Int32 message;
  (void)rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ON_NEW_DATA);
  sleep_ms(300);
  shared[0] = &publisher;
  const thread_t thread = start_thread(publish_many, NULL);
  spin_for(&executor, 2500);
  join_thread(thread);
  say(" %d of 100 refused, %s arrived", refused[0], seen > 0 ? "some" : "none");
}

static void sizes(void) {
  connect_node();
  static char text[9000];
  memset(text, 'x', sizeof text);
  rcl_publisher_t reliable = rcl_get_zero_initialized_publisher(), quick = reliable;
  (void)rclc_publisher_init_default(&reliable, &node, STRING, fresh("r"));
  (void)rclc_publisher_init_best_effort(&quick, &node, STRING, fresh("q"));
  const size_t lengths[] = {100, 400, 600, 2000, 8000};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    text[lengths[i]] = '\0';
    const std_msgs__msg__String message = text_of(text, lengths[i], sizeof text);
    say(" %zu:", lengths[i]);
    say_code("reliable", rcl_publish(&reliable, &message, NULL));
    say_code("best effort", rcl_publish(&quick, &message, NULL));
    text[lengths[i]] = 'x';
  }
}

static uint32_t image_bytes;
static void add_size(uint32_t *length) { *length += image_bytes; }
static void write_image(ucdrBuffer *buffer) {
  uint8_t piece[500];
  memset(piece, 'i', sizeof piece);
  for (uint32_t at = 0; at < image_bytes; at += sizeof piece)
    (void)ucdr_serialize_array_uint8_t(buffer, piece, sizeof piece);
}

static void continuous_serialisation(void) {
  connect_node();
  rcl_publisher_t reliable = rcl_get_zero_initialized_publisher(), quick = reliable;
  (void)rclc_publisher_init_default(&reliable, &node, INT32, fresh("r"));
  (void)rclc_publisher_init_best_effort(&quick, &node, INT32, fresh("q"));
  rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(&reliable), add_size, write_image);
  rmw_uros_set_continous_serialization_callbacks(rcl_publisher_get_rmw_handle(&quick), add_size, write_image);
  const uint32_t lengths[] = {100000, 300000, 500};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    image_bytes = lengths[i];
    say(" %d:", (int)image_bytes);
    say_code("reliable", publish_int32(&reliable, 1));
    if (i > 1) say_code("best effort", publish_int32(&quick, 1));
  }
}

const behaviour_t behaviours_of_messages[] = {
    {"QoS, reliability", qos_reliability, false},
    {"QoS, durability", qos_durability, false},
    {"QoS, depth", qos_depth, false},
    {"QoS, times and keep all", qos_times, false},
    {"messages that wait", messages_that_wait, false},
    {"takes", takes, false},
    {"strings", strings, false},
    {"sizes of messages", sizes, false},
    {"continuous serialisation", continuous_serialisation, false},
    {"services", services, false},
    {"threads, a publisher each", threads_with_publishers_of_their_own, false},
    {"threads, one publisher", threads_with_one_publisher, false},
    {"publishing beside a spin", publishing_beside_a_spin, false},
    {NULL, NULL, false}};
