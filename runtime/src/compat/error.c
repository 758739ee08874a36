/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the runtime's statuses into rcl codes, stores the last status, and calls the program's function for
 * errors. */
#if TIDE_DESKTOP
#include <stdio.h>
#endif
#include <string.h>

#include "internal.h"
#include "rcl/error_handling.h"
#include "rmw_microros/error_handling.h"

static int last_status; /* atomic, because any thread publishes */

static void (*on_error)(int status, rcl_ret_t result); /* calls the program's error callback; null in programs that set
                                                          none, which do not link the code */

static rcl_ret_t result_of(int status) {
  switch (status) {
    case TIDE_ERROR_ARGUMENT: return RCL_RET_INVALID_ARGUMENT;
    case TIDE_ERROR_TIMEOUT: return RCL_RET_TIMEOUT;
    case TIDE_ERROR_UNSUPPORTED: return RCL_RET_UNSUPPORTED;
    case TIDE_ERROR_EXISTS: return RCL_RET_ALREADY_INIT;
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
    case TIDE_ERROR_CAPACITY_PARAMETERS: return RCL_RET_BAD_ALLOC;
    case TIDE_ERROR_CAPACITY_NAMES:
    case TIDE_ERROR_NAME: return RCL_RET_TOPIC_NAME_INVALID;
    default: return RCL_RET_ERROR;
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

void tide_compat_unread(int status, uint32_t *count, const char *topic, const rclc_executor_handle_t *handle) {
  const uint32_t before = __atomic_fetch_add(count, 1u, __ATOMIC_RELAXED);
  const bool lacks_memory = status == TIDE_ERROR_CAPACITY_MESSAGE;
  const bool is_own = lacks_memory || status == TIDE_ERROR_TOO_LARGE;
  for (size_t i = 0; is_own && handle != NULL && i < tide_pools.executor_count; i++) {
    tide_executor_handle_t *executor = &tide_pools.executors[i];
    const rclc_executor_handle_t *first = tide_pools.handles + executor->first;
    if (executor->support != NULL && handle >= first && handle < first + executor->count)
      __atomic_store_n(&executor->unread, true, __ATOMIC_RELAXED);
  }
#if TIDE_DESKTOP
  if (before == 0u) {
    fprintf(stderr, "tide: a message of '%s' was dropped: %s%s\n", topic + 2, tide_status_text(status),
            lacks_memory ? "; give its texts and sequences memory (micro_ros_utilities_create_message_memory)" : "");
  }
#else
  (void)before, (void)topic;
#endif
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

/* ---- the program's function ---- */

static rmw_uros_error_handling handler;

static rmw_uros_error_entity_type_t entity_of(int status) {
  switch (status) {
    case TIDE_ERROR_CAPACITY_NODES: return RMW_UROS_ERROR_ON_NODE;
    case TIDE_ERROR_CAPACITY_PUBLISHERS: return RMW_UROS_ERROR_ON_PUBLISHER;
    case TIDE_ERROR_CAPACITY_SUBSCRIPTIONS: return RMW_UROS_ERROR_ON_SUBSCRIPTION;
    case TIDE_ERROR_CAPACITY_SERVICES: return RMW_UROS_ERROR_ON_SERVICE;
    case TIDE_ERROR_CAPACITY_CLIENTS: return RMW_UROS_ERROR_ON_CLIENT;
    case TIDE_ERROR_CAPACITY_GUARD_CONDITIONS: return RMW_UROS_ERROR_ON_GUARD_CONDITION;
    case TIDE_ERROR_NAME:
    case TIDE_ERROR_CAPACITY_NAMES: return RMW_UROS_ERROR_ON_TOPIC;
    default: return RMW_UROS_ERROR_ON_UNKNOWN;
  }
}

static bool is_pool(int status, rcl_ret_t result) {
  return result == RCL_RET_BAD_ALLOC || status == TIDE_ERROR_FULL || status == TIDE_ERROR_CAPACITY_SERVICES ||
         status == TIDE_ERROR_CAPACITY_CLIENTS;
}

static rmw_uros_error_source_t source_of(int status, rcl_ret_t result) {
  if (status == TIDE_ERROR_REFUSED) return RMW_UROS_ERROR_ENTITY_CREATION;
  if (status == TIDE_ERROR_UNSUPPORTED) return RMW_UROS_ERROR_NOT_IMPLEMENTED;
  return is_pool(status, result) ? RMW_UROS_ERROR_MIDDLEWARE_ALLOCATION : RMW_UROS_ERROR_CHECK;
}

static void tell(int status, rcl_ret_t result) {
  const rmw_uros_error_handling to = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
  const rmw_uros_error_context_t context = {NULL, NULL, NULL, tide_status_text(status)};
  if (to != NULL) to(entity_of(status), source_of(status, result), context, "", 0);
}

void rmw_uros_set_error_handling_callback(rmw_uros_error_handling error_cb) {
  __atomic_store_n(&handler, error_cb, __ATOMIC_RELEASE);
  __atomic_store_n(&on_error, error_cb == NULL ? NULL : tell, __ATOMIC_RELEASE);
}

/* ---- types that only one side of the wire needs ---- */

void tide_compat_encode_nothing(tide_cdr_t *cdr, const void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

void tide_compat_decode_nothing(tide_cdr_t *cdr, void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}
