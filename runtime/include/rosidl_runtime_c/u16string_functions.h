/* SPDX-License-Identifier: Apache-2.0 */
/* A string uses memory that the caller owns (data and capacity; `tide generate` declares it), which is never replaced.
 * If the caller provides none and a heap exists, the string uses memory of the default allocator (tide/message_heap.h).
 * A null pointer gives false. Re-entrant. */
#ifndef ROSIDL_RUNTIME_C__U16STRING_FUNCTIONS_H_
#define ROSIDL_RUNTIME_C__U16STRING_FUNCTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rosidl_runtime_c/u16string.h"
#include "rosidl_runtime_c/visibility_control.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Makes an empty string without memory. Previous contents are ignored, so the structure may be uninitialised. */
bool rosidl_runtime_c__U16String__init(rosidl_runtime_c__U16String *string);
/* Resets the string; releases memory of the default allocator. */
void rosidl_runtime_c__U16String__fini(rosidl_runtime_c__U16String *string);
bool rosidl_runtime_c__U16String__are_equal(const rosidl_runtime_c__U16String *a, const rosidl_runtime_c__U16String *b);
/* Copies the characters. False, without change, if they do not fit the caller's memory, or there is no heap. */
bool rosidl_runtime_c__U16String__copy(const rosidl_runtime_c__U16String *input, rosidl_runtime_c__U16String *output);
/* Sets the text to the first length characters of value. False, without change, if they do not fit. */
bool rosidl_runtime_c__U16String__assignn(rosidl_runtime_c__U16String *string, const uint16_t *value, size_t length);
/* Sets the text to value, up to its null character. False, without change, if the text does not fit. */
bool rosidl_runtime_c__U16String__assign(rosidl_runtime_c__U16String *string, const uint16_t *value);
/* Sets the text from raw bytes, two for each character in this machine's order; false for an odd number. */
bool rosidl_runtime_c__U16String__assignn_from_char(rosidl_runtime_c__U16String *string, const char *value,
                                                    size_t bytes);
/* Characters before the null character; 0 for a null pointer. */
size_t rosidl_runtime_c__U16String__len(const uint16_t *value);
/* Truncates the text to `size`, or pads it with null characters. False, without change, if `size` does not fit. */
bool rosidl_runtime_c__U16String__resize(rosidl_runtime_c__U16String *string, size_t size);

/* Allocates `size` empty strings from the default allocator; without a heap it returns true only when size is 0.
 * Previous contents are ignored. */
bool rosidl_runtime_c__U16String__Sequence__init(rosidl_runtime_c__U16String__Sequence *sequence, size_t size);
void rosidl_runtime_c__U16String__Sequence__fini(rosidl_runtime_c__U16String__Sequence *sequence);
bool rosidl_runtime_c__U16String__Sequence__are_equal(const rosidl_runtime_c__U16String__Sequence *a,
                                                      const rosidl_runtime_c__U16String__Sequence *b);
/* Copies the strings, each like U16String__copy. False when one does not fit: the output then holds the strings before
 * it. */
bool rosidl_runtime_c__U16String__Sequence__copy(const rosidl_runtime_c__U16String__Sequence *input,
                                                 rosidl_runtime_c__U16String__Sequence *output);

TIDE_EXTERN_C_END
#endif
