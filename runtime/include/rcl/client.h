/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__CLIENT_H_
#define RCL__CLIENT_H_

#include "rcl/node.h"
#include "rosidl_runtime_c/service_type_support_struct.h"

TIDE_EXTERN_C_BEGIN

struct tide_client_handle;

typedef struct rcl_client_s {
  struct tide_client_handle *impl;
} rcl_client_t;

/* Like rcl_service_options_t. */
typedef struct rcl_client_options_s {
  rmw_qos_profile_t qos;
  rcl_allocator_t allocator;
} rcl_client_options_t;

rcl_client_t rcl_get_zero_initialized_client(void);
rcl_client_options_t rcl_client_get_default_options(void);
/* Takes one of the TIDE_CLIENTS entries (tide/pools.h) and one object on the agent. Causes of an error
 * (tide_rclc_last_status): TIDE_ERROR_CAPACITY_CLIENTS, _NAMES, TIDE_ERROR_NAME, TIDE_ERROR_UNSUPPORTED (a runtime
 * without services). */
rcl_ret_t rcl_client_init(rcl_client_t *client, const rcl_node_t *node,
                          const rosidl_service_type_support_t *type_support, const char *service_name,
                          const rcl_client_options_t *options);
/* Like rcl_publisher_fini. Requests without an answer are forgotten. */
rcl_ret_t rcl_client_fini(rcl_client_t *client, rcl_node_t *node);
/* Serialises the request into the daemon's pool and returns at once. sequence_number is the number (1, 2, ...) that the
 * reply will carry. A program that stops waiting for the reply calls tide_rclc_client_forget. When TIDE_CLIENT_REQUESTS
 * are unanswered, a new request replaces the oldest. The agent keeps a request for some seconds until a server appears.
 * Any thread may call it. When the pool is full the call waits up to the time set by
 * rmw_uros_set_client_session_timeout, by default not at all. RCL_RET_ERROR with tide_rclc_last_status: TIDE_ERROR_FULL
 * (no free buffer in the pool), _TOO_LARGE, _DISCONNECTED (best effort). */
rcl_ret_t rcl_send_request(const rcl_client_t *client, const void *ros_request, int64_t *sequence_number);
/* Take the oldest reply. RCL_RET_CLIENT_TAKE_FAILED: there is no reply. RCL_RET_ERROR: the reply does not fit the
 * message; it is dropped and counted. Only sequence_number of the header is set. Call it only for a client that is not
 * in an executor. */
rcl_ret_t rcl_take_response(const rcl_client_t *client, rmw_request_id_t *request_header, void *ros_response);
rcl_ret_t rcl_take_response_with_info(const rcl_client_t *client, rmw_service_info_t *request_header,
                                      void *ros_response);
bool rcl_client_is_valid(const rcl_client_t *client);
rmw_client_t *rcl_client_get_rmw_handle(const rcl_client_t *client);

TIDE_EXTERN_C_END
#endif
