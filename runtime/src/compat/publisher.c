/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "rclc/publisher.h"

#define STOCK_CONFIRM_MS 1000

rcl_publisher_t rcl_get_zero_initialized_publisher(void) {
  rcl_publisher_t publisher = {NULL};
  return publisher;
}

rcl_publisher_options_t rcl_publisher_get_default_options(void) {
  rcl_publisher_options_t options;
  options.qos = rmw_qos_profile_default;
  options.allocator = rcl_get_default_allocator();
  return options;
}

static tide_publisher_handle_t *free_place(void) {
  for (size_t i = 0; i < tide_pools.publisher_count; i++) {
    tide_publisher_handle_t *handle = &tide_pools.publishers[i];
    if (handle->support != NULL) continue;
    memset(handle, 0, sizeof *handle);
    handle->topic.name = tide_pools.publisher_names + i * tide_pools.name_bytes;
    return handle;
  }
  return NULL;
}

int tide_compat_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                               const rosidl_message_type_support_t *type_support, const char *topic_name,
                               const rmw_qos_profile_t *qos_profile, bool on_agent) {
  if (publisher == NULL || !tide_compat_is_node(node) || type_support == NULL || topic_name == NULL ||
      qos_profile == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  tide_publisher_handle_t *handle = free_place();
  if (handle == NULL) return TIDE_ERROR_CAPACITY_PUBLISHERS;
  handle->type = (const tide_message_type_t *)type_support->data;
  handle->reliable = tide_compat_is_reliable(qos_profile);
  handle->wait_ms = handle->reliable ? STOCK_CONFIRM_MS : 0;
  tide_support_t *support = node->impl->support;
  handle->support = support;
  const int status = on_agent ? tide_compat_create_topic(support, &handle->topic, node->impl, handle->type, topic_name,
                                                         qos_profile, true)
                              : tide_compat_topic_name(handle->topic.name, topic_name, node->impl);
  if (status != TIDE_OK) {
    if (tide_compat_delete_topic(support, &handle->topic) == TIDE_OK) handle->support = NULL;
    return status;
  }
  publisher->impl = handle;
  return TIDE_OK;
}

rcl_ret_t rclc_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                              const rosidl_message_type_support_t *type_support, const char *topic_name,
                              const rmw_qos_profile_t *qos_profile) {
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  return tide_compat_result(tide_compat_publisher_init(publisher, node, type_support, topic_name, qos_profile, true));
}

rcl_ret_t rclc_publisher_init_default(rcl_publisher_t *publisher, const rcl_node_t *node,
                                      const rosidl_message_type_support_t *type_support, const char *topic_name) {
  return rclc_publisher_init(publisher, node, type_support, topic_name, &rmw_qos_profile_default);
}

rcl_ret_t rclc_publisher_init_best_effort(rcl_publisher_t *publisher, const rcl_node_t *node,
                                          const rosidl_message_type_support_t *type_support, const char *topic_name) {
  return rclc_publisher_init(publisher, node, type_support, topic_name, &rmw_qos_profile_sensor_data);
}

rcl_ret_t rcl_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                             const rosidl_message_type_support_t *type_support, const char *topic_name,
                             const rcl_publisher_options_t *options) {
  const rmw_qos_profile_t *qos = options == NULL ? &rmw_qos_profile_default : &options->qos;
  return rclc_publisher_init(publisher, node, type_support, topic_name, qos);
}

bool rcl_publisher_is_valid(const rcl_publisher_t *publisher) {
  return publisher != NULL && publisher->impl != NULL && publisher->impl->support != NULL;
}

const char *rcl_publisher_get_topic_name(const rcl_publisher_t *publisher) {
  return rcl_publisher_is_valid(publisher) ? publisher->impl->topic.name + 2 : NULL; /* behind "rt" */
}

typedef struct attempt {
  tide_publisher_handle_t *publisher;
  tide_write_t *write;
  uint32_t bytes;
  int status;
} attempt_t;

static bool begun(tide_support_t *support, void *context) {
  attempt_t *attempt = context;
  const tide_publisher_handle_t *publisher = attempt->publisher;
  attempt->status = tide_session_write_begin(&support->session, attempt->write, publisher->topic.endpoint.id,
                                             publisher->reliable, publisher->priority, attempt->bytes);
  return attempt->status != TIDE_ERROR_FULL;
}

