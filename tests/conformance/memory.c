/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of messages: functions that assign, initialise, finalise and copy strings and sequences. */
#include <micro_ros_utilities/string_utilities.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <std_msgs/msg/float64_multi_array.h>
#include <stdlib.h>
#include <string.h>

#include "behaviours.h"

#define LONG_TEXT "a text of more than sixty-four characters, which is what a message has by default here"

static void say_string(const char *name, const rosidl_runtime_c__String *string) {
  say(" %s \"%s\" of %zu", name, string->data ? string->data : "(null)", string->size);
}

static void assigning(void) {
  std_msgs__msg__String message;
  say(" init %d", std_msgs__msg__String__init(&message));
  say(" text %d", rosidl_runtime_c__String__assign(&message.data, "text"));
  say_string("", &message.data);
  say(" longer %d", rosidl_runtime_c__String__assign(&message.data, LONG_TEXT));
  say(" %zu", strlen(message.data.data));
  say(" shorter %d", rosidl_runtime_c__String__assign(&message.data, "s"));
  say_string("", &message.data);
  say(" empty %d", rosidl_runtime_c__String__assign(&message.data, ""));
  say_string("", &message.data);
  say(" null %d", rosidl_runtime_c__String__assign(&message.data, NULL));
  say(" part %d", rosidl_runtime_c__String__assignn(&message.data, "partly", 4));
  say_string("", &message.data);
  std_msgs__msg__String__fini(&message);
  say(" ended %d %zu %zu", message.data.data == NULL, message.data.size, message.data.capacity);
}

static void new_messages(void) {
  std_msgs__msg__String message;
  (void)std_msgs__msg__String__init(&message);
  say(" %s, size %zu, capacity %zu", message.data.data ? "text" : "null", message.data.size, message.data.capacity);
}

static void ends_of_messages(void) {
  std_msgs__msg__String message;
  (void)std_msgs__msg__String__init(&message);
  (void)rosidl_runtime_c__String__assign(&message.data, "text");
  std_msgs__msg__String__fini(&message);
  std_msgs__msg__String__fini(&message);
  std_msgs__msg__String__fini(NULL);
  say(" twice and of null");
  say(" again %d", std_msgs__msg__String__init(&message) && rosidl_runtime_c__String__assign(&message.data, "again"));
  say_string("", &message.data);
  std_msgs__msg__String__fini(&message);
}

static void sequences(void) {
  std_msgs__msg__Float64MultiArray message;
  (void)std_msgs__msg__Float64MultiArray__init(&message);
  say(" init %d", rosidl_runtime_c__double__Sequence__init(&message.data, 3));
  say(" %zu of %zu, %g", message.data.size, message.data.capacity, message.data.data[2]);
  rosidl_runtime_c__double__Sequence__fini(&message.data);
  say(" fini %d %zu", message.data.data == NULL, message.data.size);
  say(" other size %d", rosidl_runtime_c__double__Sequence__init(&message.data, 100));
  say(" %zu", message.data.size);
  say(" dimensions %d", std_msgs__msg__MultiArrayDimension__Sequence__init(&message.layout.dim, 2));
  say(" label %d", rosidl_runtime_c__String__assign(&message.layout.dim.data[1].label, LONG_TEXT));
  std_msgs__msg__Float64MultiArray other;
  (void)std_msgs__msg__Float64MultiArray__init(&other);
  say(" copy %d", std_msgs__msg__Float64MultiArray__copy(&message, &other));
  say(" equal %d", std_msgs__msg__Float64MultiArray__are_equal(&message, &other));
  say(" onto itself %d", std_msgs__msg__Float64MultiArray__copy(&message, &message));
  say(" equal %d", std_msgs__msg__Float64MultiArray__are_equal(&message, &other));
  std_msgs__msg__Float64MultiArray__fini(&message);
  std_msgs__msg__Float64MultiArray__fini(&other);
  say(" ended %d", message.layout.dim.data == NULL && other.data.data == NULL);
}

static void created_messages(void) {
  std_msgs__msg__String *message = std_msgs__msg__String__create();
  say(" text %d", rosidl_runtime_c__String__assign(&message->data, "text"));
  say_string("", &message->data);
  say(" longer %d", rosidl_runtime_c__String__assign(&message->data, LONG_TEXT));
  say(" %zu", message->data.size);
  std_msgs__msg__String__destroy(message);
  std_msgs__msg__String__destroy(NULL);
  say(" destroyed");
}

static void utilities_and_assign(void) {
  rosidl_runtime_c__String string = micro_ros_string_utilities_init("made");
  say(" assign %d", rosidl_runtime_c__String__assign(&string, "then assigned, longer"));
  string = micro_ros_string_utilities_append(string, ", and added to");
  say_string("", &string);
  rosidl_runtime_c__String__fini(&string);
  (void)rosidl_runtime_c__String__init(&string);
  (void)rosidl_runtime_c__String__assign(&string, "assigned");
  string = micro_ros_string_utilities_append(string, "!");
  string = micro_ros_string_utilities_remove_tail_chars(string, 5);
  say_string("then", &string);
  micro_ros_string_utilities_destroy(&string);
  say(" destroyed %d", string.data == NULL);
}

static size_t length;
static char first;
static void on_text(const void *untyped) {
  const std_msgs__msg__String *message = untyped;
  seen++;
  length = message->data.size;
  first = message->data.data[0];
}

static void publishing_assigned_text(void) {
  connect_node();
  const char *topic = fresh("assigned");
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  rcl_subscription_t subscription = rcl_get_zero_initialized_subscription();
  (void)rclc_publisher_init_default(&publisher, &node, STRING, topic);
  (void)rclc_subscription_init_default(&subscription, &node, STRING, topic);
  rclc_executor_t executor = executor_of(1);
  std_msgs__msg__String sent, taken;
  (void)std_msgs__msg__String__init(&sent);
  (void)std_msgs__msg__String__init(&taken);
  (void)rosidl_runtime_c__String__assign(&taken.data, "twelve bytes");
  (void)rclc_executor_add_subscription(&executor, &subscription, &taken, on_text, ON_NEW_DATA);
  sleep_ms(300);
  const char *const texts[] = {"short", "twelve bytes", "thirteen byte", LONG_TEXT, "after it"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    say(" %zu bytes: assign %d", strlen(texts[i]), rosidl_runtime_c__String__assign(&sent.data, texts[i]));
    say_code("publish", rcl_publish(&publisher, &sent, NULL));
    const int before = seen;
    spin_until(&executor, before + 1);
    if (seen == before) say(" nothing,");
    if (seen > before) say(" %c of %zu,", first, length);
  }
  std_msgs__msg__String__fini(&sent);
  std_msgs__msg__String__fini(&taken);
}

const behaviour_t behaviours_of_memory[] = {{"memory, a new message", new_messages, false},
                                            {"memory, assigning", assigning, false},
                                            {"memory, ends of messages", ends_of_messages, false},
                                            {"memory, sequences and copies", sequences, false},
                                            {"memory, created messages", created_messages, false},
                                            {"memory, utilities and assign", utilities_and_assign, false},
                                            {"memory, publishing assigned text", publishing_assigned_text, false},
                                            {NULL, NULL, false}};
