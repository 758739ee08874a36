/* SPDX-License-Identifier: Apache-2.0 */
/* The program's function for errors. Only programs that set one have this file. */
#include "internal.h"
#include "rmw_microros/error_handling.h"

static rmw_uros_error_handling handler;

static rmw_uros_error_entity_type_t entity_of(int status) {
  switch (status) {
    case TIDE_ERROR_CAPACITY_NODES:
      return RMW_UROS_ERROR_ON_NODE;
    case TIDE_ERROR_CAPACITY_PUBLISHERS:
      return RMW_UROS_ERROR_ON_PUBLISHER;
    case TIDE_ERROR_CAPACITY_SUBSCRIPTIONS:
      return RMW_UROS_ERROR_ON_SUBSCRIPTION;
    case TIDE_ERROR_CAPACITY_SERVICES:
      return RMW_UROS_ERROR_ON_SERVICE;
    case TIDE_ERROR_CAPACITY_CLIENTS:
      return RMW_UROS_ERROR_ON_CLIENT;
    case TIDE_ERROR_CAPACITY_GUARD_CONDITIONS:
      return RMW_UROS_ERROR_ON_GUARD_CONDITION;
    case TIDE_ERROR_NAME:
    case TIDE_ERROR_CAPACITY_NAMES:
      return RMW_UROS_ERROR_ON_TOPIC;
    default:
      return RMW_UROS_ERROR_ON_UNKNOWN;
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
  tide_compat_on_error(error_cb == NULL ? NULL : tell);
}
