/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of actions: set-up, sending, and handling of received messages in their executor's callback. */
#include "action.h"
#include "rclc/client.h"
#include "rclc/executor.h"
#include "rclc/subscription.h"
#include "tide/rclc_service.h"

#define ALL_PARTS (1u << PART_GOAL | 1u << PART_RESULT | 1u << PART_CANCEL | 1u << PART_FEEDBACK)
#define CANCELING_MAXIMUM 8u
/* Servers keep results for at least ten seconds. A server that does not know a goal after that time may have executed
 * the goal and forgotten it, so a goal is sent again only within a shorter time. */
#define SEND_AGAIN_WITHIN_NS INT64_C(8000000000)
/* Time from the first answer that the goal is unknown to the next result request. By then a goal request that has
 * reached ROS 2 has reached the server, too. */
#define PAUSE_NS INT64_C(1000000000)

/* ---- life ---- */

static rcl_ret_t close_parts(tide_action_t *action) {
  rcl_ret_t result = RCL_RET_OK;
  for (size_t part = 0; part < TIDE_ACTION_PARTS && result == RCL_RET_OK; part++) {
    result = rcl_client_fini(&action->clients[part], NULL);
  }
  return result == RCL_RET_OK ? rcl_subscription_fini(&action->client.feedback, NULL) : result;
}

static rcl_ret_t open_parts(tide_action_t *action, rcl_node_t *node, const rosidl_action_type_support_t *type,
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
    if (result == RCL_RET_OK) result = rclc_client_init_default(&action->clients[part], node, types[part], name);
  }
  if (result == RCL_RET_OK) result = tide_action_part_name(name, action_name, PART_FEEDBACK);
  if (result != RCL_RET_OK) return result;
  return rclc_subscription_init_default(&action->client.feedback, node, type->feedback_message_type_support, name);
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

/* ---- goals ---- */

static uint64_t mixed(uint64_t value) { /* splitmix64 */
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/* A goal's id is made from the board's key, the time and the goal, and is marked as a random UUID. */
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
  ((tide_goal_t *)context)->client.request_hash = hash_of(write);
  return true;
}

static void forget_goal_request(const tide_action_t *action, const tide_goal_t *goal) {
  if (goal->client.goal_number == 0 || goal->client.refused) return;
  (void)tide_rclc_client_forget(&action->clients[PART_GOAL], goal->client.goal_number);
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
  if (goal_handle != NULL)
    *goal_handle = &goal->handle; /* set before sending, as the goal's callback may run before this function returns */
  goal->client.sent_ns = tide_compat_now_ns();
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
  return RCL_RET_ERROR; /* as in rclc, whatever the cause */
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
  forget_goal_request(action, goal);
  forget_request(&action->clients[PART_RESULT], goal->client.result_number);
  forget_request(&action->clients[PART_CANCEL], goal->client.cancel_number);
  tide_action_free_goal(goal);
  return RCL_RET_OK;
}

/* ---- replies and feedback, in the executor's callback ---- */

static tide_goal_t *find_by_number(tide_action_t *action, size_t part, int64_t number) {
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    const int64_t own = part == PART_GOAL     ? goal->client.goal_number
                        : part == PART_RESULT ? goal->client.result_number
                                              : goal->client.cancel_number;
    if (tide_action_is_used(goal) && own == number) return goal;
  }
  return NULL;
}

/* The goal of the oldest reply; null if there is no reply or the goal is no longer known. */
static tide_goal_t *take_reply(tide_action_t *action, size_t part, void *response, rcl_ret_t *taken) {
  rmw_service_info_t info = {0};
  *taken = rcl_take_response_with_info(&action->clients[part], &info, response);
  return info.request_id.sequence_number == 0 ? NULL : find_by_number(action, part, info.request_id.sequence_number);
}

/* ---- results are requested when the goal is accepted, and again in each new session ---- */

static bool ask(tide_action_t *action, tide_goal_t *goal) {
  const rcl_client_t *client = &action->clients[PART_RESULT];
  const int64_t before = goal->client.result_number;
  const int status =
      tide_compat_send_request(client->impl, &goal->handle.goal_id, &goal->client.result_number, NULL, NULL);
  if (status != TIDE_OK) {
    goal->client.result_number = before;
    if (status == TIDE_ERROR_FULL || status == TIDE_ERROR_DISCONNECTED) return false;
    action->counters.replies_lost++;
    (void)tide_compat_result(status);
  } else if (before != 0) {
    (void)tide_rclc_client_forget(client, before);
    action->counters.repeated++;
  }
  goal->client.ask_due = false;
  goal->client.ask_at_ns = 0;
  return true;
}

