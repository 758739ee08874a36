/* SPDX-License-Identifier: Apache-2.0 */
/* The agent is killed and restarted at each step of a program's start; a ROS 2 node observes this. */

#include "behaviours.h"

static rcl_publisher_t publisher;
static rcl_subscription_t subscription;
static rcl_timer_t timer;
static rclc_executor_t executor;
static std_msgs__msg__Int32 received;
static const char *topic;

static void restart_agent(void) {
  kill_agent();
  start_agent();
}

static void on_timer(rcl_timer_t *one, int64_t last_call_time) {
  (void)one;
  (void)last_call_time;
  (void)publish_int32(&publisher, 1);
}

/* Reports whether messages arrive in ROS 2 and in the program, each within 15 s. */
static void say_who_hears(void) {
  seen = 0;
  int heard = ask_peer("forget");
  for (const int64_t end_ms = now_ms() + 15000; now_ms() < end_ms && (heard == 0 || seen == 0);) {
    spin_for(&executor, 100);
    heard = ask_peer("messages");
  }
  say(", the peer hears %s, it hears %s", heard > 0 ? "it" : "nothing", seen > 0 ? "itself" : "nothing");
}

enum { SUPPORT, NODE, PUBLISHER, SUBSCRIPTION, TIMER, EXECUTOR, HANDLES, SPIN, LATER };

static rcl_ret_t take_step(int step) {
  rcl_init_options_t options;
  switch (step) {
    case SUPPORT:
      options = options_of_agent();
      return rclc_support_init_with_options(&support, 0, NULL, &options, &allocator);
    case NODE: return rclc_node_init_default(&node, "node", "", &support);
    case PUBLISHER: return rclc_publisher_init_default(&publisher, &node, INT32, topic);
    case SUBSCRIPTION: return rclc_subscription_init_default(&subscription, &node, INT32, topic);
    case TIMER: return rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(50), on_timer);
    case EXECUTOR: return rclc_executor_init(&executor, &support.context, 2, &allocator);
    case HANDLES:
      (void)rclc_executor_add_timer(&executor, &timer);
      return rclc_executor_add_subscription(&executor, &subscription, &received, on_int32, ON_NEW_DATA);
    default: return rclc_executor_spin_some(&executor, RCL_MS_TO_NS(20));
  }
}

static void restarted_before(int restarted) {
  topic = fresh("start");
  start_peer(topic);
  node = rcl_get_zero_initialized_node();
  publisher = rcl_get_zero_initialized_publisher();
  subscription = rcl_get_zero_initialized_subscription();
  timer = rcl_get_zero_initialized_timer();
  executor = rclc_executor_get_zero_initialized_executor();
  static const char *const names[] = {"support", "node",     "publisher", "subscription",
                                      "timer",   "executor", "handles",   "spin"};
  for (int step = SUPPORT; step <= SPIN; step++) {
    if (step == restarted) restart_agent();
    const rcl_ret_t code = take_step(step);
    if (step >= restarted) say_code(names[step], code);
    if (code != RCL_RET_OK) break; /* real programs stop here, too */
  }
  if (restarted == LATER) {
    spin_for(&executor, 500);
    restart_agent();
  }
  if (rclc_executor_spin_some(&executor, 0) == RCL_RET_OK) say_who_hears();
}

static void before_the_support(void) { restarted_before(SUPPORT); }
static void before_the_node(void) { restarted_before(NODE); }
static void before_the_publisher(void) { restarted_before(PUBLISHER); }
static void before_the_subscription(void) { restarted_before(SUBSCRIPTION); }
static void before_the_timer(void) { restarted_before(TIMER); }
static void before_the_executor(void) { restarted_before(EXECUTOR); }
static void before_the_handles(void) { restarted_before(HANDLES); }
static void before_the_first_spin(void) { restarted_before(SPIN); }
static void behind_the_first_spin(void) { restarted_before(LATER); }

static void *restart_soon(void *unused) {
  sleep_ms(300);
  restart_agent();
  return unused;
}

