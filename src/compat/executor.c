/* SPDX-License-Identifier: Apache-2.0 */
#include "rclc/executor.h"

#include <string.h>

#include "internal.h"
#include "rclc/sleep.h"

#define DEFAULT_TIMEOUT_NS 1000000000u

/* ---- frames of the session, as the executor's source ---- */

static int32_t source_most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {least, most, handle->number};
  return tide_daemon_most_urgent_of(&handle->support->session.daemon, &share);
}

static int source_process_most_urgent(void *context, tide_priority_t least, tide_priority_t most) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {least, most, handle->number};
  const int count = tide_daemon_process_most_urgent_of(&handle->support->session.daemon, &share);
  tide_compat_wake_others(handle);
  return count;
}

static int source_process_oldest(void *context) {
  tide_executor_handle_t *handle = context;
  const tide_frame_share_t share = {0, UINT16_MAX, handle->number};
  const int count = tide_daemon_process_oldest_of(&handle->support->session.daemon, &share);
  tide_compat_wake_others(handle);
  return count;
}

static int64_t source_poll(void *context) { return tide_compat_poll(((tide_executor_handle_t *)context)->support); }

/* ---- life ---- */

rclc_executor_t rclc_executor_get_zero_initialized_executor(void) {
  rclc_executor_t executor;
  memset(&executor, 0, sizeof executor);
  return executor;
}

/* The shared arrays are handed out in one piece an executor; the pieces of finished executors at the end are free. */
static size_t places_taken(void) {
  size_t end = 0;
  for (size_t i = 0; i < tide_pools.executor_count; i++) {
    const tide_executor_handle_t *handle = &tide_pools.executors[i];
    if (handle->support != NULL && handle->first + handle->count > end) end = handle->first + handle->count;
  }
  return end;
}

/* The link's context looks for executors to wake. */
static void set_support(tide_executor_handle_t *handle, tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  handle->support = support;
  tide_platform_exit(platform, critical);
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
  config.source.process_oldest = TIDE_BATCH || TIDE_READYSET ? source_process_oldest : NULL;
  config.source.poll = source_poll;
  return tide_executor_init(&handle->core, &config);
}

