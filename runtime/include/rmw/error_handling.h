/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW__ERROR_HANDLING_H_
#define RMW__ERROR_HANDLING_H_

#include "rcutils/error_handling.h"

typedef rcutils_error_string_t rmw_error_string_t;
#define rmw_get_error_string rcl_get_error_string
#define rmw_reset_error rcl_reset_error
#define rmw_error_is_set rcl_error_is_set

#endif
