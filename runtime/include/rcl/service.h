/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__SERVICE_H_
#define RCL__SERVICE_H_

#include "rcl/node.h"
#include "rosidl_runtime_c/service_type_support_struct.h"

TIDE_EXTERN_C_BEGIN

struct tide_service_handle;

typedef struct rcl_service_s {
  struct tide_service_handle *impl;
} rcl_service_t;

/* Only the reliability of the profile matters, and only between client and agent: in DDS a service is always reliable
 * and volatile, as in ROS 2. */
typedef struct rcl_service_options_s {
  rmw_qos_profile_t qos;
  rcl_allocator_t allocator;
} rcl_service_options_t;

rcl_service_t rcl_get_zero_initialized_service(void);
rcl_service_options_t rcl_service_get_default_options(void);
/* Takes one of the TIDE_SERVICES entries (tide/pools.h) and one object on the agent. Causes of an error
 * (tide_rclc_last_status): TIDE_ERROR_CAPACITY_SERVICES, _NAMES, TIDE_ERROR_NAME, TIDE_ERROR_UNSUPPORTED (a runtime
 * without services). */
rcl_ret_t rcl_service_init(rcl_service_t *service, const rcl_node_t *node,
                           const rosidl_service_type_support_t *type_support, const char *service_name,
                           const rcl_service_options_t *options);
/* Like rcl_publisher_fini. */
rcl_ret_t rcl_service_fini(rcl_service_t *service, rcl_node_t *node);
/* Take the oldest request. RCL_RET_SERVICE_TAKE_FAILED: there is no request. RCL_RET_ERROR: the request does not fit
 * the message; it is dropped and counted, and its client gets no answer. Call it only for a service that is not in an
 * executor. */
rcl_ret_t rcl_take_request(const rcl_service_t *service, rmw_request_id_t *request_header, void *ros_request);
rcl_ret_t rcl_take_request_with_info(const rcl_service_t *service, rmw_service_info_t *request_header,
                                     void *ros_request);
/* Answers a request. Requests may be answered at any time and in any order; of a request only its header is needed.
 * When the pool is full the call waits up to the time set by rmw_uros_set_service_session_timeout, by default not at
 * all. Any thread may call it. RCL_RET_ERROR with tide_rclc_last_status: TIDE_ERROR_FULL (no free buffer in the pool:
 * try again), _TOO_LARGE, _DISCONNECTED (best effort). */
rcl_ret_t rcl_send_response(const rcl_service_t *service, rmw_request_id_t *response_header, void *ros_response);
bool rcl_service_is_valid(const rcl_service_t *service);
rmw_service_t *rcl_service_get_rmw_handle(const rcl_service_t *service);

TIDE_EXTERN_C_END
#endif
