/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up calls are made from one thread. rclc_action_publish_feedback and rclc_action_send_result may be called from
 * any thread at any time, for different goals also at the same time. tide's additions are in tide/rclc_action.h. */
#ifndef RCLC__ACTION_SERVER_H_
#define RCLC__ACTION_SERVER_H_

#include "rclc/action_goal_handle.h"
#include "rclc/types.h"
#include "rosidl_runtime_c/action_type_support_struct.h"

TIDE_EXTERN_C_BEGIN

/* Returned by rclc_action_send_result: no client has requested the result yet, and there is no memory to keep the
 * result. */
#define RCLC_RET_ACTION_WAIT_RESULT_REQUEST 2104

/* Returns RCL_RET_ACTION_GOAL_ACCEPTED to accept the goal; any other value refuses it. */
typedef rcl_ret_t (*rclc_action_server_handle_goal_callback_t)(rclc_action_goal_handle_t *goal_handle, void *context);
/* Returns true to accept the cancellation. The program then has to end the goal by rclc_action_send_result with
 * GOAL_STATE_CANCELED. */
typedef bool (*rclc_action_server_handle_cancel_callback_t)(rclc_action_goal_handle_t *goal_handle, void *context);

struct tide_action;

typedef struct rclc_action_server_s {
  struct tide_action *impl;
} rclc_action_server_t;

/* Takes one of the TIDE_ACTION_SERVERS entries (tide/pools.h), which consists of three services and two topics below
 * `action_name`. */
rcl_ret_t rclc_action_server_init_default(rclc_action_server_t *action_server, rcl_node_t *node,
                                          rclc_support_t *support, const rosidl_action_type_support_t *type_support,
                                          const char *action_name);
rcl_ret_t rclc_action_server_fini(rclc_action_server_t *action_server, rcl_node_t *node);

/* ros_feedback: PACKAGE__action__NAME_FeedbackMessage, whose goal_id this call fills in. Feedback is sent like a
 * message of any publisher. RCL_RET_INVALID_ARGUMENT: the goal has ended. */
rcl_ret_t rclc_action_publish_feedback(rclc_action_goal_handle_t *goal_handle, void *ros_feedback);
/* Ends the goal. ros_response: PACKAGE__action__NAME_GetResult_Response. This call fills in the status, and serialises
 * the response before it returns. RCL_RET_OK: the result was sent, or is kept for later requests.
 * RCLC_RET_ACTION_WAIT_RESULT_REQUEST, or RCL_RET_ERROR with the cause TIDE_ERROR_FULL: try again later. With the cause
 * TIDE_ERROR_TOO_LARGE no node can hold the result, or a member exceeds its bound: the goal has ended as aborted, and
 * clients get an empty result. The handle is released on the next run of the executor. */
rcl_ret_t rclc_action_send_result(rclc_action_goal_handle_t *goal_handle, rcl_action_goal_state_t status,
                                  void *ros_response);

TIDE_EXTERN_C_END
#endif
