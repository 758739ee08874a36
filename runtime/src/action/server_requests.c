/* SPDX-License-Identifier: Apache-2.0 */
/* What the server of an action is asked: goals, cancellations, results. In its executor's callback. */
#include "rclc/service.h"
#include "server.h"

/* A goal waits where it is until there is a place for it, a cancellation or a question until the last one is answered.
 */
static uint32_t parts_that_can_run(const tide_action_t *action) {
  uint32_t parts = 0;
  if (tide_action_has_free_goal(action)) parts |= 1u << PART_GOAL;
  if (!action->server.cancel_due) parts |= 1u << PART_CANCEL;
  if (!action->server.late_due) parts |= 1u << PART_RESULT;
  return parts;
}

bool tide_action_server_has_more(tide_action_t *action) {
  return tide_action_oldest_part(action, parts_that_can_run(action)) != PART_NONE;
}

/* Of the epoch as far as the board knows it, so that clients can name goals by the time of their acceptance. */
static int64_t epoch_ns(const tide_action_t *action) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_action_enter();
  const tide_time_sync_t sync = action->support->session.time_sync;
  tide_action_leave(critical);
  if (sync.exchanges > 0) return tide_platform_now_ns(platform) + sync.offset_ns;
  return platform != NULL && platform->wall_ns != NULL ? platform->wall_ns(platform->context) : 0;
}

/* ---- goals ---- */

static bool is_repeated(tide_action_t *action, tide_goal_t *goal) {
  const uint8_t *goal_id = goal->handle.goal_id.uuid;
  const tide_goal_t *other = tide_action_find_goal(action, goal_id);
  const tide_action_result_t *result = tide_action_find_result(action, goal_id);
  if (other == NULL && result == NULL) return false;
  goal->server.accepted_ns = other != NULL ? other->server.accepted_ns : result->accepted_ns;
  return true;
}

static bool was_refused(const tide_action_t *action, const uint8_t *goal_id) {
  for (size_t i = 0; i < action->server.refused_count; i++) {
    if (memcmp(action->server.refused_ids[i], goal_id, sizeof action->server.refused_ids[i]) == 0) return true;
  }
  return false;
}

static void refuse(tide_action_t *action, const uint8_t *goal_id) {
  const uint8_t place = action->server.refused_next;
  memcpy(action->server.refused_ids[place], goal_id, sizeof action->server.refused_ids[place]);
  action->server.refused_next = (uint8_t)((place + 1u) % TIDE_ACTION_REFUSED);
  if (action->server.refused_count < TIDE_ACTION_REFUSED) action->server.refused_count++;
  action->counters.refused++;
}

static void accept(tide_action_t *action, tide_goal_t *goal) {
  const uintptr_t critical = tide_action_enter();
  goal->handle.goal_accepted = true;
  tide_action_set_state(goal, GOAL_STATE_EXECUTING);
  tide_action_leave(critical);
  action->counters.goals++;
  tide_action_note_change(action);
}

static void decide(tide_action_t *action, tide_goal_t *goal) {
  memcpy(goal->handle.goal_id.uuid, goal->handle.ros_goal_request, sizeof goal->handle.goal_id.uuid);
  if (is_repeated(action, goal)) {
    action->counters.repeated++;
    goal->handle.goal_accepted = true;
    return;
  }
  if (was_refused(action, goal->handle.goal_id.uuid)) {
    action->counters.repeated++;
    return;
  }
  goal->server.accepted_ns = epoch_ns(action);
  const rcl_ret_t decision = action->server.on_goal(&goal->handle, action->handle->callback_context);
  if (decision == RCL_RET_ACTION_GOAL_ACCEPTED) {
    accept(action, goal);
  } else {
    refuse(action, goal->handle.goal_id.uuid);
  }
}

/* One that does not fit the program's memory is refused. */
static void take_goal(tide_action_t *action) {
  tide_goal_t *goal = tide_action_new_goal(action);
  goal->handle.ros_goal_request =
      action->server.requests + (size_t)(goal - action->goals) * action->server.request_bytes;
  rmw_service_info_t info = {0};
  const rcl_ret_t taken =
      rcl_take_request_with_info(&action->services[PART_GOAL], &info, goal->handle.ros_goal_request);
  if (taken == RCL_RET_SERVICE_TAKE_FAILED) {
    tide_action_free_goal(goal);
    return;
  }
  goal->server.request_id = info.request_id;
  if (taken == RCL_RET_OK) decide(action, goal);
  if (tide_action_is_used(goal)) goal->server.response_due = true;
}

/* ---- results ---- */

static void add_asker(tide_action_t *action, tide_goal_t *goal, const rmw_request_id_t *asker) {
  const uintptr_t critical = tide_action_enter();
  if (goal->server.asker_count == TIDE_ACTION_ASKERS) {
    memmove(goal->server.askers, goal->server.askers + 1, (TIDE_ACTION_ASKERS - 1u) * sizeof *asker);
    goal->server.asker_count--;
    action->counters.askers_gone++;
  }
  goal->server.askers[goal->server.asker_count++] = *asker;
  tide_action_leave(critical);
}

