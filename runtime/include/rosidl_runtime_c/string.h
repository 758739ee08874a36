/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROSIDL_RUNTIME_C__STRING_H_
#define ROSIDL_RUNTIME_C__STRING_H_

#include <stddef.h>

#include "rosidl_runtime_c/primitives_sequence.h"

typedef struct rosidl_runtime_c__String {
  char *data;      /* ends with a NUL */
  size_t size;     /* characters, without the NUL */
  size_t capacity; /* bytes that fit, including the NUL; 0: the text is borrowed and only read */
} rosidl_runtime_c__String;

ROSIDL_RUNTIME_C__PRIMITIVE_SEQUENCE(String, rosidl_runtime_c__String)

#endif
