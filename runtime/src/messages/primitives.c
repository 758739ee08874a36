/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "rosidl_runtime_c/primitives_sequence_functions.h"
#include "tide/message_heap.h"

#define DEFINE(NAME, TYPE)                                                                                       \
  bool rosidl_runtime_c__##NAME##__Sequence__init(rosidl_runtime_c__##NAME##__Sequence *sequence, size_t size) { \
    if (sequence == NULL) return false;                                                                          \
    *sequence = (rosidl_runtime_c__##NAME##__Sequence){0};                                                       \
    if (!tide_message_reserve(sequence, size, sizeof(TYPE))) return false;                                       \
    sequence->size = size;                                                                                       \
    return true;                                                                                                 \
  }                                                                                                              \
  void rosidl_runtime_c__##NAME##__Sequence__fini(rosidl_runtime_c__##NAME##__Sequence *sequence) {              \
    if (sequence != NULL) tide_message_drop(sequence);                                                           \
  }                                                                                                              \
  bool rosidl_runtime_c__##NAME##__Sequence__are_equal(const rosidl_runtime_c__##NAME##__Sequence *a,            \
                                                       const rosidl_runtime_c__##NAME##__Sequence *b) {          \
    if (a == NULL || b == NULL || a->size != b->size) return false;                                              \
    for (size_t i = 0; i < a->size; ++i)                                                                         \
      if (!(a->data[i] == b->data[i])) return false;                                                             \
    return true;                                                                                                 \
  }                                                                                                              \
  bool rosidl_runtime_c__##NAME##__Sequence__copy(const rosidl_runtime_c__##NAME##__Sequence *input,             \
                                                  rosidl_runtime_c__##NAME##__Sequence *output) {                \
    if (input == NULL || output == NULL) return false;                                                           \
    if (!tide_message_reserve(output, input->size, sizeof(TYPE))) return false;                                  \
    if (input->size > 0) memmove(output->data, input->data, input->size * sizeof(TYPE));                         \
    output->size = input->size;                                                                                  \
    return true;                                                                                                 \
  }

DEFINE(float, float)
DEFINE(double, double)
DEFINE(long_double, long double)
DEFINE(char, signed char)
DEFINE(wchar, uint16_t)
DEFINE(boolean, bool)
DEFINE(octet, uint8_t)
DEFINE(uint8, uint8_t)
DEFINE(int8, int8_t)
DEFINE(uint16, uint16_t)
DEFINE(int16, int16_t)
DEFINE(uint32, uint32_t)
DEFINE(int32, int32_t)
DEFINE(uint64, uint64_t)
DEFINE(int64, int64_t)
