/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/service_type_support_struct.h"

const rosidl_message_type_support_t *get_message_typesupport_handle_function(
    const rosidl_message_type_support_t *handle, const char *identifier) {
  if (handle == NULL || identifier == NULL) return NULL;
  return strcmp(handle->typesupport_identifier, identifier) == 0 ? handle : NULL;
}

const rosidl_message_type_support_t *get_message_typesupport_handle(const rosidl_message_type_support_t *handle,
                                                                    const char *identifier) {
  return handle == NULL ? NULL : handle->func(handle, identifier);
}

const rosidl_service_type_support_t *get_service_typesupport_handle_function(
    const rosidl_service_type_support_t *handle, const char *identifier) {
  if (handle == NULL || identifier == NULL) return NULL;
  return strcmp(handle->typesupport_identifier, identifier) == 0 ? handle : NULL;
}

const rosidl_service_type_support_t *get_service_typesupport_handle(const rosidl_service_type_support_t *handle,
                                                                    const char *identifier) {
  return handle == NULL ? NULL : handle->func(handle, identifier);
}
