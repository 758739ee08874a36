/* SPDX-License-Identifier: Apache-2.0 */
/* What comes for the client of an action: replies and feedback. In its executor's callback. */
#include "client.h"
#include "rclc/client.h"
#include "tide/rclc_service.h"

#define ALL_PARTS (1u << PART_GOAL | 1u << PART_RESULT | 1u << PART_CANCEL | 1u << PART_FEEDBACK)
#define CANCELING_MAXIMUM 8u
/* Servers keep results for ten seconds at least. Later one that does not know a goal may have run it and forgotten it.
 */
#define SEND_AGAIN_WITHIN_NS INT64_C(8000000000)
/* A request that came to ROS 2 before a question has come to the server by then. */
#define PAUSE_NS INT64_C(1000000000)

static int64_t now_ns(void) { return tide_platform_now_ns(tide_port_platform()); }

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

/* The goal that the oldest reply belongs to; null: there is none, or it is not known any more. */
static tide_goal_t *take_reply(tide_action_t *action, size_t part, void *response, rcl_ret_t *taken) {
  rmw_service_info_t info = {0};
  *taken = rcl_take_response_with_info(&action->clients[part], &info, response);
  return info.request_id.sequence_number == 0 ? NULL : find_by_number(action, part, info.request_id.sequence_number);
}

/* ---- results are asked for when the goal is accepted, and again in each new session ---- */

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

/* What was asked of its result before may have come to a server that did not know the goal yet. */
static void forget_question(tide_action_t *action, tide_goal_t *goal) {
  if (goal->client.result_number == 0) return;
  (void)tide_rclc_client_forget(&action->clients[PART_RESULT], goal->client.result_number);
  goal->client.result_number = 0;
}

static void end_request(tide_action_t *action, tide_goal_t *goal, bool accepted) {
  goal->client.goal_number = 0;
  goal->client.send_due = goal->client.refused = goal->client.ask_due = false;
  goal->client.ask_at_ns = 0;
  forget_question(action, goal);
  goal->handle.goal_accepted = accepted;
  if (accepted) tide_action_set_state(goal, GOAL_STATE_ACCEPTED);
  action->client.on_goal(&goal->handle, accepted, action->handle->callback_context);
  if (!tide_action_is_used(goal)) return; /* forgotten by the callback */
  if (accepted) {
    goal->client.ask_due = true;
  } else {
    action->counters.refused++;
    tide_action_free_goal(goal);
  }
}

static void end_without_answer(tide_action_t *action, tide_goal_t *goal, bool accepted) {
  tide_action_forget_goal_request(action, goal);
  end_request(action, goal, accepted);
}

/* A goal that has feedback was accepted, even if that answer has died with the agent. Of another one nobody here knows
 * whether it came as far as the server: who asks for the result of an unknown goal is told so. The request itself is
 * not repeated before: not every server takes the same goal twice. */
static void meet_session(tide_action_t *action, tide_goal_t *goal) {
  const bool is_asked = goal->client.goal_number != 0;                     /* and not answered, or refused in doubt */
  if (!is_asked && tide_action_state(goal) != GOAL_STATE_ACCEPTED) return; /* another thread is about to send it */
  goal->client.send_due = goal->client.unknown = false;
  goal->client.ask_at_ns = 0;
  goal->client.ask_due = true;
  if (is_asked && goal->client.heard) end_without_answer(action, goal, true);
}

/* The server does not know the goal, and the request cannot be sent again. It may be on its way yet, overtaken by the
 * question, so the goal counts as refused when another question, a while later, has the same answer. */
static void give_up(tide_action_t *action, tide_goal_t *goal) {
  if (goal->client.unknown) {
    end_without_answer(action, goal, false);
    return;
  }
  goal->client.unknown = goal->client.ask_due = true;
  goal->client.ask_at_ns = now_ns() + PAUSE_NS;
}

