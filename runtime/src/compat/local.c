/* SPDX-License-Identifier: Apache-2.0 */
/* Local delivery behind the rclc interface. A program that does not use it links nothing of it, because the rest of
 * this module reaches it only through function pointers in the handles. */
#include <string.h>

#include "internal.h"
#include "tide/rclc_local.h"

static bool is_plain(const tide_message_type_t *type) {
  for (uint16_t i = 0; i < type->field_count; i++) {
    const tide_field_t *field = &type->fields[i];
    const bool text = field->kind == TIDE_FIELD_STRING || field->kind == TIDE_FIELD_WSTRING;
    if (text || field->shape == TIDE_SHAPE_SEQUENCE) return false;
    if (field->kind == TIDE_FIELD_MESSAGE && !is_plain(field->type)) return false;
  }
  return true;
}

/* ---- topics: each exists as long as it has publishers or subscriptions ---- */

/* Closes a topic without users. While a callback still reads one of its messages the topic stays open, and the next
 * caller tries again. */
static void close_if_left(tide_local_topic_handle_t *topic) {
  if (topic->open && topic->users == 0u) topic->open = tide_local_topic_fini(&topic->topic) != TIDE_OK;
}

static int join(const char *name, const tide_message_type_t *type, tide_local_topic_handle_t **joined) {
  tide_local_pool_t *pool = tide_pools.local_pool;
  if (pool == NULL) return TIDE_ERROR_CAPACITY_LOCAL_TOPICS;
  if (pool->platform == NULL) {
    const int status = tide_local_pool_init(pool, tide_port_platform(), tide_pools.local_storage,
                                            tide_pools.local_message_count, tide_pools.local_message_bytes);
    if (status != TIDE_OK) return status;
  }
  tide_local_topic_handle_t *topic = NULL, *free_place = NULL;
  for (size_t i = 0; i < tide_pools.local_topic_count && topic == NULL; i++) {
    tide_local_topic_handle_t *one = &tide_pools.local_topics[i];
    close_if_left(one);
    if (one->open && strcmp(one->name, name) == 0) topic = one;
    if (!one->open && free_place == NULL) free_place = one;
  }
  if (topic == NULL && free_place == NULL) return TIDE_ERROR_CAPACITY_LOCAL_TOPICS;
  if (topic == NULL) {
    topic = free_place;
    memset(topic, 0, sizeof *topic);
    topic->name = tide_pools.local_names + (size_t)(topic - tide_pools.local_topics) * tide_pools.name_bytes;
    memcpy(topic->name, name,
           strlen(name) + 1u); /* fits: names of publishers and subscriptions have the same capacity */
    topic->type = type;
    topic->plain = is_plain(type);
    topic->open = tide_local_topic_init(&topic->topic, pool, 0u) == TIDE_OK;
  }
  *joined = topic;
  if (strcmp(topic->type->dds_name, type->dds_name) != 0) return TIDE_ERROR_EXISTS;
  return topic->plain && type->structure_bytes > tide_pools.local_message_bytes ? TIDE_ERROR_TOO_LARGE : TIDE_OK;
}

static int named(int status) { return status == TIDE_ERROR_FULL ? TIDE_ERROR_CAPACITY_LOCAL_MESSAGES : status; }

/* Number of messages that one publisher may be filling at the same time: one for each lane. */
static int32_t loans(void) { return (int32_t)tide_pools.lane_count; }

/* ---- publishers ---- */

static int publish(const tide_publisher_handle_t *publisher, const void *message) {
  tide_local_topic_handle_t *topic = publisher->local_topic;
  void *place = NULL;
  int bytes = tide_local_borrow(&topic->topic, &place);
  if (bytes != TIDE_OK) return bytes;
  if (topic->plain) {
    memcpy(place, message, publisher->type->structure_bytes);
    bytes = (int)publisher->type->structure_bytes;
  } else {
    tide_cdr_t cdr;
    tide_cdr_writer(&cdr, place, tide_pools.local_message_bytes);
    publisher->type->encode(&cdr, message);
    bytes = cdr.status == TIDE_OK ? (int)cdr.position : cdr.status;
  }
  if (bytes >= 0) return tide_local_publish(&topic->topic, place, (uint32_t)bytes);
  tide_local_give_back(place);
  return bytes;
}

