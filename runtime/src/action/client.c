/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of actions: their life, and what the program sends. What comes for them: client_replies.c. */
#include "client.h"

#include "rclc/client.h"
#include "rclc/executor.h"
#include "rclc/subscription.h"
#include "tide/rclc_service.h"

/* ---- life ---- */

static rcl_ret_t close_parts(tide_action_t *action) {
  rcl_ret_t result = RCL_RET_OK;
  for (size_t part = 0; part < TIDE_ACTION_PARTS && result == RCL_RET_OK; part++) {
    result = rcl_client_fini(&action->clients[part], NULL);
  }
  return result == RCL_RET_OK ? rcl_subscription_fini(&action->client.feedback, NULL) : result;
}

static rcl_ret_t open_client(tide_action_t *action, const rcl_node_t *node, size_t part,
                             const rosidl_service_type_support_t *type, const char *action_name, const char *suffix) {
  char name[TIDE_ACTION_NAME_BYTES];
  const int status = tide_action_part_name(name, action_name, suffix);
  return status == TIDE_OK ? rclc_client_init_default(&action->clients[part], node, type, name)
                           : tide_compat_result(status);
}

static rcl_ret_t open_parts(tide_action_t *action, rcl_node_t *node, const rosidl_action_type_support_t *type,
                            const char *action_name) {
  rcl_ret_t result =
      open_client(action, node, PART_GOAL, type->goal_service_type_support, action_name, "/_action/send_goal");
  if (result != RCL_RET_OK) return result;
  result =
      open_client(action, node, PART_CANCEL, type->cancel_service_type_support, action_name, "/_action/cancel_goal");
  if (result != RCL_RET_OK) return result;
  result =
      open_client(action, node, PART_RESULT, type->result_service_type_support, action_name, "/_action/get_result");
  if (result != RCL_RET_OK) return result;
  char name[TIDE_ACTION_NAME_BYTES];
  const int status = tide_action_part_name(name, action_name, "/_action/feedback");
  return status == TIDE_OK
             ? rclc_subscription_init_default(&action->client.feedback, node, type->feedback_message_type_support, name)
             : tide_compat_result(status);
}

