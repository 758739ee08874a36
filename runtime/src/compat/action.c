/* SPDX-License-Identifier: Apache-2.0 */
/* What servers and clients of actions share: pool entries, goals, kept results, executors and chains. One executor
 * callback handles the messages of all services and topics of an action, one message a run, oldest first. A message for
 * which no node is free stays pending in the action and its goals, and the link's context retries it. */
#include "action.h"
#include "tide/invariant.h"
#include "tide/message_memory.h"

tide_action_t *tide_action_take_place(tide_support_t *support, bool is_server) {
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t i = 0; pools != NULL && i < pools->action_count; i++) {
    tide_action_t *action = &pools->actions[i];
    if (action->support != NULL) continue;
    const uintptr_t critical = tide_compat_enter(); /* because the link's context reads all entries */
    memset(action, 0, sizeof *action);
    action->is_server = is_server;
    action->support = support;
    tide_compat_leave(critical);
    return action;
  }
  return NULL;
}

rcl_ret_t tide_action_part_name(char *destination, const char *action_name, size_t part) {
  static const char *const suffixes[] = {[PART_GOAL] = "send_goal",
                                         [PART_RESULT] = "get_result",
                                         [PART_CANCEL] = "cancel_goal",
                                         [PART_FEEDBACK] = "feedback",
                                         [PART_STATUS] = "status"};
  static const char infix[] = "/_action/";
  const size_t length = strlen(action_name), more = strlen(suffixes[part]) + 1;
  if (length + sizeof infix - 1u + more > TIDE_ACTION_NAME_BYTES) return tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  for (size_t i = 0; i < length; i++) destination[i] = action_name[i];
  memcpy(destination + length, infix, sizeof infix - 1u);
  memcpy(destination + length + sizeof infix - 1u, suffixes[part], more);
  return RCL_RET_OK;
}

rcl_ret_t tide_action_result_of_init(rcl_ret_t result) {
  const bool is_name = result == RCL_RET_TOPIC_NAME_INVALID || result == RCL_RET_SERVICE_NAME_INVALID;
  return is_name ? RCL_RET_ACTION_NAME_INVALID : result;
}

static tide_service_end_t *end_of(tide_action_t *action, size_t part) {
  return action->is_server ? &action->services[part].impl->end : &action->clients[part].impl->end;
}

static tide_subscription_handle_t *feedback_of(tide_action_t *action) {
  return action->is_server ? NULL : action->client.feedback.impl;
}

/* ---- making the callback run, and retries ---- */

static void notify_locked(tide_action_t *action) {
  if (!tide_callback_is_ready(&action->callback)) tide_executor_notify(&action->callback);
}

void tide_action_wake(tide_action_t *action) {
  const uintptr_t critical = tide_compat_enter();
  notify_locked(action);
  tide_compat_leave(critical);
}

static void on_service_sample(void *context, tide_reader_t *reader) {
  (void)reader;
  const tide_service_end_t *end = context;
  const uintptr_t critical = tide_compat_enter();
  if (end->handle != NULL) notify_locked(end->handle->impl);
  tide_compat_leave(critical);
}

static void on_feedback_sample(void *context, tide_reader_t *reader) {
  (void)reader;
  const tide_subscription_handle_t *subscription = context;
  const uintptr_t critical = tide_compat_enter();
  if (subscription->handle != NULL) notify_locked(subscription->handle->impl);
  tide_compat_leave(critical);
}

static bool has_new_session(const tide_action_t *action) {
  const tide_session_t *session = &action->support->session;
  return session->state == TIDE_SESSION_READY && session->id != action->session;
}

bool tide_action_meets_session(tide_action_t *action) {
  const uintptr_t critical = tide_compat_enter();
  const bool is_new = has_new_session(action);
  if (is_new) action->session = action->support->session.id;
  tide_compat_leave(critical);
  return is_new;
}

uint8_t tide_action_session(const tide_action_t *action) {
  const uintptr_t critical = tide_compat_enter();
  const uint8_t id = action->support->session.id;
  tide_compat_leave(critical);
  return id;
}

