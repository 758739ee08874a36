/* SPDX-License-Identifier: Apache-2.0 */
/* Publishers and subscriptions: a topic on the agent consists of three objects, as in the stock middleware. Also
 * rcl_publish, down to the session, and taking samples from a reader. */
#include <string.h>

#include "internal.h"
#include "rcl/publisher.h"
#include "rclc/publisher.h"
#include "rclc/subscription.h"
#include "rmw_microros/rmw_microros.h"

/* For steps of a publish, which a call would lengthen. */
#define IN_PLACE static inline __attribute__((always_inline))

/* ---- topics on the agent ---- */

static uint32_t milliseconds(rmw_time_t time) {
  uint64_t value = time.sec * 1000u + time.nsec / 1000000u;
  return value > UINT32_MAX ? 0 : (uint32_t)value;
}

static void describe_endpoint(tide_xrce_object_t *endpoint, const rmw_qos_profile_t *qos) {
  endpoint->has_qos = true;
  if (tide_compat_is_reliable(qos)) endpoint->qos_flags |= TIDE_XRCE_QOS_RELIABLE;
  if (qos->history != RMW_QOS_POLICY_HISTORY_KEEP_ALL) endpoint->qos_flags |= TIDE_XRCE_QOS_KEEP_LAST;
  if (qos->durability != RMW_QOS_POLICY_DURABILITY_VOLATILE) endpoint->qos_flags |= TIDE_XRCE_QOS_TRANSIENT_LOCAL;
  endpoint->has_depth = qos->depth > 0;
  endpoint->depth = qos->depth > UINT16_MAX ? UINT16_MAX : (uint16_t)qos->depth;
  endpoint->deadline_ms = milliseconds(qos->deadline);
  endpoint->has_deadline = endpoint->deadline_ms != 0;
  endpoint->lifespan_ms = milliseconds(qos->lifespan);
  endpoint->has_lifespan = endpoint->lifespan_ms != 0 && endpoint->kind == TIDE_XRCE_KIND_DATAWRITER;
}

static void describe(tide_object_t *object, uint8_t kind, uint16_t parent) {
  memset(object, 0, sizeof *object);
  object->description.kind = kind;
  object->description.representation = TIDE_XRCE_BY_BINARY;
  object->description.parent = parent;
}

static int create_topic(tide_support_t *support, tide_topic_t *topic, const tide_node_handle_t *node,
                        const tide_message_type_t *type, const char *name, const rmw_qos_profile_t *qos, bool writer) {
  if (!TIDE_RELIABLE_STREAMS && tide_compat_is_reliable(qos)) return TIDE_ERROR_UNSUPPORTED;
  int status = tide_compat_topic_name(topic->name, name, node);
  if (status != TIDE_OK) return status;
  describe(&topic->topic, TIDE_XRCE_KIND_TOPIC, node->participant.id);
  topic->topic.description.name.characters = topic->name;
  topic->topic.description.name.length = strlen(topic->name);
  topic->topic.description.type.characters = type->dds_name;
  topic->topic.description.type.length = strlen(type->dds_name);
  describe(&topic->group, writer ? TIDE_XRCE_KIND_PUBLISHER : TIDE_XRCE_KIND_SUBSCRIBER, node->participant.id);
  status = tide_compat_create_object(support, &topic->topic, false);
  if (status == TIDE_OK) status = tide_compat_create_object(support, &topic->group, false);
  if (status != TIDE_OK) return status;
  describe(&topic->endpoint, writer ? TIDE_XRCE_KIND_DATAWRITER : TIDE_XRCE_KIND_DATAREADER, topic->group.id);
  topic->endpoint.description.topic = topic->topic.id;
  describe_endpoint(&topic->endpoint.description, qos);
  return tide_compat_create_object(support, &topic->endpoint, true);
}

/* Deletes the topic's objects; also works if only some of them were created. With TIDE_ERROR_FULL the remaining objects
 * stay registered, so their memory is not free. */
