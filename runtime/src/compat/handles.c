/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of an executor: what is added to it and taken away again. Services and clients: executor_service.c. */
#include <string.h>

#include "internal.h"
#include "rclc/executor.h"
#include "tide/pool_actions.h"

int tide_compat_remove_callback(tide_callback_t *callback) {
  tide_executor_t *core = callback->executor;
  if (core == NULL) return TIDE_OK;
  return core->config.lane_count > 1 ? tide_executor_remove_idle(core, callback) : tide_executor_remove(core, callback);
}

/* What is called for received messages. */
static int remove_reading(tide_executor_handle_t *executor, tide_callback_t *callback, tide_reader_t *reader,
                          rclc_executor_handle_t **place) {
  tide_session_t *session = &executor->support->session;
  const int status = tide_compat_remove_callback(callback);
  if (status != TIDE_OK) return status;
  *place = NULL;
  tide_session_set_reader_owner(session, reader, 0);
  if (executor->number != 0)
    tide_daemon_disown(&session->daemon, executor->number); /* its frames are in nobody's way */
  return TIDE_OK;
}

static int remove_subscription(tide_executor_handle_t *executor, tide_subscription_handle_t *subscription) {
  return remove_reading(executor, &subscription->callback, &subscription->reader, &subscription->handle);
}

static int remove_end(tide_executor_handle_t *executor, tide_service_end_t *end) {
  return remove_reading(executor, &end->callback, &end->reader, &end->handle);
}

static int remove_timer(tide_timer_handle_t *timer) {
  const int status = tide_compat_remove_callback(&timer->timer.callback);
  if (status == TIDE_OK) timer->handle = NULL;
  return status;
}

static int remove_guard(tide_guard_handle_t *guard) {
  const int status = tide_compat_remove_callback(&guard->callback);
  if (status == TIDE_OK) guard->handle = NULL;
  return status;
}

/* Not by way of the program's object, which may be gone: programs leave their functions without finishing it. */
int tide_compat_remove_handle(tide_executor_handle_t *executor, rclc_executor_handle_t *handle) {
  int status = TIDE_OK;
  switch (handle->type) {
    case RCLC_SUBSCRIPTION:
    case RCLC_SUBSCRIPTION_WITH_CONTEXT:
      status = remove_subscription(executor, handle->impl);
      break;
    case RCLC_SERVICE:
    case RCLC_SERVICE_WITH_REQUEST_ID:
    case RCLC_SERVICE_WITH_CONTEXT:
    case RCLC_CLIENT:
    case RCLC_CLIENT_WITH_REQUEST_ID:
      if (TIDE_SERVICE_OBJECTS) status = remove_end(executor, handle->impl); /* its first member */
      break;
    case RCLC_ACTION_SERVER:
    case RCLC_ACTION_CLIENT:
      status = tide_pools.actions->remove(executor, handle->impl);
      break;
    case RCLC_TIMER:
      status = remove_timer(handle->impl);
      break;
    case RCLC_GUARD_CONDITION:
      status = remove_guard(handle->impl);
      break;
    case RCLC_UNKNOWN_TYPE:
      break;
  }
  if (status == TIDE_OK) memset(handle, 0, sizeof *handle);
  return status;
}

rclc_executor_handle_t *tide_compat_next_handle(rclc_executor_t *executor, rclc_executor_handle_type_t type) {
  for (size_t i = 0; i < executor->max_handles; i++) {
    rclc_executor_handle_t *handle = &executor->handles[i];
    if (handle->initialized) continue;
    memset(handle, 0, sizeof *handle);
    handle->type = type;
    handle->index = i;
    return handle;
  }
  return NULL;
}

void tide_compat_commit_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle) {
  handle->initialized = true;
  if (handle->index >= executor->index) executor->index = handle->index + 1;
}

/* What the core's causes mean here: a group is the only other thing that a callback can be refused for. */
rcl_ret_t tide_compat_refusal_of_add(int status) {
  const int cause = status == TIDE_ERROR_FULL       ? TIDE_ERROR_CAPACITY_HANDLES
                    : status == TIDE_ERROR_ARGUMENT ? TIDE_ERROR_EXISTS
                                                    : status;
  return tide_compat_result(cause);
}

