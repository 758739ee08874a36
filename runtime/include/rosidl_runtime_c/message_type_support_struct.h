/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROSIDL_RUNTIME_C__MESSAGE_TYPE_SUPPORT_STRUCT_H_
#define ROSIDL_RUNTIME_C__MESSAGE_TYPE_SUPPORT_STRUCT_H_

#include "rosidl_runtime_c/string.h"
#include "rosidl_runtime_c/visibility_control.h"
#include "rosidl_typesupport_interface/macros.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef struct rosidl_message_type_support_t rosidl_message_type_support_t;

typedef const rosidl_message_type_support_t *(*rosidl_message_typesupport_handle_function)(
    const rosidl_message_type_support_t *, const char *);

struct rosidl_message_type_support_t {
  const char *typesupport_identifier; /* TIDE_TYPESUPPORT_IDENTIFIER */
  const void *data;                   /* const tide_message_type_t * (tide/message.h) */
  rosidl_message_typesupport_handle_function func;
};

/* Identifier of every type support that `tide generate` makes. */
#define TIDE_TYPESUPPORT_IDENTIFIER "tide_typesupport"

/* The handle itself if it has this identifier, else null. */
const rosidl_message_type_support_t *get_message_typesupport_handle(const rosidl_message_type_support_t *handle,
                                                                    const char *identifier);
const rosidl_message_type_support_t *get_message_typesupport_handle_function(
    const rosidl_message_type_support_t *handle, const char *identifier);

/* ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32): const rosidl_message_type_support_t *, constant, never null. */
#define ROSIDL_GET_MSG_TYPE_SUPPORT(package, kind, name) \
  ROSIDL_TYPESUPPORT_INTERFACE__MESSAGE_SYMBOL_NAME(rosidl_typesupport_c, package, kind, name)()

TIDE_EXTERN_C_END
#endif
