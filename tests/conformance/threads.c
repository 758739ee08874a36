/* SPDX-License-Identifier: Apache-2.0 */
/* A spin in one thread while another one makes other calls. */
#include <stdatomic.h>

#include "behaviours.h"

static rclc_executor_t executor;
static rcl_subscription_t subscription;
static rcl_publisher_t publisher;
static std_msgs__msg__Int32 received;
static atomic_bool ended;
static atomic_int rounds, failed;

static void *spin(void *unused) {
  while (!atomic_load(&ended)) {
    if (rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10)) != RCL_RET_OK) atomic_fetch_add(&failed, 1);
    atomic_fetch_add(&rounds, 1);
  }
  return unused;
}

static thread_t spinner;

static void prepare(void) {
  connect_node();
  const char *topic = fresh("thread");
  publisher = publisher_of(topic);
  subscription = subscription_of(topic);
  executor = executor_of(2);
  (void)rclc_executor_add_subscription(&executor, &subscription, &received, on_int32, ON_NEW_DATA);
}

static void start_spinning(void) {
  prepare();
  sleep_ms(300);
  spinner = start_thread(spin, NULL);
}

static void stop_spinning(void) {
  atomic_store(&ended, true);
  join_thread(spinner);
  say(", rounds that failed: %s", atomic_load(&failed) == 0 ? "none" : "some");
}

static void creation(void) {
  start_spinning();
  int refused = 0;
  for (int i = 0; i < 20; i++) {
    rcl_publisher_t one = rcl_get_zero_initialized_publisher();
    refused += rclc_publisher_init_default(&one, &node, INT32, fresh("new")) != RCL_RET_OK;
    refused += rcl_publisher_fini(&one, &node) != RCL_RET_OK;
  }
  say(" 20 publishers begin and end: %s failed", refused > 0 ? "some" : "none");
  stop_spinning();
}

static void end_of_another(void) {
  start_spinning();
  rcl_subscription_t other = subscription_of(fresh("other"));
  sleep_ms(100);
  say_code("subscription", rcl_subscription_fini(&other, &node));
  say_code("publisher", rcl_publisher_fini(&publisher, &node));
  stop_spinning();
}

static void ping(void) {
  start_spinning();
  int unanswered = 0;
  for (int i = 0; i < 10; i++) unanswered += rmw_uros_ping_agent(500, 1) != RMW_RET_OK;
  say(" %d of 10 unanswered", unanswered);
  stop_spinning();
}

static void time_synchronisation(void) {
  start_spinning();
  say_code("sync", rmw_uros_sync_session(1000));
  stop_spinning();
}

static void *publish(void *unused) {
  for (int i = 0; i < 100; i++) {
    if (publish_int32(&publisher, i) != RCL_RET_OK) atomic_fetch_add(&rounds, 1);
    sleep_ms(2);
  }
  return unused;
}

static void two_publish_one_spins(void) {
  start_spinning();
  thread_t one, two;
  atomic_store(&rounds, 0);
  one = start_thread(publish, NULL);
  two = start_thread(publish, NULL);
  join_thread(one);
  join_thread(two);
  sleep_ms(500);
  say(" of 200 arrived %s", seen >= 200 ? "all" : seen > 0 ? "some" : "none");
  stop_spinning();
}

static rclc_executor_t second;
static rcl_subscription_t other;
static atomic_int heard;
static void on_other(const void *message) {
  (void)message;
  atomic_fetch_add(&heard, 1);
}
static void *spin_second(void *unused) {
  while (!atomic_load(&ended)) (void)rclc_executor_spin_some(&second, RCL_MS_TO_NS(10));
  return unused;
}

static void two_executors(void) {
  prepare();
  const char *topic = fresh("second");
  rcl_publisher_t another = publisher_of(topic);
  other = subscription_of(topic);
  second = executor_of(1);
  static std_msgs__msg__Int32 message;
  (void)rclc_executor_add_subscription(&second, &other, &message, on_other, ON_NEW_DATA);
  thread_t thread;
  spinner = start_thread(spin, NULL);
  thread = start_thread(spin_second, NULL);
  sleep_ms(300);
  for (int i = 0; i < 50; i++) {
    (void)publish_int32(&publisher, i);
    (void)publish_int32(&another, i);
    sleep_ms(10);
  }
  sleep_ms(500);
  stop_spinning();
  join_thread(thread);
  say(" first %s, second %s",
      seen == 50 ? "all"
      : seen > 0 ? "some"
                 : "none",
      atomic_load(&heard) == 50 ? "all"
      : atomic_load(&heard) > 0 ? "some"
                                : "none");
}

