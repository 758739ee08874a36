/* SPDX-License-Identifier: Apache-2.0 */
#include "rclc/executor.h"

#include <string.h>

#include "internal.h"
#include "rclc/sleep.h"

#define DEFAULT_TIMEOUT_NS 1000000000u

/* ---- frames of the session, as the executor's source ---- */

/* Null: the support ended in the middle of a spin. */
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

/* At the start of each round. */
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
  __atomic_store_n(&handle->support, support, __ATOMIC_RELAXED);
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
  config.source.is_welcome = source_is_welcome;
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

tide_executor_handle_t *tide_compat_executor_of(const rclc_executor_t *executor) {
  return executor != NULL && executor->impl != NULL && executor->impl->support != NULL ? executor->impl : NULL;
}

rcl_ret_t rclc_executor_fini(rclc_executor_t *executor) {
  if (executor == NULL) return RCL_RET_OK; /* as rclc */
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle != NULL) {
    end_round(handle);
    for (size_t i = 0; i < executor->index; i++) tide_compat_remove_handle(handle, &executor->handles[i]);
    set_support(handle, NULL);
  }
  *executor = rclc_executor_get_zero_initialized_executor();
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_executor_set_policy(rclc_executor_t *executor, tide_policy_t policy) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
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

/* Then one round is what the stock spin_some does; else it is as many rounds as there are handles. */
static bool runs_all_a_round(const tide_executor_handle_t *handle) {
  return handle->core.config.policy == TIDE_POLICY_BATCH || handle->trigger != rclc_executor_trigger_any ||
         handle->rounds != NULL;
}

rcl_ret_t tide_rclc_executor_set_lanes(rclc_executor_t *executor, const tide_lane_settings_t *lanes, size_t count) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL || lanes == NULL || count == 0 || !are_rising(lanes, count)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (executor->index != 0) return tide_compat_result(TIDE_ERROR_STATE);
  if (count > tide_pools.lane_count) return tide_compat_result(TIDE_ERROR_CAPACITY_LANES);
  const tide_policy_t policy = handle->core.config.policy;
  if (count > 1 && runs_all_a_round(handle)) {
    return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  }
  tide_support_t *support = handle->support;
  set_support(handle, NULL); /* nobody wakes the lanes while they change */
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

/* ---- spinning ---- */

static bool is_stopped(const tide_executor_handle_t *handle) {
  return __atomic_load_n(&handle->core.stopped, __ATOMIC_ACQUIRE);
}

rcl_ret_t rclc_executor_spin_some(rclc_executor_t *executor, const uint64_t timeout_ns) {
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_platform_t *platform = tide_port_platform();
  int64_t now_ns = tide_platform_now_ns(platform);
  bool forever = timeout_ns >= (uint64_t)(TIDE_FOREVER - now_ns);
  int64_t deadline_ns = forever ? TIDE_FOREVER : now_ns + (int64_t)timeout_ns;
  size_t run = 0;
  while (run < executor->max_handles) {
    int count = tide_executor_round(&handle->core, run == 0 ? deadline_ns : now_ns);
    end_round(handle);
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
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const int status = handle->has_threads ? spin_with_threads(handle) : tide_executor_spin(&handle->core);
  end_round(handle);
  return tide_compat_result(status);
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
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
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
  tide_executor_handle_t *handle = tide_compat_executor_of(executor);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rcl_ret_t result = RCL_RET_OK;
  while (result == RCL_RET_OK && !__atomic_exchange_n(&handle->core.stopped, false, __ATOMIC_ACQ_REL)) {
    result = rclc_executor_spin_one_period(executor, period);
  }
  return result;
}
