/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "rcl/error_handling.h"

static int last_status; /* atomic: any thread publishes */

static void (*on_error)(int status, rcl_ret_t result); /* null: nobody wants to know */

void tide_compat_on_error(void (*tell)(int status, rcl_ret_t result)) {
  __atomic_store_n(&on_error, tell, __ATOMIC_RELEASE);
}

static rcl_ret_t result_of(int status) {
  switch (status) {
    case TIDE_ERROR_ARGUMENT:
      return RCL_RET_INVALID_ARGUMENT;
    case TIDE_ERROR_TIMEOUT:
      return RCL_RET_TIMEOUT;
    case TIDE_ERROR_UNSUPPORTED:
      return RCL_RET_UNSUPPORTED;
    case TIDE_ERROR_EXISTS:
      return RCL_RET_ALREADY_INIT;
    case TIDE_ERROR_CAPACITY_NODES:
    case TIDE_ERROR_CAPACITY_PUBLISHERS:
    case TIDE_ERROR_CAPACITY_SUBSCRIPTIONS:
    case TIDE_ERROR_CAPACITY_HANDLES:
    case TIDE_ERROR_CAPACITY_STREAMS:
    case TIDE_ERROR_CAPACITY_OBJECTS:
    case TIDE_ERROR_CAPACITY_TIMERS:
    case TIDE_ERROR_CAPACITY_GUARD_CONDITIONS:
    case TIDE_ERROR_CAPACITY_EXECUTORS:
    case TIDE_ERROR_CAPACITY_GROUPS:
    case TIDE_ERROR_CAPACITY_LOCAL_TOPICS:
    case TIDE_ERROR_CAPACITY_LOCAL_MESSAGES:
    case TIDE_ERROR_NO_HEAP:
    case TIDE_ERROR_CAPACITY_ACTIONS:
    case TIDE_ERROR_CAPACITY_PARAMETERS:
      return RCL_RET_BAD_ALLOC;
    case TIDE_ERROR_CAPACITY_NAMES:
    case TIDE_ERROR_NAME:
      return RCL_RET_TOPIC_NAME_INVALID;
    default:
      return RCL_RET_ERROR;
  }
}

rcl_ret_t tide_compat_result(int status) {
  return status >= 0 ? RCL_RET_OK : tide_compat_refusal(status, result_of(status));
}

rcl_ret_t tide_compat_refusal(int status, rcl_ret_t result) {
  __atomic_store_n(&last_status, status, __ATOMIC_RELAXED);
  void (*const tell)(int, rcl_ret_t) = __atomic_load_n(&on_error, __ATOMIC_ACQUIRE);
  if (tell != NULL) tell(status, result);
  return result;
}

int tide_rclc_last_status(void) { return __atomic_load_n(&last_status, __ATOMIC_RELAXED); }

bool rcl_error_is_set(void) { return tide_rclc_last_status() != TIDE_OK; }

void rcl_reset_error(void) { __atomic_store_n(&last_status, TIDE_OK, __ATOMIC_RELAXED); }

rcl_error_string_t rcl_get_error_string(void) {
  rcl_error_string_t text = {{0}};
  const int status = tide_rclc_last_status();
  const char *line = status == TIDE_OK ? "no error" : tide_status_text(status);
  strncpy(text.str, line, sizeof text.str - 1);
  return text;
}
