/* SPDX-License-Identifier: Apache-2.0 */
/* rclc's executor on top of the runtime's: received frames, set-up, adding and removing handles, triggers, spinning,
 * callback groups, chains, and rounds with logical execution time (LET). */
#include <string.h>

#include "internal.h"
#include "rclc/executor.h"
#include "rclc/sleep.h"
#include "tide/pool_actions.h"
#include "tide/rclc_service.h"

#define DEFAULT_TIMEOUT_NS 1000000000u

/* ---- the session's frames as the executor's source ---- */

/* The session's daemon. Null if the support has ended during the spin. */
static tide_daemon_t *daemon_of(const tide_executor_handle_t *handle) {
  tide_support_t *support = __atomic_load_n(&handle->support, __ATOMIC_RELAXED);
  return support == NULL ? NULL : &support->session.daemon;
}

static int32_t source_most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {least, most, handle->number};
  tide_daemon_t *daemon = daemon_of(handle);
  return daemon == NULL ? TIDE_PRIORITY_NONE : tide_daemon_most_urgent_of(daemon, &share);
}

static int source_process_most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {least, most, handle->number};
  tide_daemon_t *daemon = daemon_of(handle);
  if (daemon == NULL) return 0;
  const int count = tide_daemon_process_most_urgent_of(daemon, &share);
  tide_compat_wake_others(handle);
  return count;
}

static bool source_is_welcome(void *context, tide_priority_t least, tide_priority_t most) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {least, most, handle->number};
  tide_support_t *support = __atomic_load_n(&handle->support, __ATOMIC_RELAXED);
  return support != NULL && tide_session_is_welcome(&support->session, &share);
}

/* A lane that runs on the program's thread does the link's work while it waits. Lanes with threads of their own leave
 * this work to the link's thread, which preempts them all. */
static int source_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  tide_executor_handle_t *handle = context;
  tide_daemon_t *daemon = daemon_of(handle);
  const tide_platform_t *platform = tide_port_platform();
  if (daemon == NULL) return platform->event_wait(platform->context, event, deadline_ns);
  return tide_daemon_wait(daemon, event, deadline_ns, handle->has_threads ? TIDE_WAIT_LANE : TIDE_WAIT_WORK);
}

static int source_process_oldest(void *context) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {0, UINT16_MAX, handle->number};
  tide_daemon_t *daemon = daemon_of(handle);
  if (daemon == NULL) return 0;
  const int count = tide_daemon_process_oldest_of(daemon, &share);
  tide_compat_wake_others(handle);
  return count;
}

static void end_round(tide_executor_handle_t *handle) {
  if (handle->rounds != NULL) handle->rounds->end(handle);
}

/* The source's poll. The executor calls it each time before it looks for work, so the previous round (LET) has
 * ended. */
static int64_t source_poll(void *context) {
  tide_executor_handle_t *handle = context;
  end_round(handle);
  tide_support_t *support = __atomic_load_n(&handle->support, __ATOMIC_RELAXED);
  return support == NULL ? TIDE_FOREVER : tide_compat_poll(support);
}

/* ---- life ---- */

rclc_executor_t rclc_executor_get_zero_initialized_executor(void) {
  rclc_executor_t executor;
  memset(&executor, 0, sizeof executor);
  return executor;
}

/* Each executor gets one contiguous range of the shared arrays; the ranges of finished executors are free again if they
 * are at the end. */
static size_t places_taken(void) {
  size_t end = 0;
  for (size_t i = 0; i < tide_pools.executor_count; i++) {
    const tide_executor_handle_t *handle = &tide_pools.executors[i];
    if (handle->support != NULL && handle->first + handle->count > end) end = handle->first + handle->count;
  }
  return end;
}

/* Locked, because the link's context searches for executors to wake. */
static void set_support(tide_executor_handle_t *handle, tide_support_t *support) {
  const uintptr_t critical = tide_compat_enter();
  __atomic_store_n(&handle->support, support, __ATOMIC_RELAXED);
  tide_compat_leave(critical);
}

static int init_core(tide_executor_handle_t *handle, size_t lane_count, tide_policy_t policy) {
  tide_executor_config_t config;
  memset(&config, 0, sizeof config);
  config.platform = tide_port_platform();
  config.policy = policy;
  config.callbacks = tide_pools.callbacks + handle->first;
  config.ready_storage = tide_pools.ready_storage + handle->first * tide_pools.lane_count;
  config.timer_storage = tide_pools.timer_storage + handle->first * tide_pools.lane_count;
  config.callback_count = handle->count;
  config.lanes = handle->lanes;
  config.lane_count = lane_count;
  config.batch_waits_for_new_data = true;
  config.source.context = handle;
  config.source.most_urgent = source_most_urgent;
  config.source.process_most_urgent = source_process_most_urgent;
  config.source.process_oldest = TIDE_LEAN ? NULL : source_process_oldest;
  config.source.poll = source_poll;
  config.source.is_welcome = source_is_welcome;
  config.source.wait = TIDE_STATIC_PLATFORM ? NULL : source_wait;
  return tide_executor_init(&handle->core, &config);
}

