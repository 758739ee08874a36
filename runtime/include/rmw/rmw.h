/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW__RMW_H_
#define RMW__RMW_H_

#include "rmw/init_options.h"
#include "rosidl_runtime_c/service_type_support_struct.h"

#endif
