/* SPDX-License-Identifier: Apache-2.0 */
/* What servers and clients of actions share; implemented in action.c. */
#pragma once

#include <string.h>

#include "internal.h"
#include "tide/pool_actions.h"

enum { PART_GOAL, PART_RESULT, PART_CANCEL, PART_FEEDBACK, PART_STATUS, PART_NONE };

/* Layouts common to every action of rosidl; the members after them differ between actions. */
typedef struct tide_action_time {
  int32_t sec;
  uint32_t nanosec;
} tide_action_time_t;
typedef struct tide_action_goal_info {
  uint8_t goal_id[16];
  tide_action_time_t stamp;
} tide_action_goal_info_t;
typedef struct tide_action_goal_response {
  bool accepted;
  tide_action_time_t stamp;
} tide_action_goal_response_t;

/* Atomic, because any thread sends or ends goals while the callback reads all of them. */
static inline tide_action_t *tide_action_owner(const tide_goal_t *goal) {
  return __atomic_load_n(&goal->action, __ATOMIC_ACQUIRE);
}
static inline bool tide_action_is_used(const tide_goal_t *goal) { return tide_action_owner(goal) != NULL; }
static inline rcl_action_goal_state_t tide_action_state(const tide_goal_t *goal) {
  return __atomic_load_n(&goal->handle.status, __ATOMIC_ACQUIRE);
}
static inline void tide_action_set_state(tide_goal_t *goal, rcl_action_goal_state_t state) {
  __atomic_store_n(&goal->handle.status, state, __ATOMIC_RELEASE);
}

/* Requests the publication of the states of a server's goals. Any thread may call it. */
static inline void tide_action_note_change(tide_action_t *action) {
  __atomic_store_n(&action->server.status_due, true, __ATOMIC_RELEASE);
}

static inline bool tide_action_is_open(const tide_action_t *action, bool is_server) {
  return action != NULL && action->support != NULL && action->is_server == is_server;
}

/* Returns a free entry of the pool, zeroed, or null if there is none. */
tide_action_t *tide_action_take_place(tide_support_t *support, bool is_server);
/* Longest name of an action's service or topic; a longer one is refused. */
#define TIDE_ACTION_NAME_BYTES 160
rcl_ret_t tide_action_part_name(char *destination, const char *action_name, size_t part);
/* Translates the result of an init call: rcl has a separate code for an invalid action name. */
rcl_ret_t tide_action_result_of_init(rcl_ret_t result);
/* Closes the services or clients of all parts, then the topic. Returns the first error; after an error it may be called
 * again. */
rcl_ret_t tide_action_close(tide_action_t *action, rcl_ret_t (*close_parts)(tide_action_t *action));

/* Adds the action to the executor with `goal_count` goals; the action's other members are already set. */
rcl_ret_t tide_action_add(rclc_executor_t *executor, tide_action_t *action, rclc_executor_handle_type_t type,
                          size_t goal_count, void *context, void (*execute)(tide_callback_t *callback, void *context));
/* Makes the action's callback run once more. Any context may call it. */
void tide_action_wake(tide_action_t *action);
/* Marks the action, so that the link's context retries its messages. Set the mark before sending, and clear it when
 * everything was sent. */
void tide_action_set_attention(tide_action_t *action, bool attention);

/* True at the first call in each session, except in the first session. */
bool tide_action_meets_session(tide_action_t *action);
/* The id of the present session, or of the one being established. */
uint8_t tide_action_session(const tide_action_t *action);

/* Of the parts in this set, returns the one that holds the oldest message; PART_NONE if no part has one. */
int tide_action_oldest_part(tide_action_t *action, uint32_t parts);

/* Takes a free goal for the caller. Returns null if all goals are in use. */
tide_goal_t *tide_action_new_goal(tide_action_t *action);
bool tide_action_has_free_goal(const tide_action_t *action);
void tide_action_free_goal(tide_goal_t *goal);
/* Finds a goal that was accepted or awaits acceptance, by its id; null if there is none. */
tide_goal_t *tide_action_find_goal(tide_action_t *action, const uint8_t *goal_id);
/* True if a client's goal request may have reached ROS 2 more than once: either it was sent again, or a session has
 * ended since then and the stream has repeated unacknowledged messages. */
bool tide_action_is_in_doubt(const tide_action_t *action, const tide_goal_t *goal);
/* The goal of a program's handle, or null if the handle is invalid or released. */
tide_goal_t *tide_action_goal_of(const rclc_action_goal_handle_t *handle, bool is_server);

int tide_action_set_priority(tide_action_t *action, tide_priority_t priority);
rcl_ret_t tide_action_add_to_chain(tide_chain_t *chain, tide_action_t *action);
void tide_action_count(const tide_action_t *action, tide_action_counters_t *counters);

/* ---- results of a server ---- */

/* Reserves an entry with room for `bytes` for the goal; null if there is none. */
tide_action_result_t *tide_action_keep(tide_goal_t *goal, size_t bytes);
uint8_t *tide_action_result_bytes(const tide_action_result_t *result);
void tide_action_drop_result(tide_action_result_t *result);
/* The kept result of the goal with this id; null if there is none or it is outdated. */
tide_action_result_t *tide_action_find_result(const tide_action_t *action, const uint8_t *goal_id);
/* The kept result of a goal whose handle is still in use; null if there is none. */
tide_action_result_t *tide_action_result_of(const tide_goal_t *goal);
/* TIDE_ERROR_FULL means that nothing was sent. */
int tide_action_send_kept(tide_action_t *action, const rmw_request_id_t *asker, const uint8_t *goal_id);
int tide_action_publish_status(tide_action_t *action);