static void close_publisher(tide_publisher_handle_t *publisher) {
  tide_local_topic_handle_t *topic = publisher->local_topic;
  (void)tide_local_change_loans(&topic->topic, -loans());
  topic->shared_publishers = (uint16_t)(topic->shared_publishers - (publisher->reach == TIDE_REACH_BOTH ? 1u : 0u));
  topic->users--;
  publisher->local = NULL;
  close_if_left(topic);
}

/* ---- subscriptions ---- */

static void close_subscription(tide_subscription_handle_t *subscription) {
  tide_local_end_t *end = subscription->local_end;
  tide_local_topic_handle_t *topic = end->topic;
  (void)tide_local_unsubscribe(&end->subscription);
  topic->shared_subscriptions =
      (uint16_t)(topic->shared_subscriptions - (subscription->reach == TIDE_REACH_BOTH ? 1u : 0u));
  topic->users--;
  end->topic = NULL;
  subscription->local = NULL;
  close_if_left(topic);
}

static uint16_t waiting(const tide_subscription_handle_t *subscription) {
  return subscription->local_end->subscription.count;
}

static bool is_next(tide_subscription_handle_t *subscription) {
  const int64_t oldest_ns = tide_local_oldest_ns(&subscription->local_end->subscription);
  if (subscription->reach == TIDE_REACH_LOCAL || oldest_ns == TIDE_FOREVER) return oldest_ns != TIDE_FOREVER;
  const tide_sample_t *sample = tide_session_peek(&subscription->support->session, &subscription->reader);
  return sample == NULL || oldest_ns <= sample->arrived_ns;
}

static const void *take(tide_subscription_handle_t *subscription, void *memory, rmw_message_info_t *info) {
  tide_local_information_t information = {0};
  const void *message = tide_local_take(&subscription->local_end->subscription, &information);
  if (message == NULL) return NULL;
  if (info != NULL) {
    info->source_timestamp = 0;
    info->received_timestamp = information.published_ns;
    info->from_intra_process = true;
  }
  if (subscription->local_end->topic->plain) return message;
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, message, information.bytes, false);
  subscription->type->decode(&cdr, memory);
  tide_local_release(message);
  return cdr.status == TIDE_OK ? memory : NULL;
}

static const tide_local_functions_t functions = {.publish = publish,
                                                 .close_publisher = close_publisher,
                                                 .close_subscription = close_subscription,
                                                 .waiting = waiting,
                                                 .is_next = is_next,
                                                 .take = take,
                                                 .release = tide_local_release};

/* ---- the calls ---- */

static int open_publisher(tide_publisher_handle_t *publisher, tide_reach_t reach) {
  tide_local_topic_handle_t *topic = NULL;
  int status = join(publisher->topic.name, publisher->type, &topic);
  if (status == TIDE_OK && reach == TIDE_REACH_BOTH && topic->shared_subscriptions > 0u) {
    status = TIDE_ERROR_UNSUPPORTED;
  }
  if (status == TIDE_OK) status = named(tide_local_change_loans(&topic->topic, loans()));
  if (status != TIDE_OK) {
    if (topic != NULL) close_if_left(topic);
    return status;
  }
  topic->users++;
  topic->shared_publishers = (uint16_t)(topic->shared_publishers + (reach == TIDE_REACH_BOTH ? 1u : 0u));
  publisher->local_topic = topic;
  publisher->reach = reach;
  publisher->local = &functions;
  return TIDE_OK;
}

rcl_ret_t tide_rclc_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                                   const rosidl_message_type_support_t *type_support, const char *topic_name,
                                   const rmw_qos_profile_t *qos_profile, tide_reach_t reach) {
  if ((unsigned)reach > (unsigned)TIDE_REACH_BOTH) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  int status =
      tide_compat_publisher_init(publisher, node, type_support, topic_name, qos_profile, reach != TIDE_REACH_LOCAL);
  if (status != TIDE_OK || reach == TIDE_REACH_AGENT) return tide_compat_result(status);
  status = open_publisher(publisher->impl, reach);
  if (status == TIDE_OK) return RCL_RET_OK;
  (void)rcl_publisher_fini(publisher, NULL);
  return tide_compat_result(status);
}