static void end_request(tide_action_t *action, tide_goal_t *goal, bool accepted) {
  goal->client.goal_number = 0;
  goal->client.send_due = goal->client.refused = goal->client.ask_due = false;
  goal->client.ask_at_ns = 0;
  /* an earlier result request may have reached a server before that server knew the goal, so its answer is ignored */
  forget_request(&action->clients[PART_RESULT], goal->client.result_number);
  goal->client.result_number = 0;
  goal->handle.goal_accepted = accepted;
  if (accepted) tide_action_set_state(goal, GOAL_STATE_ACCEPTED);
  action->client.on_goal(&goal->handle, accepted, action->handle->callback_context);
  if (!tide_action_is_used(goal)) return; /* the callback forgot the goal */
  if (accepted) {
    goal->client.ask_due = true;
  } else {
    action->counters.refused++;
    tide_action_free_goal(goal);
  }
}

static void end_without_answer(tide_action_t *action, tide_goal_t *goal, bool accepted) {
  forget_goal_request(action, goal);
  end_request(action, goal, accepted);
}

/* If feedback of a goal has arrived, the goal was accepted, even if the answer was lost with the agent. Without
 * feedback it is not known whether the request reached the server. The client therefore first requests the result. Only
 * if the server answers that the goal is unknown is the goal request repeated, because not every server accepts the
 * same goal twice. */
static void meet_session(tide_action_t *action, tide_goal_t *goal) {
  const bool is_asked = goal->client.goal_number != 0; /* the goal request is unanswered, or its refusal is in doubt */
  if (!is_asked && tide_action_state(goal) != GOAL_STATE_ACCEPTED)
    return; /* another thread is about to send this goal */
  goal->client.send_due = goal->client.unknown = false;
  goal->client.ask_at_ns = 0;
  goal->client.ask_due = true;
  if (is_asked && goal->client.heard) end_without_answer(action, goal, true);
}

/* The server does not know the goal, and the request cannot be sent again. The goal request may still be in transit,
 * because the result request can overtake it. The goal therefore counts as refused only when another result request, a
 * while later, gets the same answer. */
static void give_up(tide_action_t *action, tide_goal_t *goal) {
  if (goal->client.unknown) {
    end_without_answer(action, goal, false);
    return;
  }
  goal->client.unknown = goal->client.ask_due = true;
  goal->client.ask_at_ns = tide_compat_now_ns() + PAUSE_NS;
}

static bool is_as_it_was(const tide_write_t *write, void *context) {
  return ((const tide_goal_t *)context)->client.request_hash == hash_of(write);
}

/* Sends the goal request again, with a new sequence number. Returns TIDE_ERROR_STATE if the program has changed the
 * request's memory, TIDE_ERROR_FULL or TIDE_ERROR_DISCONNECTED if the caller has to try again later. */
static int send_goal_again(tide_action_t *action, tide_goal_t *goal) {
  int64_t number = 0;
  const int status = tide_compat_send_request(action->clients[PART_GOAL].impl, goal->handle.ros_goal_request, &number,
                                              is_as_it_was, goal);
  if (status != TIDE_OK) return status;
  (void)tide_rclc_client_forget(&action->clients[PART_GOAL], goal->client.goal_number);
  goal->client.goal_number = number;
  goal->client.repeated = true;
  return TIDE_OK;
}

/* Returns false if the caller has to try again later. */
static bool send_again(tide_action_t *action, tide_goal_t *goal) {
  const bool in_time = tide_compat_now_ns() - goal->client.sent_ns < SEND_AGAIN_WITHIN_NS;
  const int status = in_time ? send_goal_again(action, goal) : TIDE_ERROR_STATE;
  if (status == TIDE_ERROR_FULL || status == TIDE_ERROR_DISCONNECTED) return false;
  goal->client.send_due = false;
  if (status == TIDE_OK) {
    goal->client.unknown = false;
    action->counters.repeated++;
  } else {
    give_up(action, goal);
  }
  return true;
}

static void send_what_is_due(tide_action_t *action) {
  bool later = false;
  const bool is_new_session = tide_action_meets_session(action);
  for (size_t i = 0; is_new_session && i < action->goal_count && action->handle != NULL; i++) {
    if (tide_action_is_used(&action->goals[i])) meet_session(action, &action->goals[i]);
  }
  if (action->handle == NULL) return; /* a callback has finalised the client */
  tide_action_set_attention(action, true);
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (tide_action_is_used(goal) && goal->client.send_due && !send_again(action, goal)) return;
    if (action->handle == NULL) return;
    if (!tide_action_is_used(goal) || !goal->client.ask_due) continue;
    if (goal->client.ask_at_ns > tide_compat_now_ns()) {
      later = true; /* the link's context retries at the agent's next message, which comes within a second */
    } else if (!ask(action, goal)) {
      return;
    }
  }
  tide_action_set_attention(action, later);
}

/* ---- replies ---- */

static void take_goal_response(tide_action_t *action) {
  tide_action_goal_response_t response = {false, {0, 0}};
  rcl_ret_t taken = RCL_RET_OK;
  tide_goal_t *goal = take_reply(action, PART_GOAL, &response, &taken);
  if (goal == NULL) return;
  const bool accepted = goal->client.heard || (taken == RCL_RET_OK && response.accepted);
  if (accepted || !tide_action_is_in_doubt(action, goal)) {
    end_request(action, goal, accepted);
  } else { /* a server that refuses repeats may be running the goal: the result shows it */
    goal->client.refused = goal->client.ask_due = true;
    goal->client.send_due = false;
    goal->client.ask_at_ns = 0;
  }
}

