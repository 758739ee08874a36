/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "rclc/subscription.h"

rcl_subscription_t rcl_get_zero_initialized_subscription(void) {
  rcl_subscription_t subscription = {NULL};
  return subscription;
}

rcl_subscription_options_t rcl_subscription_get_default_options(void) {
  rcl_subscription_options_t options;
  options.qos = rmw_qos_profile_default;
  options.allocator = rcl_get_default_allocator();
  return options;
}

static tide_subscription_handle_t *free_place(void) {
  for (size_t i = 0; i < tide_pools.subscription_count; i++) {
    tide_subscription_handle_t *handle = &tide_pools.subscriptions[i];
    if (handle->support != NULL) continue;
    memset(handle, 0, sizeof *handle);
    handle->topic.name = tide_pools.subscription_names + i * tide_pools.name_bytes;
    handle->reader.samples = tide_pools.samples + i * tide_pools.subscription_depth;
    return handle;
  }
  return NULL;
}

/* A sample that took the place of an older one has that one's start, too. */
static void on_sample(void *context, tide_reader_t *reader) {
  tide_subscription_handle_t *handle = context;
  if (handle->handle == NULL) return;
  const uint32_t pending = __atomic_load_n(&handle->callback.pending, __ATOMIC_RELAXED);
  const bool has_local = handle->local != NULL; /* whose samples are pending, too */
  if (has_local || pending < tide_session_queued(&handle->support->session, reader)) {
    tide_executor_notify(&handle->callback);
  }
}

static void describe_reader(tide_subscription_handle_t *handle, const rmw_qos_profile_t *qos) {
  handle->reader.object = handle->topic.endpoint.id;
  handle->reader.reliable = tide_compat_is_reliable(qos);
  handle->reader.depth = tide_pools.subscription_depth;
  if (qos->history != RMW_QOS_POLICY_HISTORY_KEEP_ALL && qos->depth > 0 && qos->depth < handle->reader.depth) {
    handle->reader.depth = (uint8_t)qos->depth;
  }
  handle->reader.keep_all = qos->history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  if (!handle->reader.keep_all) {
    handle->reader.keep_last = qos->depth > UINT8_MAX ? UINT8_MAX
                               : qos->depth > 0       ? (uint8_t)qos->depth
                                                      : handle->reader.depth;
  }
  handle->reader.on_sample = on_sample;
  handle->reader.context = handle;
}

static int open_on_agent(tide_subscription_handle_t *handle, const tide_node_handle_t *node, const char *topic_name,
                         const rmw_qos_profile_t *qos) {
  tide_support_t *support = handle->support;
  const int status = tide_compat_create_topic(support, &handle->topic, node, handle->type, topic_name, qos, false);
  if (status != TIDE_OK) return status;
  describe_reader(handle, qos);
  return tide_session_add_reader(&support->session, &handle->reader);
}

static int open_locally(tide_subscription_handle_t *handle, const tide_node_handle_t *node, const char *topic_name,
                        const rmw_qos_profile_t *qos) {
  describe_reader(handle, qos);
  return tide_compat_topic_name(handle->topic.name, topic_name, node);
}

