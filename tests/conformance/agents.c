/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviours with regard to the agent: how it is found and called, and what happens when it ends and restarts. */
#include "behaviours.h"

static void say_time(int64_t begin_ms) { say(" after %s", about(now_ms() - begin_ms)); }

static void ping(void) {
  int64_t begin_ms = now_ms();
  rcl_init_options_t options = options_of_agent();
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  say_code("before", rmw_uros_ping_agent_options(500, 2, link));
  connect_node();
  say_code("connected", rmw_uros_ping_agent(500, 2));
  kill_agent();
  begin_ms = now_ms();
  say_code("gone", rmw_uros_ping_agent(500, 2));
  say_time(begin_ms);
  start_agent();
  say_code("back", rmw_uros_ping_agent(1000, 3));
}

static void time_synchronisation(void) {
  say_code("before", rmw_uros_sync_session(500));
  say(" %d", rmw_uros_epoch_synchronized());
  connect_support();
  say(" connected %d", rmw_uros_epoch_synchronized());
  say_code("sync", rmw_uros_sync_session(1000));
  const int64_t off_ms = rmw_uros_epoch_millis() - wall_ms();
  say(" %d, %s", rmw_uros_epoch_synchronized(), off_ms > -2000 && off_ms < 2000 ? "right" : "wrong");
  kill_agent();
  const int64_t begin_ms = now_ms();
  say_code("gone", rmw_uros_sync_session(1000));
  say_time(begin_ms);
}

static void no_agent(void) {
  kill_agent();
  rcl_init_options_t options = options_of_agent();
  const int64_t begin_ms = now_ms();
  say_code("support", rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));
  say_time(begin_ms);
  start_agent();
  say_code("then", rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));
}

/* Performs the first steps, up to `step`, kills and restarts the agent, and performs the remaining steps. */
static void restarted_after(int step) {
  connect_support();
  node = rcl_get_zero_initialized_node();
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  const char *topic = fresh("restart");
  int64_t begin_ms = 0;
  for (int i = 0; i < 4; i++) {
    if (i == step) {
      kill_agent();
      start_agent();
      begin_ms = now_ms();
    }
    if (i == 0) say_code("node", rclc_node_init_default(&node, "node", "", &support));
    if (i == 1) say_code("publisher", rclc_publisher_init_default(&publisher, &node, INT32, topic));
    if (i == 2) say_code("subscription", rclc_subscription_init_default(&subscription, &node, INT32, topic));
    if (i == 3) say_code("publish", publish_int32(&publisher, 1));
    if (i == step) say_time(begin_ms);
  }
  std_msgs__msg__Int32 message;
  rclc_executor_t executor = executor_of(1);
  if (rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ON_NEW_DATA) != RCL_RET_OK) return;
  begin_ms = now_ms();
  int round = 0;
  seen = 0;
  for (; seen == 0 && now_ms() - begin_ms < 15000; round++) {
    (void)publish_int32(&publisher, round);
    spin_for(&executor, 100);
  }
  say(", messages %s", seen > 0 ? "go on" : "stay away");
}

static void restarted_before_the_node(void) { restarted_after(0); }
static void restarted_before_the_publisher(void) { restarted_after(1); }
static void restarted_before_the_subscription(void) { restarted_after(2); }
static void restarted_before_a_publish(void) { restarted_after(3); }

static void gone_for_objects(void) {
  connect_node();
  kill_agent();
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  int64_t begin_ms = now_ms();
  say_code("publisher", rclc_publisher_init_default(&publisher, &node, INT32, "t"));
  say_time(begin_ms);
  begin_ms = now_ms();
  say_code("node ends", rcl_node_fini(&node));
  say_time(begin_ms);
}

static void gone_for_publishing(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t");
  kill_agent();
  int64_t begin_ms = now_ms();
  say_code("publish", publish_int32(&publisher, 1));
  say_time(begin_ms);
  rcl_ret_t code = RCL_RET_OK;
  for (int i = 0; i < 400 && code == RCL_RET_OK; i++) code = publish_int32(&publisher, i);
  say(", a flood %s", code == RCL_RET_OK ? "is taken" : "is refused");
}

static void on_timer(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  seen++;
}

static void gone_for_timers(void) {
  connect_node();
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  (void)rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(20), on_timer);
  rclc_executor_t executor = executor_of(1);
  (void)rclc_executor_add_timer(&executor, &timer);
  kill_agent();
  spin_for(&executor, 1000);
  say(" %s", seen > 40 ? "go on" : "suffer");
}

static void gone_for_the_end(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t");
  kill_agent();
  int64_t begin_ms = now_ms();
  say_code("publisher", rcl_publisher_fini(&publisher, &node));
  say_time(begin_ms);
  begin_ms = now_ms();
  say_code(" support", rclc_support_fini(&support));
  say_time(begin_ms);
  start_agent();
  connect_node();
  say(", a new one connects");
}

static void session_timeout_zero(void) {
  connect_node();
  rcl_publisher_t publisher = publisher_of("t");
  say_code("set", rmw_uros_set_publisher_session_timeout(rcl_publisher_get_rmw_handle(&publisher), 0));
  int refused = 0;
  for (int i = 0; i < 10; i++) {
    refused += publish_int32(&publisher, i) != RCL_RET_OK;
    sleep_ms(20);
  }
  say(" %s of 10 refused", refused == 0 ? "none" : refused == 10 ? "all" : "some");
}

const behaviour_t behaviours_of_agents[] = {
    {"ping", ping, false},
    {"time synchronisation", time_synchronisation, false},
    {"no agent", no_agent, false},
    {"agent restarted before the node", restarted_before_the_node, false},
    {"agent restarted before the publisher", restarted_before_the_publisher, false},
    {"agent restarted before the subscription", restarted_before_the_subscription, false},
    {"agent restarted before a publish", restarted_before_a_publish, false},
    {"agent gone, objects", gone_for_objects, false},
    {"agent gone, publishing", gone_for_publishing, false},
    {"agent gone, timers", gone_for_timers, false},
    {"agent gone, ends", gone_for_the_end, false},
    {"session timeout of 0", session_timeout_zero, false},
    {NULL, NULL, false}};
