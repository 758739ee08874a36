/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "micro_ros_utilities/string_utilities.h"
#include "rcutils/allocator.h"
#include "tide/message_heap.h"

static const rosidl_runtime_c__String nothing = {NULL, 0, 0};

static rosidl_runtime_c__String allocate(size_t characters) {
  rosidl_runtime_c__String string = nothing;
  if (characters < SIZE_MAX) (void)tide_message_reserve(&string, characters + 1u, 1);
  return string;
}

/* Text that fills the capacity exactly stays in place without a NUL, because the memory may belong to the caller. */
static bool has_room(const rosidl_runtime_c__String *string, size_t characters) {
  if (string->data == NULL || characters > string->capacity) return false;
  return characters < string->capacity || !tide_message_is_in_allocated(string->data);
}

/* Returns the string with its text, enlarged for this many characters; if there is no memory, returns it unchanged. */
static rosidl_runtime_c__String grown(rosidl_runtime_c__String string, size_t characters) {
  if (has_room(&string, characters)) return string;
  rosidl_runtime_c__String larger = allocate(characters);
  if (larger.data == NULL) return string;
  if (string.data != NULL && string.size > 0) memcpy(larger.data, string.data, string.size);
  larger.data[string.size] = '\0';
  larger.size = string.size;
  if (string.capacity > 0) micro_ros_string_utilities_destroy(&string);
  return larger;
}

static void put_text(rosidl_runtime_c__String *string, size_t position, const char *text, size_t length) {
  memmove(string->data + position, text, length);
  string->size = position + length;
  if (string->size < string->capacity) string->data[string->size] = '\0';
}

rosidl_runtime_c__String micro_ros_string_utilities_init(const char *data) {
  return micro_ros_string_utilities_set(nothing, data);
}

rosidl_runtime_c__String micro_ros_string_utilities_init_with_size(size_t size) { return allocate(size); }

rosidl_runtime_c__String micro_ros_string_utilities_set(rosidl_runtime_c__String str, const char *data) {
  if (data == NULL) return str;
  size_t length = strlen(data);
  str = grown(str, length);
  if (str.data == NULL || length > str.capacity) return str;
  put_text(&str, 0, data, length);
  return str;
}

const char *micro_ros_string_utilities_get_c_str(rosidl_runtime_c__String str) { return str.data; }

rosidl_runtime_c__String micro_ros_string_utilities_append(rosidl_runtime_c__String str, const char *data) {
  if (data == NULL) return str;
  size_t length = strlen(data);
  str = grown(str, str.size + length);
  if (str.data == NULL || str.size + length > str.capacity) return str;
  put_text(&str, str.size, data, length);
  return str;
}

rosidl_runtime_c__String micro_ros_string_utilities_remove_tail_chars(rosidl_runtime_c__String str, size_t n) {
  if (n > str.size || str.capacity == 0) return str;
  str.size -= n;
  str.data[str.size] = '\0';
  return str;
}

void micro_ros_string_utilities_destroy(rosidl_runtime_c__String *str) {
  if (str == NULL) return;
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  const bool is_remembered = tide_message_is_in_allocated(str->data);
  if (is_remembered) (void)tide_message_release(str->data);
  if (!is_remembered && str->data != NULL && allocator.deallocate != NULL)
    allocator.deallocate(str->data, allocator.state);
  *str = nothing;
}
