/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of actions: their life, and what they send. */
#include "server.h"

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

static rcl_ret_t open_service(tide_action_t *action, const rcl_node_t *node, size_t part,
                              const rosidl_service_type_support_t *type, const char *action_name, const char *suffix) {
  char name[TIDE_ACTION_NAME_BYTES];
  const int status = tide_action_part_name(name, action_name, suffix);
  return status == TIDE_OK ? rclc_service_init_default(&action->services[part], node, type, name)
                           : tide_compat_result(status);
}

static rcl_ret_t open_publisher(rcl_publisher_t *publisher, const rcl_node_t *node,
                                const rosidl_message_type_support_t *type, const char *action_name, const char *suffix,
                                const rmw_qos_profile_t *qos) {
  char name[TIDE_ACTION_NAME_BYTES];
  const int status = tide_action_part_name(name, action_name, suffix);
  return status == TIDE_OK ? rclc_publisher_init(publisher, node, type, name, qos) : tide_compat_result(status);
}

static rcl_ret_t open_parts(tide_action_t *action, const rcl_node_t *node, const rosidl_action_type_support_t *type,
                            const char *name) {
  rcl_ret_t result = open_service(action, node, PART_GOAL, type->goal_service_type_support, name, "/_action/send_goal");
  if (result != RCL_RET_OK) return result;
  result = open_service(action, node, PART_CANCEL, type->cancel_service_type_support, name, "/_action/cancel_goal");
  if (result != RCL_RET_OK) return result;
  result = open_service(action, node, PART_RESULT, type->result_service_type_support, name, "/_action/get_result");
  if (result != RCL_RET_OK) return result;
  result = open_publisher(&action->server.feedback, node, type->feedback_message_type_support, name,
                          "/_action/feedback", &rmw_qos_profile_default);
  if (result != RCL_RET_OK) return result;
  return open_publisher(&action->server.status, node, type->status_message_type_support, name, "/_action/status",
                        &status_qos);
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

/* ---- replies and states that are due ---- */

/* False: no node; the link's context calls again. */
static bool is_settled(tide_action_t *action, int status) {
  if (status == TIDE_ERROR_FULL) return false;
  if (status != TIDE_OK) {
    action->counters.replies_lost++;
    (void)tide_compat_result(status);
  }
  return true;
}

static bool send_goal_response(tide_action_t *action, tide_goal_t *goal) {
  const int64_t accepted_ns = goal->server.accepted_ns;
  tide_action_goal_response_t response = {goal->handle.goal_accepted,
                                          {(int32_t)(accepted_ns / 1000000000), (uint32_t)(accepted_ns % 1000000000)}};
  const int status = tide_compat_send_response(action->services[PART_GOAL].impl, &goal->server.request_id, &response);
  if (!is_settled(action, status)) return false;
  goal->server.response_due = false;
  if (tide_action_state(goal) == GOAL_STATE_UNKNOWN) tide_action_free_goal(goal); /* refused, or a repetition */
  return true;
}

static size_t canceling(const tide_action_t *action) {
  size_t count = 0;
  for (size_t i = 0; i < action->goal_count; i++) {
    if (tide_action_is_used(&action->goals[i]) && action->goals[i].server.canceling) count++;
  }
  return count;
}

static bool send_cancel_response(tide_action_t *action) {
  const size_t count = canceling(action);
  tide_write_t write;
  int status = tide_compat_begin_response(action->services[PART_CANCEL].impl, &action->server.cancel_id, &write,
                                          8u + count * sizeof(tide_action_goal_info_t));
  if (status == TIDE_ERROR_FULL) return false;
  if (status == TIDE_OK) {
    tide_cdr_put_u8(&write.cdr, (uint8_t)action->server.cancel_code);
    tide_cdr_put_u32(&write.cdr, (uint32_t)count);
  }
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (!tide_action_is_used(goal) || !goal->server.canceling) continue;
    goal->server.canceling = false;
    if (status != TIDE_OK) continue;
    tide_cdr_put_bytes(&write.cdr, goal->handle.goal_id.uuid, sizeof goal->handle.goal_id.uuid);
    tide_cdr_put_u32(&write.cdr, (uint32_t)(goal->server.accepted_ns / 1000000000));
    tide_cdr_put_u32(&write.cdr, (uint32_t)(goal->server.accepted_ns % 1000000000));
  }
  if (status == TIDE_OK) status = tide_compat_write_end(action->support, &write);
  action->server.cancel_due = false;
  return is_settled(action, status);
}

static bool send_late_result(tide_action_t *action) {
  if (!is_settled(action, tide_action_send_kept(action, &action->server.late_id, action->server.late_goal_id))) {
    return false;
  }
  action->server.late_due = false;
  return true;
}

static bool has_ended(const tide_goal_t *goal) {
  return tide_action_is_used(goal) && tide_action_state(goal) > GOAL_STATE_CANCELING;
}

static bool send_result(tide_action_t *action, tide_goal_t *goal) {
  while (goal->server.asker_count > 0) {
    const rmw_request_id_t *asker = &goal->server.askers[goal->server.asker_count - 1u];
    if (!is_settled(action, tide_action_send_kept(action, asker, goal->handle.goal_id.uuid))) return false;
    goal->server.asker_count--;
  }
  return true;
}

