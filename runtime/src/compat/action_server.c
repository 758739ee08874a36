/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of actions: set-up, handling of requests, and sending. */
#include "action.h"
#include "rclc/executor.h"
#include "rclc/publisher.h"
#include "rclc/service.h"
#include "tide/message_memory.h"

#define RESULT_TIMEOUT_NS INT64_C(10000000000)

static const rmw_qos_profile_t status_qos = {
    RMW_QOS_POLICY_HISTORY_KEEP_LAST,          1,      RMW_QOS_POLICY_RELIABILITY_RELIABLE,
    RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL, {0, 0}, {0, 0},
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT,  {0, 0}, false};

/* ---- life ---- */

static rcl_ret_t close_parts(tide_action_t *action) {
  rcl_ret_t result = RCL_RET_OK;
  for (size_t part = 0; part < TIDE_ACTION_PARTS && result == RCL_RET_OK; part++) {
    result = rcl_service_fini(&action->services[part], NULL);
  }
  if (result == RCL_RET_OK) result = rcl_publisher_fini(&action->server.feedback, NULL);
  return result == RCL_RET_OK ? rcl_publisher_fini(&action->server.status, NULL) : result;
}

static rcl_ret_t open_parts(tide_action_t *action, const rcl_node_t *node, const rosidl_action_type_support_t *type,
                            const char *action_name) {
  const rosidl_service_type_support_t *const types[TIDE_ACTION_PARTS] = {
      [PART_GOAL] = type->goal_service_type_support,
      [PART_RESULT] = type->result_service_type_support,
      [PART_CANCEL] = type->cancel_service_type_support,
  };
  char name[TIDE_ACTION_NAME_BYTES];
  rcl_ret_t result = RCL_RET_OK;
  for (size_t part = 0; part < TIDE_ACTION_PARTS && result == RCL_RET_OK; part++) {
    result = tide_action_part_name(name, action_name, part);
    if (result == RCL_RET_OK) result = rclc_service_init_default(&action->services[part], node, types[part], name);
  }
  if (result == RCL_RET_OK) result = tide_action_part_name(name, action_name, PART_FEEDBACK);
  if (result == RCL_RET_OK) {
    result = rclc_publisher_init_default(&action->server.feedback, node, type->feedback_message_type_support, name);
  }
  if (result == RCL_RET_OK) result = tide_action_part_name(name, action_name, PART_STATUS);
  if (result != RCL_RET_OK) return result;
  return rclc_publisher_init(&action->server.status, node, type->status_message_type_support, name, &status_qos);
}