int tide_compat_subscription_init(rcl_subscription_t *subscription, const rcl_node_t *node,
                                  const rosidl_message_type_support_t *type_support, const char *topic_name,
                                  const rmw_qos_profile_t *qos_profile, bool on_agent) {
  if (subscription == NULL || !tide_compat_is_node(node) || type_support == NULL || topic_name == NULL ||
      qos_profile == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  tide_subscription_handle_t *handle = free_place();
  if (handle == NULL) return TIDE_ERROR_CAPACITY_SUBSCRIPTIONS;
  handle->support = node->impl->support;
  handle->type = (const tide_message_type_t *)type_support->data;
  const int status = on_agent ? open_on_agent(handle, node->impl, topic_name, qos_profile)
                              : open_locally(handle, node->impl, topic_name, qos_profile);
  if (status != TIDE_OK) {
    if (tide_compat_delete_topic(handle->support, &handle->topic) == TIDE_OK) handle->support = NULL;
    return status;
  }
  subscription->impl = handle;
  return TIDE_OK;
}

static rcl_ret_t init(rcl_subscription_t *subscription, const rcl_node_t *node,
                      const rosidl_message_type_support_t *type_support, const char *topic_name,
                      const rmw_qos_profile_t *qos_profile) {
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  return tide_compat_result(
      tide_compat_subscription_init(subscription, node, type_support, topic_name, qos_profile, true));
}

rcl_ret_t rclc_subscription_init(rcl_subscription_t *subscription, rcl_node_t *node,
                                 const rosidl_message_type_support_t *type_support, const char *topic_name,
                                 const rmw_qos_profile_t *qos_profile) {
  return init(subscription, node, type_support, topic_name, qos_profile);
}

rcl_ret_t rclc_subscription_init_default(rcl_subscription_t *subscription, rcl_node_t *node,
                                         const rosidl_message_type_support_t *type_support, const char *topic_name) {
  return rclc_subscription_init(subscription, node, type_support, topic_name, &rmw_qos_profile_default);
}

rcl_ret_t rclc_subscription_init_best_effort(rcl_subscription_t *subscription, rcl_node_t *node,
                                             const rosidl_message_type_support_t *type_support,
                                             const char *topic_name) {
  return rclc_subscription_init(subscription, node, type_support, topic_name, &rmw_qos_profile_sensor_data);
}

rcl_ret_t rcl_subscription_init(rcl_subscription_t *subscription, const rcl_node_t *node,
                                const rosidl_message_type_support_t *type_support, const char *topic_name,
                                const rcl_subscription_options_t *options) {
  const rmw_qos_profile_t *qos = options == NULL ? &rmw_qos_profile_default : &options->qos;
  return init(subscription, node, type_support, topic_name, qos);
}

rcl_ret_t rcl_subscription_fini(rcl_subscription_t *subscription, rcl_node_t *node) {
  (void)node;
  if (subscription == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_SUBSCRIPTION_INVALID);
  tide_subscription_handle_t *handle = subscription->impl;
  if (rcl_subscription_is_valid(subscription)) {
    int status = tide_compat_remove_callback(&handle->callback);
    if (status != TIDE_OK) return tide_compat_result(status);
    if (handle->handle != NULL) memset(handle->handle, 0, sizeof *handle->handle);
    handle->handle = NULL;
    if (handle->local != NULL) handle->local->close_subscription(handle);
    /* That the agent stops sending follows from the deletion, too. */
    tide_session_remove_reader(&handle->support->session, &handle->reader);
    status = tide_compat_delete_topic(handle->support, &handle->topic);
    if (status != TIDE_OK) return tide_compat_result(status);
    handle->support = NULL;
  }
  subscription->impl = NULL;
  return RCL_RET_OK;
}

bool rcl_subscription_is_valid(const rcl_subscription_t *subscription) {
  return subscription != NULL && subscription->impl != NULL && subscription->impl->support != NULL;
}

const char *rcl_subscription_get_topic_name(const rcl_subscription_t *subscription) {
  return rcl_subscription_is_valid(subscription) ? subscription->impl->topic.name + 2 : NULL; /* behind "rt" */
}

static rcl_ret_t take_received(tide_subscription_handle_t *handle, void *message, rmw_message_info_t *info) {
  tide_session_t *session = &handle->support->session;
  const tide_sample_t *sample = tide_session_peek(session, &handle->reader);
  if (sample == NULL) return RCL_RET_SUBSCRIPTION_TAKE_FAILED;
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample->bytes, sample->length, sample->big_endian);
  handle->type->decode(&cdr, message);
  if (info != NULL) {
    info->source_timestamp = 0;
    info->received_timestamp = sample->arrived_ns;
    info->from_intra_process = false;
  }
  tide_session_take_done(session, &handle->reader);
  if (cdr.status == TIDE_OK) return RCL_RET_OK;
  handle->decode_errors++;
  return tide_compat_result(cdr.status);
}

static rcl_ret_t result_of_local(tide_subscription_handle_t *handle, const void *message) {
  if (message != NULL) return RCL_RET_OK;
  handle->decode_errors++;
  return tide_compat_result(TIDE_ERROR_CAPACITY_MESSAGE);
}

rcl_ret_t tide_compat_take(tide_subscription_handle_t *handle, void *message, rmw_message_info_t *info) {
  const tide_local_functions_t *local = handle->local;
  if (local == NULL || !local->is_next(handle)) return take_received(handle, message, info);
  const void *taken = local->take(handle, message, info);
  if (taken != NULL && taken != message) {
    memcpy(message, taken, handle->type->structure_bytes);
    local->release(taken);
  }
  return result_of_local(handle, taken);
}

rcl_ret_t tide_compat_take_next(tide_subscription_handle_t *handle, void *memory, const void **message) {
  const tide_local_functions_t *local = handle->local;
  *message = memory;
  if (local == NULL || !local->is_next(handle)) return take_received(handle, memory, NULL);
  *message = local->take(handle, memory, NULL);
  return result_of_local(handle, *message);
}

rcl_ret_t rcl_take(const rcl_subscription_t *subscription, void *ros_message, rmw_message_info_t *message_info,
                   rmw_subscription_allocation_t *allocation) {
  (void)allocation;
  if (!rcl_subscription_is_valid(subscription) || ros_message == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_take(subscription->impl, ros_message, message_info);
}

rcl_ret_t tide_rclc_subscription_set_priority(rcl_subscription_t *subscription, tide_priority_t priority) {
  if (!rcl_subscription_is_valid(subscription) || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_subscription_handle_t *handle = subscription->impl;
  if (handle->callback.executor != NULL) {
    tide_executor_set_priority(handle->callback.executor, &handle->callback, priority);
  }
  handle->callback.priority = priority;
  return tide_compat_result(tide_session_set_reader_priority(&handle->support->session, &handle->reader, priority));
}

tide_callback_t *tide_rclc_subscription_callback(const rcl_subscription_t *subscription) {
  if (!rcl_subscription_is_valid(subscription) || subscription->impl->callback.executor == NULL) return NULL;
  return &subscription->impl->callback;
}