static bool is_due_locked(const tide_action_t *action, const tide_support_t *support) {
  return action->support == support &&
         (__atomic_load_n(&action->attention, __ATOMIC_ACQUIRE) || has_new_session(action));
}

/* Retries the next action, from `*place` on, that has pending messages; actions without any are skipped in one critical
 * section. Returns false if no action has pending messages. */
static bool retry_next(const tide_support_t *support, size_t *place) {
  const tide_action_pools_t *pools = tide_pools.actions;
  const uintptr_t critical = tide_compat_enter();
  while (*place < pools->action_count && !is_due_locked(&pools->actions[*place], support)) ++*place;
  const bool found = *place < pools->action_count;
  if (found) notify_locked(&pools->actions[(*place)++]);
  tide_compat_leave(critical);
  return found;
}

/* Runs in the link's context, after each of its events. */
static void retry(tide_support_t *support) {
  tide_compat_retry_services(support);
  for (size_t place = 0; retry_next(support, &place);) continue;
}

void tide_action_set_attention(tide_action_t *action, bool attention) {
  __atomic_store_n(&action->attention, attention, __ATOMIC_RELEASE);
}

/* ---- in an executor ---- */

static bool overlaps(const tide_action_t *action, const tide_goal_t *first, size_t count) {
  return action->support != NULL && action->goals != NULL && first < action->goals + action->goal_count &&
         action->goals < first + count;
}

/* The first sufficiently long run of free entries. */
static tide_goal_t *free_goals(const tide_action_pools_t *pools, size_t count) {
  tide_goal_t *first = pools->goals;
  for (size_t i = 0; i < pools->action_count; i++) {
    if ((size_t)(pools->goals + pools->goal_count - first) < count) return NULL;
    const tide_action_t *action = &pools->actions[i];
    if (!overlaps(action, first, count)) continue;
    first = action->goals + action->goal_count;
    i = SIZE_MAX; /* start again */
  }
  return (size_t)(pools->goals + pools->goal_count - first) < count ? NULL : first;
}

static void attach(tide_action_t *action, rclc_executor_handle_t *handle, uint8_t owner) {
  tide_subscription_handle_t *feedback = feedback_of(action);
  tide_session_t *session = &action->support->session;
  const uintptr_t critical = tide_compat_enter();
  for (size_t part = 0; part < TIDE_ACTION_PARTS; part++) {
    end_of(action, part)->reader.on_sample = on_service_sample;
    end_of(action, part)->handle = handle;
  }
  if (feedback != NULL) {
    feedback->reader.on_sample = on_feedback_sample;
    feedback->handle = handle;
  }
  tide_compat_leave(critical);
  for (size_t part = 0; part < TIDE_ACTION_PARTS; part++) {
    tide_session_set_reader_owner(session, &end_of(action, part)->reader, owner);
  }
  if (feedback != NULL) tide_session_set_reader_owner(session, &feedback->reader, owner);
  action->handle = handle;
}

