/* SPDX-License-Identifier: Apache-2.0 */
/* Timers and executors. */
#include <string.h>

#include "behaviours.h"

static rcl_timer_t timer;
static rclc_executor_t *spinning;
static rcl_subscription_t *removed;
static int64_t first_last_call;

static void on_timer(rcl_timer_t *one, int64_t last_call_time) {
  (void)one;
  if (seen++ == 0) first_last_call = last_call_time;
}

static void on_timer_cancel(rcl_timer_t *one, int64_t last_call_time) {
  (void)last_call_time;
  seen++;
  (void)rcl_timer_cancel(one);
}

static rcl_ret_t init_timer(int64_t period_ns, rcl_timer_callback_t callback) {
  timer = rcl_get_zero_initialized_timer();
  return rclc_timer_init_default(&timer, &support, (uint64_t)period_ns, callback);
}

static rclc_executor_t executor_with_timer(rcl_timer_callback_t callback) {
  (void)init_timer(RCL_MS_TO_NS(20), callback);
  rclc_executor_t executor = executor_of(2);
  say_code("add", rclc_executor_add_timer(&executor, &timer));
  return executor;
}

static void timer_periods(void) {
  connect_node();
  say_code("0", init_timer(0, on_timer));
  say_code("1 ns", init_timer(1, on_timer));
  say_code("-1", init_timer(-1, on_timer));
  say_code("no callback", init_timer(RCL_MS_TO_NS(10), NULL));
}

static void timer_calls(void) {
  connect_node();
  (void)init_timer(RCL_MS_TO_NS(50), on_timer);
  bool ready = true, canceled = true;
  int64_t value = 0, old_period = 0;
  say_code("ready", rcl_timer_is_ready(&timer, &ready));
  say(" %d", ready);
  say_code("call", rcl_timer_call(&timer));
  say_code("call", rcl_timer_call(&timer));
  say(" ran %d", seen);
  say_code("cancel", rcl_timer_cancel(&timer));
  say_code("cancel", rcl_timer_cancel(&timer));
  say_code("canceled", rcl_timer_is_canceled(&timer, &canceled));
  say(" %d", canceled);
  say_code("call", rcl_timer_call(&timer));
  say_code("until next", rcl_timer_get_time_until_next_call(&timer, &value));
  say_code("reset", rcl_timer_reset(&timer));
  say_code("exchange", rcl_timer_exchange_period(&timer, RCL_MS_TO_NS(70), &old_period));
  say(" %d", (int)(old_period / 1000000));
  say_code("to 0", rcl_timer_exchange_period(&timer, 0, &old_period));
  say_code("to -1", rcl_timer_exchange_period(&timer, -1, &old_period));
  say_code("end", rcl_timer_fini(&timer));
  say_code("end", rcl_timer_fini(&timer));
  say_code("call", rcl_timer_call(&timer));
}

static void timer_cancelled_in_its_callback(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer_cancel);
  spin_for(&executor, 200);
  say(" ran %d", seen);
  say_code("reset", rcl_timer_reset(&timer));
  spin_for(&executor, 200);
  say(" ran %d", seen);
}

static void timer_arguments(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer);
  spin_until(&executor, 2);
  const int64_t first_ms = first_last_call / 1000000;
  say(" time since the last call, at the first: %s", first_ms >= 15 && first_ms < 60 ? "the period" : "another");
}

static void timer_after_a_pause(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer);
  spin_until(&executor, 1);
  sleep_ms(110);
  seen = 0;
  for (int i = 0; i < 3; i++) rclc_executor_spin_some(&executor, 0);
  say(" runs at once %d", seen);
}

static void timer_ends_in_the_executor(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer);
  say_code("remove", rclc_executor_remove_timer(&executor, &timer));
  say_code("again", rclc_executor_remove_timer(&executor, &timer));
  say_code("end", rcl_timer_fini(&timer));
  say_code("spin", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(20)));
}

static void executor_sizes(void) {
  connect_node();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  say_code("0 handles", rclc_executor_init(&executor, &support.context, 0, &allocator));
  executor = executor_of(1);
  (void)init_timer(RCL_MS_TO_NS(10), on_timer);
  say_code("first", rclc_executor_add_timer(&executor, &timer));
  rcl_timer_t second = rcl_get_zero_initialized_timer();
  (void)rclc_timer_init_default(&second, &support, RCL_MS_TO_NS(10), on_timer);
  say_code("one too many", rclc_executor_add_timer(&executor, &second));
}