typedef struct cancel_response {
  int8_t code;
  struct {
    tide_action_goal_info_t *data;
    size_t size, capacity;
  } goals;
} cancel_response_t;

static bool is_canceling(const cancel_response_t *response, const tide_goal_t *goal) {
  for (size_t i = 0; i < response->goals.size; i++) {
    const uint8_t *goal_id = response->goals.data[i].goal_id;
    if (memcmp(goal_id, goal->handle.goal_id.uuid, sizeof goal->handle.goal_id.uuid) == 0) return true;
  }
  return false;
}

static void take_cancel_response(tide_action_t *action, void *context) {
  tide_action_goal_info_t goals[CANCELING_MAXIMUM];
  cancel_response_t response = {CANCEL_STATE_REJECTED, {goals, 0, CANCELING_MAXIMUM}};
  rcl_ret_t taken = RCL_RET_OK;
  tide_goal_t *goal = take_reply(action, PART_CANCEL, &response, &taken);
  if (goal == NULL) return;
  goal->client.cancel_number = 0;
  goal->handle.goal_cancelled = is_canceling(&response, goal);
  if (action->client.on_cancel != NULL) {
    action->client.on_cancel(&goal->handle, goal->handle.goal_cancelled, context);
  }
}

/* Handles the result of a goal whose request is unanswered or was refused while in doubt. Returns false if the server
 * does not know the goal, or if a callback forgot the goal. */
static bool is_over(tide_action_t *action, tide_goal_t *goal, rcl_ret_t taken) {
  const rcl_action_goal_state_t *state = action->client.result_message; /* its first member */
  if (taken == RCL_RET_OK && *state == GOAL_STATE_UNKNOWN) {
    if (goal->client.ask_due) return false; /* the reply answers a request made before the refusal */
    if (goal->client.refused) {
      end_without_answer(action, goal, false);
    } else {
      goal->client.send_due = true;
    }
    return false;
  }
  end_without_answer(action, goal, true);
  if (!tide_action_is_used(goal)) return false;
  goal->client.ask_due = false;
  return true;
}

/* A result that does not fit the program's memory ends the goal, too; the result's members show how much of it was
 * stored. */
static void take_result_response(tide_action_t *action, void *context) {
  rcl_ret_t taken = RCL_RET_OK;
  tide_goal_t *goal = take_reply(action, PART_RESULT, action->client.result_message, &taken);
  if (goal == NULL) return;
  goal->client.result_number = 0;
  if (goal->client.goal_number != 0 && !is_over(action, goal, taken)) return;
  tide_action_set_state(goal, *(const rcl_action_goal_state_t *)action->client.result_message); /* its first member */
  action->counters.results++;
  action->client.on_result(&goal->handle, action->client.result_message, context);
  tide_action_free_goal(goal);
}

/* ---- feedback, which every client of the action receives ---- */

static void take_feedback(tide_action_t *action, void *context) {
  tide_subscription_handle_t *subscription = action->client.feedback.impl;
  void *message = action->client.feedback_message;
  if (action->client.on_feedback == NULL) {
    tide_session_t *session = &action->support->session;
    if (tide_session_peek(session, &subscription->reader) != NULL) {
      tide_session_take_done(session, &subscription->reader);
    }
    return;
  }
  if (tide_compat_take(subscription, message, NULL) != RCL_RET_OK) return;
  tide_goal_t *goal = tide_action_find_goal(action, message);
  if (goal == NULL) {
    action->counters.unknown++;
  } else {
    goal->client.heard = true;
    if (goal->client.refused) end_without_answer(action, goal, true);
    if (!tide_action_is_used(goal) || action->handle == NULL)
      return; /* the callback forgot the goal or finalised the
                 client */
    action->client.on_feedback(&goal->handle, message, context);
  }
}

static void take_oldest(tide_action_t *action, void *context) {
  switch (tide_action_oldest_part(action, ALL_PARTS)) {
    case PART_GOAL: take_goal_response(action); break;
    case PART_FEEDBACK: take_feedback(action, context); break;
    case PART_CANCEL: take_cancel_response(action, context); break;
    case PART_RESULT: take_result_response(action, context); break;
    default: break;
  }
}

static void execute(tide_callback_t *callback, void *context) {
  (void)callback;
  const rclc_executor_handle_t *handle = context;
  tide_action_t *action = handle->impl;
  send_what_is_due(action); /* before a reply is handled, so that the link sends meanwhile */
  if (action->handle != NULL) take_oldest(action, handle->callback_context);
  if (action->handle != NULL) send_what_is_due(action);
  if (action->handle == NULL) return; /* a callback has finalised the client */
  if (tide_action_oldest_part(action, ALL_PARTS) != PART_NONE) tide_action_wake(action);
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
  return tide_action_add(executor, action, RCLC_ACTION_CLIENT, handles_number, context, execute);
}

/* ---- extensions of tide ---- */

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
