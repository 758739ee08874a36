/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of basic types. A sequence uses the caller's memory, which is never replaced. If the caller provides none
 * and a heap exists, the sequence uses memory of the default allocator (tide/message_heap.h). For each basic type NAME:
 * - rosidl_runtime_c__NAME__Sequence__init: allocates `size` zeroes from the default allocator. Without a heap it
 * returns true for size 0 only. Previous contents are not released.
 * - rosidl_runtime_c__NAME__Sequence__fini: resets the sequence; releases memory of the default allocator.
 * - rosidl_runtime_c__NAME__Sequence__copy: false, without change, if the elements do not fit the caller's memory, or
 *   there is no heap.
 * A null pointer gives false. Re-entrant. */
#ifndef ROSIDL_RUNTIME_C__PRIMITIVES_SEQUENCE_FUNCTIONS_H_
#define ROSIDL_RUNTIME_C__PRIMITIVES_SEQUENCE_FUNCTIONS_H_

#include "rosidl_runtime_c/primitives_sequence.h"
#include "rosidl_runtime_c/visibility_control.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

#define ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(NAME)                                                    \
  bool rosidl_runtime_c__##NAME##__Sequence__init(rosidl_runtime_c__##NAME##__Sequence *sequence, size_t size); \
  void rosidl_runtime_c__##NAME##__Sequence__fini(rosidl_runtime_c__##NAME##__Sequence *sequence);              \
  bool rosidl_runtime_c__##NAME##__Sequence__are_equal(const rosidl_runtime_c__##NAME##__Sequence *a,           \
                                                       const rosidl_runtime_c__##NAME##__Sequence *b);          \
  bool rosidl_runtime_c__##NAME##__Sequence__copy(const rosidl_runtime_c__##NAME##__Sequence *input,            \
                                                  rosidl_runtime_c__##NAME##__Sequence *output);

ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(float)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(double)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(long_double)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(char)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(wchar)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(boolean)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(octet)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(uint8)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(int8)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(uint16)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(int16)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(uint32)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(int32)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(uint64)
ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE_FUNCTIONS(int64)

TIDE_EXTERN_C_END
#endif