void tide_compat_execute_subscription(tide_callback_t *callback, void *context) {
  (void)callback;
  rclc_executor_handle_t *handle = context;
  const tide_local_functions_t *local = ((tide_subscription_handle_t *)handle->impl)->local;
  const void *memory = handle->data; /* the callback may take the handle out of the executor */
  const void *taken = NULL;
  const rcl_ret_t result = tide_compat_take_next(handle->impl, handle->data, &taken);
  if (result != RCL_RET_OK && handle->invocation != ALWAYS) return;
  const void *message = result == RCL_RET_OK ? taken : NULL;
  if (handle->type == RCLC_SUBSCRIPTION_WITH_CONTEXT) {
    handle->subscription_callback_with_context(message, handle->callback_context);
  } else {
    handle->subscription_callback(message);
  }
  if (message != NULL && message != memory) local->release(message);
}

static rcl_ret_t add_subscription(rclc_executor_t *executor, rclc_executor_handle_t *handle) {
  tide_subscription_handle_t *subscription = handle->subscription->impl;
  subscription->callback.kind = TIDE_CALLBACK_SUBSCRIPTION;
  subscription->callback.always = handle->invocation == ALWAYS;
  subscription->callback.execute = tide_compat_execute_subscription;
  subscription->callback.context = handle;
  subscription->callback.handle = handle->subscription;
  int status = tide_executor_add(&executor->impl->core, &subscription->callback);
  if (status != TIDE_OK) return tide_compat_refusal_of_add(status);
  tide_compat_commit_handle(executor, handle);
  subscription->handle = handle;
  tide_session_set_reader_owner(&subscription->support->session, &subscription->reader, executor->impl->number);
  for (uint8_t i = 0; i < subscription->reader.count; i++) tide_executor_notify(&subscription->callback);
  const uint16_t local = subscription->local == NULL ? 0 : subscription->local->waiting(subscription);
  for (uint16_t i = 0; i < local; i++) tide_executor_notify(&subscription->callback);
  return RCL_RET_OK;
}

static rclc_executor_handle_t *new_subscription(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                                rclc_executor_handle_type_t type, rcl_ret_t *result) {
  if (tide_compat_executor_of(executor) == NULL || !rcl_subscription_is_valid(subscription) || msg == NULL) {
    *result = tide_compat_result(TIDE_ERROR_ARGUMENT);
    return NULL;
  }
  if (subscription->impl->callback.executor != NULL) {
    *result = tide_compat_result(TIDE_ERROR_EXISTS);
    return NULL;
  }
  rclc_executor_handle_t *handle = tide_compat_next_handle(executor, type);
  if (handle == NULL) {
    *result = tide_compat_result(TIDE_ERROR_CAPACITY_HANDLES);
    return NULL;
  }
  handle->subscription = subscription;
  handle->impl = subscription->impl;
  handle->data = msg;
  return handle;
}

rcl_ret_t rclc_executor_add_subscription(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                         rclc_subscription_callback_t callback,
                                         rclc_executor_handle_invocation_t invocation) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle = new_subscription(executor, subscription, msg, RCLC_SUBSCRIPTION, &result);
  if (handle == NULL) return result;
  handle->subscription_callback = callback;
  handle->invocation = invocation;
  return add_subscription(executor, handle);
}

rcl_ret_t rclc_executor_add_subscription_with_context(rclc_executor_t *executor, rcl_subscription_t *subscription,
                                                      void *msg, rclc_subscription_callback_with_context_t callback,
                                                      void *context, rclc_executor_handle_invocation_t invocation) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle =
      new_subscription(executor, subscription, msg, RCLC_SUBSCRIPTION_WITH_CONTEXT, &result);
  if (handle == NULL) return result;
  handle->subscription_callback_with_context = callback;
  handle->callback_context = context;
  handle->invocation = invocation;
  return add_subscription(executor, handle);
}

