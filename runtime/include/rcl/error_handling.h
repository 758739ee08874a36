/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__ERROR_HANDLING_H_
#define RCL__ERROR_HANDLING_H_

#include "rcl/types.h"
#include "rcutils/error_handling.h"
#include "rcutils/snprintf.h"

typedef rcutils_error_string_t rcl_error_string_t;

#endif
