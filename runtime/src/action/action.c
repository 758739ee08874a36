/* SPDX-License-Identifier: Apache-2.0 */
/* Places, executors and chains of actions. */
#include "action.h"

tide_action_t *tide_action_take_place(tide_support_t *support, bool is_server) {
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t i = 0; pools != NULL && i < pools->action_count; i++) {
    tide_action_t *action = &pools->actions[i];
    if (action->support != NULL) continue;
    const uintptr_t critical = tide_action_enter(); /* the link's context looks at all places */
    memset(action, 0, sizeof *action);
    action->is_server = is_server;
    action->support = support;
    tide_action_leave(critical);
    return action;
  }
  return NULL;
}

int tide_action_part_name(char *destination, const char *action_name, const char *part) {
  const size_t length = strlen(action_name), more = strlen(part) + 1;
  if (length + more > TIDE_ACTION_NAME_BYTES) return TIDE_ERROR_CAPACITY_NAMES;
  for (size_t i = 0; i < length; i++) destination[i] = action_name[i];
  memcpy(destination + length, part, more);
  return TIDE_OK;
}

rcl_ret_t tide_action_result_of_init(rcl_ret_t result) {
  const bool is_name = result == RCL_RET_TOPIC_NAME_INVALID || result == RCL_RET_SERVICE_NAME_INVALID;
  return is_name ? RCL_RET_ACTION_NAME_INVALID : result;
}

tide_service_end_t *tide_action_end(tide_action_t *action, size_t part) {
  return action->is_server ? &action->services[part].impl->end : &action->clients[part].impl->end;
}

static tide_subscription_handle_t *feedback_of(tide_action_t *action) {
  return action->is_server ? NULL : action->client.feedback.impl;
}

/* ---- being called ---- */

static void notify_locked(tide_action_t *action) {
  if (!tide_callback_is_ready(&action->callback)) tide_executor_notify(&action->callback);
}

void tide_action_wake(tide_action_t *action) {
  const uintptr_t critical = tide_action_enter();
  notify_locked(action);
  tide_action_leave(critical);
}

static void on_service_sample(void *context, tide_reader_t *reader) {
  (void)reader;
  const tide_service_end_t *end = context;
  const uintptr_t critical = tide_action_enter();
  if (end->handle != NULL) notify_locked(end->handle->impl);
  tide_action_leave(critical);
}

static void on_feedback_sample(void *context, tide_reader_t *reader) {
  (void)reader;
  const tide_subscription_handle_t *subscription = context;
  const uintptr_t critical = tide_action_enter();
  if (subscription->handle != NULL) notify_locked(subscription->handle->impl);
  tide_action_leave(critical);
}

static bool has_new_session(const tide_action_t *action) {
  const tide_session_t *session = &action->support->session;
  return session->state == TIDE_SESSION_READY && session->id != action->session;
}

bool tide_action_meets_session(tide_action_t *action) {
  const uintptr_t critical = tide_action_enter();
  const bool is_new = has_new_session(action);
  if (is_new) action->session = action->support->session.id;
  tide_action_leave(critical);
  return is_new;
}

uint8_t tide_action_session(const tide_action_t *action) {
  const uintptr_t critical = tide_action_enter();
  const uint8_t id = action->support->session.id;
  tide_action_leave(critical);
  return id;
}

static bool is_due_locked(const tide_action_t *action, const tide_support_t *support) {
  return action->support == support &&
         (__atomic_load_n(&action->attention, __ATOMIC_ACQUIRE) || has_new_session(action));
}

/* The next one from a place on, in one critical section with those that have nothing to do. False: none has. */
static bool retry_next(const tide_support_t *support, size_t *place) {
  const tide_action_pools_t *pools = tide_pools.actions;
  const uintptr_t critical = tide_action_enter();
  while (*place < pools->action_count && !is_due_locked(&pools->actions[*place], support)) ++*place;
  const bool found = *place < pools->action_count;
  if (found) notify_locked(&pools->actions[(*place)++]);
  tide_action_leave(critical);
  return found;
}

/* In the link's context, whenever something has happened there. */
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

/* The first run of free places that is long enough. */
static tide_goal_t *free_goals(const tide_action_pools_t *pools, size_t count) {
  tide_goal_t *first = pools->goals;
  for (size_t i = 0; i < pools->action_count; i++) {
    if ((size_t)(pools->goals + pools->goal_count - first) < count) return NULL;
    const tide_action_t *action = &pools->actions[i];
    if (!overlaps(action, first, count)) continue;
    first = action->goals + action->goal_count;
    i = SIZE_MAX; /* from the beginning */
  }
  return (size_t)(pools->goals + pools->goal_count - first) < count ? NULL : first;
}