static void take_result_request(tide_action_t *action) {
  unique_identifier_msgs__msg__UUID goal_id;
  rmw_service_info_t info;
  if (rcl_take_request_with_info(&action->services[PART_RESULT], &info, &goal_id) != RCL_RET_OK) return;
  tide_goal_t *goal = tide_action_find_goal(action, goal_id.uuid);
  if (goal != NULL) {
    add_asker(action, goal, &info.request_id);
    return;
  }
  memcpy(action->server.late_goal_id, goal_id.uuid, sizeof action->server.late_goal_id);
  action->server.late_id = info.request_id;
  action->server.late_due = true;
}

/* ---- cancellations ---- */

static bool is_zero(const uint8_t *bytes, size_t count) {
  uint8_t any = 0;
  for (size_t i = 0; i < count; i++) any |= bytes[i];
  return any == 0;
}

typedef struct selection {
  const uint8_t *goal_id; /* null: none in particular */
  bool all;
  int64_t before_ns; /* 0: no matter when */
} selection_t;

/* As ROS 2 has it: nothing given means all; a time means those accepted until then, and the goal if one is named. */
static selection_t selected_by(const tide_action_goal_info_t *info) {
  selection_t selection = {NULL, false, (int64_t)info->stamp.sec * 1000000000 + info->stamp.nanosec};
  if (!is_zero(info->goal_id, sizeof info->goal_id)) selection.goal_id = info->goal_id;
  selection.all = selection.goal_id == NULL && selection.before_ns == 0;
  return selection;
}

static bool is_selected(const selection_t *selection, const tide_goal_t *goal) {
  if (selection->all) return true;
  if (selection->before_ns != 0 && goal->server.accepted_ns <= selection->before_ns) return true;
  return selection->goal_id != NULL && memcmp(selection->goal_id, goal->handle.goal_id.uuid, 16) == 0;
}

static bool change_status(tide_goal_t *goal, rcl_action_goal_state_t from, rcl_action_goal_state_t to) {
  const uintptr_t critical = tide_action_enter();
  const bool changes = tide_action_is_used(goal) && tide_action_state(goal) == from && !goal->server.ending;
  if (changes) tide_action_set_state(goal, to);
  tide_action_leave(critical);
  return changes;
}

static bool ask_program(const tide_action_t *action, tide_goal_t *goal) {
  const rclc_action_server_handle_cancel_callback_t on_cancel = action->server.on_cancel;
  return on_cancel != NULL && on_cancel(&goal->handle, action->handle->callback_context);
}

/* True: the program agrees. The goal may end meanwhile, in another thread. */
static bool cancel(tide_action_t *action, tide_goal_t *goal) {
  if (!ask_program(action, goal)) {
    change_status(goal, GOAL_STATE_CANCELING, GOAL_STATE_EXECUTING);
    return false;
  }
  if (!tide_action_is_used(goal)) return false;
  goal->handle.goal_cancelled = true;
  goal->server.canceling = true;
  return true;
}

static rcl_action_cancel_state_t cancel_code(const tide_action_t *action, const selection_t *selection, size_t asked,
                                             size_t agreed) {
  if (agreed > 0) return CANCEL_STATE_OK;
  if (asked > 0) return CANCEL_STATE_REJECTED;
  if (selection->goal_id == NULL || selection->before_ns != 0) return CANCEL_STATE_OK; /* there was none */
  const bool known = tide_action_find_goal((tide_action_t *)action, selection->goal_id) != NULL ||
                     tide_action_find_result(action, selection->goal_id) != NULL;
  return known ? CANCEL_STATE_TERMINATED : CANCEL_STATE_UNKNOWN_GOAL;
}

static void take_cancel_request(tide_action_t *action) {
  tide_action_goal_info_t info;
  rmw_service_info_t request;
  if (rcl_take_request_with_info(&action->services[PART_CANCEL], &request, &info) != RCL_RET_OK) return;
  const selection_t selection = selected_by(&info);
  size_t asked = 0, agreed = 0;
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (!tide_action_is_used(goal) || !is_selected(&selection, goal)) continue;
    if (!change_status(goal, GOAL_STATE_EXECUTING, GOAL_STATE_CANCELING)) continue;
    asked++;
    if (cancel(action, goal)) agreed++;
    if (action->handle == NULL) return; /* finished by the callback */
  }
  action->server.cancel_id = request.request_id;
  action->server.cancel_code = cancel_code(action, &selection, asked, agreed);
  action->server.cancel_due = true;
  if (agreed > 0) tide_action_note_change(action);
}

bool tide_action_server_take(tide_action_t *action) {
  switch (tide_action_oldest_part(action, parts_that_can_run(action))) {
    case PART_GOAL:
      take_goal(action);
      return true;
    case PART_RESULT:
      take_result_request(action);
      return true;
    case PART_CANCEL:
      take_cancel_request(action);
      return true;
    default:
      return false;
  }
}