rcl_ret_t tide_action_add(rclc_executor_t *executor, tide_action_t *action, rclc_executor_handle_type_t type,
                          size_t goal_count, void *context, void (*execute)(tide_callback_t *callback, void *context)) {
  if (goal_count == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rclc_executor_handle_t wanted = {.type = type,
                                         .action_server = action->program,
                                         /* or the client: both share this union member */ .callback_context = context};
  rclc_executor_handle_t *handle;
  const int opened = tide_compat_open_handle(executor, &wanted, action, &action->callback, &handle);
  if (opened != TIDE_OK) return tide_compat_result(opened);
  action->goals = NULL;
  tide_goal_t *goals = free_goals(tide_pools.actions, goal_count);
  if (goals == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_GOALS);
  memset(goals, 0, goal_count * sizeof *goals);
  action->callback.kind = action->is_server ? TIDE_CALLBACK_SERVICE : TIDE_CALLBACK_CLIENT;
  action->callback.execute = execute;
  const int added = tide_executor_add(&executor->impl->core, &action->callback);
  if (added != TIDE_OK) return tide_compat_commit_handle(executor, handle, added);
  action->goals = goals;
  action->goal_count = goal_count;
  action->session = action->support->session.id;
  (void)tide_compat_commit_handle(executor, handle, TIDE_OK);
  attach(action, handle, executor->impl->number);
  const uintptr_t critical = tide_compat_enter();
  action->support->retry_responses = retry;
  tide_compat_leave(critical);
  tide_action_wake(action); /* because messages may have arrived before the callback was set */
  return RCL_RET_OK;
}

int tide_compat_remove_action(tide_executor_handle_t *executor, tide_action_t *action) {
  const int status = tide_compat_remove_callback(&action->callback);
  if (status != TIDE_OK) return status;
  attach(action, NULL, 0);
  tide_session_t *session = &action->support->session;
  if (executor->number != 0) tide_daemon_disown(&session->daemon, executor->number);
  return TIDE_OK;
}

rcl_ret_t tide_action_close(tide_action_t *action, rcl_ret_t (*close_parts)(tide_action_t *action)) {
  rclc_executor_handle_t *handle = action->handle;
  const int status = tide_compat_remove_callback(&action->callback);
  if (status != TIDE_OK) return tide_compat_result(status);
  if (handle != NULL) {
    attach(action, NULL, 0);
    memset(handle, 0, sizeof *handle);
  }
  const rcl_ret_t result = close_parts(action);
  if (result != RCL_RET_OK) return result;
  for (size_t i = 0; i < action->goal_count; i++) tide_action_free_goal(&action->goals[i]);
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t i = 0; i < pools->result_count; i++) {
    if (pools->results[i].action == action) tide_action_drop_result(&pools->results[i]);
  }
  const uintptr_t critical = tide_compat_enter();
  action->support = NULL;
  tide_compat_leave(critical);
  return RCL_RET_OK;
}

void tide_compat_release_actions(void) {
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t i = 0; i < pools->action_count; i++) pools->actions[i].support = NULL;
  for (size_t i = 0; i < pools->goal_count; i++) pools->goals[i].action = NULL;
  for (size_t i = 0; i < pools->result_count; i++) pools->results[i].action = NULL;
}

/* ---- received messages ---- */

static int64_t oldest_ns(const tide_reader_t *reader) {
  const uintptr_t critical = tide_compat_enter();
  int64_t arrived_ns = TIDE_FOREVER;
  if (reader->current.memory != NULL) {
    arrived_ns = reader->current.arrived_ns;
  } else if (reader->count > 0) {
    arrived_ns = reader->samples[reader->first].arrived_ns;
  }
  tide_compat_leave(critical);
  return arrived_ns;
}

static const tide_reader_t *reader_of(tide_action_t *action, size_t part) {
  return part == PART_FEEDBACK ? &feedback_of(action)->reader : &end_of(action, part)->reader;
}

int tide_action_oldest_part(tide_action_t *action, uint32_t parts) {
  /* the order of messages of equal time */
  static const uint8_t order[] = {PART_GOAL, PART_FEEDBACK, PART_CANCEL, PART_RESULT};
  int oldest = PART_NONE;
  int64_t earliest_ns = TIDE_FOREVER;
  for (size_t i = 0; i < sizeof order; i++) {
    if ((parts >> order[i] & 1u) == 0) continue;
    const int64_t arrived_ns = oldest_ns(reader_of(action, order[i]));
    if (arrived_ns >= earliest_ns) continue;
    earliest_ns = arrived_ns;
    oldest = order[i];
  }
  return oldest;
}

/* ---- chains ---- */