int tide_compat_begin_sample(tide_publisher_handle_t *publisher, tide_write_t *write, uint32_t bytes) {
  attempt_t attempt = {publisher, write, bytes, TIDE_OK};
  if (begun(publisher->support, &attempt) || publisher->wait_ms == 0) return attempt.status;
  tide_compat_wait(publisher->support, begun, &attempt, tide_compat_deadline(publisher->wait_ms), false);
  return attempt.status;
}

/* Of the publisher's own stream: acknowledgments that this side still owes the agent do not hold the program up. */
bool tide_compat_is_confirmed(tide_support_t *support, void *context) {
  const tide_publisher_handle_t *publisher = context;
  const uint8_t level = TIDE_PRIORITY_LEVEL(publisher->priority);
  const uint8_t stream = publisher->reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  return tide_session_is_idle(&support->session, stream); /* with what waits for the next session */
}

static bool is_delivered(tide_support_t *support, void *context) {
  return !tide_compat_is_ready(support) || tide_compat_is_confirmed(support, context);
}

rcl_ret_t rcl_publisher_fini(rcl_publisher_t *publisher, rcl_node_t *node) {
  (void)node;
  if (publisher == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_PUBLISHER_INVALID);
  tide_publisher_handle_t *handle = publisher->impl;
  if (rcl_publisher_is_valid(publisher)) {
    tide_support_t *support = handle->support;
    /* The deletion travels on level 0's stream and must not overtake the last samples on another. */
    if (handle->reliable && TIDE_PRIORITY_LEVEL(handle->priority) != 0) {
      tide_compat_wait(support, is_delivered, handle, tide_compat_deadline(support->destroy_timeout_ms), false);
    }
    int status = tide_compat_delete_topic(support, &handle->topic);
    if (status != TIDE_OK) return tide_compat_result(status);
    if (handle->local != NULL) handle->local->close_publisher(handle);
    handle->support = NULL;
  }
  publisher->impl = NULL;
  return RCL_RET_OK;
}

/* The stock library runs its session in the publisher: it handles what arrives, in order of arrival, until everything
 * on the stream is acknowledged (reliable) or, where the driver waits for its DMA, until the last byte has left. */
static int wait_as_stock(tide_publisher_handle_t *publisher) {
  tide_support_t *support = publisher->support;
  if (support->send == TIDE_SEND_ASYNCHRONOUS) return TIDE_OK;
  if (!publisher->reliable && support->send == TIDE_SEND_STOCK) return TIDE_OK;
  const int32_t wait_ms = publisher->reliable ? publisher->wait_ms : STOCK_CONFIRM_MS;
  return tide_compat_wait(support, tide_compat_is_confirmed, publisher, tide_compat_deadline(wait_ms),
                          publisher->reliable);
}

int tide_compat_end_sample(tide_publisher_handle_t *publisher, tide_write_t *write) {
  const int status = tide_compat_write_end(publisher->support, write);
  return status == TIDE_OK ? wait_as_stock(publisher) : status;
}

int tide_compat_send(tide_publisher_handle_t *publisher, const void *message) {
  if (publisher->continuous != NULL) return publisher->continuous->send_pieces(publisher, message);
  tide_write_t write;
  const int status = tide_compat_begin_sample(publisher, &write, (uint32_t)tide_message_size(publisher->type, message));
  if (status != TIDE_OK) return status;
  publisher->type->encode(&write.cdr, message);
  return tide_compat_end_sample(publisher, &write);
}

rcl_ret_t rcl_publish(const rcl_publisher_t *publisher, const void *ros_message,
                      rmw_publisher_allocation_t *allocation) {
  (void)allocation;
  if (!rcl_publisher_is_valid(publisher)) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_PUBLISHER_INVALID);
  if (ros_message == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_publisher_handle_t *handle = publisher->impl;
  const int local = handle->local == NULL ? TIDE_OK : handle->local->publish(handle, ros_message);
  const int sent = handle->reach == TIDE_REACH_LOCAL ? TIDE_OK : tide_compat_send(handle, ros_message);
  return tide_compat_result(local < 0 ? local : sent);
}

rcl_ret_t tide_rclc_publisher_set_priority(rcl_publisher_t *publisher, tide_priority_t priority) {
  if (!rcl_publisher_is_valid(publisher) || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  publisher->impl->priority = priority;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_publisher_set_wait_ms(rcl_publisher_t *publisher, int32_t wait_ms) {
  if (!rcl_publisher_is_valid(publisher) || wait_ms < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  publisher->impl->wait_ms = wait_ms;
  return RCL_RET_OK;
}
