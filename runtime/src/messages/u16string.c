/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "rosidl_runtime_c/u16string_functions.h"
#include "tide/message_memory.h"

bool rosidl_runtime_c__U16String__init(rosidl_runtime_c__U16String *string) {
  if (string == NULL) return false;
  *string = (rosidl_runtime_c__U16String){0};
  return true;
}

void rosidl_runtime_c__U16String__fini(rosidl_runtime_c__U16String *string) {
  if (string != NULL) tide_message_drop(string);
}

static size_t length_of(const rosidl_runtime_c__U16String *string) { return string->data == NULL ? 0 : string->size; }

bool rosidl_runtime_c__U16String__are_equal(const rosidl_runtime_c__U16String *a,
                                            const rosidl_runtime_c__U16String *b) {
  if (a == NULL || b == NULL) return false;
  size_t length = length_of(a);
  return length == length_of(b) && (length == 0 || memcmp(a->data, b->data, length * sizeof *a->data) == 0);
}

bool rosidl_runtime_c__U16String__assignn(rosidl_runtime_c__U16String *string, const uint16_t *value, size_t length) {
  if (string == NULL || (value == NULL && length > 0)) return false;
  if (length == 0 && string->capacity == 0) {
    string->size = 0;
    return true;
  }
  if (length == SIZE_MAX || !tide_message_reserve(string, length + 1u, sizeof *value)) return false;
  if (length > 0) memmove(string->data, value, length * sizeof *value);
  string->data[length] = 0;
  string->size = length;
  return true;
}

bool rosidl_runtime_c__U16String__copy(const rosidl_runtime_c__U16String *input, rosidl_runtime_c__U16String *output) {
  return input != NULL && rosidl_runtime_c__U16String__assignn(output, input->data, length_of(input));
}

size_t rosidl_runtime_c__U16String__len(const uint16_t *value) {
  size_t count = 0;
  while (value != NULL && value[count] != 0) ++count;
  return count;
}

bool rosidl_runtime_c__U16String__assignn_from_char(rosidl_runtime_c__U16String *string, const char *value,
                                                    size_t bytes) {
  const size_t length = bytes / sizeof *string->data;
  if (string == NULL || bytes % sizeof *string->data != 0 || (value == NULL && bytes > 0)) return false;
  if (!tide_message_reserve(string, length + 1u, sizeof *string->data)) return false;
  if (bytes > 0) memmove(string->data, value, bytes);
  string->data[length] = 0;
  string->size = length;
  return true;
}

bool rosidl_runtime_c__U16String__assign(rosidl_runtime_c__U16String *string, const uint16_t *value) {
  return value != NULL && rosidl_runtime_c__U16String__assignn(string, value, rosidl_runtime_c__U16String__len(value));
}

bool rosidl_runtime_c__U16String__resize(rosidl_runtime_c__U16String *string, size_t size) {
  return string != NULL && tide_message_resize(string, size, sizeof *string->data);
}

static const tide_field_t sequence_field = {.kind = TIDE_FIELD_WSTRING, .shape = TIDE_SHAPE_SEQUENCE};

bool rosidl_runtime_c__U16String__Sequence__init(rosidl_runtime_c__U16String__Sequence *sequence, size_t size) {
  if (sequence == NULL) return false;
  *sequence = (rosidl_runtime_c__U16String__Sequence){0};
  if (!tide_message_reserve_elements(&sequence_field, sequence, size)) return false;
  sequence->size = size;
  return true;
}

void rosidl_runtime_c__U16String__Sequence__fini(rosidl_runtime_c__U16String__Sequence *sequence) {
  if (sequence != NULL) tide_message_drop_elements(&sequence_field, sequence);
}

bool rosidl_runtime_c__U16String__Sequence__are_equal(const rosidl_runtime_c__U16String__Sequence *a,
                                                      const rosidl_runtime_c__U16String__Sequence *b) {
  if (a == NULL || b == NULL || a->size != b->size) return false;
  for (size_t i = 0; i < a->size; ++i)
    if (!rosidl_runtime_c__U16String__are_equal(&a->data[i], &b->data[i])) return false;
  return true;
}

bool rosidl_runtime_c__U16String__Sequence__copy(const rosidl_runtime_c__U16String__Sequence *input,
                                                 rosidl_runtime_c__U16String__Sequence *output) {
  if (input == NULL || output == NULL) return false;
  if (!tide_message_reserve_elements(&sequence_field, output, input->size)) return false;
  output->size = 0;
  for (; output->size < input->size; ++output->size)
    if (!rosidl_runtime_c__U16String__copy(&input->data[output->size], &output->data[output->size])) return false;
  return true;
}