rcl_ret_t rclc_action_server_init_default(rclc_action_server_t *action_server, rcl_node_t *node,
                                          rclc_support_t *support, const rosidl_action_type_support_t *type_support,
                                          const char *action_name) {
  if (action_server == NULL || !tide_compat_is_node(node) || support == NULL || type_support == NULL ||
      action_name == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  action_server->impl = NULL;
  tide_action_t *action = tide_action_take_place(node->impl->support, true);
  if (action == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_ACTIONS);
  action->program = action_server;
  action->server.result_timeout_ns = RESULT_TIMEOUT_NS;
  const rcl_ret_t result = open_parts(action, node, type_support, action_name);
  if (result == RCL_RET_OK) {
    action_server->impl = action;
  } else {
    (void)tide_action_close(action, close_parts);
  }
  return tide_action_result_of_init(result);
}

static tide_action_t *action_of(const rclc_action_server_t *server) {
  return server != NULL && tide_action_is_open(server->impl, true) ? server->impl : NULL;
}

rcl_ret_t rclc_action_server_fini(rclc_action_server_t *action_server, rcl_node_t *node) {
  if (action_server == NULL || node == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_action_t *action = action_of(action_server);
  if (action != NULL) {
    const rcl_ret_t result = tide_action_close(action, close_parts);
    if (result != RCL_RET_OK) return result;
  }
  action_server->impl = NULL;
  return RCL_RET_OK;
}

/* ---- requests, in the executor's callback ---- */

/* A goal request stays queued until a goal entry is free. A cancellation or result request stays queued until the
 * previous one is answered.
 */
static uint32_t parts_that_can_run(const tide_action_t *action) {
  uint32_t parts = 0;
  if (tide_action_has_free_goal(action)) parts |= 1u << PART_GOAL;
  if (!action->server.cancel_due) parts |= 1u << PART_CANCEL;
  if (!action->server.late_due) parts |= 1u << PART_RESULT;
  return parts;
}

static bool has_more(tide_action_t *action) {
  return tide_action_oldest_part(action, parts_that_can_run(action)) != PART_NONE;
}

/* The best known time since the epoch, so that clients can select goals by their time of acceptance. */
static int64_t epoch_ns(const tide_action_t *action) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_compat_enter();
  const tide_time_sync_t sync = action->support->session.time_sync;
  tide_compat_leave(critical);
  if (sync.exchanges > 0) return tide_platform_now_ns(platform) + sync.offset_ns;
  return platform != NULL && platform->wall_ns != NULL ? platform->wall_ns(platform->context) : 0;
}

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
  const uintptr_t critical = tide_compat_enter();
  goal->handle.goal_accepted = true;
  tide_action_set_state(goal, GOAL_STATE_EXECUTING);
  tide_compat_leave(critical);
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

/* A goal that does not fit the program's memory is refused. */
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

static void add_asker(tide_action_t *action, tide_goal_t *goal, const rmw_request_id_t *asker) {
  const uintptr_t critical = tide_compat_enter();
  if (goal->server.asker_count == TIDE_ACTION_ASKERS) {
    memmove(goal->server.askers, goal->server.askers + 1, (TIDE_ACTION_ASKERS - 1u) * sizeof *asker);
    goal->server.asker_count--;
    action->counters.askers_gone++;
  }
  goal->server.askers[goal->server.asker_count++] = *asker;
  tide_compat_leave(critical);
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

static bool is_zero(const uint8_t *bytes, size_t count) {
  uint8_t any = 0;
  for (size_t i = 0; i < count; i++) any |= bytes[i];
  return any == 0;
}

typedef struct selection {
  const uint8_t *goal_id; /* null: the request names no particular goal */
  bool all;
  int64_t before_ns; /* 0: any time */
} selection_t;

/* The rules of ROS 2: a request without id and time selects all goals; one with a time selects the goals accepted until
 * then and the named goal, if any. */
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
  const uintptr_t critical = tide_compat_enter();
  const bool changes = tide_action_is_used(goal) && tide_action_state(goal) == from && !goal->server.ending;
  if (changes) tide_action_set_state(goal, to);
  tide_compat_leave(critical);
  return changes;
}

/* Returns true if the program accepts. Another thread may end the goal meanwhile. */
static bool cancel(tide_action_t *action, tide_goal_t *goal) {
  const rclc_action_server_handle_cancel_callback_t on_cancel = action->server.on_cancel;
  if (on_cancel == NULL || !on_cancel(&goal->handle, action->handle->callback_context)) {
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
  if (selection->goal_id == NULL || selection->before_ns != 0) return CANCEL_STATE_OK; /* no goal matched */
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
    if (action->handle == NULL) return; /* finalised by the callback */
  }
  action->server.cancel_id = request.request_id;
  action->server.cancel_code = cancel_code(action, &selection, asked, agreed);
  action->server.cancel_due = true;
  if (agreed > 0) tide_action_note_change(action);
}

/* Handles the oldest message that can be handled now; returns false if there is none. */
static bool take(tide_action_t *action) {
  switch (tide_action_oldest_part(action, parts_that_can_run(action))) {
    case PART_GOAL: take_goal(action); return true;
    case PART_RESULT: take_result_request(action); return true;
    case PART_CANCEL: take_cancel_request(action); return true;
    default: return false;
  }
}

/* ---- replies and states that are due ---- */

/* Returns false if no node is free; the link's context will then retry. */
static bool is_settled(tide_action_t *action, size_t part, int status) {
  if (status == TIDE_ERROR_FULL) return false;
  if (status != TIDE_OK) {
    const char *topic =
        part == PART_STATUS ? action->server.status.impl->topic.name : action->services[part].impl->end.reply_topic;
    tide_compat_unread(status, &action->counters.replies_lost, topic, action->handle);
    (void)tide_compat_result(status);
  }
  return true;
}

static bool send_goal_response(tide_action_t *action, tide_goal_t *goal) {
  const int64_t accepted_ns = goal->server.accepted_ns;
  tide_action_goal_response_t response = {goal->handle.goal_accepted,
                                          {(int32_t)(accepted_ns / 1000000000), (uint32_t)(accepted_ns % 1000000000)}};
  const int status = tide_compat_send_response(action->services[PART_GOAL].impl, &goal->server.request_id, &response);
  if (!is_settled(action, PART_GOAL, status)) return false;
  goal->server.response_due = false;
  if (tide_action_state(goal) == GOAL_STATE_UNKNOWN) tide_action_free_goal(goal); /* refused, or a repetition */
  return true;
}

/* Goals beyond a node's capacity are canceled, too: the status topic shows their cancellation, and the program gets an
 * error. */
static bool send_cancel_response(tide_action_t *action) {
  const uint32_t capacity = (tide_compat_response_capacity() - 8u) / sizeof(tide_action_goal_info_t);
  uint32_t canceling = 0;
  for (size_t i = 0; i < action->goal_count; i++) {
    if (tide_action_is_used(&action->goals[i]) && action->goals[i].server.canceling) canceling++;
  }
  const uint32_t count = canceling < capacity ? canceling : capacity;
  uint32_t listed = 0;
  tide_write_t write;
  int status = tide_compat_begin_response(action->services[PART_CANCEL].impl, &action->server.cancel_id, &write,
                                          8u + count * sizeof(tide_action_goal_info_t));
  if (status == TIDE_ERROR_FULL) return false;
  if (status == TIDE_OK) {
    tide_cdr_put_u8(&write.cdr, (uint8_t)action->server.cancel_code);
    tide_cdr_put_u32(&write.cdr, count);
  }
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (!tide_action_is_used(goal) || !goal->server.canceling) continue;
    goal->server.canceling = false;
    if (status != TIDE_OK || ++listed > count) continue;
    tide_cdr_put_bytes(&write.cdr, goal->handle.goal_id.uuid, sizeof goal->handle.goal_id.uuid);
    tide_cdr_put_u32(&write.cdr, (uint32_t)(goal->server.accepted_ns / 1000000000));
    tide_cdr_put_u32(&write.cdr, (uint32_t)(goal->server.accepted_ns % 1000000000));
  }
  if (status == TIDE_OK) status = tide_compat_write_end(action->support, &write);
  action->server.cancel_due = false;
  return is_settled(action, PART_CANCEL, status == TIDE_OK && count < canceling ? TIDE_ERROR_TOO_LARGE : status);
}

