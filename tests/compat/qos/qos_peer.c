/* SPDX-License-Identifier: Apache-2.0 */
/* A board with each kind of QoS, for tests against real ROS 2: qos_peer --udp PORT. It has a publisher "up/KIND" and a
 * subscription "down/KIND" of each kind, a depth of 3 each, publishes the number of each line of its standard input
 * with all of its publishers, and prints what it hears. */
#include <poll.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <std_msgs/msg/int32.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tide/rclc.h>
#include <tide/status.h>
#include <unistd.h>

#define KINDS 4
#define DEPTH 3

static char names[KINDS][20] = {"reliable_volatile", "reliable_kept", "effort_volatile", "effort_kept"};
static rcl_publisher_t publishers[KINDS];
static rcl_subscription_t subscriptions[KINDS];
static std_msgs__msg__Int32 heard[KINDS];

static void require(rcl_ret_t result, const char *step) {
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "qos_peer: %s failed: %s\n", step, tide_status_text(tide_rclc_last_status()));
  exit(1);
}

static void hear(const void *message, void *name) {
  printf("{\"heard\": \"%s\", \"number\": %d}\n", (const char *)name,
         (int)((const std_msgs__msg__Int32 *)message)->data);
  fflush(stdout);
}

static rmw_qos_profile_t profile(size_t kind) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.depth = DEPTH;
  if (kind >= 2) qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  if (kind % 2 == 1) qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  return qos;
}

static void init_kind(size_t kind, rcl_node_t *node, rclc_executor_t *executor) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  const rmw_qos_profile_t qos = profile(kind);
  char up[64], down[64];
  snprintf(up, sizeof up, "/up/%s", names[kind]);
  snprintf(down, sizeof down, "/down/%s", names[kind]);
  require(rclc_publisher_init(&publishers[kind], node, type, up, &qos), up);
  require(rclc_subscription_init(&subscriptions[kind], node, type, down, &qos), down);
  require(rclc_executor_add_subscription_with_context(executor, &subscriptions[kind], &heard[kind], hear, names[kind],
                                                      ON_NEW_DATA),
          "adding");
}

static void publish(int number) {
  const std_msgs__msg__Int32 message = {number};
  for (size_t kind = 0; kind < KINDS; kind++) require(rcl_publish(&publishers[kind], &message, NULL), names[kind]);
  for (size_t kind = 0; kind < KINDS; kind++) {
    require(rcl_publisher_wait_for_all_acked(&publishers[kind], RCL_S_TO_NS(10)), "the agent's word");
  }
  printf("{\"published\": %d}\n", number);
  fflush(stdout);
}

/* False: the input has ended. */
static bool obey(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char line[32];
  if (poll(&input, 1, 0) <= 0) return true;
  if (fgets(line, sizeof line, stdin) == NULL) return false;
  publish((int)strtol(line, NULL, 10));
  return true;
}

int main(int count, char **words) {
  if (count != 3 || strcmp(words[1], "--udp") != 0) {
    fprintf(stderr, "usage: qos_peer --udp PORT\n");
    return 2;
  }
  setvbuf(stdin, NULL, _IONBF, 0); /* or poll would not see what was read ahead */
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  require(rcl_init_options_init(&options, allocator), "options");
  rmw_init_options_t *link = rcl_init_options_get_rmw_init_options(&options);
  require(rmw_uros_options_set_udp_address("127.0.0.1", words[2], link), "the address");
  rclc_support_t support;
  rcl_node_t node = rcl_get_zero_initialized_node();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  require(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator), "connecting");
  require(rclc_node_init_default(&node, "peer", "", &support), "the node");
  require(rclc_executor_init(&executor, &support.context, KINDS, &allocator), "the executor");
  for (size_t kind = 0; kind < KINDS; kind++) init_kind(kind, &node, &executor);
  printf("{\"event\": \"ready\"}\n");
  fflush(stdout);
  while (obey()) (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10));
  return 0;
}
