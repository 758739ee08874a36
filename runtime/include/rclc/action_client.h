/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up calls are made from one thread. Goals and cancellations may be sent from any thread at any time. tide's
 * additions are in tide/rclc_action.h. */
#ifndef RCLC__ACTION_CLIENT_H_
#define RCLC__ACTION_CLIENT_H_

#include "rclc/action_goal_handle.h"
#include "rclc/types.h"
#include "rosidl_runtime_c/action_type_support_struct.h"

TIDE_EXTERN_C_BEGIN

typedef void (*rclc_action_client_goal_callback_t)(rclc_action_goal_handle_t *goal_handle, bool accepted,
                                                   void *context);
typedef void (*rclc_action_client_feedback_callback_t)(rclc_action_goal_handle_t *goal_handle, void *ros_feedback,
                                                       void *context);
typedef void (*rclc_action_client_result_callback_t)(rclc_action_goal_handle_t *goal_handle, void *ros_result_response,
                                                     void *context);
typedef void (*rclc_action_client_cancel_callback_t)(rclc_action_goal_handle_t *goal_handle, bool cancelled,
                                                     void *context);

struct tide_action;

typedef struct rclc_action_client_s {
  struct tide_action *impl;
} rclc_action_client_t;

/* Takes one of the TIDE_ACTION_CLIENTS entries (tide/pools.h), which consists of three service clients and a
 * subscription. */
rcl_ret_t rclc_action_client_init_default(rclc_action_client_t *action_client, rcl_node_t *node,
                                          const rosidl_action_type_support_t *type_support, const char *action_name);
rcl_ret_t rclc_action_client_fini(rclc_action_client_t *action_client, rcl_node_t *node);

/* Call it after the client was added to an executor. ros_request: PACKAGE__action__NAME_SendGoal_Request in memory of
 * the program. This call fills in the goal_id, and callbacks find the request in the handle. *goal_handle may be null.
 * RCL_RET_ERROR: all goals of the client are in use, or the request could not be sent. */
rcl_ret_t rclc_action_send_goal_request(rclc_action_client_t *action_client, void *ros_request,
                                        rclc_action_goal_handle_t **goal_handle);
rcl_ret_t rclc_action_send_cancel_request(rclc_action_goal_handle_t *goal_handle);

TIDE_EXTERN_C_END
#endif