static bool send_result(tide_action_t *action, tide_goal_t *goal) {
  while (goal->server.asker_count > 0) {
    const rmw_request_id_t *asker = &goal->server.askers[goal->server.asker_count - 1u];
    const int status = tide_action_send_kept(action, asker, goal->handle.goal_id.uuid);
    if (!is_settled(action, PART_RESULT, status)) return false;
    goal->server.asker_count--;
  }
  return true;
}

/* Releases a goal's handle, after its last state was published. */
static void release(tide_goal_t *goal) {
  tide_action_result_t *result = tide_action_result_of(goal);
  const uintptr_t critical = tide_compat_enter();
  if (result != NULL) result->goal = NULL;
  tide_compat_leave(critical);
  tide_action_free_goal(goal);
}

static bool send_responses(tide_action_t *action) {
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (tide_action_is_used(goal) && goal->server.response_due && !send_goal_response(action, goal)) return false;
  }
  if (action->server.cancel_due && !send_cancel_response(action)) return false;
  if (!action->server.late_due) return true;
  const int status = tide_action_send_kept(action, &action->server.late_id, action->server.late_goal_id);
  if (!is_settled(action, PART_RESULT, status)) return false;
  action->server.late_due = false;
  return true;
}

static bool publish_states(tide_action_t *action) {
  if (!__atomic_exchange_n(&action->server.status_due, false, __ATOMIC_ACQ_REL)) return true;
  if (is_settled(action, PART_STATUS, tide_action_publish_status(action))) return true;
  tide_action_note_change(action);
  return false;
}

static bool send_results(tide_action_t *action) {
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    const bool has_ended = tide_action_is_used(goal) && tide_action_state(goal) > GOAL_STATE_CANCELING;
    if (!has_ended || goal->server.response_due || goal->server.canceling) continue;
    if (!send_result(action, goal)) return false;
    release(goal);
  }
  return true;
}