static int open_subscription(tide_subscription_handle_t *subscription, tide_reach_t reach) {
  tide_local_topic_handle_t *topic = NULL;
  size_t place = 0;
  while (place < tide_pools.local_end_count && tide_pools.local_ends[place].topic != NULL) place++;
  if (place == tide_pools.local_end_count) return TIDE_ERROR_CAPACITY_LOCAL_TOPICS;
  tide_local_end_t *end = &tide_pools.local_ends[place];
  memset(end, 0, sizeof *end);
  end->subscription.queue = tide_pools.local_queues + place * tide_pools.subscription_depth;
  int status = join(subscription->topic.name, subscription->type, &topic);
  if (status == TIDE_OK && reach == TIDE_REACH_BOTH && topic->shared_publishers > 0u) status = TIDE_ERROR_UNSUPPORTED;
  end->subscription.callback = &subscription->callback;
  end->subscription.depth = subscription->reader.depth;
  subscription->local_end = end;
  if (status == TIDE_OK) status = named(tide_local_subscribe(&topic->topic, &end->subscription));
  if (status != TIDE_OK) {
    if (topic != NULL) close_if_left(topic);
    return status;
  }
  end->topic = topic;
  topic->users++;
  topic->shared_subscriptions = (uint16_t)(topic->shared_subscriptions + (reach == TIDE_REACH_BOTH ? 1u : 0u));
  subscription->reach = reach;
  subscription->local = &functions;
  return TIDE_OK;
}

rcl_ret_t tide_rclc_subscription_init(rcl_subscription_t *subscription, rcl_node_t *node,
                                      const rosidl_message_type_support_t *type_support, const char *topic_name,
                                      const rmw_qos_profile_t *qos_profile, tide_reach_t reach) {
  if ((unsigned)reach > (unsigned)TIDE_REACH_BOTH) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  int status = tide_compat_subscription_init(subscription, node, type_support, topic_name, qos_profile,
                                             reach != TIDE_REACH_LOCAL);
  if (status != TIDE_OK || reach == TIDE_REACH_AGENT) return tide_compat_result(status);
  status = open_subscription(subscription->impl, reach);
  if (status == TIDE_OK) return RCL_RET_OK;
  (void)rcl_subscription_fini(subscription, node);
  return tide_compat_result(status);
}

rcl_ret_t tide_rclc_publisher_local_counters(const rcl_publisher_t *publisher, tide_local_counters_t *counters) {
  if (!rcl_publisher_is_valid(publisher) || publisher->impl->local == NULL || counters == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  const uintptr_t critical = tide_compat_enter();
  *counters = publisher->impl->local_topic->topic.counters;
  tide_compat_leave(critical);
  return RCL_RET_OK;
}

uint32_t tide_rclc_subscription_local_dropped(const rcl_subscription_t *subscription) {
  const bool known = rcl_subscription_is_valid(subscription) && subscription->impl->local != NULL;
  return known ? subscription->impl->local_end->subscription.dropped : 0u;
}

/* ---- loans ---- */

static tide_publisher_handle_t *lender(const rcl_publisher_t *publisher) {
  const bool lends =
      rcl_publisher_is_valid(publisher) && publisher->impl->local != NULL && publisher->impl->local_topic->plain;
  return lends ? publisher->impl : NULL;
}

bool rcl_publisher_can_loan_messages(const rcl_publisher_t *publisher) { return lender(publisher) != NULL; }

rcl_ret_t rcl_borrow_loaned_message(const rcl_publisher_t *publisher, const rosidl_message_type_support_t *type_support,
                                    void **ros_message) {
  if (!rcl_publisher_is_valid(publisher) || ros_message == NULL || type_support == NULL ||
      type_support->data != publisher->impl->type) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  const tide_publisher_handle_t *handle = lender(publisher);
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  return tide_compat_result(tide_local_borrow(&handle->local_topic->topic, ros_message));
}

rcl_ret_t rcl_return_loaned_message_from_publisher(const rcl_publisher_t *publisher, void *loaned_message) {
  if (lender(publisher) == NULL || loaned_message == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_local_give_back(loaned_message);
  return RCL_RET_OK;
}

/* The message is serialised first, because it may be freed as soon as it is published. */
rcl_ret_t rcl_publish_loaned_message(const rcl_publisher_t *publisher, void *ros_message,
                                     rmw_publisher_allocation_t *allocation) {
  (void)allocation;
  tide_publisher_handle_t *handle = lender(publisher);
  if (handle == NULL || ros_message == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const int sent = handle->reach == TIDE_REACH_BOTH ? tide_compat_send(handle, ros_message) : TIDE_OK;
  const int local = tide_local_publish(&handle->local_topic->topic, ros_message, handle->type->structure_bytes);
  return tide_compat_result(local < 0 ? local : sent);
}
