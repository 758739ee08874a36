/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__ERROR_HANDLING_H_
#define RCL__ERROR_HANDLING_H_

#include "rcl/types.h"
#include "rcutils/snprintf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rcutils_error_string_s {
  char str[128];
} rcl_error_string_t;

/* What went wrong last, in one line, on any thread (see tide_rclc_last_status). */
rcl_error_string_t rcl_get_error_string(void);
void rcl_reset_error(void);
bool rcl_error_is_set(void);

#ifdef __cplusplus
}
#endif
#endif