static void executors_at_once(void) {
  connect_node();
  rclc_executor_t all[4];
  for (int i = 0; i < 4; i++) {
    all[i] = rclc_executor_get_zero_initialized_executor();
    say_code("executor", rclc_executor_init(&all[i], &support.context, 1, &allocator));
  }
}

static void executor_without_handles(void) {
  connect_node();
  rclc_executor_t executor = executor_of(1);
  say_code("spin_some", rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10)));
  say_code("prepare", rclc_executor_prepare(&executor));
  say_code("timeout", rclc_executor_set_timeout(&executor, RCL_MS_TO_NS(5)));
}

static void handles_that_are_there_already(void) {
  connect_node();
  rclc_executor_t executor = executor_of(4);
  rcl_subscription_t subscription = subscription_of("t"), other = subscription_of("u");
  std_msgs__msg__Int32 message;
  say_code("add", rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ON_NEW_DATA));
  say_code("again", rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ON_NEW_DATA));
  say_code("not there", rclc_executor_remove_subscription(&executor, &other));
  say_code("remove", rclc_executor_remove_subscription(&executor, &subscription));
  say_code("again", rclc_executor_remove_subscription(&executor, &subscription));
  say_code("null", rclc_executor_add_subscription(&executor, &other, NULL, on_int32, ON_NEW_DATA));
  say_code("no callback", rclc_executor_add_subscription(&executor, &other, &message, NULL, ON_NEW_DATA));
}

static void on_int32_remove(const void *message) {
  on_int32(message);
  say_code("in its callback", rclc_executor_remove_subscription(spinning, removed));
}

static void removal_in_the_callback(void) {
  connect_node();
  const char *topic = fresh("removed");
  rcl_publisher_t publisher = publisher_of(topic);
  rcl_subscription_t subscription = subscription_of(topic);
  rclc_executor_t executor = executor_of(2);
  std_msgs__msg__Int32 message;
  (void)rclc_executor_add_subscription(&executor, &subscription, &message, on_int32_remove, ON_NEW_DATA);
  spinning = &executor;
  removed = &subscription;
  sleep_ms(300);
  for (int i = 0; i < 3; i++) (void)publish_int32(&publisher, i);
  spin_until(&executor, 1);
  spin_for(&executor, 100);
  say(", ran %d", seen);
}

static void on_timer_add(rcl_timer_t *one, int64_t last_call_time) {
  static rcl_timer_t second;
  (void)one;
  (void)last_call_time;
  if (seen++ > 0) return;
  second = rcl_get_zero_initialized_timer();
  (void)rclc_timer_init_default(&second, &support, RCL_MS_TO_NS(20), on_timer);
  say_code("in a callback", rclc_executor_add_timer(spinning, &second));
}

static void addition_in_a_callback(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer_add);
  spinning = &executor;
  spin_for(&executor, 210);
  say(", %s", seen > 14 ? "both run" : "one runs");
}

static void spin_period(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer);
  const int64_t begin_ms = now_ms();
  for (int i = 0; i < 5; i++) (void)rclc_executor_spin_one_period(&executor, RCL_MS_TO_NS(100));
  say(" 5 periods of 100 ms: %s", about(now_ms() - begin_ms));
}

static void triggers(void) {
  connect_node();
  const char *topics[] = {fresh("a"), fresh("b")};
  rcl_publisher_t publishers[] = {publisher_of(topics[0]), publisher_of(topics[1])};
  rcl_subscription_t subscriptions[] = {subscription_of(topics[0]), subscription_of(topics[1])};
  rclc_executor_t executor = executor_of(2);
  std_msgs__msg__Int32 messages[2];
  for (int i = 0; i < 2; i++)
    (void)rclc_executor_add_subscription(&executor, &subscriptions[i], &messages[i], on_int32, ON_NEW_DATA);
  say_code("null", rclc_executor_set_trigger(&executor, NULL, NULL));
  say_code("all", rclc_executor_set_trigger(&executor, rclc_executor_trigger_all, NULL));
  sleep_ms(300);
  (void)publish_int32(&publishers[0], 1);
  spin_for(&executor, 300);
  say(" of one %d", seen);
  (void)publish_int32(&publishers[1], 2);
  spin_until(&executor, 2);
  say(" of both %d", seen);
  say_code(" one", rclc_executor_set_trigger(&executor, rclc_executor_trigger_one, &subscriptions[1]));
  (void)publish_int32(&publishers[0], 3);
  spin_for(&executor, 200);
  say(" of the other %d", seen);
  (void)publish_int32(&publishers[1], 4);
  spin_for(&executor, 200);
  say(" of it %d", seen);
}

