/* SPDX-License-Identifier: Apache-2.0 */
/* Strings in memory that the caller owns. Nothing is allocated: give data and capacity yourself, or let
 * `tide generate` declare the memory. A null pointer gives false. Re-entrant. */
#ifndef ROSIDL_RUNTIME_C__STRING_FUNCTIONS_H_
#define ROSIDL_RUNTIME_C__STRING_FUNCTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rosidl_runtime_c/string.h"
#include "rosidl_runtime_c/visibility_control.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Empty, without memory. Whatever the structure held is forgotten, so it may be uninitialised. */
bool rosidl_runtime_c__String__init(rosidl_runtime_c__String *string);
/* Forgets the memory, which stays the caller's. */
void rosidl_runtime_c__String__fini(rosidl_runtime_c__String *string);
bool rosidl_runtime_c__String__are_equal(const rosidl_runtime_c__String *a, const rosidl_runtime_c__String *b);
/* Copies the characters; false, and no change, when the output's capacity is too small. */
bool rosidl_runtime_c__String__copy(const rosidl_runtime_c__String *input, rosidl_runtime_c__String *output);
/* Sets the text to the first length characters of value; false, and no change, when the capacity is too small. */
bool rosidl_runtime_c__String__assignn(rosidl_runtime_c__String *string, const char *value, size_t length);
/* The same up to the null character of value. */
bool rosidl_runtime_c__String__assign(rosidl_runtime_c__String *string, const char *value);

/* Empties the sequence; true only when size is 0. */
bool rosidl_runtime_c__String__Sequence__init(rosidl_runtime_c__String__Sequence *sequence, size_t size);
void rosidl_runtime_c__String__Sequence__fini(rosidl_runtime_c__String__Sequence *sequence);
bool rosidl_runtime_c__String__Sequence__are_equal(const rosidl_runtime_c__String__Sequence *a,
                                                   const rosidl_runtime_c__String__Sequence *b);
/* Copies into the strings that the output already has memory for. False when one is too small: the output then has
 * the elements before it. */
bool rosidl_runtime_c__String__Sequence__copy(const rosidl_runtime_c__String__Sequence *input,
                                              rosidl_runtime_c__String__Sequence *output);

#ifdef __cplusplus
}
#endif
#endif
