/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROSIDL_RUNTIME_C__VISIBILITY_CONTROL_H_
#define ROSIDL_RUNTIME_C__VISIBILITY_CONTROL_H_

/* Everything is linked statically; the names exist for programs that mention them. */
#define ROSIDL_GENERATOR_C_EXPORT
#define ROSIDL_GENERATOR_C_IMPORT
#define ROSIDL_GENERATOR_C_PUBLIC
#define ROSIDL_GENERATOR_C_LOCAL

#endif
