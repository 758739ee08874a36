/* SPDX-License-Identifier: Apache-2.0 */
/* A board with rarely used types, for tests with real ROS 2:
 *
 *   types_peer (--udp PORT | --serial DEVICE (921,600 baud))
 *
 * It sends messages of each type back: from "down/TYPE" on "up/TYPE". For each line of its standard input, it publishes
 * a message of each type on "new/TYPE"; these messages have the values that X__init gives them. */
#include <micro_ros_utilities/type_utilities.h>
#include <robot_msgs/msg/reading.h>
#include <test_msgs/msg/bounded_sequences.h>
#include <test_msgs/msg/defaults.h>
#include <test_msgs/msg/strings.h>
#include <test_msgs/msg/w_strings.h>

#include "peer.h"

#define TYPES 5

typedef union any {
  test_msgs__msg__Defaults defaults;
  test_msgs__msg__WStrings w_strings;
  test_msgs__msg__Strings strings;
  test_msgs__msg__BoundedSequences bounded_sequences;
  robot_msgs__msg__Reading reading;
} any_t;

static struct {
  const char *name;
  const rosidl_message_type_support_t *type;
  rcl_publisher_t up, new_one;
  rcl_subscription_t down;
  any_t received, made;
} types[TYPES];

static void send_back(const void *message, void *place) {
  require(rcl_publish(&types[*(size_t *)place].up, message, NULL), "sending back");
}

static void init_type(size_t i) {
  static size_t places[TYPES];
  static const micro_ros_utilities_memory_conf_t memory = {60, 60, 10, NULL, 0, NULL};
  char name[64];
  places[i] = i;
  require(micro_ros_utilities_create_message_memory(types[i].type, &types[i].received, memory) ? RCL_RET_OK
                                                                                               : RCL_RET_BAD_ALLOC,
          "memory");
  snprintf(name, sizeof name, "/up/%s", types[i].name);
  require(rclc_publisher_init_default(&types[i].up, &node, types[i].type, name), name);
  snprintf(name, sizeof name, "/new/%s", types[i].name);
  require(rclc_publisher_init_default(&types[i].new_one, &node, types[i].type, name), name);
  snprintf(name, sizeof name, "/down/%s", types[i].name);
  require(rclc_subscription_init_default(&types[i].down, &node, types[i].type, name), name);
  require(rclc_executor_add_subscription_with_context(&executor, &types[i].down, &types[i].received, send_back,
                                                      &places[i], ON_NEW_DATA),
          "adding");
}

static void publish_new_ones(void) {
  for (size_t i = 0; i < TYPES; i++) require(rcl_publish(&types[i].new_one, &types[i].made, NULL), types[i].name);
}

#define NAME_TYPE(place, package, type_name, member)                              \
  do {                                                                            \
    types[place].name = #type_name;                                               \
    types[place].type = ROSIDL_GET_MSG_TYPE_SUPPORT(package, msg, type_name);     \
    if (!package##__msg__##type_name##__init(&types[place].made.member)) exit(1); \
  } while (0)

int main(int count, char **words) {
  NAME_TYPE(0, test_msgs, Defaults, defaults);
  NAME_TYPE(1, test_msgs, WStrings, w_strings);
  NAME_TYPE(2, test_msgs, Strings, strings);
  NAME_TYPE(3, test_msgs, BoundedSequences, bounded_sequences);
  NAME_TYPE(4, robot_msgs, Reading, reading);
  connect_board(count, words, NULL, "", TYPES);
  for (size_t i = 0; i < TYPES; i++) init_type(i);
  tell_ready();
  for (;;) {
    if (next_order() != NULL) publish_new_ones();
    (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10));
  }
}