/* False: not now. */
static bool send_again(tide_action_t *action, tide_goal_t *goal) {
  const bool in_time = now_ns() - goal->client.sent_ns < SEND_AGAIN_WITHIN_NS;
  const int status = in_time ? tide_action_send_goal_again(action, goal) : TIDE_ERROR_STATE;
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

static void ask_again(tide_action_t *action) {
  if (!tide_action_meets_session(action)) return;
  for (size_t i = 0; i < action->goal_count && action->handle != NULL; i++) {
    if (tide_action_is_used(&action->goals[i])) meet_session(action, &action->goals[i]);
  }
}

/* The agent says something once a second at least, and then the link's context calls those that wait. */
static bool waits(const tide_goal_t *goal) {
  return tide_action_is_used(goal) && goal->client.ask_due && goal->client.ask_at_ns > now_ns();
}

static void send_what_is_due(tide_action_t *action) {
  bool later = false;
  ask_again(action);
  if (action->handle == NULL) return; /* a callback has finished the client */
  tide_action_set_attention(action, true);
  for (size_t i = 0; i < action->goal_count; i++) {
    tide_goal_t *goal = &action->goals[i];
    if (tide_action_is_used(goal) && goal->client.send_due && !send_again(action, goal)) return;
    if (action->handle == NULL) return;
    if (waits(goal)) {
      later = true;
    } else if (tide_action_is_used(goal) && goal->client.ask_due && !ask(action, goal)) {
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
  } else { /* who takes no goal twice refuses what it runs already: only a question that is sent now tells */
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

/* The result of a goal whose request has no answer, or was refused in doubt. False: the server does not know it, or a
 * callback forgot it. */
static bool is_over(tide_action_t *action, tide_goal_t *goal, rcl_ret_t taken) {
  const rcl_action_goal_state_t *state = action->client.result_message; /* its first member */
  if (taken == RCL_RET_OK && *state == GOAL_STATE_UNKNOWN) {
    if (goal->client.ask_due) return false; /* of a question that is older than the refusal */
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

/* A result that does not fit the program's memory ends the goal, too; its members say how much of it is there. */
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

/* ---- feedback, which every client of the action hears ---- */

static void drop_feedback(tide_action_t *action, tide_reader_t *reader) {
  tide_session_t *session = &action->support->session;
  if (tide_session_peek(session, reader) != NULL) tide_session_take_done(session, reader);
}

static void take_feedback(tide_action_t *action, void *context) {
  tide_subscription_handle_t *subscription = action->client.feedback.impl;
  void *message = action->client.feedback_message;
  if (action->client.on_feedback == NULL) {
    drop_feedback(action, &subscription->reader);
    return;
  }
  if (tide_compat_take(subscription, message, NULL) != RCL_RET_OK) return;
  tide_goal_t *goal = tide_action_find_goal(action, message);
  if (goal == NULL) {
    action->counters.unknown++;
  } else {
    goal->client.heard = true;
    if (goal->client.refused) end_without_answer(action, goal, true);
    if (!tide_action_is_used(goal) || action->handle == NULL) return; /* by the callback */
    action->client.on_feedback(&goal->handle, message, context);
  }
}

static void take_oldest(tide_action_t *action, void *context) {
  switch (tide_action_oldest_part(action, ALL_PARTS)) {
    case PART_GOAL:
      take_goal_response(action);
      break;
    case PART_FEEDBACK:
      take_feedback(action, context);
      break;
    case PART_CANCEL:
      take_cancel_response(action, context);
      break;
    case PART_RESULT:
      take_result_response(action, context);
      break;
    default:
      break;
  }
}

void tide_action_client_execute(tide_callback_t *callback, void *context) {
  (void)callback;
  const rclc_executor_handle_t *handle = context;
  tide_action_t *action = handle->impl;
  send_what_is_due(action); /* replies are taken meanwhile */
  if (action->handle != NULL) take_oldest(action, handle->callback_context);
  if (action->handle != NULL) send_what_is_due(action);
  if (action->handle == NULL) return; /* a callback has finished the client */
  if (tide_action_oldest_part(action, ALL_PARTS) != PART_NONE) tide_action_wake(action);
}