static int delete_topic(tide_support_t *support, tide_topic_t *topic) {
  int status = tide_compat_delete_object(support, &topic->endpoint);
  if (status == TIDE_OK) status = tide_compat_delete_object(support, &topic->group);
  return status == TIDE_OK ? tide_compat_delete_object(support, &topic->topic) : status;
}

/* ---- publishers ---- */

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

int tide_compat_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                               const rosidl_message_type_support_t *type_support, const char *topic_name,
                               const rmw_qos_profile_t *qos_profile, bool on_agent) {
  if (publisher == NULL || !tide_compat_is_node(node) || type_support == NULL || topic_name == NULL ||
      qos_profile == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  size_t place = 0;
  while (place < tide_pools.publisher_count && tide_pools.publishers[place].support != NULL) place++;
  if (place == tide_pools.publisher_count) return TIDE_ERROR_CAPACITY_PUBLISHERS;
  tide_publisher_handle_t *handle = &tide_pools.publishers[place];
  memset(handle, 0, sizeof *handle);
  handle->topic.name = tide_pools.publisher_names + place * tide_pools.name_bytes;
  handle->type = (const tide_message_type_t *)type_support->data;
  handle->writer.reliable = tide_compat_is_reliable(qos_profile);
  handle->wait_ms = handle->writer.reliable ? STOCK_CONFIRM_MS : 0;
  if (!handle->writer.reliable && qos_profile->history != RMW_QOS_POLICY_HISTORY_KEEP_ALL) {
    const size_t depth = qos_profile->depth == 0 ? 1 : qos_profile->depth; /* 0: the default, which is 1 */
    handle->writer.keep_last = depth > UINT16_MAX ? UINT16_MAX : (uint16_t)depth;
  }
  tide_support_t *support = node->impl->support;
  handle->support = support;
  const int status =
      on_agent ? create_topic(support, &handle->topic, node->impl, handle->type, topic_name, qos_profile, true)
               : tide_compat_topic_name(handle->topic.name, topic_name, node->impl);
  if (status != TIDE_OK) {
    if (delete_topic(support, &handle->topic) == TIDE_OK) handle->support = NULL;
    return status;
  }
  handle->writer.object = handle->topic.endpoint.id;
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

IN_PLACE bool is_valid(const rcl_publisher_t *publisher) {
  return publisher != NULL && publisher->impl != NULL && publisher->impl->support != NULL;
}

bool rcl_publisher_is_valid(const rcl_publisher_t *publisher) { return is_valid(publisher); }

const char *rcl_publisher_get_topic_name(const rcl_publisher_t *publisher) {
  return rcl_publisher_is_valid(publisher) ? publisher->impl->topic.name + 2 : NULL; /* after "rt" */
}

typedef struct attempt {
  tide_write_t *write;
  const tide_writer_t *writer;
  uint32_t bytes;
  int status;
} attempt_t;

static bool begun(tide_support_t *support, void *context) {
  attempt_t *attempt = context;
  attempt->status = tide_session_write_begin_by(&support->session, attempt->write, attempt->writer, attempt->bytes);
  return attempt->status != TIDE_ERROR_FULL;
}

static int wait_and_begin(tide_support_t *support, tide_write_t *write, const tide_writer_t *writer, uint32_t bytes,
                          int32_t wait_ms) {
  attempt_t attempt = {write, writer, bytes, TIDE_ERROR_FULL};
  tide_compat_wait(support, begun, &attempt, tide_compat_deadline(wait_ms), false);
  return attempt.status;
}

int tide_compat_write_begin(tide_support_t *support, tide_write_t *write, uint16_t object, bool reliable,
                            tide_priority_t priority, uint32_t bytes, int32_t wait_ms) {
  const tide_writer_t writer = {.object = object, .priority = priority, .reliable = reliable};
  const int status = tide_session_write_begin_by(&support->session, write, &writer, bytes);
  if (status != TIDE_ERROR_FULL || wait_ms == 0) return status;
  return wait_and_begin(support, write, &writer, bytes, wait_ms);
}

IN_PLACE int begin_sample(const tide_publisher_handle_t *publisher, tide_write_t *write, uint32_t bytes) {
  const int status = tide_session_write_begin_by(&publisher->support->session, write, &publisher->writer, bytes);
  if (status != TIDE_ERROR_FULL || publisher->wait_ms == 0) return status;
  return wait_and_begin(publisher->support, write, &publisher->writer, bytes, publisher->wait_ms);
}

int tide_compat_begin_sample(const tide_publisher_handle_t *publisher, tide_write_t *write, uint32_t bytes) {
  return begin_sample(publisher, write, bytes);
}

static bool is_delivered(tide_support_t *support, void *context) {
  return !tide_compat_is_ready(support) || tide_session_is_idle(&support->session, *(const uint8_t *)context);
}

void tide_compat_await_delivery(tide_support_t *support, bool reliable, tide_priority_t priority) {
  uint8_t stream = TIDE_STREAM_RELIABLE(TIDE_PRIORITY_LEVEL(priority));
  if (!reliable) return;
  tide_compat_wait(support, is_delivered, &stream, tide_compat_deadline(support->destroy_timeout_ms), false);
}

/* Checks only the publisher's stream: acknowledgments that this side still owes the agent must not delay the
 * program. */
static bool is_confirmed(tide_support_t *support, void *context) {
  const tide_publisher_handle_t *publisher = context;
  const uint8_t level = TIDE_PRIORITY_LEVEL(publisher->writer.priority);
  const uint8_t stream = publisher->writer.reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  return tide_session_is_idle(&support->session, stream); /* false while samples are held for the next session */
}

rcl_ret_t rcl_publisher_fini(rcl_publisher_t *publisher, rcl_node_t *node) {
  (void)node;
  if (publisher == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_PUBLISHER_INVALID);
  tide_publisher_handle_t *handle = publisher->impl;
  if (rcl_publisher_is_valid(publisher)) {
    tide_support_t *support = handle->support;
    tide_compat_await_delivery(support, handle->writer.reliable, handle->writer.priority);
    int status = delete_topic(support, &handle->topic);
    if (status != TIDE_OK) return tide_compat_result(status);
    if (handle->local != NULL) handle->local->close_publisher(handle);
    handle->support = NULL;
  }
  publisher->impl = NULL;
  return RCL_RET_OK;
}

/* The stock library runs its session in the publisher, so this function processes frames in order of arrival. The wait
 * ends when the stream is acknowledged (reliable) or, if the driver waits for its DMA, when the last byte was sent. */
static int wait_as_stock(tide_publisher_handle_t *publisher) {
  tide_support_t *support = publisher->support;
  const bool reliable = publisher->writer.reliable;
  if (!reliable && support->send == TIDE_SEND_STOCK) return TIDE_OK;
  const int32_t wait_ms = reliable ? publisher->wait_ms : STOCK_CONFIRM_MS;
  return tide_compat_wait(support, is_confirmed, publisher, tide_compat_deadline(wait_ms), reliable);
}

IN_PLACE int end_sample(tide_publisher_handle_t *publisher, tide_write_t *write) {
  const int status = tide_compat_write_end(publisher->support, write);
  return status != TIDE_OK || publisher->support->send == TIDE_SEND_ASYNCHRONOUS ? status : wait_as_stock(publisher);
}

int tide_compat_end_sample(tide_publisher_handle_t *publisher, tide_write_t *write) {
  return end_sample(publisher, write);
}

/* Most samples fit the smallest node; only larger ones are measured first. */
int tide_compat_send(tide_publisher_handle_t *publisher, const void *message) {
  if (publisher->continuous != NULL) return publisher->continuous->send_pieces(publisher, message);
  tide_write_t write;
  const uint32_t bytes = tide_pools.classes[0].node_bytes - TIDE_WRITE_HEADER_BYTES;
  if (!publisher->is_large) {
    const int status = begin_sample(publisher, &write, bytes);
    if (status == TIDE_OK) {
      publisher->type->encode(&write.cdr, message);
      if (write.cdr.status == TIDE_OK) return end_sample(publisher, &write);
      tide_session_write_abandon(&write);
    } else if (status != TIDE_ERROR_TOO_LARGE) {
      return status;
    }
  }
  const uint32_t known_bytes = (uint32_t)tide_message_size(publisher->type, message);
  publisher->is_large = known_bytes > bytes;
  const int status = tide_compat_begin_sample(publisher, &write, known_bytes);
  if (status != TIDE_OK) return status;
  publisher->type->encode(&write.cdr, message);
  return tide_compat_end_sample(publisher, &write);
}

rcl_ret_t rcl_publish(const rcl_publisher_t *publisher, const void *ros_message,
                      rmw_publisher_allocation_t *allocation) {
  (void)allocation;
  if (!is_valid(publisher)) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_PUBLISHER_INVALID);
  if (ros_message == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_publisher_handle_t *handle = publisher->impl;
  const int local = handle->local == NULL ? TIDE_OK : handle->local->publish(handle, ros_message);
  const int sent = handle->reach == TIDE_REACH_LOCAL ? TIDE_OK : tide_compat_send(handle, ros_message);
  return local >= 0 && sent >= 0 ? RCL_RET_OK : tide_compat_result(local < 0 ? local : sent);
}

rcl_ret_t tide_rclc_publisher_set_priority(rcl_publisher_t *publisher, tide_priority_t priority) {
  if (!rcl_publisher_is_valid(publisher) || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  publisher->impl->writer.priority = priority;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_publisher_set_wait_ms(rcl_publisher_t *publisher, int32_t wait_ms) {
  if (!rcl_publisher_is_valid(publisher) || wait_ms < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  publisher->impl->wait_ms = wait_ms;
  return RCL_RET_OK;
}

rcl_ret_t rcl_publisher_wait_for_all_acked(const rcl_publisher_t *publisher, rcl_duration_value_t timeout) {
  if (!rcl_publisher_is_valid(publisher)) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_PUBLISHER_INVALID);
  const int64_t now_ns = tide_compat_now_ns();
  const int64_t end_ns = timeout < 0 || timeout > TIDE_FOREVER - now_ns ? TIDE_FOREVER : now_ns + timeout;
  return tide_compat_result(tide_compat_wait(publisher->impl->support, is_confirmed, publisher->impl, end_ns, false));
}

bool tide_compat_has_room_locked(const tide_support_t *support, uint32_t promised) {
  const uint32_t used = support->session.daemon.transmitter.nodes_in_use;
  return 2u * (used + promised) < tide_pools.data_node_count;
}

int tide_compat_send_now(const tide_publisher_handle_t *publisher, const void *message) {
  tide_write_t write;
  const uint32_t bytes = (uint32_t)tide_message_size(publisher->type, message);
  const int status = tide_session_write_begin_by(&publisher->support->session, &write, &publisher->writer, bytes);
  if (status != TIDE_OK) return status;
  publisher->type->encode(&write.cdr, message);
  return tide_session_write_end(&write);
}

/* ---- subscriptions ---- */

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

/* A sample that replaced an older one in the queue takes over the older sample's pending run. */
static void on_sample(void *context, tide_reader_t *reader) {
  tide_subscription_handle_t *handle = context;
  if (handle->handle == NULL) return;
  const uint32_t pending = __atomic_load_n(&handle->callback.pending, __ATOMIC_RELAXED);
  const bool has_local = handle->local != NULL; /* local messages are counted as pending as well */
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

int tide_compat_subscription_init(rcl_subscription_t *subscription, const rcl_node_t *node,
                                  const rosidl_message_type_support_t *type_support, const char *topic_name,
                                  const rmw_qos_profile_t *qos_profile, bool on_agent) {
  if (subscription == NULL || !tide_compat_is_node(node) || type_support == NULL || topic_name == NULL ||
      qos_profile == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  size_t place = 0;
  while (place < tide_pools.subscription_count && tide_pools.subscriptions[place].support != NULL) place++;
  if (place == tide_pools.subscription_count) return TIDE_ERROR_CAPACITY_SUBSCRIPTIONS;
  tide_subscription_handle_t *handle = &tide_pools.subscriptions[place];
  memset(handle, 0, sizeof *handle);
  handle->topic.name = tide_pools.subscription_names + place * tide_pools.name_bytes;
  handle->reader.samples = tide_pools.samples + place * tide_pools.subscription_depth;
  handle->support = node->impl->support;
  handle->type = (const tide_message_type_t *)type_support->data;
  tide_support_t *support = handle->support;
  int status = on_agent
                   ? create_topic(support, &handle->topic, node->impl, handle->type, topic_name, qos_profile, false)
                   : tide_compat_topic_name(handle->topic.name, topic_name, node->impl);
  describe_reader(handle, qos_profile);
  if (status == TIDE_OK && on_agent) status = tide_session_add_reader(&support->session, &handle->reader);
  if (status != TIDE_OK) {
    if (delete_topic(support, &handle->topic) == TIDE_OK) handle->support = NULL;
    return status;
  }
  subscription->impl = handle;
  return TIDE_OK;
}

rcl_ret_t rclc_subscription_init(rcl_subscription_t *subscription, rcl_node_t *node,
                                 const rosidl_message_type_support_t *type_support, const char *topic_name,
                                 const rmw_qos_profile_t *qos_profile) {
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  return tide_compat_result(
      tide_compat_subscription_init(subscription, node, type_support, topic_name, qos_profile, true));
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
  return rclc_subscription_init(subscription, (rcl_node_t *)node, type_support, topic_name, qos);
}

rcl_ret_t rcl_subscription_options_fini(rcl_subscription_options_t *options) {
  return options == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

rcl_ret_t rcl_subscription_fini(rcl_subscription_t *subscription, rcl_node_t *node) {
  (void)node;
  if (subscription == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_SUBSCRIPTION_INVALID);
  tide_subscription_handle_t *handle = subscription->impl;
  if (rcl_subscription_is_valid(subscription)) {
    int status = tide_compat_leave_executor(&handle->callback, &handle->handle);
    if (status != TIDE_OK) return tide_compat_result(status);
    if (handle->local != NULL) handle->local->close_subscription(handle);
    /* Deleting the objects also stops the agent from sending. */
    tide_session_remove_reader(&handle->support->session, &handle->reader);
    status = delete_topic(handle->support, &handle->topic);
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
  return rcl_subscription_is_valid(subscription) ? subscription->impl->topic.name + 2 : NULL; /* after "rt" */
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
  tide_compat_unread(cdr.status, &handle->decode_errors, handle->topic.name, handle->handle);
  return tide_compat_result(cdr.status);
}

static rcl_ret_t result_of_local(tide_subscription_handle_t *handle, const void *message) {
  if (message != NULL) return RCL_RET_OK;
  tide_compat_unread(TIDE_ERROR_CAPACITY_MESSAGE, &handle->decode_errors, handle->topic.name, handle->handle);
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

/* ---- handles of the layer below, which programs only pass on ---- */

rmw_publisher_t *rcl_publisher_get_rmw_handle(const rcl_publisher_t *publisher) {
  return rcl_publisher_is_valid(publisher) ? (rmw_publisher_t *)(void *)publisher->impl : NULL;
}

rmw_subscription_t *rcl_subscription_get_rmw_handle(const rcl_subscription_t *subscription) {
  return rcl_subscription_is_valid(subscription) ? (rmw_subscription_t *)(void *)subscription->impl : NULL;
}

rmw_ret_t rmw_uros_set_publisher_session_timeout(rmw_publisher_t *publisher, int session_timeout) {
  rcl_publisher_t program = {(tide_publisher_handle_t *)(void *)publisher};
  return tide_rclc_publisher_set_wait_ms(&program, session_timeout);
}