rcl_ret_t rclc_executor_init(rclc_executor_t *executor, rcl_context_t *context, const size_t number_of_handles,
                             const rcl_allocator_t *allocator) {
  (void)allocator;
  if (executor == NULL || number_of_handles == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
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
  handle->program = executor;
  handle->trigger = rclc_executor_trigger_any;
  handle->trigger_object = NULL;
  handle->next_period_ns = 0;
  handle->has_threads = false;
  const size_t place = (size_t)(handle - tide_pools.executors);
  handle->number = (uint8_t)(tide_pools.executor_count > 1 ? place + 1 : 0); /* a single one takes all frames */
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

int tide_compat_remove_callback(tide_callback_t *callback) {
  tide_executor_t *core = callback->executor;
  if (core == NULL) return TIDE_OK;
  return core->config.lane_count > 1 ? tide_executor_remove_idle(core, callback) : tide_executor_remove(core, callback);
}

static int remove_subscription(tide_executor_handle_t *executor, tide_subscription_handle_t *subscription) {
  tide_session_t *session = &executor->support->session;
  const int status = tide_compat_remove_callback(&subscription->callback);
  if (status != TIDE_OK) return status;
  subscription->handle = NULL;
  tide_session_set_reader_owner(session, &subscription->reader, 0);
  if (executor->number != 0)
    tide_daemon_disown(&session->daemon, executor->number); /* its frames are in nobody's way */
  return TIDE_OK;
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
static int remove_handle(tide_executor_handle_t *executor, rclc_executor_handle_t *handle) {
  int status = TIDE_OK;
  switch (handle->type) {
    case RCLC_SUBSCRIPTION:
    case RCLC_SUBSCRIPTION_WITH_CONTEXT:
      status = remove_subscription(executor, handle->impl);
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

static tide_executor_handle_t *impl_of(const rclc_executor_t *executor) {
  return executor != NULL && executor->impl != NULL && executor->impl->support != NULL ? executor->impl : NULL;
}

rcl_ret_t rclc_executor_fini(rclc_executor_t *executor) {
  if (executor == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle != NULL) {
    for (size_t i = 0; i < executor->index; i++) remove_handle(handle, &executor->handles[i]);
    set_support(handle, NULL);
  }
  *executor = rclc_executor_get_zero_initialized_executor();
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_executor_set_policy(rclc_executor_t *executor, tide_policy_t policy) {
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle == NULL || policy > TIDE_POLICY_READYSET) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (executor->index != 0) return tide_compat_result(TIDE_ERROR_STATE);
  return tide_compat_result(tide_executor_set_policy(&handle->core, policy));
}

static bool are_rising(const tide_lane_settings_t *lanes, size_t count) {
  for (size_t i = 1; i < count; i++) {
    if (lanes[i].least_level < lanes[i - 1].least_level) return false;
  }
  return true;
}

rcl_ret_t tide_rclc_executor_set_lanes(rclc_executor_t *executor, const tide_lane_settings_t *lanes, size_t count) {
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle == NULL || lanes == NULL || count == 0 || !are_rising(lanes, count)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (executor->index != 0) return tide_compat_result(TIDE_ERROR_STATE);
  if (count > tide_pools.lane_count) return tide_compat_result(TIDE_ERROR_CAPACITY_LANES);
  const tide_policy_t policy = handle->core.config.policy;
  if (count > 1 && (policy == TIDE_POLICY_BATCH || handle->trigger != rclc_executor_trigger_any)) {
    return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  }
  for (size_t i = 0; i < count; i++) handle->lanes[i].settings = lanes[i];
  const int status = init_core(handle, count, policy);
  handle->has_threads = status == TIDE_OK;
  if (status != TIDE_OK) {
    memset(handle->lanes, 0, sizeof *handle->lanes);
    init_core(handle, 1, policy);
  }
  return tide_compat_result(status);
}

int tide_rclc_executor_refused_lane(const rclc_executor_t *executor) {
  const tide_executor_handle_t *handle = impl_of(executor);
  return handle == NULL || !handle->has_threads ? -1 : (int)handle->refused_lane;
}

tide_executor_t *tide_rclc_executor_core(rclc_executor_t *executor) {
  tide_executor_handle_t *handle = impl_of(executor);
  return handle == NULL ? NULL : &handle->core;
}

rcl_ret_t rclc_executor_set_timeout(rclc_executor_t *executor, const uint64_t timeout_ns) {
  if (impl_of(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  executor->timeout_ns = timeout_ns;
  return RCL_RET_OK;
}

rcl_ret_t rclc_executor_prepare(rclc_executor_t *executor) {
  return impl_of(executor) == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

/* ---- handles ---- */

static rclc_executor_handle_t *next_handle(rclc_executor_t *executor, rclc_executor_handle_type_t type) {
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

static void commit_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle) {
  handle->initialized = true;
  if (handle->index >= executor->index) executor->index = handle->index + 1;
}

/* What the core's causes mean here: a group is the only other thing that a callback can be refused for. */
static rcl_ret_t refusal_of_add(int status) {
  const int cause = status == TIDE_ERROR_FULL       ? TIDE_ERROR_CAPACITY_HANDLES
                    : status == TIDE_ERROR_ARGUMENT ? TIDE_ERROR_EXISTS
                                                    : status;
  return tide_compat_result(cause);
}

static void execute_subscription(tide_callback_t *callback, void *context) {
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
  subscription->callback.execute = execute_subscription;
  subscription->callback.context = handle;
  subscription->callback.handle = handle->subscription;
  int status = tide_executor_add(&executor->impl->core, &subscription->callback);
  if (status != TIDE_OK) return refusal_of_add(status);
  commit_handle(executor, handle);
  subscription->handle = handle;
  tide_session_set_reader_owner(&subscription->support->session, &subscription->reader, executor->impl->number);
  for (uint8_t i = 0; i < subscription->reader.count; i++) tide_executor_notify(&subscription->callback);
  const uint16_t local = subscription->local == NULL ? 0 : subscription->local->waiting(subscription);
  for (uint16_t i = 0; i < local; i++) tide_executor_notify(&subscription->callback);
  return RCL_RET_OK;
}

static rclc_executor_handle_t *new_subscription(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                                rclc_executor_handle_type_t type, rcl_ret_t *result) {
  if (impl_of(executor) == NULL || !rcl_subscription_is_valid(subscription) || msg == NULL) {
    *result = tide_compat_result(TIDE_ERROR_ARGUMENT);
    return NULL;
  }
  if (subscription->impl->callback.executor != NULL) {
    *result = tide_compat_result(TIDE_ERROR_EXISTS);
    return NULL;
  }
  rclc_executor_handle_t *handle = next_handle(executor, type);
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
  if (impl_of(executor) == NULL || timer == NULL || timer->impl == NULL || timer->impl->support == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_timer_t *core = &timer->impl->timer;
  if (core->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_EXISTS);
  rclc_executor_handle_t *handle = next_handle(executor, RCLC_TIMER);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_HANDLES);
  handle->timer = timer;
  handle->impl = timer->impl;
  timer->impl->program = timer;
  core->callback.handle = timer;
  core->callback.context = handle;
  int64_t first_ns = core->next_ns; /* the timer runs since rcl_timer_init */
  bool canceled = core->canceled;
  int status = tide_executor_add_timer(&executor->impl->core, core);
  if (status != TIDE_OK) return refusal_of_add(status);
  tide_timer_set_phase(core, first_ns);
  if (canceled) tide_timer_cancel(core);
  commit_handle(executor, handle);
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
  if (impl_of(executor) == NULL || gc == NULL || gc->impl == NULL || gc->impl->support == NULL || callback == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (gc->impl->callback.executor != NULL) return tide_compat_result(TIDE_ERROR_EXISTS);
  rclc_executor_handle_t *handle = next_handle(executor, RCLC_GUARD_CONDITION);
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
  if (status != TIDE_OK) return refusal_of_add(status);
  commit_handle(executor, handle);
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
  if (impl_of(executor) == NULL || pointer == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
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

rcl_ret_t rclc_executor_remove_timer(rclc_executor_t *executor, const rcl_timer_t *timer) {
  return remove_pointer(executor, timer);
}

rcl_ret_t rclc_executor_remove_guard_condition(rclc_executor_t *executor, const rcl_guard_condition_t *gc) {
  return remove_pointer(executor, gc);
}

/* ---- spinning ---- */

static bool is_stopped(const tide_executor_handle_t *handle) {
  return __atomic_load_n(&handle->core.stopped, __ATOMIC_ACQUIRE);
}

/* Then one round is what the stock spin_some does; else it is as many rounds as there are handles. */
static bool runs_all_a_round(const tide_executor_handle_t *handle) {
  return handle->core.config.policy == TIDE_POLICY_BATCH || handle->trigger != rclc_executor_trigger_any;
}

rcl_ret_t rclc_executor_spin_some(rclc_executor_t *executor, const uint64_t timeout_ns) {
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_platform_t *platform = tide_port_platform();
  int64_t now_ns = tide_platform_now_ns(platform);
  bool forever = timeout_ns >= (uint64_t)(TIDE_FOREVER - now_ns);
  int64_t deadline_ns = forever ? TIDE_FOREVER : now_ns + (int64_t)timeout_ns;
  size_t run = 0;
  while (run < executor->max_handles) {
    int count = tide_executor_round(&handle->core, run == 0 ? deadline_ns : now_ns);
    if (count == TIDE_ERROR_TIMEOUT) break;
    if (count < 0) return tide_compat_result(count);
    if (count == 0 && run > 0) break;
    run += (size_t)count;
    if (runs_all_a_round(handle)) break;
    if (count == 0 && (is_stopped(handle) || tide_platform_now_ns(platform) >= deadline_ns)) break;
  }
  return RCL_RET_OK;
}

static void spin_lane(void *context, size_t index) { tide_executor_spin_lane(context, index); }

static int spin_with_threads(tide_executor_handle_t *handle) {
  return tide_port_run_lanes(handle->lanes, handle->core.config.lane_count, spin_lane, &handle->core,
                             &handle->refused_lane);
}

rcl_ret_t rclc_executor_spin(rclc_executor_t *executor) {
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(handle->has_threads ? spin_with_threads(handle) : tide_executor_spin(&handle->core));
}

static void sleep_until(int64_t deadline_ns) {
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event;
  memset(&event, 0, sizeof event);
  platform->event_init(platform->context, &event);
  while (platform->event_wait(platform->context, &event, deadline_ns) != 0) {
  }
}

void rclc_sleep_ms(unsigned int ms) { sleep_until(tide_compat_deadline((int64_t)ms)); }

rcl_ret_t rclc_executor_spin_one_period(rclc_executor_t *executor, const uint64_t period) {
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle == NULL || period == 0 || period > (uint64_t)INT64_MAX / 4u)
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_platform_t *platform = tide_port_platform();
  int64_t now_ns = tide_platform_now_ns(platform);
  int64_t period_ns = (int64_t)period;
  if (handle->next_period_ns == 0) handle->next_period_ns = now_ns + period_ns;
  rcl_ret_t result = rclc_executor_spin_some(executor, executor->timeout_ns);
  now_ns = tide_platform_now_ns(platform);
  if (now_ns > handle->next_period_ns) {
    handle->next_period_ns += (now_ns - handle->next_period_ns) / period_ns * period_ns + period_ns;
  }
  sleep_until(handle->next_period_ns);
  handle->next_period_ns += period_ns;
  return result;
}

rcl_ret_t rclc_executor_spin_period(rclc_executor_t *executor, const uint64_t period) {
  tide_executor_handle_t *handle = impl_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rcl_ret_t result = RCL_RET_OK;
  while (result == RCL_RET_OK && !__atomic_exchange_n(&handle->core.stopped, false, __ATOMIC_ACQ_REL)) {
    result = rclc_executor_spin_one_period(executor, period);
  }
  return result;
}
