/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of the pools of actions. */
#ifndef TIDE_POOL_ACTIONS_H
#define TIDE_POOL_ACTIONS_H

#include "rclc/action_client.h"
#include "rclc/action_server.h"
#include "tide/pool_handles.h"
#include "tide/rclc_action.h"

TIDE_EXTERN_C_BEGIN

#define TIDE_ACTION_ASKERS 2u
#define TIDE_ACTION_REFUSED 4u /* refused goals that a server remembers */
#define TIDE_ACTION_PARTS 3u   /* services: goal, result, cancel */

typedef struct tide_goal {
  rclc_action_goal_handle_t handle; /* first member: the program's handle */
  struct tide_action *action;       /* null: free */
  union {
    struct {
      int64_t accepted_ns;         /* time since the epoch */
      rmw_request_id_t request_id; /* id of the goal request */
      rmw_request_id_t askers[TIDE_ACTION_ASKERS];
      uint8_t asker_count;
      bool response_due; /* a response to the goal request must be sent */
      bool canceling;    /* the response to a cancel request must name this goal */
      bool ending;       /* a thread is sending the goal's result */
    } server;
    struct {
      int64_t goal_number, result_number, cancel_number; /* numbers of unanswered requests; 0: none */
      bool heard;                                        /* feedback has been received */
      bool ask_due;                                      /* a result request is due */
      bool send_due;                                     /* the goal request must be sent again: the server does not
                                                            know the goal */
      bool refused;          /* refused, but possibly running: the result was requested to find out */
      bool unknown;          /* the server does not know the goal; one more request is due */
      bool repeated;         /* the goal request was sent again */
      uint8_t session;       /* id of the session in which the goal was sent first */
      uint32_t request_hash; /* hash of the goal request as sent */
      int64_t sent_ns;       /* time at which the goal request was first sent */
      int64_t ask_at_ns;     /* earliest time of the next request; 0: at once */
    } client;
  };
} tide_goal_t;

typedef struct tide_action_result {
  struct tide_action *action; /* null: free */
  tide_goal_t *goal;          /* goal whose handle is not released yet, or null */
  bool ready;                 /* the entry is filled in */
  bool sending, delivered;
  int8_t status;
  uint8_t goal_id[16];
  int64_t accepted_ns, expires_ns;
  uint32_t bytes;
} tide_action_result_t;

typedef struct tide_action {
  struct tide_support *support; /* null: free */
  bool is_server;
  bool attention;  /* a message could not be sent; the link's context tries again */
  uint8_t session; /* id of the latest session in which the action was used */
  tide_callback_t callback;
  rclc_executor_handle_t *handle; /* null: in no executor */
  void *program;                  /* rclc_action_server_t or rclc_action_client_t */
  union {
    rcl_service_t services[TIDE_ACTION_PARTS];
    rcl_client_t clients[TIDE_ACTION_PARTS];
  };
  tide_goal_t *goals;
  size_t goal_count;
  tide_action_counters_t counters;
  union {
    struct {
      rcl_publisher_t feedback, status;
      rclc_action_server_handle_goal_callback_t on_goal;
      rclc_action_server_handle_cancel_callback_t on_cancel;
      int64_t result_timeout_ns;
      rmw_request_id_t cancel_id;
      int8_t cancel_code;
      bool cancel_due, late_due, status_due;
      uint8_t *requests; /* the program's array of goal requests, one for each goal */
      size_t request_bytes;
      rmw_request_id_t late_id; /* client that requested the result of an ended goal */
      uint8_t late_goal_id[16];
      uint8_t refused_ids[TIDE_ACTION_REFUSED][16]; /* the latest refused goals */
      uint8_t refused_count, refused_next;
    } server;
    struct {
      rcl_subscription_t feedback;
      void *feedback_message, *result_message;
      rclc_action_client_goal_callback_t on_goal;
      rclc_action_client_feedback_callback_t on_feedback;
      rclc_action_client_result_callback_t on_result;
      rclc_action_client_cancel_callback_t on_cancel;
    } client;
  };
} tide_action_t;

typedef struct tide_action_pools {
  tide_action_t *actions;
  tide_goal_t *goals;
  tide_action_result_t *results;
  uint8_t *result_bytes; /* result_capacity octets for each element of results */
  uint32_t result_capacity;
  uint16_t action_count, goal_count, result_count;
  void (*release)(void);
  int (*remove)(tide_executor_handle_t *executor, tide_action_t *action);
} tide_action_pools_t;

void tide_compat_release_actions(void);
int tide_compat_remove_action(tide_executor_handle_t *executor, tide_action_t *action);

TIDE_EXTERN_C_END
#endif