static void in_the_first_spin(void) {
  topic = fresh("start");
  start_peer(topic);
  for (int step = SUPPORT; step < SPIN; step++) (void)take_step(step);
  const thread_t thread = start_thread(restart_soon, NULL);
  say_code("spin", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(2000)));
  join_thread(thread);
  say_who_hears();
}

static void twice(void) {
  topic = fresh("start");
  start_peer(topic);
  for (int step = SUPPORT; step < SPIN; step++) (void)take_step(step);
  for (int i = 0; i < 2; i++) {
    spin_for(&executor, 300);
    restart_agent();
    say_who_hears();
  }
}

/* A program like the public examples of reconnection: when the agent does not answer, it finalises everything and
 * initialises it again. */
static void with_a_program_that_begins_again(void) {
  topic = fresh("start");
  start_peer(topic);
  for (int step = SUPPORT; step < SPIN; step++) (void)take_step(step);
  spin_for(&executor, 300);
  kill_agent();
  (void)rmw_uros_set_context_entity_destroy_session_timeout(rcl_context_get_rmw_context(&support.context), 0);
  say_code("executor ends", rclc_executor_fini(&executor));
  say_code("timer", rcl_timer_fini(&timer));
  (void)rcl_publisher_fini(&publisher, &node);
  (void)rcl_subscription_fini(&subscription, &node);
  (void)rcl_node_fini(&node);
  say_code("support", rclc_support_fini(&support));
  start_agent();
  rcl_ret_t code = RCL_RET_OK;
  for (int step = SUPPORT; step < SPIN && code == RCL_RET_OK; step++) code = take_step(step);
  say_code("all again", code);
  if (code == RCL_RET_OK) say_who_hears();
}

static void answer(const void *request, void *response) {
  (void)request;
  seen++;
  ((std_srvs__srv__SetBool_Response *)response)->success = true;
}

static int answered;
static void on_answer(const void *response) {
  answered += ((const std_srvs__srv__SetBool_Response *)response)->success;
}

static void restarted_for_services(bool between) {
  connect_node();
  rcl_service_t service = rcl_get_zero_initialized_service();
  rcl_client_t client = rcl_get_zero_initialized_client();
  const char *name = fresh("service");
  static std_srvs__srv__SetBool_Request request, asked;
  static std_srvs__srv__SetBool_Response response, heard;
  say_code("service", rclc_service_init_default(&service, &node, SET_BOOL, name));
  if (between) restart_agent();
  const rcl_ret_t code = rclc_client_init_default(&client, &node, SET_BOOL, name);
  say_code("client", code);
  if (code != RCL_RET_OK) return;
  if (!between) restart_agent();
  executor = executor_of(2);
  (void)rclc_executor_add_service(&executor, &service, &asked, &response, answer);
  (void)rclc_executor_add_client(&executor, &client, &heard, on_answer);
  for (const int64_t end_ms = now_ms() + 15000; now_ms() < end_ms && answered == 0;) {
    int64_t number;
    (void)rcl_send_request(&client, &request, &number);
    spin_for(&executor, 500);
  }
  say(", requests are %s", answered > 0 ? "answered" : "lost");
}

static void between_service_and_client(void) { restarted_for_services(true); }
static void before_a_request(void) { restarted_for_services(false); }

const behaviour_t behaviours_of_starts[] = {
    {"start, agent restarted before the support", before_the_support, true},
    {"start, agent restarted before the node", before_the_node, true},
    {"start, agent restarted before the publisher", before_the_publisher, true},
    {"start, agent restarted before the subscription", before_the_subscription, true},
    {"start, agent restarted before the timer", before_the_timer, true},
    {"start, agent restarted before the executor", before_the_executor, true},
    {"start, agent restarted before the handles", before_the_handles, true},
    {"start, agent restarted before the first spin", before_the_first_spin, true},
    {"start, agent restarted in the first spin", in_the_first_spin, true},
    {"start, agent restarted behind the first spin", behind_the_first_spin, true},
    {"start, agent restarted twice", twice, true},
    {"start, a program that begins again", with_a_program_that_begins_again, true},
    {"start, agent restarted between service and client", between_service_and_client, false},
    {"start, agent restarted before a request", before_a_request, false},
    {NULL, NULL, false}};
