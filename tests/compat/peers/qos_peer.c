/* SPDX-License-Identifier: Apache-2.0 */
/* A board with each kind of QoS, for tests against real ROS 2, by an agent or without one: qos_peer --udp PORT, or
 * --rtps ADDRESS --domain N. It has a publisher "up/KIND" and a
 * subscription "down/KIND" of each kind, each with a depth of 3. It reads numbers from its standard input, one in each
 * line, publishes each with all publishers, and prints received messages. With --lanes, the last kind has level 2 and a
 * lane of its own.
 */
#include <pthread.h>
#include <std_msgs/msg/int32.h>

#define TIDE_NODES 1
#define TIDE_PUBLISHERS 4
#define TIDE_SUBSCRIPTIONS 4
#define TIDE_EXECUTOR_LANES 2
#define TIDE_DEFINE_RTPS
#include "peer.h"

#define KINDS 4
#define DEPTH 3

static char names[KINDS][20] = {"reliable_volatile", "reliable_kept", "effort_volatile", "effort_kept"};
static rcl_publisher_t publishers[KINDS];
static rcl_subscription_t subscriptions[KINDS];
static std_msgs__msg__Int32 heard[KINDS];

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

static void init_kind(size_t kind) {
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  const rmw_qos_profile_t qos = profile(kind);
  char up[64], down[64];
  snprintf(up, sizeof up, "/up/%s", names[kind]);
  snprintf(down, sizeof down, "/down/%s", names[kind]);
  require(rclc_publisher_init(&publishers[kind], &node, type, up, &qos), up);
  require(rclc_subscription_init(&subscriptions[kind], &node, type, down, &qos), down);
  require(rclc_executor_add_subscription_with_context(&executor, &subscriptions[kind], &heard[kind], hear, names[kind],
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

static void *spin(void *nothing) {
  require(rclc_executor_spin(&executor), "spinning");
  return nothing;
}

int main(int count, char **words) {
  bool has_lanes = false;
  const peer_option_t own[] = {{.name = "lanes", .flag = &has_lanes}, {0}};
  connect_board(count, words, own, "", KINDS);
  static const tide_lane_settings_t lanes[] = {{.may_run_normally = true},
                                               {.may_run_normally = true, .least_level = 2}};
  if (has_lanes) require(tide_rclc_executor_set_lanes(&executor, lanes, 2), "the lanes");
  for (size_t kind = 0; kind < KINDS; kind++) init_kind(kind);
  require(tide_rclc_subscription_set_priority(&subscriptions[KINDS - 1], TIDE_PRIORITY(2, 0)), "the level");
  pthread_t thread;
  if (has_lanes) require(pthread_create(&thread, NULL, spin, NULL), "the thread");
  tell_ready();
  for (;;) {
    const char *number = next_order();
    if (number != NULL) publish((int)strtol(number, NULL, 10));
    if (has_lanes) {
      (void)poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
    } else {
      (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10));
    }
  }
}
