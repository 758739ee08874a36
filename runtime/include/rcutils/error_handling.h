/* SPDX-License-Identifier: Apache-2.0 */
/* The last error. rcl, rmw and rcutils share one record of the last error. */
#ifndef RCUTILS__ERROR_HANDLING_H_
#define RCUTILS__ERROR_HANDLING_H_

/* Headers that the stock header includes, and on which programs rely. */
#include <assert.h>
#include <stdbool.h>

#include "rcutils/allocator.h"
#include "rcutils/snprintf.h"

TIDE_EXTERN_C_BEGIN

typedef struct rcutils_error_string_s {
  char str[128];
} rcutils_error_string_t;

/* The last error of any thread, in one line (see tide_rclc_last_status). */
rcutils_error_string_t rcl_get_error_string(void);
void rcl_reset_error(void);
bool rcl_error_is_set(void);
#define rcutils_get_error_string rcl_get_error_string
#define rcutils_reset_error rcl_reset_error
#define rcutils_error_is_set rcl_error_is_set

TIDE_EXTERN_C_END
#endif