/* A goal that ends while this function runs sets status_due again and wakes the callback. */
static bool send_what_is_due(tide_action_t *action) {
  if (tide_action_meets_session(action)) tide_action_note_change(action); /* this session has no status yet */
  tide_action_set_attention(action, true);
  if (!send_responses(action) || !publish_states(action) || !send_results(action)) return false;
  tide_action_set_attention(action, false);
  return true;
}

static void execute(tide_callback_t *callback, void *context) {
  (void)callback;
  const rclc_executor_handle_t *handle = context;
  tide_action_t *action = handle->impl;
  if (!send_what_is_due(action) || !take(action)) return;
  if (action->handle == NULL || !send_what_is_due(action)) return; /* the callback may have finalised the server */
  if (has_more(action)) tide_action_wake(action);
}

rcl_ret_t rclc_executor_add_action_server(rclc_executor_t *executor, rclc_action_server_t *action_server,
                                          size_t handles_number, void *ros_goal_request, size_t ros_goal_request_size,
                                          rclc_action_server_handle_goal_callback_t goal_callback,
                                          rclc_action_server_handle_cancel_callback_t cancel_callback, void *context) {
  tide_action_t *action = action_of(action_server);
  if (tide_compat_executor_of(executor) == NULL || action == NULL || ros_goal_request == NULL ||
      ros_goal_request_size == 0 || goal_callback == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  action->server.on_goal = goal_callback;
  action->server.on_cancel = cancel_callback;
  action->server.requests = ros_goal_request;
  action->server.request_bytes = ros_goal_request_size;
  return tide_action_add(executor, action, RCLC_ACTION_SERVER, handles_number, context, execute);
}

/* ---- from the program's threads ---- */

rcl_ret_t rclc_action_publish_feedback(rclc_action_goal_handle_t *goal_handle, void *ros_feedback) {
  const tide_goal_t *goal = tide_action_goal_of(goal_handle, true);
  if (goal == NULL || ros_feedback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  memcpy(ros_feedback, goal->handle.goal_id.uuid, sizeof goal->handle.goal_id.uuid); /* its first member */
  return rcl_publish(&goal->action->server.feedback, ros_feedback, NULL);
}

/* Only one thread may end a goal, and only an accepted one. */
static rcl_ret_t begin_ending(tide_goal_t *goal) {
  rcl_ret_t result = RCL_RET_OK;
  const uintptr_t critical = tide_compat_enter();
  if (tide_action_state(goal) == GOAL_STATE_UNKNOWN) {
    result = RCLC_RET_ACTION_WAIT_RESULT_REQUEST;
  } else if (tide_action_state(goal) > GOAL_STATE_CANCELING || goal->server.ending) {
    result = RCL_RET_INVALID_ARGUMENT;
  } else {
    goal->server.ending = true;
  }
  tide_compat_leave(critical);
  return result;
}

static void end(tide_goal_t *goal, tide_action_result_t *result, rcl_action_goal_state_t status) {
  tide_action_t *action = goal->action;
  const uintptr_t critical = tide_compat_enter();
  tide_action_set_state(goal, status);
  goal->server.ending = false;
  if (result != NULL) result->ready = true;
  tide_action_note_change(action);
  tide_compat_leave(critical);
  tide_action_wake(action);
}

static const tide_message_type_t *response_type(const tide_action_t *action) {
  return action->services[PART_RESULT].impl->end.type->response;
}

static void keep(tide_goal_t *goal, tide_action_result_t *result, rcl_action_goal_state_t status,
                 const void *response) {
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, tide_action_result_bytes(result), tide_pools.actions->result_capacity);
  response_type(goal->action)->encode(&cdr, response);
  result->bytes = (uint32_t)cdr.position;
  result->status = status;
  end(goal, result, status);
}

/* The goal has ended, but its result fits no message or exceeds its bounds. Clients that request it get an empty result
 * with the status "aborted". */
static int abort_without_result(tide_goal_t *goal) {
  tide_action_result_t *result = tide_action_keep(goal, 0);
  if (result != NULL) result->status = GOAL_STATE_ABORTED;
  end(goal, result, GOAL_STATE_ABORTED);
  return TIDE_ERROR_TOO_LARGE;
}

static bool take_asker(tide_goal_t *goal, rmw_request_id_t *asker) {
  const uintptr_t critical = tide_compat_enter();
  const bool any = goal->server.asker_count > 0;
  if (any) *asker = goal->server.askers[--goal->server.asker_count];
  tide_compat_leave(critical);
  return any;
}

static void give_back_asker(tide_goal_t *goal, const rmw_request_id_t *asker) {
  const uintptr_t critical = tide_compat_enter();
  if (goal->server.asker_count < TIDE_ACTION_ASKERS) goal->server.askers[goal->server.asker_count++] = *asker;
  tide_compat_leave(critical);
}

/* Sends a result that cannot be kept, because no memory for it is free. */
static rcl_ret_t send_now(tide_goal_t *goal, rcl_action_goal_state_t status, void *response) {
  tide_action_t *action = goal->action;
  rmw_request_id_t asker;
  while (take_asker(goal, &asker)) {
    const rcl_ret_t sent = rcl_send_response(&action->services[PART_RESULT], &asker, response);
    if (sent != RCL_RET_OK) {
      give_back_asker(goal, &asker);
      return sent;
    }
    action->counters.results++;
  }
  end(goal, NULL, status);
  return RCL_RET_OK;
}

static rcl_ret_t finish(tide_goal_t *goal, rcl_action_goal_state_t status, void *response, size_t bytes) {
  tide_action_result_t *result = tide_action_keep(goal, bytes);
  if (result != NULL) {
    keep(goal, result, status, response);
    return RCL_RET_OK;
  }
  if (goal->server.asker_count > 0) return send_now(goal, status, response);
  goal->action->counters.results_waited++;
  return RCLC_RET_ACTION_WAIT_RESULT_REQUEST;
}

rcl_ret_t rclc_action_send_result(rclc_action_goal_handle_t *goal_handle, rcl_action_goal_state_t status,
                                  void *ros_response) {
  tide_goal_t *goal = tide_action_goal_of(goal_handle, true);
  if (goal == NULL || ros_response == NULL || status <= GOAL_STATE_CANCELING || status >= GOAL_STATE_NUM_STATES) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  rcl_ret_t result = begin_ending(goal);
  if (result == RCL_RET_INVALID_ARGUMENT) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (result != RCL_RET_OK) return result;
  memcpy(ros_response, &status, sizeof status); /* its first member */
  const size_t bytes = tide_message_size(response_type(goal->action), ros_response);
  const bool fits = bytes > 0 /* 0 means that a member exceeds its bound */ && bytes <= tide_compat_response_capacity();
  if (!fits) return tide_compat_result(abort_without_result(goal));
  result = finish(goal, status, ros_response, bytes);
  if (result == RCL_RET_OK) return result;
  const uintptr_t critical = tide_compat_enter();
  goal->server.ending = false; /* the goal continues to run */
  tide_compat_leave(critical);
  return result;
}

/* ---- extensions of tide ---- */

rcl_ret_t tide_rclc_action_server_set_result_timeout(rclc_action_server_t *action_server, int64_t timeout_ns) {
  tide_action_t *action = action_of(action_server);
  if (action == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  action->server.result_timeout_ns = timeout_ns;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_action_server_set_priority(rclc_action_server_t *action_server, tide_priority_t priority) {
  tide_action_t *action = action_of(action_server);
  return tide_compat_result(action == NULL ? TIDE_ERROR_ARGUMENT : tide_action_set_priority(action, priority));
}

rcl_ret_t tide_rclc_chain_add_action_server(tide_chain_t *chain, rclc_action_server_t *action_server) {
  tide_action_t *action = action_of(action_server);
  return action == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : tide_action_add_to_chain(chain, action);
}

tide_callback_t *tide_rclc_action_server_callback(const rclc_action_server_t *action_server) {
  tide_action_t *action = action_of(action_server);
  return action == NULL || action->callback.executor == NULL ? NULL : &action->callback;
}

rcl_ret_t tide_rclc_action_server_get_counters(const rclc_action_server_t *action_server,
                                               tide_action_counters_t *counters) {
  const tide_action_t *action = action_of(action_server);
  if (action == NULL || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_action_count(action, counters);
  return RCL_RET_OK;
}