rcl_ret_t rclc_action_client_init_default(rclc_action_client_t *action_client, rcl_node_t *node,
                                          const rosidl_action_type_support_t *type_support, const char *action_name) {
  if (action_client == NULL || !tide_compat_is_node(node) || type_support == NULL || action_name == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  action_client->impl = NULL;
  tide_action_t *action = tide_action_take_place(node->impl->support, false);
  if (action == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_ACTIONS);
  action->program = action_client;
  const rcl_ret_t result = open_parts(action, node, type_support, action_name);
  if (result == RCL_RET_OK) {
    action_client->impl = action;
  } else {
    (void)tide_action_close(action, close_parts);
  }
  return tide_action_result_of_init(result);
}

static tide_action_t *action_of(const rclc_action_client_t *client) {
  return client != NULL && tide_action_is_open(client->impl, false) ? client->impl : NULL;
}

rcl_ret_t rclc_action_client_fini(rclc_action_client_t *action_client, rcl_node_t *node) {
  if (action_client == NULL || node == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_action_t *action = action_of(action_client);
  if (action != NULL) {
    const rcl_ret_t result = tide_action_close(action, close_parts);
    if (result != RCL_RET_OK) return result;
  }
  action_client->impl = NULL;
  return RCL_RET_OK;
}

rcl_ret_t rclc_executor_add_action_client(rclc_executor_t *executor, rclc_action_client_t *action_client,
                                          size_t handles_number, void *ros_result_response, void *ros_feedback,
                                          rclc_action_client_goal_callback_t goal_callback,
                                          rclc_action_client_feedback_callback_t feedback_callback,
                                          rclc_action_client_result_callback_t result_callback,
                                          rclc_action_client_cancel_callback_t cancel_callback, void *context) {
  tide_action_t *action = action_of(action_client);
  if (tide_compat_executor_of(executor) == NULL || action == NULL || ros_result_response == NULL ||
      goal_callback == NULL || result_callback == NULL || (feedback_callback != NULL && ros_feedback == NULL)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  action->client.result_message = ros_result_response;
  action->client.feedback_message = ros_feedback;
  action->client.on_goal = goal_callback;
  action->client.on_feedback = feedback_callback;
  action->client.on_result = result_callback;
  action->client.on_cancel = cancel_callback;
  return tide_action_add(executor, action, RCLC_ACTION_CLIENT, handles_number, context, tide_action_client_execute);
}

/* ---- goals ---- */

static uint64_t mixed(uint64_t value) { /* splitmix64 */
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/* Of this board (its key), this moment and this goal; marked as a random one. */
static void make_id(const tide_action_t *action, uint8_t *goal_id) {
  static uint32_t count;
  const tide_platform_t *platform = tide_port_platform();
  uint64_t seed = (uint64_t)tide_platform_now_ns(platform) ^ (uint64_t)action->support->session.config.key << 32;
  if (platform != NULL && platform->wall_ns != NULL) seed ^= mixed((uint64_t)platform->wall_ns(platform->context));
  seed = mixed(seed) + __atomic_add_fetch(&count, 1u, __ATOMIC_RELAXED);
  for (size_t half = 0; half < 2; half++) {
    const uint64_t word = mixed(seed + half * 0x632BE59BD9B4E019u);
    for (size_t i = 0; i < 8; i++) goal_id[8 * half + i] = (uint8_t)(word >> 8 * i);
  }
  goal_id[6] = (uint8_t)((goal_id[6] & 0x0Fu) | 0x40u);
  goal_id[8] = (uint8_t)((goal_id[8] & 0x3Fu) | 0x80u);
}

static uint32_t hash_of(const tide_write_t *write) { /* FNV-1a */
  uint32_t hash = 0x811C9DC5u;
  for (size_t i = write->cdr.origin; i < write->cdr.position; i++) hash = (hash ^ write->cdr.bytes[i]) * 0x01000193u;
  return hash;
}

static bool note_hash(const tide_write_t *write, void *context) {
  tide_goal_t *goal = context;
  goal->client.request_hash = hash_of(write);
  return true;
}

static bool is_as_it_was(const tide_write_t *write, void *context) {
  const tide_goal_t *goal = context;
  return goal->client.request_hash == hash_of(write);
}

bool tide_action_is_in_doubt(const tide_action_t *action, const tide_goal_t *goal) {
  return goal->client.repeated || goal->client.session != tide_action_session(action);
}

void tide_action_forget_goal_request(const tide_action_t *action, const tide_goal_t *goal) {
  if (goal->client.goal_number == 0 || goal->client.refused) return;
  (void)tide_rclc_client_forget(&action->clients[PART_GOAL], goal->client.goal_number);
}

int tide_action_send_goal_again(tide_action_t *action, tide_goal_t *goal) {
  int64_t number = 0;
  const int status = tide_compat_send_request(action->clients[PART_GOAL].impl, goal->handle.ros_goal_request, &number,
                                              is_as_it_was, goal);
  if (status != TIDE_OK) return status;
  (void)tide_rclc_client_forget(&action->clients[PART_GOAL], goal->client.goal_number);
  goal->client.goal_number = number;
  goal->client.repeated = true;
  return TIDE_OK;
}

rcl_ret_t rclc_action_send_goal_request(rclc_action_client_t *action_client, void *ros_request,
                                        rclc_action_goal_handle_t **goal_handle) {
  tide_action_t *action = action_of(action_client);
  if (action == NULL || ros_request == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_goal_t *goal = tide_action_new_goal(action);
  if (goal == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_GOALS);
  goal->handle.ros_goal_request = ros_request;
  make_id(action, goal->handle.goal_id.uuid);
  memcpy(ros_request, goal->handle.goal_id.uuid, sizeof goal->handle.goal_id.uuid); /* its first member */
  if (goal_handle != NULL) *goal_handle = &goal->handle; /* its callback may run before this returns */
  goal->client.sent_ns = tide_platform_now_ns(tide_port_platform());
  goal->client.session = tide_action_session(action);
  const int status = tide_compat_send_request(action->clients[PART_GOAL].impl, ros_request, &goal->client.goal_number,
                                              note_hash, goal);
  if (status == TIDE_OK) {
    (void)__atomic_add_fetch(&action->counters.goals, 1u, __ATOMIC_RELAXED);
    return RCL_RET_OK;
  }
  if (goal_handle != NULL) *goal_handle = NULL;
  tide_action_free_goal(goal);
  (void)tide_compat_result(status);
  return RCL_RET_ERROR; /* whatever the cause, as in rclc */
}

rcl_ret_t rclc_action_send_cancel_request(rclc_action_goal_handle_t *goal_handle) {
  tide_goal_t *goal = tide_action_goal_of(goal_handle, false);
  if (goal == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_action_goal_info_t request = {{0}, {0, 0}};
  memcpy(request.goal_id, goal->handle.goal_id.uuid, sizeof request.goal_id);
  return rcl_send_request(&goal->action->clients[PART_CANCEL], &request, &goal->client.cancel_number);
}

rcl_ret_t tide_rclc_action_client_ask_again(rclc_action_goal_handle_t *goal_handle) {
  tide_goal_t *goal = tide_action_goal_of(goal_handle, false);
  if (goal == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (tide_action_state(goal) != GOAL_STATE_ACCEPTED) return tide_compat_result(TIDE_ERROR_STATE);
  goal->client.ask_due = true;
  tide_action_wake(goal->action);
  return RCL_RET_OK;
}

static void forget_request(const rcl_client_t *client, int64_t number) {
  if (number != 0) (void)tide_rclc_client_forget(client, number);
}

rcl_ret_t tide_rclc_action_client_forget(rclc_action_goal_handle_t *goal_handle) {
  tide_goal_t *goal = tide_action_goal_of(goal_handle, false);
  if (goal == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_action_t *action = goal->action;
  tide_action_forget_goal_request(action, goal);
  forget_request(&action->clients[PART_RESULT], goal->client.result_number);
  forget_request(&action->clients[PART_CANCEL], goal->client.cancel_number);
  tide_action_free_goal(goal);
  return RCL_RET_OK;
}

/* ---- what tide adds ---- */

rcl_ret_t tide_rclc_action_client_set_priority(rclc_action_client_t *action_client, tide_priority_t priority) {
  tide_action_t *action = action_of(action_client);
  return tide_compat_result(action == NULL ? TIDE_ERROR_ARGUMENT : tide_action_set_priority(action, priority));
}

rcl_ret_t tide_rclc_chain_add_action_client(tide_chain_t *chain, rclc_action_client_t *action_client) {
  tide_action_t *action = action_of(action_client);
  return action == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : tide_action_add_to_chain(chain, action);
}

tide_callback_t *tide_rclc_action_client_callback(const rclc_action_client_t *action_client) {
  tide_action_t *action = action_of(action_client);
  return action == NULL || action->callback.executor == NULL ? NULL : &action->callback;
}

rcl_ret_t tide_rclc_action_client_get_counters(const rclc_action_client_t *action_client,
                                               tide_action_counters_t *counters) {
  const tide_action_t *action = action_of(action_client);
  if (action == NULL || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_action_count(action, counters);
  return RCL_RET_OK;
}