/* After the state has been published for the last time in which the handle has it. */
static void release(tide_goal_t *goal) {
  tide_action_result_t *result = tide_action_result_of(goal);
  const uintptr_t critical = tide_action_enter();
  if (result != NULL) result->goal = NULL;
  tide_action_leave(critical);
  tide_action_free_goal(goal);
}

static bool send_responses(tide_action_t *action) {
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (tide_action_is_used(goal) && goal->server.response_due && !send_goal_response(action, goal)) return false;
  }
  if (action->server.cancel_due && !send_cancel_response(action)) return false;
  return !action->server.late_due || send_late_result(action);
}

static bool publish_states(tide_action_t *action) {
  if (!__atomic_exchange_n(&action->server.status_due, false, __ATOMIC_ACQ_REL)) return true;
  if (is_settled(action, tide_action_publish_status(action))) return true;
  tide_action_note_change(action);
  return false;
}

static bool send_results(tide_action_t *action) {
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (!has_ended(goal) || goal->server.response_due || goal->server.canceling) continue;
    if (!send_result(action, goal)) return false;
    release(goal);
  }
  return true;
}

/* A goal that ends while this runs sets status_due again, and wakes the callback. */
static bool send_what_is_due(tide_action_t *action) {
  if (tide_action_meets_session(action)) tide_action_note_change(action); /* the agent has forgotten it */
  tide_action_set_attention(action, true);
  if (!send_responses(action) || !publish_states(action) || !send_results(action)) return false;
  tide_action_set_attention(action, false);
  return true;
}

static void execute(tide_callback_t *callback, void *context) {
  (void)callback;
  const rclc_executor_handle_t *handle = context;
  tide_action_t *action = handle->impl;
  if (!send_what_is_due(action) || !tide_action_server_take(action)) return;
  if (action->handle == NULL || !send_what_is_due(action)) return; /* the callback may have finished the server */
  if (tide_action_server_has_more(action)) tide_action_wake(action);
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

/* One thread ends a goal, and only one that was accepted. */
static rcl_ret_t begin_ending(tide_goal_t *goal) {
  rcl_ret_t result = RCL_RET_OK;
  const uintptr_t critical = tide_action_enter();
  if (tide_action_state(goal) == GOAL_STATE_UNKNOWN) {
    result = RCLC_RET_ACTION_WAIT_RESULT_REQUEST;
  } else if (tide_action_state(goal) > GOAL_STATE_CANCELING || goal->server.ending) {
    result = RCL_RET_INVALID_ARGUMENT;
  } else {
    goal->server.ending = true;
  }
  tide_action_leave(critical);
  return result;
}

static void end(tide_goal_t *goal, tide_action_result_t *result, rcl_action_goal_state_t status) {
  tide_action_t *action = goal->action;
  const uintptr_t critical = tide_action_enter();
  tide_action_set_state(goal, status);
  goal->server.ending = false;
  if (result != NULL) result->ready = true;
  tide_action_note_change(action);
  tide_action_leave(critical);
  tide_action_wake(action);
}

static void keep_going(tide_goal_t *goal) {
  const uintptr_t critical = tide_action_enter();
  goal->server.ending = false;
  tide_action_leave(critical);
}

static int keep(tide_goal_t *goal, tide_action_result_t *result, const tide_message_type_t *type,
                rcl_action_goal_state_t status, const void *response) {
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, tide_action_result_bytes(result), tide_pools.actions->result_capacity);
  type->encode(&cdr, response);
  if (cdr.status != TIDE_OK) {
    tide_action_drop_result(result);
    return cdr.status;
  }
  result->bytes = (uint32_t)cdr.position;
  result->status = status;
  end(goal, result, status);
  return TIDE_OK;
}

static bool take_asker(tide_goal_t *goal, rmw_request_id_t *asker) {
  const uintptr_t critical = tide_action_enter();
  const bool any = goal->server.asker_count > 0;
  if (any) *asker = goal->server.askers[--goal->server.asker_count];
  tide_action_leave(critical);
  return any;
}

static void give_back_asker(tide_goal_t *goal, const rmw_request_id_t *asker) {
  const uintptr_t critical = tide_action_enter();
  if (goal->server.asker_count < TIDE_ACTION_ASKERS) goal->server.askers[goal->server.asker_count++] = *asker;
  tide_action_leave(critical);
}

/* Without memory to keep it. */
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

static rcl_ret_t finish(tide_goal_t *goal, rcl_action_goal_state_t status, void *response) {
  tide_action_t *action = goal->action;
  const tide_message_type_t *type = action->services[PART_RESULT].impl->end.type->response;
  tide_action_result_t *result = tide_action_keep(goal, tide_message_size(type, response));
  if (result != NULL) return tide_compat_result(keep(goal, result, type, status, response));
  if (goal->server.asker_count > 0) return send_now(goal, status, response);
  action->counters.results_waited++;
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
  result = finish(goal, status, ros_response);
  if (result != RCL_RET_OK) keep_going(goal);
  return result;
}

/* ---- what tide adds ---- */

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