rcl_ret_t rclc_executor_add_timer(rclc_executor_t *executor, rcl_timer_t *timer) {
  if (tide_compat_executor_of(executor) == NULL || timer == NULL || timer->impl == NULL ||
      timer->impl->support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_timer_t *core = &timer->impl->timer;
  if (core->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_EXISTS);
  rclc_executor_handle_t *handle = tide_compat_next_handle(executor, RCLC_TIMER);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_HANDLES);
  handle->timer = timer;
  handle->impl = timer->impl;
  timer->impl->program = timer;
  core->callback.handle = timer;
  core->callback.context = handle;
  int64_t first_ns = core->next_ns; /* the timer runs since rcl_timer_init */
  bool canceled = core->canceled;
  int status = tide_executor_add_timer(&executor->impl->core, core);
  if (status != TIDE_OK) return tide_compat_refusal_of_add(status);
  tide_timer_set_phase(core, first_ns);
  if (canceled) tide_timer_cancel(core);
  tide_compat_commit_handle(executor, handle);
  timer->impl->handle = handle;
  return RCL_RET_OK;
}

static void execute_guard(tide_callback_t *callback, void *context) {
  (void)callback;
  rclc_executor_handle_t *handle = context;
  handle->gc_callback();
}

rcl_ret_t rclc_executor_add_guard_condition(rclc_executor_t *executor, rcl_guard_condition_t *gc,
                                            rclc_gc_callback_t callback) {
  if (tide_compat_executor_of(executor) == NULL || gc == NULL || gc->impl == NULL || gc->impl->support == NULL ||
      callback == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (gc->impl->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_EXISTS);
  rclc_executor_handle_t *handle = tide_compat_next_handle(executor, RCLC_GUARD_CONDITION);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_HANDLES);
  handle->gc = gc;
  handle->impl = gc->impl;
  handle->gc_callback = callback;
  tide_callback_t *core = &gc->impl->callback;
  core->kind = TIDE_CALLBACK_GUARD;
  core->execute = execute_guard;
  core->context = handle;
  core->handle = gc;
  int status = tide_executor_add(&executor->impl->core, core);
  if (status != TIDE_OK) return tide_compat_refusal_of_add(status);
  tide_compat_commit_handle(executor, handle);
  gc->impl->handle = handle;
  if (gc->impl->triggered_early) tide_executor_notify(core);
  gc->impl->triggered_early = false;
  return RCL_RET_OK;
}

void *rclc_executor_handle_get_ptr(rclc_executor_handle_t *handle) {
  if (handle == NULL) return NULL;
  switch (handle->type) {
    case RCLC_SUBSCRIPTION:
    case RCLC_SUBSCRIPTION_WITH_CONTEXT:
      return handle->subscription;
    case RCLC_SERVICE:
    case RCLC_SERVICE_WITH_REQUEST_ID:
    case RCLC_SERVICE_WITH_CONTEXT:
      return handle->service;
    case RCLC_CLIENT:
    case RCLC_CLIENT_WITH_REQUEST_ID:
      return handle->client;
    case RCLC_ACTION_SERVER:
      return handle->action_server;
    case RCLC_ACTION_CLIENT:
      return handle->action_client;
    case RCLC_TIMER:
      return handle->timer;
    case RCLC_GUARD_CONDITION:
      return handle->gc;
    case RCLC_UNKNOWN_TYPE:
      break;
  }
  return NULL;
}

static rcl_ret_t remove_pointer(rclc_executor_t *executor, const void *pointer) {
  if (tide_compat_executor_of(executor) == NULL || pointer == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  for (size_t i = 0; i < executor->index; i++) {
    rclc_executor_handle_t *handle = &executor->handles[i];
    if (!handle->initialized || rclc_executor_handle_get_ptr(handle) != pointer) continue;
    return tide_compat_result(tide_compat_remove_handle(executor->impl, handle));
  }
  return tide_compat_result(TIDE_ERROR_NOT_FOUND);
}

rcl_ret_t rclc_executor_remove_subscription(rclc_executor_t *executor, const rcl_subscription_t *subscription) {
  return remove_pointer(executor, subscription);
}

rcl_ret_t rclc_executor_remove_service(rclc_executor_t *executor, const rcl_service_t *service) {
  return remove_pointer(executor, service);
}

rcl_ret_t rclc_executor_remove_client(rclc_executor_t *executor, const rcl_client_t *client) {
  return remove_pointer(executor, client);
}

rcl_ret_t rclc_executor_remove_timer(rclc_executor_t *executor, const rcl_timer_t *timer) {
  return remove_pointer(executor, timer);
}

rcl_ret_t rclc_executor_remove_guard_condition(rclc_executor_t *executor, const rcl_guard_condition_t *gc) {
  return remove_pointer(executor, gc);
}
