/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL_ACTION__TYPES_H_
#define RCL_ACTION__TYPES_H_

#include <stdint.h>

#include "rcl/types.h"

/* The generated message UUID if the program has one, else a structure of the same layout. */
#if defined(__has_include)
#if __has_include("unique_identifier_msgs/msg/uuid.h")
#include "unique_identifier_msgs/msg/uuid.h"
#define TIDE_HAS_UUID_MESSAGE
#endif
#endif

#ifndef TIDE_HAS_UUID_MESSAGE
typedef struct unique_identifier_msgs__msg__UUID {
  uint8_t uuid[16];
} unique_identifier_msgs__msg__UUID;
#endif

#define RCL_RET_ACTION_NAME_INVALID 2000
#define RCL_RET_ACTION_GOAL_ACCEPTED 2100
#define RCL_RET_ACTION_GOAL_REJECTED 2101
#define RCL_RET_ACTION_CLIENT_INVALID 2102
#define RCL_RET_ACTION_CLIENT_TAKE_FAILED 2103
#define RCL_RET_ACTION_SERVER_INVALID 2200
#define RCL_RET_ACTION_SERVER_TAKE_FAILED 2201
#define RCL_RET_ACTION_GOAL_HANDLE_INVALID 2300
#define RCL_RET_ACTION_GOAL_EVENT_INVALID 2301

/* Numbered as in action_msgs/msg/GoalStatus. */
typedef int8_t rcl_action_goal_state_t;
#define GOAL_STATE_UNKNOWN 0
#define GOAL_STATE_ACCEPTED 1
#define GOAL_STATE_EXECUTING 2
#define GOAL_STATE_CANCELING 3
#define GOAL_STATE_SUCCEEDED 4
#define GOAL_STATE_CANCELED 5
#define GOAL_STATE_ABORTED 6
#define GOAL_STATE_NUM_STATES 7

/* Numbered as in action_msgs/srv/CancelGoal. */
typedef int8_t rcl_action_cancel_state_t;
#define CANCEL_STATE_OK 0
#define CANCEL_STATE_REJECTED 1
#define CANCEL_STATE_UNKNOWN_GOAL 2
#define CANCEL_STATE_TERMINATED 3

#endif
