/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of rcl_interfaces used by the parameter interface. A program that generated rcl_interfaces (`tide
 * generate`) uses the generated messages; other programs use these structures, which have the same members. The runtime
 * needs neither of them. */
#ifndef RCLC_PARAMETER__TYPES_H_
#define RCLC_PARAMETER__TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include(<rcl_interfaces/msg/parameter.h>)
#define TIDE_HAS_PARAMETER_MESSAGES 1
#include <rcl_interfaces/msg/parameter.h>
#endif
#if __has_include(<rcl_interfaces/msg/parameter_event.h>)
#include <rcl_interfaces/msg/parameter_event.h>
#endif
#endif

#ifndef TIDE_HAS_PARAMETER_MESSAGES
#include "rosidl_runtime_c/primitives_sequence.h"
#include "rosidl_runtime_c/string.h"

typedef struct rcl_interfaces__msg__ParameterValue {
  uint8_t type;
  bool bool_value;
  int64_t integer_value;
  double double_value;
  rosidl_runtime_c__String string_value;
  rosidl_runtime_c__octet__Sequence byte_array_value;
  rosidl_runtime_c__boolean__Sequence bool_array_value;
  rosidl_runtime_c__int64__Sequence integer_array_value;
  rosidl_runtime_c__double__Sequence double_array_value;
  rosidl_runtime_c__String__Sequence string_array_value;
} rcl_interfaces__msg__ParameterValue;

typedef struct rcl_interfaces__msg__Parameter {
  rosidl_runtime_c__String name;
  rcl_interfaces__msg__ParameterValue value;
} rcl_interfaces__msg__Parameter;

#endif

typedef rcl_interfaces__msg__Parameter Parameter;
typedef rcl_interfaces__msg__ParameterValue ParameterValue;

#endif