static void on_guard(void) { seen++; }

static void *trigger_later(void *guard) {
  sleep_ms(100);
  (void)rcl_trigger_guard_condition(guard);
  return NULL;
}

static void guard_conditions(void) {
  connect_node();
  rcl_guard_condition_t guard = rcl_get_zero_initialized_guard_condition();
  const rcl_guard_condition_options_t options = rcl_guard_condition_get_default_options();
  say_code("init", rcl_guard_condition_init(&guard, &support.context, options));
  rclc_executor_t executor = executor_of(1);
  (void)rcl_trigger_guard_condition(&guard);
  say_code("add", rclc_executor_add_guard_condition(&executor, &guard, on_guard));
  spin_for(&executor, 50);
  say(" before it was added %d", seen);
  seen = 0;
  (void)rcl_trigger_guard_condition(&guard);
  (void)rcl_trigger_guard_condition(&guard);
  spin_for(&executor, 50);
  say(" twice %d", seen);
  seen = 0;
  const thread_t thread = start_thread(trigger_later, &guard);
  const int64_t begin_ms = now_ms();
  spin_until(&executor, 1);
  say(" from a thread %d after %s", seen, about(now_ms() - begin_ms));
  join_thread(thread);
  say_code(" end", rcl_guard_condition_fini(&guard));
}

static char order[32];
static void on_first(const void *message) {
  (void)message;
  strcat(order, "1");
}
static void on_second(const void *message) {
  (void)message;
  strcat(order, "2");
}

static void order_of_callbacks(void) {
  connect_node();
  const char *topics[] = {fresh("a"), fresh("b")};
  rcl_publisher_t publishers[] = {publisher_of(topics[0]), publisher_of(topics[1])};
  rcl_subscription_t subscriptions[] = {subscription_of(topics[0]), subscription_of(topics[1])};
  rclc_executor_t executor = executor_of(2);
  std_msgs__msg__Int32 messages[2];
  (void)rclc_executor_add_subscription(&executor, &subscriptions[0], &messages[0], on_first, ON_NEW_DATA);
  (void)rclc_executor_add_subscription(&executor, &subscriptions[1], &messages[1], on_second, ON_NEW_DATA);
  sleep_ms(300);
  (void)publish_int32(&publishers[1], 1);
  sleep_ms(50);
  (void)publish_int32(&publishers[0], 2);
  sleep_ms(300);
  for (int i = 0; i < 10; i++) (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(20));
  say(" added 1 2, came 2 1, ran %s", order);
}

static void always(void) {
  connect_node();
  rcl_subscription_t subscription = subscription_of("t");
  rclc_executor_t executor = executor_of(1);
  std_msgs__msg__Int32 message;
  (void)rclc_executor_add_subscription(&executor, &subscription, &message, on_int32, ALWAYS);
  say_code("always", rclc_executor_set_trigger(&executor, rclc_executor_trigger_always, NULL));
  (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10));
  say(" ran %d with %s", seen, last_value == -1 ? "null" : "a message");
}

static void semantics(void) {
  connect_node();
  rclc_executor_t executor = executor_with_timer(on_timer);
  say_code("LET", rclc_executor_set_semantics(&executor, RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME));
  spin_for(&executor, 110);
  say(" %s", seen >= 3 ? "runs" : "does not run");
  say_code("unknown", rclc_executor_set_semantics(&executor, (rclc_executor_semantics_t)7));
}

const behaviour_t behaviours_of_executors[] = {
    {"periods of timers", timer_periods, false},
    {"calls of timers", timer_calls, false},
    {"timer cancelled in its callback", timer_cancelled_in_its_callback, false},
    {"argument of a timer's callback", timer_arguments, false},
    {"timer after a pause", timer_after_a_pause, false},
    {"timer removed from its executor", timer_ends_in_the_executor, false},
    {"sizes of executors", executor_sizes, false},
    {"executors at once", executors_at_once, false},
    {"executor without handles", executor_without_handles, false},
    {"handles that are there already", handles_that_are_there_already, false},
    {"removal in the callback", removal_in_the_callback, false},
    {"addition in a callback", addition_in_a_callback, false},
    {"spin_one_period", spin_period, false},
    {"triggers", triggers, false},
    {"guard conditions", guard_conditions, false},
    {"order of callbacks", order_of_callbacks, false},
    {"ALWAYS", always, false},
    {"semantics", semantics, false},
    {NULL, NULL, false}};
