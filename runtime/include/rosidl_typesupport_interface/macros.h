/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the functions that return the type support of an interface. */
#ifndef ROSIDL_TYPESUPPORT_INTERFACE__MACROS_H_
#define ROSIDL_TYPESUPPORT_INTERFACE__MACROS_H_

#define ROSIDL_TYPESUPPORT_INTERFACE__LIBRARY_NAME(typesupport, package) package##__##typesupport

#define ROSIDL_TYPESUPPORT_INTERFACE__SYMBOL_NAME(typesupport, function, package, kind, name) \
  typesupport##__##function##__##package##__##kind##__##name

#define ROSIDL_TYPESUPPORT_INTERFACE__MESSAGE_SYMBOL_NAME(typesupport, package, kind, name) \
  ROSIDL_TYPESUPPORT_INTERFACE__SYMBOL_NAME(typesupport, get_message_type_support_handle, package, kind, name)

#define ROSIDL_TYPESUPPORT_INTERFACE__SERVICE_SYMBOL_NAME(typesupport, package, kind, name) \
  ROSIDL_TYPESUPPORT_INTERFACE__SYMBOL_NAME(typesupport, get_service_type_support_handle, package, kind, name)

#define ROSIDL_TYPESUPPORT_INTERFACE__ACTION_SYMBOL_NAME(typesupport, package, kind, name) \
  ROSIDL_TYPESUPPORT_INTERFACE__SYMBOL_NAME(typesupport, get_action_type_support_handle, package, kind, name)

#endif
