/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the strings and sequences of any message, at run time. A program that knows its messages at compile time
 * does not need these functions: `tide generate` declares PACKAGE__msg__NAME__Storage and PACKAGE__msg__NAME__bind. */
#ifndef MICRO_ROS_UTILITIES__TYPE_UTILITIES_H_
#define MICRO_ROS_UTILITIES__TYPE_UTILITIES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcutils/allocator.h"
#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/string.h"

TIDE_EXTERN_C_BEGIN

/* Capacity of one member. path: where the member is in the message, such as "header.frame_id" or
 * "transforms.child_frame_id" (the elements of a sequence share one path). size counts elements, or characters with the
 * NUL. */
typedef struct micro_ros_utilities_memory_rule_t {
  const char *rule;
  size_t size;
} micro_ros_utilities_memory_rule_t;

/* A capacity of zero selects that of micro_ros_utilities_memory_conf_default. Bounded members without a rule get the
 * capacity of their bound. A null allocator selects the default allocator (rcutils_set_default_allocator). */
typedef struct micro_ros_utilities_memory_conf_t {
  size_t max_string_capacity;              /* characters with the NUL */
  size_t max_ros2_type_sequence_capacity;  /* elements of sequences of messages */
  size_t max_basic_type_sequence_capacity; /* elements of sequences of basic types and strings */
  const micro_ros_utilities_memory_rule_t *rules;
  size_t n_rules;
  const rcutils_allocator_t *allocator;
} micro_ros_utilities_memory_conf_t;

/* Capacities of 20 characters, 5 messages and 5 basic elements. */
extern const micro_ros_utilities_memory_conf_t micro_ros_utilities_memory_conf_default;

/* One line with the name of the message type and the names and types of its members. The string is in memory of the
 * default allocator; release it with micro_ros_string_utilities_destroy. Empty when the allocator fails. */
rosidl_runtime_c__String micro_ros_utilities_type_info(const rosidl_message_type_support_t *type_support);
/* Total bytes that create_message_memory allocates, without the structure itself. */
size_t micro_ros_utilities_get_dynamic_size(const rosidl_message_type_support_t *type_support,
                                            const micro_ros_utilities_memory_conf_t conf);
/* Bytes that the buffer of create_static_message_memory must have, whatever its alignment. */
size_t micro_ros_utilities_get_static_size(const rosidl_message_type_support_t *type_support,
                                           const micro_ros_utilities_memory_conf_t conf);
/* Gives every string and sequence of ros_msg zeroed memory; other members stay as they are. Previous pointers are
 * overwritten, and the memory that they point to is not released. False, with nothing allocated, when the allocator
 * fails. */
bool micro_ros_utilities_create_message_memory(const rosidl_message_type_support_t *type_support, void *ros_msg,
                                               const micro_ros_utilities_memory_conf_t conf);
/* Like create_message_memory, but takes the memory from a buffer that must outlive the message. False, without change,
 * when buffer_len is too small. */
bool micro_ros_utilities_create_static_message_memory(const rosidl_message_type_support_t *type_support, void *ros_msg,
                                                      const micro_ros_utilities_memory_conf_t conf, uint8_t *buffer,
                                                      size_t buffer_len);
/* Releases what create_message_memory allocated, with the same allocator. */
bool micro_ros_utilities_destroy_message_memory(const rosidl_message_type_support_t *type_support, void *ros_msg,
                                                const micro_ros_utilities_memory_conf_t conf);

TIDE_EXTERN_C_END
#endif
