/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROSIDL_RUNTIME_C__SERVICE_TYPE_SUPPORT_STRUCT_H_
#define ROSIDL_RUNTIME_C__SERVICE_TYPE_SUPPORT_STRUCT_H_

#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/visibility_control.h"
#include "rosidl_typesupport_interface/macros.h"

TIDE_EXTERN_C_BEGIN

typedef struct rosidl_service_type_support_t rosidl_service_type_support_t;

typedef const rosidl_service_type_support_t *(*rosidl_service_typesupport_handle_function)(
    const rosidl_service_type_support_t *, const char *);

struct rosidl_service_type_support_t {
  const char *typesupport_identifier; /* TIDE_TYPESUPPORT_IDENTIFIER */
  const void *data;                   /* const tide_service_type_t * (tide/message_memory.h) */
  rosidl_service_typesupport_handle_function func;
};

const rosidl_service_type_support_t *get_service_typesupport_handle(const rosidl_service_type_support_t *handle,
                                                                    const char *identifier);
const rosidl_service_type_support_t *get_service_typesupport_handle_function(
    const rosidl_service_type_support_t *handle, const char *identifier);

/* ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, SetBool): const rosidl_service_type_support_t *, constant, never null. */
#define ROSIDL_GET_SRV_TYPE_SUPPORT(package, kind, name) \
  ROSIDL_TYPESUPPORT_INTERFACE__SERVICE_SYMBOL_NAME(rosidl_typesupport_c, package, kind, name)()

TIDE_EXTERN_C_END
#endif