int tide_action_set_priority(tide_action_t *action, tide_priority_t priority) {
  if (TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (action->callback.executor != NULL) {
    tide_executor_set_priority(action->callback.executor, &action->callback, priority);
  }
  action->callback.priority = priority;
  int status = TIDE_OK;
  for (size_t part = 0; part < TIDE_ACTION_PARTS && status == TIDE_OK; part++) {
    status = tide_compat_set_end_priority(end_of(action, part), priority);
  }
  if (status != TIDE_OK) return status;
  if (!action->is_server) {
    return tide_session_set_reader_priority(&action->support->session, &feedback_of(action)->reader, priority);
  }
  action->server.feedback.impl->writer.priority = priority;
  action->server.status.impl->writer.priority = priority;
  return TIDE_OK;
}

rcl_ret_t tide_action_add_to_chain(tide_chain_t *chain, tide_action_t *action) {
  if (chain == NULL || action->callback.executor == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const int position = tide_chain_add(chain, &action->callback);
  if (position < 0) return tide_compat_result(position);
  return tide_compat_result(tide_action_set_priority(action, action->callback.priority));
}

void tide_action_count(const tide_action_t *action, tide_action_counters_t *counters) {
  tide_action_t *own = (tide_action_t *)action;
  const uintptr_t critical = tide_compat_enter();
  *counters = action->counters;
  for (size_t part = 0; part < TIDE_ACTION_PARTS; part++) {
    const tide_service_end_t *end = end_of(own, part);
    counters->dropped += end->reader.dropped;
    counters->malformed += __atomic_load_n(&end->decode_errors, __ATOMIC_RELAXED);
    if (!action->is_server) counters->unknown += action->clients[part].impl->unexpected;
  }
  const tide_subscription_handle_t *feedback = feedback_of(own);
  if (feedback != NULL) {
    counters->dropped += feedback->reader.dropped;
    counters->malformed += feedback->decode_errors;
  }
  tide_compat_leave(critical);
}

/* ---- goals: a part of the pool, taken by a sender or by the server's callback, found by any thread ---- */

static void clear_locked(tide_goal_t *goal, tide_action_t *action) {
  void *request = goal->handle.ros_goal_request; /* the entries of a server keep their request buffers for ever */
  memset(&goal->handle, 0, sizeof goal->handle);
  memset(&goal->server, 0, sizeof goal->server); /* also clears `client`, the smaller member of the union */
  goal->handle.ros_goal_request = request;
  goal->handle.action_server = action->program; /* or the client: both share this union member */
  __atomic_store_n(&goal->action, action, __ATOMIC_RELEASE);
}

tide_goal_t *tide_action_new_goal(tide_action_t *action) {
  tide_goal_t *free = NULL;
  const uintptr_t critical = tide_compat_enter();
  for (size_t i = 0; i < action->goal_count && free == NULL; i++) {
    if (!tide_action_is_used(&action->goals[i])) free = &action->goals[i];
  }
  if (free != NULL) clear_locked(free, action);
  tide_compat_leave(critical);
  return free;
}

bool tide_action_has_free_goal(const tide_action_t *action) {
  for (size_t i = 0; i < action->goal_count; i++) {
    if (!tide_action_is_used(&action->goals[i])) return true;
  }
  return false;
}

void tide_action_free_goal(tide_goal_t *goal) { __atomic_store_n(&goal->action, NULL, __ATOMIC_RELEASE); }

_Static_assert(sizeof(((tide_goal_t *)0)->client) <= sizeof(((tide_goal_t *)0)->server), "cleared together");

/* A server's goal can be found only after it was accepted: until then, and for a repeated request, its state is
 * unknown. */
static bool is_found(const tide_goal_t *goal, const uint8_t *goal_id) {
  const tide_action_t *action = tide_action_owner(goal);
  if (action == NULL || (action->is_server && tide_action_state(goal) == GOAL_STATE_UNKNOWN)) return false;
  return memcmp(goal->handle.goal_id.uuid, goal_id, sizeof goal->handle.goal_id.uuid) == 0;
}

tide_goal_t *tide_action_find_goal(tide_action_t *action, const uint8_t *goal_id) {
  for (size_t i = 0; i < action->goal_count; i++) {
    if (is_found(&action->goals[i], goal_id)) return &action->goals[i];
  }
  return NULL;
}

bool tide_action_is_in_doubt(const tide_action_t *action, const tide_goal_t *goal) {
  return goal->client.repeated || goal->client.session != tide_action_session(action);
}

tide_goal_t *tide_action_goal_of(const rclc_action_goal_handle_t *handle, bool is_server) {
  const tide_action_pools_t *pools = tide_pools.actions;
  if (handle == NULL || pools == NULL) return NULL;
  const size_t distance = (uintptr_t)handle - (uintptr_t)pools->goals;
  if (distance >= pools->goal_count * sizeof *pools->goals || distance % sizeof *pools->goals != 0) return NULL;
  tide_goal_t *goal = &pools->goals[distance / sizeof *pools->goals];
  return tide_action_is_open(tide_action_owner(goal), is_server) ? goal : NULL;
}

/* ---- results that are kept, serialised, after their goals have ended; and the status topic ---- */

#define STATUS_BYTES 28u  /* one goal's entry: id, stamp, state, padding */
#define PADDING_BYTES 3u  /* alignment, before each stamp but the first */
#define LOOKED_AT_ONCE 4u /* number of kept results checked in one critical section */

uint8_t *tide_action_result_bytes(const tide_action_result_t *result) {
  const tide_action_pools_t *pools = tide_pools.actions;
  return pools->result_bytes + (size_t)(result - pools->results) * pools->result_capacity;
}

/* The entry of least worth is taken: a free entry first, then an outdated result, then a delivered one, then any other;
 * among equals the result that expires first. */
static int64_t worth(const tide_action_result_t *result, int64_t now) {
  if (result->action == NULL) return INT64_MIN;
  if (result->expires_ns <= now) return INT64_MIN + 1;
  return result->delivered ? result->expires_ns / 2 - INT64_MAX / 2 : result->expires_ns / 2;
}

/* Results that are being sent, or whose goals still have handles, are not evicted. */
static tide_action_result_t *least_worth_locked(const tide_action_pools_t *pools, int64_t now) {
  tide_action_result_t *least = NULL;
  for (size_t i = 0; i < pools->result_count; i++) {
    tide_action_result_t *result = &pools->results[i];
    if (result->action != NULL && (result->goal != NULL || result->sending || !result->ready)) continue;
    if (least == NULL || worth(result, now) < worth(least, now)) least = result;
  }
  return least;
}

tide_action_result_t *tide_action_keep(tide_goal_t *goal, size_t bytes) {
  const tide_action_pools_t *pools = tide_pools.actions;
  if (bytes > pools->result_capacity) return NULL;
  const int64_t now = tide_compat_now_ns();
  const uintptr_t critical = tide_compat_enter();
  tide_action_result_t *result = least_worth_locked(pools, now);
  if (result != NULL) {
    if (result->action != NULL && !result->delivered && result->expires_ns > now) {
      result->action->counters.results_gone++;
    }
    memset(result, 0, sizeof *result);
    result->action = goal->action;
    result->goal = goal;
    memcpy(result->goal_id, goal->handle.goal_id.uuid, sizeof result->goal_id);
    result->accepted_ns = goal->server.accepted_ns;
    const int64_t timeout_ns = goal->action->server.result_timeout_ns;
    result->expires_ns = timeout_ns < 0 || timeout_ns > TIDE_FOREVER - now ? TIDE_FOREVER : now + timeout_ns;
  }
  tide_compat_leave(critical);
  return result;
}

void tide_action_drop_result(tide_action_result_t *result) {
  const uintptr_t critical = tide_compat_enter();
  result->action = NULL;
  tide_compat_leave(critical);
}

static bool is_one_of(const tide_action_result_t *result, const tide_action_t *action) {
  return result->action == action && result->ready;
}

/* Visits all results, each in a short critical section, as other threads store results meanwhile. */
static void for_each_result(void (*visit)(tide_action_result_t *result, void *context), void *context) {
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t next = 0; next < pools->result_count;) {
    const uintptr_t critical = tide_compat_enter();
    for (size_t last = next + LOOKED_AT_ONCE; next < last && next < pools->result_count; next++) {
      visit(&pools->results[next], context);
    }
    tide_compat_leave(critical);
  }
}

static bool is_over(const tide_action_result_t *result, int64_t now) {
  return result->goal == NULL && result->expires_ns <= now;
}

tide_action_result_t *tide_action_find_result(const tide_action_t *action, const uint8_t *goal_id) {
  const tide_action_pools_t *pools = tide_pools.actions;
  const int64_t now = tide_compat_now_ns();
  tide_action_result_t *found = NULL;
  const uintptr_t critical = tide_compat_enter();
  for (size_t i = 0; i < pools->result_count && found == NULL; i++) {
    tide_action_result_t *result = &pools->results[i];
    if (!is_one_of(result, action) || is_over(result, now)) continue;
    if (memcmp(result->goal_id, goal_id, sizeof result->goal_id) == 0) found = result;
  }
  tide_compat_leave(critical);
  return found;
}

tide_action_result_t *tide_action_result_of(const tide_goal_t *goal) {
  const tide_action_pools_t *pools = tide_pools.actions;
  tide_action_result_t *found = NULL;
  const uintptr_t critical = tide_compat_enter();
  for (size_t i = 0; i < pools->result_count && found == NULL; i++) {
    tide_action_result_t *result = &pools->results[i];
    if (is_one_of(result, goal->action) && result->goal == goal) found = result;
  }
  tide_compat_leave(critical);
  return found;
}

/* ---- replies to requests ---- */

/* A message of zeroes: empty texts and sequences. */
static void put_zeroes(tide_cdr_t *cdr, const tide_message_type_t *type) {
  static const uint64_t zero = 0;
  for (size_t i = 0; i < type->field_count; i++) {
    const tide_field_t *field = &type->fields[i];
    const uint32_t count = field->shape == TIDE_SHAPE_ARRAY ? field->bound : 1u;
    for (uint32_t n = 0; n < count; n++) {
      if (field->shape == TIDE_SHAPE_SEQUENCE || field->kind == TIDE_FIELD_WSTRING) {
        tide_cdr_put_u32(cdr, 0);
      } else if (field->kind == TIDE_FIELD_STRING) {
        tide_cdr_put_string(cdr, "", 0);
      } else if (field->kind == TIDE_FIELD_MESSAGE) {
        put_zeroes(cdr, field->type);
      } else {
        tide_cdr_put_array(cdr, &zero, 1, tide_field_element_bytes(field));
      }
    }
  }
}

/* A result of zeroes with this status, its first member. */
static int send_empty(const tide_action_t *action, const rmw_request_id_t *asker, rcl_action_goal_state_t state) {
  tide_service_handle_t *service = action->services[PART_RESULT].impl;
  const tide_message_type_t *type = service->end.type->response;
  tide_cdr_t measured;
  tide_cdr_measure(&measured);
  put_zeroes(&measured, type);
  tide_write_t write;
  const int status = tide_compat_begin_response(service, asker, &write, measured.position);
  if (status != TIDE_OK) return status;
  uint8_t *first = write.cdr.bytes + write.cdr.position;
  put_zeroes(&write.cdr, type);
  *first = (uint8_t)state;
  return tide_compat_write_end(service->end.support, &write);
}

/* The reply for a goal without a kept result: either the result could not be sent or kept, or the goal is unknown. */
static int send_without_result(tide_action_t *action, const rmw_request_id_t *asker, const uint8_t *goal_id) {
  const tide_goal_t *goal = tide_action_find_goal(action, goal_id);
  const int status = send_empty(action, asker, goal == NULL ? GOAL_STATE_UNKNOWN : tide_action_state(goal));
  if (goal == NULL && status != TIDE_ERROR_FULL) action->counters.unknown++;
  return status;
}

int tide_action_send_kept(tide_action_t *action, const rmw_request_id_t *asker, const uint8_t *goal_id) {
  uintptr_t critical = tide_compat_enter();
  tide_action_result_t *result = tide_action_find_result(action, goal_id);
  if (result != NULL) result->sending = true; /* protects the result from eviction */
  tide_compat_leave(critical);
  if (result == NULL) return send_without_result(action, asker, goal_id);
  tide_service_handle_t *service = action->services[PART_RESULT].impl;
  tide_write_t write;
  int status = result->bytes == 0 ? send_empty(action, asker, result->status)
                                  : tide_compat_begin_response(service, asker, &write, result->bytes);
  if (status == TIDE_OK && result->bytes > 0) {
    tide_cdr_put_bytes(&write.cdr, tide_action_result_bytes(result), result->bytes);
    status = tide_compat_write_end(service->end.support, &write);
  }
  if (status == TIDE_OK) {
    result->delivered = true;
    action->counters.results++;
  }
  critical = tide_compat_enter();
  result->sending = false;
  tide_compat_leave(critical);
  return status;
}

/* ---- the status topic ---- */

typedef struct listing {
  const tide_action_t *action;
  int64_t now_ns; /* time of the first pass, which also drops outdated results */
  uint8_t *next;  /* where the next state is written; null: states are only counted */
  uint32_t count, limit;
} listing_t;

static uint8_t *put_word(uint8_t *place, uint32_t value) {
  place[0] = (uint8_t)value;
  place[1] = (uint8_t)(value >> 8);
  place[2] = (uint8_t)(value >> 16);
  place[3] = (uint8_t)(value >> 24);
  return place + 4;
}

/* A stamp is aligned to four; an id directly follows the preceding state. */
static uint8_t *put_state(uint8_t *place, bool first, const uint8_t *goal_id, int64_t accepted_ns, int8_t state) {
  const int64_t seconds = accepted_ns / 1000000000;
  memcpy(place, goal_id, 16);
  memset(place + 16, 0, PADDING_BYTES);
  place += first ? 16u : 16u + PADDING_BYTES;
  place = put_word(place, (uint32_t)seconds);
  place = put_word(place, (uint32_t)(accepted_ns - seconds * 1000000000));
  *place = (uint8_t)state;
  return place + 1;
}

static void list(listing_t *listing, const uint8_t *goal_id, int64_t accepted_ns, int8_t state) {
  if (listing->count == listing->limit) return;
  listing->count++;
  if (listing->next == NULL) return;
  listing->next = put_state(listing->next, listing->count == 1, goal_id, accepted_ns, state);
}

static void list_result_locked(tide_action_result_t *result, void *context) {
  listing_t *listing = context;
  if (!is_one_of(result, listing->action) || result->goal != NULL) return;
  list(listing, result->goal_id, result->accepted_ns, result->status);
}

/* Outdated results are removed from the list and the pool. */
static void count_result_locked(tide_action_result_t *result, void *context) {
  listing_t *listing = context;
  if (!is_one_of(result, listing->action) || result->goal != NULL) return;
  if (is_over(result, listing->now_ns)) {
    result->action = NULL;
  } else {
    listing->count++;
  }
}

/* Called once to count and once to write. Between the two, other threads may end goals and other servers may evict kept
 * results, so the message contains the number that was written. */
static void list_goals(listing_t *listing) {
  const tide_action_t *action = listing->action;
  for (size_t i = 0; i < action->goal_count; i++) {
    const tide_goal_t *goal = &action->goals[i];
    const rcl_action_goal_state_t state = tide_action_state(goal);
    if (!tide_action_is_used(goal) || state == GOAL_STATE_UNKNOWN) continue;
    list(listing, goal->handle.goal_id.uuid, goal->server.accepted_ns, state);
  }
}

/* Lists as many states as a node can hold, starting with those of running goals. */
int tide_action_publish_status(tide_action_t *action) {
  const uint32_t capacity = (tide_compat_response_capacity() + TIDE_SAMPLE_IDENTITY_BYTES - 4u) / STATUS_BYTES;
  const tide_publisher_handle_t *publisher = action->server.status.impl;
  listing_t counted = {action, tide_compat_now_ns(), NULL, 0, UINT32_MAX};
  list_goals(&counted);
  for_each_result(count_result_locked, &counted);
  const uint32_t most = counted.count < capacity ? counted.count : capacity;
  tide_write_t write;
  int status =
      tide_session_write_begin_by(&action->support->session, &write, &publisher->writer, 4u + most * STATUS_BYTES);
  if (status != TIDE_OK) return status;
  uint8_t *count = write.cdr.bytes + write.cdr.position;
  TIDE_INVARIANT(write.cdr.capacity - write.cdr.position >= 4u + most * STATUS_BYTES);
  listing_t listed = {action, 0, count + 4, 0, most};
  list_goals(&listed);
  for_each_result(list_result_locked, &listed);
  (void)put_word(count, listed.count);
  write.cdr.position += 4u + listed.count * STATUS_BYTES - (listed.count > 0 ? PADDING_BYTES : 0u);
  status = tide_compat_write_end(action->support, &write);
  return status == TIDE_OK && most < counted.count ? TIDE_ERROR_TOO_LARGE : status;
}
