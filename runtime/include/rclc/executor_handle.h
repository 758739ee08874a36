/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__EXECUTOR_HANDLE_H_
#define RCLC__EXECUTOR_HANDLE_H_

#include "rclc/action_client.h"
#include "rclc/action_server.h"
#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

typedef enum {
  RCLC_UNKNOWN_TYPE = 0,
  RCLC_SUBSCRIPTION,
  RCLC_SUBSCRIPTION_WITH_CONTEXT,
  RCLC_TIMER,
  RCLC_CLIENT,
  RCLC_CLIENT_WITH_REQUEST_ID,
  RCLC_SERVICE,
  RCLC_SERVICE_WITH_REQUEST_ID,
  RCLC_SERVICE_WITH_CONTEXT,
  RCLC_ACTION_CLIENT,
  RCLC_ACTION_SERVER,
  RCLC_GUARD_CONDITION
} rclc_executor_handle_type_t;

typedef enum { ON_NEW_DATA, ALWAYS } rclc_executor_handle_invocation_t;

typedef void (*rclc_subscription_callback_t)(const void *msg);
typedef void (*rclc_subscription_callback_with_context_t)(const void *msg, void *context);
typedef rclc_subscription_callback_t rclc_callback_t;
typedef void (*rclc_service_callback_t)(const void *request, void *response);
typedef void (*rclc_service_callback_with_request_id_t)(const void *request, rmw_request_id_t *request_id,
                                                        void *response);
typedef void (*rclc_service_callback_with_context_t)(const void *request, void *response, void *context);
typedef void (*rclc_client_callback_t)(const void *response);
typedef void (*rclc_client_callback_with_request_id_t)(const void *response, rmw_request_id_t *request_id);
typedef void (*rclc_gc_callback_t)(void);

/* One callback of an executor. The program's trigger functions read initialized and data_available, and identify
 * handles by rclc_executor_handle_get_ptr. */
typedef struct {
  rclc_executor_handle_type_t type;
  rclc_executor_handle_invocation_t invocation;
  union {
    rcl_timer_t *timer;
    rcl_subscription_t *subscription;
    rcl_service_t *service;
    rcl_client_t *client;
    rclc_action_client_t *action_client;
    rclc_action_server_t *action_server;
    rcl_guard_condition_t *gc;
  };
  void *data; /* message passed to the callback of a subscription, service (request) or client (response) */
  void *callback_context;
  union {
    rclc_subscription_callback_t subscription_callback;
    rclc_subscription_callback_with_context_t subscription_callback_with_context;
    rclc_service_callback_t service_callback;
    rclc_service_callback_with_request_id_t service_callback_with_request_id;
    rclc_service_callback_with_context_t service_callback_with_context;
    rclc_client_callback_t client_callback;
    rclc_client_callback_with_request_id_t client_callback_with_request_id;
    rclc_gc_callback_t gc_callback;
  };
  void *impl; /* the runtime's structure, which outlives the program's */
  size_t index;
  bool initialized;
  bool data_available;
} rclc_executor_handle_t;

/* The program's timer, subscription, service, client, action or guard condition of a handle. */
void *rclc_executor_handle_get_ptr(rclc_executor_handle_t *handle);

TIDE_EXTERN_C_END
#endif
