/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROSIDL_RUNTIME_C__U16STRING_H_
#define ROSIDL_RUNTIME_C__U16STRING_H_

#include <stddef.h>
#include <stdint.h>

#include "rosidl_runtime_c/primitives_sequence.h"

typedef struct rosidl_runtime_c__U16String {
  uint_least16_t *data; /* ends with a null character */
  size_t size;          /* characters, without the null character */
  size_t capacity;      /* characters that fit, including the null; 0: the text is borrowed and only read */
} rosidl_runtime_c__U16String;

ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE(U16String, rosidl_runtime_c__U16String)

#endif
