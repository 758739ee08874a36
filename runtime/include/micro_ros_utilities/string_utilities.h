/* SPDX-License-Identifier: Apache-2.0 */
/* Strings whose memory comes from the default allocator (rcutils_set_default_allocator). A string in the caller's own
 * memory works too, as long as the text fits the capacity; a text that fills the capacity exactly then has no NUL. Such
 * a string must not grow, because its memory would be passed to the allocator. If the allocator fails, a string that
 * should grow stays unchanged, and a new string is empty ({NULL, 0, 0}). Do not call these functions from a callback
 * with a deadline: they may take as long as the allocator. */
#ifndef MICRO_ROS_UTILITIES__STRING_UTILITIES_H_
#define MICRO_ROS_UTILITIES__STRING_UTILITIES_H_

#include <stddef.h>

#include "rosidl_runtime_c/string.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Returns a copy of data. */
rosidl_runtime_c__String micro_ros_string_utilities_init(const char *data);
/* Returns an empty string with room for size characters. */
rosidl_runtime_c__String micro_ros_string_utilities_init_with_size(size_t size);
/* Sets the string to a copy of the text: in its own memory if that suffices, else in new memory (the old memory is
 * released). */
rosidl_runtime_c__String micro_ros_string_utilities_set(rosidl_runtime_c__String str, const char *data);
/* The text ends with a NUL unless it fills the caller's memory. */
const char *micro_ros_string_utilities_get_c_str(rosidl_runtime_c__String str);
/* Appends data to the string, which grows as in micro_ros_string_utilities_set. */
rosidl_runtime_c__String micro_ros_string_utilities_append(rosidl_runtime_c__String str, const char *data);
/* Removes the last n characters; the string stays unchanged when it has fewer. */
rosidl_runtime_c__String micro_ros_string_utilities_remove_tail_chars(rosidl_runtime_c__String str, size_t n);
/* Releases the memory of a string made here. */
void micro_ros_string_utilities_destroy(rosidl_runtime_c__String *str);

TIDE_EXTERN_C_END
#endif
