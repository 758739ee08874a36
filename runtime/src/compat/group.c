/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "tide/rclc_service.h"

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

static void forget(tide_callback_t *callback, const tide_group_t *group) {
  if (callback->group == group) callback->group = NULL;
}

rcl_ret_t tide_rclc_callback_group_fini(tide_callback_group_t *group) {
  if (group == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_group_handle_t *handle = group->impl;
  if (handle != NULL && handle->in_use) {
    if (handle->group.members > 0u) return tide_compat_result(TIDE_ERROR_STATE);
    for (size_t i = 0; i < tide_pools.timer_count; i++) forget(&tide_pools.timers[i].timer.callback, &handle->group);
    for (size_t i = 0; i < tide_pools.subscription_count; i++)
      forget(&tide_pools.subscriptions[i].callback, &handle->group);
    for (size_t i = 0; i < tide_pools.service_count; i++) forget(&tide_pools.services[i].end.callback, &handle->group);
    for (size_t i = 0; i < tide_pools.client_count; i++) forget(&tide_pools.clients[i].end.callback, &handle->group);
    for (size_t i = 0; i < tide_pools.guard_count; i++) forget(&tide_pools.guards[i].callback, &handle->group);
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

/* Runs of one service would share its request and response. */
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