rcl_ret_t rclc_executor_init(rclc_executor_t *executor, rcl_context_t *context, const size_t number_of_handles,
                             const rcl_allocator_t *allocator) {
  (void)allocator;
  if (executor == NULL || context == NULL || number_of_handles == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(context)) return tide_compat_result(TIDE_ERROR_STATE);
  size_t first = places_taken();
  if (number_of_handles > tide_pools.handle_count - first) return tide_compat_result(TIDE_ERROR_CAPACITY_HANDLES);
  tide_executor_handle_t *handle = NULL;
  for (size_t i = 0; i < tide_pools.executor_count && handle == NULL; i++) {
    if (tide_pools.executors[i].support == NULL) handle = &tide_pools.executors[i];
  }
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_EXECUTORS);
  handle->first = first;
  handle->count = number_of_handles;
  handle->trigger = rclc_executor_trigger_any;
  handle->trigger_object = NULL;
  handle->next_period_ns = 0;
  handle->has_threads = false;
  handle->rounds = NULL;
  handle->kept = NULL;
  const size_t place = (size_t)(handle - tide_pools.executors);
  handle->number =
      (uint8_t)(tide_pools.executor_count > 1 ? place + 1 : 0); /* 0: a single executor processes all frames */
  handle->lanes = tide_pools.lanes + place * tide_pools.lane_count;
  memset(handle->lanes, 0, tide_pools.lane_count * sizeof *handle->lanes);
  int status = init_core(handle, 1, TIDE_POLICY_TIDE);
  if (status != TIDE_OK) return tide_compat_result(status);
  set_support(handle, context->impl);
  executor->context = context;
  executor->handles = tide_pools.handles + first;
  memset(executor->handles, 0, number_of_handles * sizeof *executor->handles);
  executor->max_handles = number_of_handles;
  executor->index = 0;
  executor->timeout_ns = DEFAULT_TIMEOUT_NS;
  executor->impl = handle;
  return RCL_RET_OK;
}

tide_executor_handle_t *tide_compat_executor_of(const rclc_executor_t *executor) {
  return executor != NULL && executor->impl != NULL && executor->impl->support != NULL ? executor->impl : NULL;
}

rcl_ret_t tide_rclc_executor_set_policy(rclc_executor_t *executor, tide_policy_t policy) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL || policy > TIDE_POLICY_READYSET) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (executor->index != 0) return tide_compat_result(TIDE_ERROR_STATE);
  return tide_compat_result(tide_executor_set_policy(&handle->core, policy));
}

/* True if one round does what the stock spin_some does; otherwise spin_some runs rounds until no callback is ready, or
 * as many callbacks have run as the executor has handles. */
static bool runs_all_a_round(const tide_executor_handle_t *handle) {
  return handle->core.config.policy == TIDE_POLICY_BATCH || handle->trigger != rclc_executor_trigger_any ||
         handle->rounds != NULL;
}

rcl_ret_t tide_rclc_executor_set_lanes(rclc_executor_t *executor, const tide_lane_settings_t *lanes, size_t count) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL || lanes == NULL || count == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  for (size_t i = 1; i < count; i++) {
    if (lanes[i].least_level < lanes[i - 1].least_level) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (executor->index != 0) return tide_compat_result(TIDE_ERROR_STATE);
  if (count > tide_pools.lane_count) return tide_compat_result(TIDE_ERROR_CAPACITY_LANES);
  const tide_policy_t policy = handle->core.config.policy;
  if (count > 1 && runs_all_a_round(handle)) {
    return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  }
  tide_support_t *support = handle->support;
  set_support(handle, NULL); /* no thread may wake the lanes while they change */
  for (size_t i = 0; i < count; i++) handle->lanes[i].settings = lanes[i];
  const int status = init_core(handle, count, policy);
  handle->has_threads = status == TIDE_OK;
  if (status != TIDE_OK) {
    memset(handle->lanes, 0, sizeof *handle->lanes);
    init_core(handle, 1, policy);
  }
  set_support(handle, support);
  return tide_compat_result(status);
}

int tide_rclc_executor_refused_lane(const rclc_executor_t *executor) {
  const tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  return handle == NULL || !handle->has_threads ? -1 : (int)handle->refused_lane;
}

tide_executor_t *tide_rclc_executor_core(rclc_executor_t *executor) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  return handle == NULL ? NULL : &handle->core;
}