static void shutdown_ends_the_spin(void) {
  connect_node();
  subscription = subscription_of(fresh("thread"));
  executor = executor_of(1);
  (void)rclc_executor_add_subscription(&executor, &subscription, &received, on_int32, ON_NEW_DATA);
  (void)rclc_executor_set_timeout(&executor, RCL_MS_TO_NS(50));
  say_code("shutdown", rcl_shutdown(&support.context));
  say_code("spin_some", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(50)));
  say_code("spin", rclc_executor_spin(&executor));
  say(" valid %d", rcl_context_is_valid(&support.context));
}

static void *shut_down(void *unused) {
  sleep_ms(300);
  atomic_store(&rounds, (int)rcl_shutdown(&support.context));
  return unused;
}

static void shutdown_from_another_thread(void) {
  connect_node();
  subscription = subscription_of(fresh("thread"));
  executor = executor_of(1);
  (void)rclc_executor_add_subscription(&executor, &subscription, &received, on_int32, ON_NEW_DATA);
  (void)rclc_executor_set_timeout(&executor, RCL_MS_TO_NS(50));
  const thread_t thread = start_thread(shut_down, NULL);
  const rcl_ret_t code = rclc_executor_spin(&executor);
  join_thread(thread);
  say_code("shutdown", atomic_load(&rounds));
  say(", spin returns %s", code == RCL_RET_OK ? "0" : "an error");
}

static rcl_client_t client;
static atomic_int numbers[64];
static void *ask(void *unused) {
  static std_srvs__srv__SetBool_Request request;
  for (int i = 0; i < 8; i++) {
    int64_t number = -1;
    if (rcl_send_request(&client, &request, &number) != RCL_RET_OK) atomic_fetch_add(&failed, 1);
    if (number >= 0 && number < 64) atomic_fetch_add(&numbers[number], 1);
    sleep_ms(5);
  }
  return unused;
}

static void requests_of_two(void) {
  connect_node();
  client = rcl_get_zero_initialized_client();
  say_code("client", rclc_client_init_default(&client, &node, SET_BOOL, fresh("s")));
  thread_t one, two;
  one = start_thread(ask, NULL);
  two = start_thread(ask, NULL);
  join_thread(one);
  join_thread(two);
  int twice = 0;
  for (int i = 0; i < 64; i++) twice += atomic_load(&numbers[i]) > 1;
  say(" of 16: failed %d, numbers used twice %d", atomic_load(&failed), twice);
}

static void on_expiry(rcl_timer_t *one, int64_t last_call_time) {
  (void)one;
  (void)last_call_time;
  seen++;
}

static void timer_from_another_thread(void) {
  start_spinning();
  static rcl_timer_t timer;
  timer = rcl_get_zero_initialized_timer();
  (void)rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(20), on_expiry);
  say_code("cancel", rcl_timer_cancel(&timer));
  stop_spinning();
  (void)rclc_executor_add_timer(&executor, &timer);
  atomic_store(&ended, false);
  spinner = start_thread(spin, NULL);
  sleep_ms(100);
  say(" runs %s", seen > 0 ? "before its reset" : "not");
  say_code("reset", rcl_timer_reset(&timer));
  sleep_ms(300);
  say(", then %s", seen > 0 ? "it does" : "it does not");
  stop_spinning();
}

const behaviour_t behaviours_of_threads[] = {
    {"threads, publishers begin and end beside a spin", creation, false},
    {"threads, others end beside a spin", end_of_another, false},
    {"threads, ping beside a spin", ping, false},
    {"threads, time synchronisation beside a spin", time_synchronisation, false},
    {"threads, two publish and one spins", two_publish_one_spins, false},
    {"threads, two executors", two_executors, false},
    {"threads, spin behind a shutdown", shutdown_ends_the_spin, false},
    {"threads, shutdown from another thread", shutdown_from_another_thread, false},
    {"threads, requests of two", requests_of_two, false},
    {"threads, timer reset beside a spin", timer_from_another_thread, false},
    {NULL, NULL, false}};
