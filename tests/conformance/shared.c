/* SPDX-License-Identifier: Apache-2.0 */
/* Common functions of the behaviours: to start, and to report observations. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "behaviours.h"

const behaviour_t *const behaviour_lists[8] = {behaviours_of_objects, behaviours_of_executors, behaviours_of_messages,
                                               behaviours_of_agents,  behaviours_of_starts,    behaviours_of_ends,
                                               behaviours_of_threads, behaviours_of_memory};
char line[4000];
const char *agent_port;
rcl_allocator_t allocator;
rclc_support_t support;
rcl_node_t node;
int seen;
int32_t last_value;

void say(const char *format, ...) {
  va_list words;
  va_start(words, format);
  const size_t used = strlen(line);
  vsnprintf(line + used, sizeof line - used, format, words);
  va_end(words);
}

void say_code(const char *name, rcl_ret_t code) { say(" %s %d", name, (int)code); }

const char *about(int64_t time_ms) {
  static const struct {
    int64_t below_ms;
    const char *text;
  } steps[] = {{60, "0 s"},   {300, "0.1 s"}, {750, "0.5 s"},  {1500, "1 s"},
               {3500, "2 s"}, {7500, "5 s"},  {12500, "10 s"}, {20000, "15 s"}};
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    if (time_ms < steps[i].below_ms) return steps[i].text;
  return "long";
}

const char *fresh(const char *base) {
  static char names[16][64];
  static unsigned number;
  char *name = names[number++ % 16];
  snprintf(name, sizeof names[0], "%s_%d_%u", base, (int)getpid(), number);
  return name;
}

void say_peer(const char *question) { say(" [%.*s %d]", (int)strcspn(question, " "), question, ask_peer(question)); }

rcl_init_options_t options_of_agent(void) {
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator) == RCL_RET_OK, "rcl_init_options_init");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  require(rmw_uros_options_set_udp_address("127.0.0.1", agent_port, link) == RMW_RET_OK, "the address");
  return options;
}

void connect_support(void) {
  rcl_init_options_t options = options_of_agent();
  const rcl_ret_t code = rclc_support_init_with_options(&support, 0, NULL, &options, &allocator);
  require(code == RCL_RET_OK, "rclc_support_init");
  (void)rcl_init_options_fini(&options);
}

void connect_node(void) {
  connect_support();
  node = rcl_get_zero_initialized_node();
  require(rclc_node_init_default(&node, "node", "", &support) == RCL_RET_OK, "rclc_node_init");
}

void on_int32(const void *message) {
  seen++;
  last_value = message ? ((const std_msgs__msg__Int32 *)message)->data : -1;
}

rcl_publisher_t publisher_of(const char *topic) {
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  require(rclc_publisher_init_default(&publisher, &node, INT32, topic) == RCL_RET_OK, "a publisher");
  return publisher;
}

rcl_subscription_t subscription_of(const char *topic) {
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  require(rclc_subscription_init_default(&subscription, &node, INT32, topic) == RCL_RET_OK, "a subscription");
  return subscription;
}

rcl_ret_t publish_int32(const rcl_publisher_t *publisher, int32_t value) {
  const std_msgs__msg__Int32 message = {value};
  return rcl_publish(publisher, &message, NULL);
}

rclc_executor_t executor_of(size_t handles) {
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_executor_init(&executor, &support.context, handles, &allocator) == RCL_RET_OK, "an executor");
  return executor;
}

void spin_until(rclc_executor_t *executor, int count) {
  for (const int64_t end_ms = now_ms() + 2000; seen < count && now_ms() < end_ms;)
    rclc_executor_spin_some(executor, RCL_MS_TO_NS(20));
}

void spin_for(rclc_executor_t *executor, int64_t time_ms) {
  for (const int64_t end_ms = now_ms() + time_ms; now_ms() < end_ms;)
    rclc_executor_spin_some(executor, RCL_MS_TO_NS(5));
}