rcl_ret_t rclc_executor_set_timeout(rclc_executor_t *executor, const uint64_t timeout_ns) {
  if (tide_compat_executor_of(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  executor->timeout_ns = timeout_ns;
  return RCL_RET_OK;
}

rcl_ret_t rclc_executor_prepare(rclc_executor_t *executor) {
  return tide_compat_executor_of(executor) == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

/* ---- adding and removing handles ---- */

int tide_compat_remove_callback(tide_callback_t *callback) {
  tide_executor_t *core = callback->executor;
  if (core == NULL) return TIDE_OK;
  return core->config.lane_count > 1 ? tide_executor_remove_idle(core, callback) : tide_executor_remove(core, callback);
}

int tide_compat_leave_executor(tide_callback_t *callback, rclc_executor_handle_t **handle) {
  const int status = tide_compat_remove_callback(callback);
  if (status != TIDE_OK) return status;
  if (*handle != NULL) memset(*handle, 0, sizeof **handle);
  *handle = NULL;
  return TIDE_OK;
}

/* Does not touch the program's object, which may no longer exist: programs leave the functions that own their objects
 * without finishing them. */
static int remove_handle(tide_executor_handle_t *executor, rclc_executor_handle_t *handle) {
  tide_callback_t *callback = NULL;
  tide_reader_t *reader = NULL; /* null if the handle receives no messages */
  rclc_executor_handle_t **place = NULL;
  int status = TIDE_OK;
  switch (handle->type) {
    case RCLC_SUBSCRIPTION:
    case RCLC_SUBSCRIPTION_WITH_CONTEXT: {
      tide_subscription_handle_t *subscription = handle->impl;
      callback = &subscription->callback;
      reader = &subscription->reader;
      place = &subscription->handle;
      break;
    }
    case RCLC_SERVICE:
    case RCLC_SERVICE_WITH_REQUEST_ID:
    case RCLC_SERVICE_WITH_CONTEXT:
    case RCLC_CLIENT:
    case RCLC_CLIENT_WITH_REQUEST_ID: {
      tide_service_end_t *end = handle->impl; /* its first member */
      callback = &end->callback;
      reader = &end->reader;
      place = &end->handle;
      break;
    }
    case RCLC_ACTION_SERVER:
    case RCLC_ACTION_CLIENT: status = tide_pools.actions->remove(executor, handle->impl); break;
    case RCLC_TIMER: {
      tide_timer_handle_t *timer = handle->impl;
      callback = &timer->timer.callback;
      place = &timer->handle;
      break;
    }
    case RCLC_GUARD_CONDITION: {
      tide_guard_handle_t *guard = handle->impl;
      callback = &guard->callback;
      place = &guard->handle;
      break;
    }
    case RCLC_UNKNOWN_TYPE: break;
  }
  if (callback != NULL) status = tide_compat_remove_callback(callback);
  if (status != TIDE_OK) return status;
  if (place != NULL) *place = NULL;
  if (reader != NULL) {
    tide_session_t *session = &executor->support->session;
    tide_session_set_reader_owner(session, reader, 0);
    if (executor->number != 0)
      tide_daemon_disown(&session->daemon, executor->number); /* frames of the ended executor must block no others */
  }
  memset(handle, 0, sizeof *handle);
  return TIDE_OK;
}

int tide_compat_open_handle(rclc_executor_t *executor, const rclc_executor_handle_t *wanted, void *impl,
                            tide_callback_t *callback, rclc_executor_handle_t **handle) {
  if (tide_compat_executor_of(executor) == NULL) return TIDE_ERROR_ARGUMENT;
  if (callback->executor != NULL) return TIDE_ERROR_EXISTS;
  size_t index = 0;
  while (index < executor->max_handles && executor->handles[index].initialized) index++;
  if (index == executor->max_handles) return TIDE_ERROR_CAPACITY_HANDLES;
  *handle = &executor->handles[index];
  **handle = *wanted;
  (*handle)->impl = impl;
  (*handle)->index = index;
  callback->context = *handle;
  callback->handle = rclc_executor_handle_get_ptr(*handle);
  return TIDE_OK;
}

rcl_ret_t tide_compat_commit_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle, int status) {
  /* Translates the core's codes: apart from a lack of handles, only the group can be a reason to refuse a callback. */
  if (status == TIDE_ERROR_FULL) status = TIDE_ERROR_CAPACITY_HANDLES;
  if (status == TIDE_ERROR_ARGUMENT) status = TIDE_ERROR_EXISTS;
  if (status != TIDE_OK) return tide_compat_result(status);
  handle->initialized = true;
  if (handle->index >= executor->index) executor->index = handle->index + 1;
  return RCL_RET_OK;
}

rcl_ret_t tide_compat_add_handle(rclc_executor_t *executor, const rclc_executor_handle_t *wanted, void *impl,
                                 tide_callback_t *callback, tide_reader_t *reader, rclc_executor_handle_t **place) {
  rclc_executor_handle_t *handle;
  const int status = tide_compat_open_handle(executor, wanted, impl, callback, &handle);
  if (status != TIDE_OK) return tide_compat_result(status);
  const rcl_ret_t added =
      tide_compat_commit_handle(executor, handle, tide_executor_add(&executor->impl->core, callback));
  if (added != RCL_RET_OK) return added;
  *place = handle;
  if (reader == NULL) return RCL_RET_OK;
  tide_session_set_reader_owner(&executor->impl->support->session, reader, executor->impl->number);
  for (uint8_t i = 0; i < reader->count; i++) tide_executor_notify(callback);
  return RCL_RET_OK;
}

static void execute_subscription(tide_callback_t *callback, void *context) {
  (void)callback;
  rclc_executor_handle_t *handle = context;
  const tide_local_functions_t *local = ((tide_subscription_handle_t *)handle->impl)->local;
  const void *memory = handle->data; /* copied, as the callback may remove the handle from the executor */
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

static rcl_ret_t add_subscription(rclc_executor_t *executor, const rclc_executor_handle_t *wanted) {
  if (!rcl_subscription_is_valid(wanted->subscription) || wanted->data == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_subscription_handle_t *subscription = wanted->subscription->impl;
  tide_callback_t *callback = &subscription->callback;
  if (callback->executor == NULL) {
    callback->kind = TIDE_CALLBACK_SUBSCRIPTION;
    callback->always = wanted->invocation == ALWAYS;
    callback->execute = execute_subscription;
  }
  const rcl_ret_t result =
      tide_compat_add_handle(executor, wanted, subscription, callback, &subscription->reader, &subscription->handle);
  if (result != RCL_RET_OK || subscription->local == NULL) return result;
  const uint16_t waiting = subscription->local->waiting(subscription);
  for (uint16_t i = 0; i < waiting; i++) tide_executor_notify(callback);
  return RCL_RET_OK;
}

rcl_ret_t rclc_executor_add_subscription(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                         rclc_subscription_callback_t callback,
                                         rclc_executor_handle_invocation_t invocation) {
  const rclc_executor_handle_t wanted = {.type = RCLC_SUBSCRIPTION,
                                         .invocation = invocation,
                                         .subscription = subscription,
                                         .data = msg,
                                         .subscription_callback = callback};
  return callback == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : add_subscription(executor, &wanted);
}

rcl_ret_t rclc_executor_add_subscription_with_context(rclc_executor_t *executor, rcl_subscription_t *subscription,
                                                      void *msg, rclc_subscription_callback_with_context_t callback,
                                                      void *context, rclc_executor_handle_invocation_t invocation) {
  const rclc_executor_handle_t wanted = {.type = RCLC_SUBSCRIPTION_WITH_CONTEXT,
                                         .invocation = invocation,
                                         .subscription = subscription,
                                         .data = msg,
                                         .callback_context = context,
                                         .subscription_callback_with_context = callback};
  return callback == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : add_subscription(executor, &wanted);
}

rcl_ret_t rclc_executor_add_timer(rclc_executor_t *executor, rcl_timer_t *timer) {
  if (timer == NULL || timer->impl == NULL || timer->impl->support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_timer_t *core = &timer->impl->timer;
  const rclc_executor_handle_t wanted = {.type = RCLC_TIMER, .timer = timer};
  rclc_executor_handle_t *handle;
  const int status = tide_compat_open_handle(executor, &wanted, timer->impl, &core->callback, &handle);
  if (status != TIDE_OK) return tide_compat_result(status);
  timer->impl->program = timer;
  const int64_t first_ns = core->next_ns; /* rcl_timer_init has started the timer */
  const bool canceled = core->canceled;
  const rcl_ret_t result =
      tide_compat_commit_handle(executor, handle, tide_executor_add_timer(&executor->impl->core, core));
  if (result != RCL_RET_OK) return result;
  tide_timer_set_phase(core, first_ns);
  if (canceled) tide_timer_cancel(core);
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
  if (gc == NULL || gc->impl == NULL || gc->impl->support == NULL || callback == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_guard_handle_t *guard = gc->impl;
  const rclc_executor_handle_t wanted = {.type = RCLC_GUARD_CONDITION, .gc = gc, .gc_callback = callback};
  if (guard->callback.executor == NULL) {
    guard->callback.kind = TIDE_CALLBACK_GUARD;
    guard->callback.execute = execute_guard;
  }
  const rcl_ret_t result = tide_compat_add_handle(executor, &wanted, guard, &guard->callback, NULL, &guard->handle);
  if (result != RCL_RET_OK) return result;
  if (guard->triggered_early) tide_executor_notify(&guard->callback);
  guard->triggered_early = false;
  return RCL_RET_OK;
}

void *rclc_executor_handle_get_ptr(rclc_executor_handle_t *handle) {
  if (handle == NULL) return NULL;
  switch (handle->type) {
    case RCLC_SUBSCRIPTION:
    case RCLC_SUBSCRIPTION_WITH_CONTEXT: return handle->subscription;
    case RCLC_SERVICE:
    case RCLC_SERVICE_WITH_REQUEST_ID:
    case RCLC_SERVICE_WITH_CONTEXT: return handle->service;
    case RCLC_CLIENT:
    case RCLC_CLIENT_WITH_REQUEST_ID: return handle->client;
    case RCLC_ACTION_SERVER: return handle->action_server;
    case RCLC_ACTION_CLIENT: return handle->action_client;
    case RCLC_TIMER: return handle->timer;
    case RCLC_GUARD_CONDITION: return handle->gc;
    case RCLC_UNKNOWN_TYPE: break;
  }
  return NULL;
}

static rcl_ret_t remove_pointer(rclc_executor_t *executor, const void *pointer) {
  if (tide_compat_executor_of(executor) == NULL || pointer == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  for (size_t i = 0; i < executor->index; i++) {
    rclc_executor_handle_t *handle = &executor->handles[i];
    if (!handle->initialized || rclc_executor_handle_get_ptr(handle) != pointer) continue;
    return tide_compat_result(remove_handle(executor->impl, handle));
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

rcl_ret_t rclc_executor_fini(rclc_executor_t *executor) {
  if (executor == NULL) return RCL_RET_OK; /* as rclc */
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle != NULL) {
    end_round(handle);
    for (size_t i = 0; i < executor->index; i++) remove_handle(handle, &executor->handles[i]);
    set_support(handle, NULL);
  }
  *executor = rclc_executor_get_zero_initialized_executor();
  return RCL_RET_OK;
}

/* ---- triggers ---- */

bool rclc_executor_trigger_any(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  (void)obj;
  for (unsigned int i = 0; i < size; i++) {
    if (handles[i].initialized && handles[i].data_available) return true;
  }
  return false;
}

bool rclc_executor_trigger_all(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  (void)obj;
  for (unsigned int i = 0; i < size; i++) {
    if (handles[i].initialized && !handles[i].data_available) return false;
  }
  return true;
}

bool rclc_executor_trigger_one(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  for (unsigned int i = 0; i < size; i++) {
    if (handles[i].initialized && handles[i].data_available && rclc_executor_handle_get_ptr(&handles[i]) == obj) {
      return true;
    }
  }
  return false;
}

bool rclc_executor_trigger_always(rclc_executor_handle_t *handles, unsigned int size, void *obj) {
  (void)handles;
  (void)size;
  (void)obj;
  return true;
}

static void look(tide_callback_t *callback, void *context) {
  (void)context;
  ((rclc_executor_handle_t *)callback->context)->data_available = tide_callback_is_ready(callback);
}

/* Calls the program's trigger function. It gets the handles from the pools, because the program may have moved its
 * rclc_executor_t; `look` first marks in them which callbacks are ready. */
static bool ask_program(tide_callback_t *const *callbacks, size_t count, void *object) {
  (void)callbacks, (void)count; /* not read here, because another thread may finish an object meanwhile */
  tide_executor_handle_t *executor = object;
  tide_executor_each(&executor->core, look, NULL);
  return executor->trigger(tide_pools.handles + executor->first, (unsigned int)executor->count,
                           executor->trigger_object);
}

rcl_ret_t rclc_executor_set_trigger(rclc_executor_t *executor, rclc_executor_trigger_t trigger_function,
                                    void *trigger_object) {
  if (executor == NULL || executor->impl == NULL || trigger_function == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_executor_handle_t *handle = executor->impl;
  handle->trigger = trigger_function;
  handle->trigger_object = trigger_object;
  if (handle->rounds != NULL) {
    return tide_compat_result(tide_executor_set_trigger(&handle->core, handle->rounds->begin, handle));
  }
  if (trigger_function == rclc_executor_trigger_any) {
    return tide_compat_result(tide_executor_set_trigger(&handle->core, tide_trigger_any, NULL));
  }
  return tide_compat_result(tide_executor_set_trigger(&handle->core, ask_program, handle));
}

/* ---- spinning ---- */

static bool is_stopped(const tide_executor_handle_t *handle) {
  return __atomic_load_n(&handle->core.stopped, __ATOMIC_ACQUIRE);
}

/* Returns a tide_status_t. */
static int spin_some(const rclc_executor_t *executor, uint64_t timeout_ns) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL) return TIDE_ERROR_ARGUMENT;
  int64_t now_ns = tide_compat_now_ns();
  bool forever = timeout_ns >= (uint64_t)(TIDE_FOREVER - now_ns);
  int64_t deadline_ns = forever ? TIDE_FOREVER : now_ns + (int64_t)timeout_ns;
  size_t run = 0;
  while (run < executor->max_handles) {
    int count = tide_executor_round(&handle->core, run == 0 ? deadline_ns : now_ns);
    end_round(handle);
    if (count == TIDE_ERROR_TIMEOUT) break;
    if (count < 0) return count;
    if (count == 0 && run > 0) break;
    run += (size_t)count;
    if (runs_all_a_round(handle)) break;
    if (count == 0 && (is_stopped(handle) || tide_compat_now_ns() >= deadline_ns)) break;
  }
  return TIDE_OK;
}

/* As in rclc, returns an error when a message did not fit; the other due callbacks have run nevertheless. The program
 * may meanwhile have ended the executor. */
static rcl_ret_t result_of_spin(const rclc_executor_t *executor, int status) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  const bool unread = handle != NULL && __atomic_exchange_n(&handle->unread, false, __ATOMIC_RELAXED);
  if (status != TIDE_OK) return tide_compat_result(status);
  return unread ? RCL_RET_ERROR : RCL_RET_OK;
}

rcl_ret_t rclc_executor_spin_some(rclc_executor_t *executor, const uint64_t timeout_ns) {
  return result_of_spin(executor, spin_some(executor, timeout_ns));
}

static void spin_lane(void *context, size_t index) { tide_executor_spin_lane(context, index); }

rcl_ret_t rclc_executor_spin(rclc_executor_t *executor) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const int status = handle->has_threads ? tide_port_run_lanes(handle->lanes, handle->core.config.lane_count, spin_lane,
                                                               &handle->core, &handle->refused_lane)
                                         : tide_executor_spin(&handle->core);
  end_round(handle);
  return tide_compat_result(status);
}

static void sleep_until(int64_t deadline_ns) {
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event;
  memset(&event, 0, sizeof event);
  platform->event_init(platform->context, &event);
  while (platform->event_wait(platform->context, &event, deadline_ns) != 0) {}
}

void rclc_sleep_ms(unsigned int ms) { sleep_until(tide_compat_deadline((int64_t)ms)); }

/* Returns a tide_status_t. */
static int spin_one_period(const rclc_executor_t *executor, uint64_t period) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL || period == 0 || period > (uint64_t)INT64_MAX / 4u) return TIDE_ERROR_ARGUMENT;
  int64_t now_ns = tide_compat_now_ns();
  int64_t period_ns = (int64_t)period;
  if (handle->next_period_ns == 0) handle->next_period_ns = now_ns + period_ns;
  const int status = spin_some(executor, executor->timeout_ns);
  now_ns = tide_compat_now_ns();
  if (now_ns > handle->next_period_ns) {
    handle->next_period_ns += (now_ns - handle->next_period_ns) / period_ns * period_ns + period_ns;
  }
  sleep_until(handle->next_period_ns);
  handle->next_period_ns += period_ns;
  return status;
}

rcl_ret_t rclc_executor_spin_one_period(rclc_executor_t *executor, const uint64_t period) {
  return result_of_spin(executor, spin_one_period(executor, period));
}

rcl_ret_t rclc_executor_spin_period(rclc_executor_t *executor, const uint64_t period) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  int status = TIDE_OK;
  while (status == TIDE_OK && !__atomic_exchange_n(&handle->core.stopped, false, __ATOMIC_ACQ_REL)) {
    status = spin_one_period(executor, period);
  }
  return tide_compat_result(status);
}

/* ---- callback groups ---- */

rcl_ret_t tide_rclc_callback_group_init(tide_callback_group_t *group, tide_group_kind_t kind) {
  if (group == NULL || (kind != TIDE_GROUP_EXCLUSIVE && kind != TIDE_GROUP_REENTRANT)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (!TIDE_LANES) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  for (size_t i = 0; i < tide_pools.group_count; i++) {
    tide_group_handle_t *handle = &tide_pools.groups[i];
    if (handle->in_use) continue;
    const int status = tide_group_init(&handle->group, kind, tide_pools.group_storage + i * tide_pools.handle_count,
                                       tide_pools.handle_count);
    if (status != TIDE_OK) return tide_compat_result(status);
    handle->in_use = true;
    group->impl = handle;
    return RCL_RET_OK;
  }
  return tide_compat_result(TIDE_ERROR_CAPACITY_GROUPS);
}

static void leave_group(tide_callback_t *callback, const tide_group_t *group) {
  if (callback->group == group) callback->group = NULL;
}

rcl_ret_t tide_rclc_callback_group_fini(tide_callback_group_t *group) {
  if (group == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_group_handle_t *handle = group->impl;
  if (handle != NULL && handle->in_use) {
    if (handle->group.members > 0u) return tide_compat_result(TIDE_ERROR_STATE);
    for (size_t i = 0; i < tide_pools.timer_count; i++)
      leave_group(&tide_pools.timers[i].timer.callback, &handle->group);
    for (size_t i = 0; i < tide_pools.subscription_count; i++)
      leave_group(&tide_pools.subscriptions[i].callback, &handle->group);
    for (size_t i = 0; i < tide_pools.service_count; i++)
      leave_group(&tide_pools.services[i].end.callback, &handle->group);
    for (size_t i = 0; i < tide_pools.client_count; i++)
      leave_group(&tide_pools.clients[i].end.callback, &handle->group);
    for (size_t i = 0; i < tide_pools.guard_count; i++) leave_group(&tide_pools.guards[i].callback, &handle->group);
    handle->in_use = false;
  }
  group->impl = NULL;
  return RCL_RET_OK;
}

static rcl_ret_t set_group(tide_callback_t *callback, const tide_callback_group_t *group) {
  if (group != NULL && (group->impl == NULL || !group->impl->in_use)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (callback->executor != NULL) return tide_compat_result(TIDE_ERROR_STATE);
  callback->group = group == NULL ? NULL : &group->impl->group;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_timer_set_group(rcl_timer_t *timer, const tide_callback_group_t *group) {
  if (timer == NULL || timer->impl == NULL || timer->impl->support == NULL) return RCL_RET_TIMER_INVALID;
  return set_group(&timer->impl->timer.callback, group);
}

rcl_ret_t tide_rclc_subscription_set_group(rcl_subscription_t *subscription, const tide_callback_group_t *group) {
  if (!rcl_subscription_is_valid(subscription)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return set_group(&subscription->impl->callback, group);
}

rcl_ret_t tide_rclc_guard_condition_set_group(rcl_guard_condition_t *guard, const tide_callback_group_t *group) {
  if (guard == NULL || guard->impl == NULL || guard->impl->support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return set_group(&guard->impl->callback, group);
}

/* A service is never reentrant: concurrent runs would share one request and one response. */
static rcl_ret_t set_group_of_end(tide_callback_t *callback, const tide_callback_group_t *group) {
  const bool reentrant = group != NULL && group->impl != NULL && group->impl->group.kind == TIDE_GROUP_REENTRANT;
  return reentrant ? tide_compat_result(TIDE_ERROR_UNSUPPORTED) : set_group(callback, group);
}

rcl_ret_t tide_rclc_service_set_group(rcl_service_t *service, const tide_callback_group_t *group) {
  if (service == NULL || service->impl == NULL || service->impl->end.support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return set_group_of_end(&service->impl->end.callback, group);
}

rcl_ret_t tide_rclc_client_set_group(rcl_client_t *client, const tide_callback_group_t *group) {
  if (client == NULL || client->impl == NULL || client->impl->end.support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return set_group_of_end(&client->impl->end.callback, group);
}

/* ---- chains ---- */

rcl_ret_t tide_rclc_chain_add_timer(tide_chain_t *chain, rcl_timer_t *timer) {
  tide_callback_t *callback = tide_rclc_timer_callback(timer);
  if (chain == NULL || callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_chain_add(chain, callback));
}

tide_callback_t *tide_rclc_guard_condition_callback(const rcl_guard_condition_t *guard) {
  return guard == NULL || guard->impl == NULL || guard->impl->handle == NULL ? NULL : &guard->impl->callback;
}

rcl_ret_t tide_rclc_chain_add_guard_condition(tide_chain_t *chain, rcl_guard_condition_t *guard) {
  tide_callback_t *callback = tide_rclc_guard_condition_callback(guard);
  if (chain == NULL || callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_chain_add(chain, callback));
}

rcl_ret_t tide_rclc_chain_add_subscription(tide_chain_t *chain, rcl_subscription_t *subscription) {
  tide_callback_t *callback = tide_rclc_subscription_callback(subscription);
  if (chain == NULL || callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  int position = tide_chain_add(chain, callback);
  if (position < 0) return tide_compat_result(position);
  return tide_rclc_subscription_set_priority(subscription, callback->priority);
}

rcl_ret_t tide_rclc_chain_add_publisher(tide_chain_t *chain, rcl_publisher_t *publisher) {
  if (chain == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_rclc_publisher_set_priority(publisher, TIDE_PRIORITY(chain->level, chain->length));
}

/* ---- rounds ---- */

/* The executor whose round this thread runs. Without thread-local variables, messages that other tasks send meanwhile
 * also wait for the end of the round. */
#if TIDE_SOCKETS
static _Thread_local tide_executor_handle_t *current;
#else
static tide_executor_handle_t *current;
#endif

/* ---- outputs ---- */

/* Keeps a message until the round ends. The list has the most urgent message first, and messages of equal priority in
 * the order of writing. */
static int keep(tide_support_t *support, tide_write_t *write) {
  tide_executor_handle_t *executor = current;
  if (executor == NULL || executor->rounds == NULL || executor->support != support || write->cdr.status != TIDE_OK) {
    return tide_session_write_end(write);
  }
  tide_node_t *node = write->node;
  tide_node_t **place = &executor->kept;
  while (*place != NULL && (*place)->priority >= node->priority) place = &(*place)->next_in_stream;
  node->length = (uint32_t)write->cdr.position;
  node->resend = write->stream; /* the stream: the transmitter uses this member only from the submission on */
  node->next_in_stream = *place;
  *place = node;
  write->node = NULL;
  return TIDE_OK;
}

static int let_go(tide_support_t *support, tide_node_t *node) {
  tide_write_t write;
  write.session = &support->session;
  write.node = node;
  write.stream = (uint8_t)node->resend;
  tide_cdr_writer(&write.cdr, node->bytes, node->capacity);
  write.cdr.position = node->length;
  node->resend = 0;
  node->next_in_stream = NULL;
  return tide_session_write_end(&write);
}

static void finish_round(tide_executor_handle_t *executor) {
  if (current == executor) current = NULL;
  if (executor->support == NULL) executor->kept = NULL; /* the session and its pool have ended */
  while (executor->kept != NULL) {
    tide_node_t *node = executor->kept;
    executor->kept = node->next_in_stream;
    const int status = let_go(executor->support, node);
    if (status != TIDE_OK) (void)tide_compat_result(status);
  }
}

/* ---- inputs ---- */

static void call_subscription(const rclc_executor_handle_t *handle, const void *message) {
  if (handle->type == RCLC_SUBSCRIPTION_WITH_CONTEXT) {
    handle->subscription_callback_with_context(message, handle->callback_context);
  } else {
    handle->subscription_callback(message);
  }
}

static void execute_without(tide_callback_t *callback, void *context);

/* Messages that arrived after the round began belong to the next round. The same holds for the messages of a callback
 * that begin_round skipped because another thread removed a callback ahead of it in the list. */
static void execute_early(tide_callback_t *callback, void *context) {
  const rclc_executor_handle_t *handle = context;
  tide_subscription_handle_t *subscription = handle->impl;
  const bool waiting =
      subscription->reader.count > 0 || (subscription->local != NULL && subscription->local->waiting(subscription) > 0);
  if (waiting) tide_executor_notify(callback);
  execute_without(callback, context);
}

static void execute_taken(tide_callback_t *callback, void *context) {
  const rclc_executor_handle_t *handle = context;
  callback->execute = execute_early;
  call_subscription(handle, handle->data);
}

/* Runs the callback without a message, because its message could not be decoded. */
static void execute_without(tide_callback_t *callback, void *context) {
  const rclc_executor_handle_t *handle = context;
  callback->execute = execute_early;
  if (handle->invocation == ALWAYS) call_subscription(handle, NULL);
}

static void take_input(tide_callback_t *callback) {
  rclc_executor_handle_t *handle = callback->context;
  if (__atomic_load_n(&callback->pending, __ATOMIC_RELAXED) == 0) {
    callback->execute = execute_early;
    return;
  }
  const rcl_ret_t result = tide_compat_take(handle->impl, handle->data, NULL);
  callback->execute = result == RCL_RET_OK ? execute_taken : execute_without;
}

static bool begin_round(tide_callback_t *const *callbacks, size_t count, void *object) {
  tide_executor_handle_t *executor = object;
  if (!ask_program(callbacks, count, executor)) return false;
  tide_callback_t *callback;
  for (size_t i = 0; (callback = tide_executor_callback_at(&executor->core, i)) != NULL; i++) {
    if (callback->kind == TIDE_CALLBACK_SUBSCRIPTION) take_input(callback);
  }
  current = executor;
  return true;
}

static void take_at_once(tide_callback_t *callback, void *context) {
  (void)context;
  if (callback->kind == TIDE_CALLBACK_SUBSCRIPTION) callback->execute = execute_subscription;
}

/* ---- choice ---- */

static const tide_rounds_t rounds = {begin_round, finish_round};

rcl_ret_t rclc_executor_set_semantics(rclc_executor_t *executor, rclc_executor_semantics_t semantics) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL || semantics > RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (current == handle && handle->rounds != NULL) return tide_compat_result(TIDE_ERROR_STATE);
  handle->rounds = semantics == RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME ? &rounds : NULL;
  const rcl_ret_t result = rclc_executor_set_trigger(executor, handle->trigger, handle->trigger_object);
  if (result != RCL_RET_OK) handle->rounds = NULL;
  handle->core.all_frames_first = handle->rounds != NULL;
  if (handle->rounds == NULL) tide_executor_each(&handle->core, take_at_once, NULL);
  handle->support->keep = keep; /* stays set, because another executor of the support may use it */
  return result;
}
