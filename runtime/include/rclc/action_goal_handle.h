/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__ACTION_GOAL_HANDLE_H_
#define RCLC__ACTION_GOAL_HANDLE_H_

#include <stdbool.h>

#include "rcl_action/rcl_action.h"

struct rclc_action_server_s;
struct rclc_action_client_s;

/* A goal, at a server or at a client. The handle is in the runtime's memory. It is valid from the goal's callback, or
 * from rclc_action_send_goal_request, until the goal's result was sent (server) or taken (client). Programs may read
 * the handle from any thread. */
typedef struct rclc_action_goal_handle_t {
  union {
    struct rclc_action_server_s *action_server;
    struct rclc_action_client_s *action_client;
  };
  rcl_action_goal_state_t status;
  bool goal_accepted;
  bool goal_cancelled; /* the cancellation was accepted: by the program (server), by the server (client) */
  unique_identifier_msgs__msg__UUID goal_id;
  void *ros_goal_request; /* PACKAGE__action__NAME_SendGoal_Request */
} rclc_action_goal_handle_t;

#endif
