/* SPDX-License-Identifier: Apache-2.0 */
/* A string uses memory that the caller owns (data and capacity; `tide generate` declares it), which is never replaced.
 * If the caller provides none and a heap exists, the string uses memory of the default allocator (tide/message_heap.h).
 * A null pointer gives false. Re-entrant. */
#ifndef ROSIDL_RUNTIME_C__STRING_FUNCTIONS_H_
#define ROSIDL_RUNTIME_C__STRING_FUNCTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rosidl_runtime_c/string.h"
#include "rosidl_runtime_c/visibility_control.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Makes an empty string without memory. Previous contents are ignored, so the structure may be uninitialised. */
bool rosidl_runtime_c__String__init(rosidl_runtime_c__String *string);
/* Resets the string; releases memory of the default allocator. */
void rosidl_runtime_c__String__fini(rosidl_runtime_c__String *string);
bool rosidl_runtime_c__String__are_equal(const rosidl_runtime_c__String *a, const rosidl_runtime_c__String *b);
/* Copies the characters. False, without change, if they do not fit the caller's memory, or there is no heap. */
bool rosidl_runtime_c__String__copy(const rosidl_runtime_c__String *input, rosidl_runtime_c__String *output);
/* Sets the text to the first length characters of value. False, without change, if they do not fit. */
bool rosidl_runtime_c__String__assignn(rosidl_runtime_c__String *string, const char *value, size_t length);
/* Sets the text to value, up to its null character. False, without change, if the text does not fit. */
bool rosidl_runtime_c__String__assign(rosidl_runtime_c__String *string, const char *value);
/* Truncates the text to `size`, or pads it with null characters. False, without change, if `size` does not fit. */
bool rosidl_runtime_c__String__resize(rosidl_runtime_c__String *string, size_t size);

/* Allocates `size` empty strings from the default allocator; without a heap it returns true only when size is 0.
 * Previous contents are ignored. */
bool rosidl_runtime_c__String__Sequence__init(rosidl_runtime_c__String__Sequence *sequence, size_t size);
void rosidl_runtime_c__String__Sequence__fini(rosidl_runtime_c__String__Sequence *sequence);
bool rosidl_runtime_c__String__Sequence__are_equal(const rosidl_runtime_c__String__Sequence *a,
                                                   const rosidl_runtime_c__String__Sequence *b);
/* Copies the strings, each like String__copy. False when one does not fit: the output then holds the strings before
 * it. */
bool rosidl_runtime_c__String__Sequence__copy(const rosidl_runtime_c__String__Sequence *input,
                                              rosidl_runtime_c__String__Sequence *output);

TIDE_EXTERN_C_END
#endif
