/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROSIDL_RUNTIME_C__ACTION_TYPE_SUPPORT_STRUCT_H_
#define ROSIDL_RUNTIME_C__ACTION_TYPE_SUPPORT_STRUCT_H_

#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/service_type_support_struct.h"

/* Types of an action's three services and two topics. */
typedef struct rosidl_action_type_support_t {
  const rosidl_service_type_support_t *goal_service_type_support;
  const rosidl_service_type_support_t *result_service_type_support;
  const rosidl_service_type_support_t *cancel_service_type_support;
  const rosidl_message_type_support_t *feedback_message_type_support;
  const rosidl_message_type_support_t *status_message_type_support;
} rosidl_action_type_support_t;

/* ROSIDL_GET_ACTION_TYPE_SUPPORT(example_interfaces, Fibonacci): const rosidl_action_type_support_t *, constant, never
 * null. */
#define ROSIDL_GET_ACTION_TYPE_SUPPORT(package, name) \
  ROSIDL_TYPESUPPORT_INTERFACE__ACTION_SYMBOL_NAME(rosidl_typesupport_c, package, action, name)()

#endif