static void attach_end(tide_service_end_t *end, rclc_executor_handle_t *handle, uint8_t owner) {
  const uintptr_t critical = tide_action_enter();
  end->reader.on_sample = on_service_sample;
  end->handle = handle;
  tide_action_leave(critical);
  tide_session_set_reader_owner(&end->support->session, &end->reader, owner);
}

static void attach(tide_action_t *action, rclc_executor_handle_t *handle, uint8_t owner) {
  for (size_t part = 0; part < TIDE_ACTION_PARTS; part++) attach_end(tide_action_end(action, part), handle, owner);
  tide_subscription_handle_t *feedback = feedback_of(action);
  if (feedback != NULL) {
    const uintptr_t critical = tide_action_enter();
    feedback->reader.on_sample = on_feedback_sample;
    feedback->handle = handle;
    tide_action_leave(critical);
    tide_session_set_reader_owner(&action->support->session, &feedback->reader, owner);
  }
  action->handle = handle;
}

rcl_ret_t tide_action_add(rclc_executor_t *executor, tide_action_t *action, rclc_executor_handle_type_t type,
                          size_t goal_count, void *context, void (*execute)(tide_callback_t *callback, void *context)) {
  if (goal_count == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (action->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_EXISTS);
  action->goals = NULL;
  tide_goal_t *goals = free_goals(tide_pools.actions, goal_count);
  if (goals == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_GOALS);
  rclc_executor_handle_t *handle = tide_compat_next_handle(executor, type);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_HANDLES);
  memset(goals, 0, goal_count * sizeof *goals);
  handle->action_server = action->program; /* or the client: they share the place */
  handle->impl = action;
  handle->callback_context = context;
  action->callback.kind = action->is_server ? TIDE_CALLBACK_SERVICE : TIDE_CALLBACK_CLIENT;
  action->callback.execute = execute;
  action->callback.context = handle;
  action->callback.handle = action->program;
  const int status = tide_executor_add(&executor->impl->core, &action->callback);
  if (status != TIDE_OK) return tide_compat_refusal_of_add(status);
  action->goals = goals;
  action->goal_count = goal_count;
  action->session = action->support->session.id;
  tide_compat_commit_handle(executor, handle);
  attach(action, handle, executor->impl->number);
  const uintptr_t critical = tide_action_enter();
  action->support->retry_responses = retry;
  tide_action_leave(critical);
  tide_action_wake(action); /* for what has come already */
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
  const uintptr_t critical = tide_action_enter();
  action->support = NULL;
  tide_action_leave(critical);
  return RCL_RET_OK;
}

void tide_compat_release_actions(void) {
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t i = 0; i < pools->action_count; i++) pools->actions[i].support = NULL;
  for (size_t i = 0; i < pools->goal_count; i++) pools->goals[i].action = NULL;
  for (size_t i = 0; i < pools->result_count; i++) pools->results[i].action = NULL;
}

/* ---- what has come ---- */

static int64_t oldest_ns(const tide_reader_t *reader) {
  const uintptr_t critical = tide_action_enter();
  int64_t arrived_ns = TIDE_FOREVER;
  if (reader->current.memory != NULL) {
    arrived_ns = reader->current.arrived_ns;
  } else if (reader->count > 0) {
    arrived_ns = reader->samples[reader->first].arrived_ns;
  }
  tide_action_leave(critical);
  return arrived_ns;
}

static const tide_reader_t *reader_of(tide_action_t *action, size_t part) {
  return part == PART_FEEDBACK ? &feedback_of(action)->reader : &tide_action_end(action, part)->reader;
}

int tide_action_oldest_part(tide_action_t *action, uint32_t parts) {
  static const uint8_t order[] = {PART_GOAL, PART_FEEDBACK, PART_CANCEL, PART_RESULT}; /* of the same time */
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
    status = tide_compat_set_end_priority(tide_action_end(action, part), priority);
  }
  if (status != TIDE_OK) return status;
  if (!action->is_server) {
    return tide_session_set_reader_priority(&action->support->session, &feedback_of(action)->reader, priority);
  }
  action->server.feedback.impl->priority = priority;
  action->server.status.impl->priority = priority;
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
  const uintptr_t critical = tide_action_enter();
  *counters = action->counters;
  for (size_t part = 0; part < TIDE_ACTION_PARTS; part++) {
    const tide_service_end_t *end = tide_action_end(own, part);
    counters->dropped += end->reader.dropped;
    counters->malformed += __atomic_load_n(&end->decode_errors, __ATOMIC_RELAXED);
    if (!action->is_server) counters->unknown += action->clients[part].impl->unexpected;
  }
  const tide_subscription_handle_t *feedback = feedback_of(own);
  if (feedback != NULL) {
    counters->dropped += feedback->reader.dropped;
    counters->malformed += feedback->decode_errors;
  }
  tide_action_leave(critical);
}
