/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as the agents of micro-ROS tell it: micro_ros_msgs/Graph on ros_to_microros_graph. It is kept as it came
 * and read anew for each question. */
#include "graph.h"

#include <string.h>

#include "rclc/subscription.h"
#include "tide/pool_graph.h"

/* Of a program whose pools have no graph. An alias: of a weak constant Clang would use the value that stands here,
 * though the program has another. */
static const tide_graph_pool_t no_graph = {NULL, 0};
extern const tide_graph_pool_t tide_graph_pool __attribute__((weak, alias("no_graph")));

static rcl_subscription_t subscription;
static rcl_guard_condition_t changed;
static const tide_support_t *owner; /* whose it is */
static uint32_t length;             /* of what came last; 0: nothing yet */
static uint32_t told;               /* messages that came */
static bool watched;                /* changed is initialised */

static void keep(tide_cdr_t *cdr, void *message) {
  (void)message;
  const size_t count = tide_cdr_remaining(cdr);
  if (count > tide_graph_pool.capacity) {
    cdr->status = TIDE_ERROR_CAPACITY_MESSAGE;
    return;
  }
  tide_cdr_get_bytes(cdr, tide_graph_pool.bytes, count);
  length = (uint32_t)count;
  told++;
}

static void encode_nothing(tide_cdr_t *cdr, const void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

static const tide_message_type_t graph_type = {.package = "micro_ros_msgs",
                                               .kind = "msg",
                                               .name = "Graph",
                                               .dds_name = "micro_ros_msgs::msg::dds_::Graph_",
                                               .encode = encode_nothing,
                                               .decode = keep};
static const rosidl_message_type_support_t support_of_type = {TIDE_TYPESUPPORT_IDENTIFIER, &graph_type,
                                                              get_message_typesupport_handle_function};

/* In the context that hands the message on. */
static void on_sample(void *context, tide_reader_t *reader) {
  (void)context;
  (void)reader;
  if (__atomic_load_n(&watched, __ATOMIC_ACQUIRE)) (void)rcl_trigger_guard_condition(&changed);
}

static void refresh(void) {
  char nowhere;
  while (tide_compat_take(subscription.impl, &nowhere, NULL) != RCL_RET_SUBSCRIPTION_TAKE_FAILED) continue;
}

static bool has_come(tide_support_t *support, void *context) {
  (void)support;
  (void)context;
  refresh();
  return length > 0;
}

static rcl_ret_t subscribe(const rcl_node_t *node) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  qos.depth = 1;
  rcl_node_t whose = *node;
  subscription = rcl_get_zero_initialized_subscription();
  const rcl_ret_t result =
      rclc_subscription_init(&subscription, &whose, &support_of_type, "/ros_to_microros_graph", &qos);
  if (result != RCL_RET_OK) return result;
  length = 0;
  watched = false;
  subscription.impl->reader.on_sample = on_sample;
  owner = node->impl->support;
  return RCL_RET_OK;
}

/* The graph of this node's support: subscribed to, and what has come of it so far. */
static rcl_ret_t open(const rcl_node_t *node) {
  if (tide_graph_pool.capacity == 0) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  if (!tide_compat_is_node(node)) return RCL_RET_NODE_INVALID;
  const bool mine = rcl_subscription_is_valid(&subscription) && subscription.impl->type == &graph_type;
  return mine && owner == node->impl->support ? RCL_RET_OK : subscribe(node);
}

static rcl_ret_t look(const rcl_node_t *node) {
  if (node == NULL || node->impl == NULL) return RCL_RET_NODE_INVALID;
  const rcl_ret_t opened = open(node);
  if (opened != RCL_RET_OK) return opened;
  tide_support_t *support = node->impl->support;
  const int64_t deadline_ns = tide_compat_deadline(support->creation_timeout_ms);
  return tide_compat_result(tide_compat_wait(support, has_come, NULL, deadline_ns, true));
}

rcl_ret_t tide_graph_look(const rcl_node_t *node, tide_cdr_t *cdr) {
  const rcl_ret_t result = look(node);
  if (result == RCL_RET_OK) tide_cdr_reader(cdr, tide_graph_pool.bytes, length, false);
  return result;
}

/* ---- questions ---- */

static void skip_types(tide_cdr_t *cdr) {
  size_t characters;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  for (uint32_t i = 0; i < count && cdr->status == TIDE_OK; i++) (void)tide_cdr_get_string(cdr, &characters);
}

/* Entities of this kind and name of one node. */
static size_t count_in_node(tide_cdr_t *cdr, uint8_t kind, const char *name) {
  size_t characters, found = 0;
  (void)tide_cdr_get_string(cdr, &characters); /* namespace */
  (void)tide_cdr_get_string(cdr, &characters);
  const uint32_t entities = tide_cdr_get_count(cdr, 2 * sizeof(uint32_t) + 1);
  for (uint32_t i = 0; i < entities && cdr->status == TIDE_OK; i++) {
    const uint8_t of_kind = tide_cdr_get_u8(cdr);
    const char *text = tide_cdr_get_string(cdr, &characters);
    const bool same = text != NULL && characters == strlen(name) && memcmp(text, name, characters) == 0;
    found += of_kind == kind && same;
    skip_types(cdr);
  }
  return found;
}

static rcl_ret_t count_all(uint8_t kind, const char *name, size_t *count) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, tide_graph_pool.bytes, length, false);
  *count = 0;
  const uint32_t nodes = tide_cdr_get_count(&cdr, 3 * sizeof(uint32_t));
  for (uint32_t i = 0; i < nodes && cdr.status == TIDE_OK; i++) *count += count_in_node(&cdr, kind, name);
  return tide_compat_result(cdr.status);
}

static rcl_ret_t count_topic(const rcl_node_t *node, uint8_t kind, const char *topic_name, size_t *count) {
  char name[TIDE_GRAPH_NAME_BYTES];
  if (topic_name == NULL || count == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!tide_compat_is_node(node)) return RCL_RET_NODE_INVALID;
  if (tide_pools.name_bytes > sizeof name) return tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  const int status = tide_compat_topic_name(name, topic_name, node->impl);
  if (status != TIDE_OK) return tide_compat_result(status);
  const rcl_ret_t result = look(node);
  return result == RCL_RET_OK ? count_all(kind, name + strlen("rt"), count) : result;
}

rcl_ret_t rcl_count_publishers(const rcl_node_t *node, const char *topic_name, size_t *count) {
  return count_topic(node, TIDE_GRAPH_PUBLISHER, topic_name, count);
}

rcl_ret_t rcl_count_subscribers(const rcl_node_t *node, const char *topic_name, size_t *count) {
  return count_topic(node, TIDE_GRAPH_SUBSCRIPTION, topic_name, count);
}

rcl_ret_t rcl_count_clients(const rcl_node_t *node, const char *service_name, size_t *count) {
  return count_topic(node, TIDE_GRAPH_CLIENT, service_name, count);
}

rcl_ret_t rcl_count_services(const rcl_node_t *node, const char *service_name, size_t *count) {
  return count_topic(node, TIDE_GRAPH_SERVER, service_name, count);
}

/* Another message than the one that was looked at last. */
static bool is_told_more(tide_support_t *support, void *seen) {
  (void)support;
  refresh();
  return told != *(const uint32_t *)seen;
}

static rcl_ret_t wait_for(uint8_t kind, const rcl_node_t *node, const rcl_allocator_t *allocator, const char *topic,
                          size_t wanted, int64_t timeout_ns, bool *success) {
  const tide_platform_t *platform = tide_port_platform();
  if (allocator == NULL || success == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *success = false;
  const int64_t now_ns = tide_platform_now_ns(platform);
  const int64_t end_ns = timeout_ns < 0 || timeout_ns > TIDE_FOREVER - now_ns ? TIDE_FOREVER : now_ns + timeout_ns;
  for (;;) {
    size_t count = 0;
    const rcl_ret_t counted = count_topic(node, kind, topic, &count);
    if (counted != RCL_RET_OK) return counted;
    *success = count >= wanted;
    if (*success) return RCL_RET_OK;
    uint32_t seen = told;
    const int status = tide_compat_wait(node->impl->support, is_told_more, &seen, end_ns, true);
    if (status != TIDE_OK) return tide_compat_result(status);
  }
}

rcl_ret_t rcl_wait_for_publishers(const rcl_node_t *node, rcl_allocator_t *allocator, const char *topic_name,
                                  size_t count, rcutils_duration_value_t timeout, bool *success) {
  return wait_for(TIDE_GRAPH_PUBLISHER, node, allocator, topic_name, count, timeout, success);
}

rcl_ret_t rcl_wait_for_subscribers(const rcl_node_t *node, rcl_allocator_t *allocator, const char *topic_name,
                                   size_t count, rcutils_duration_value_t timeout, bool *success) {
  return wait_for(TIDE_GRAPH_SUBSCRIPTION, node, allocator, topic_name, count, timeout, success);
}

/* Any node that lives: publishers and subscriptions do not know theirs. */
static rcl_node_t node_of(const tide_support_t *support) {
  rcl_node_t node = {NULL};
  for (size_t i = 0; i < tide_pools.node_count && node.impl == NULL; i++) {
    if (tide_pools.nodes[i].support == support) node.impl = &tide_pools.nodes[i];
  }
  return node;
}

rcl_ret_t rcl_publisher_get_subscription_count(const rcl_publisher_t *publisher, size_t *subscription_count) {
  if (!rcl_publisher_is_valid(publisher)) return RCL_RET_PUBLISHER_INVALID;
  const rcl_node_t node = node_of(publisher->impl->support);
  return rcl_count_subscribers(&node, publisher->impl->topic.name + strlen("rt"), subscription_count);
}

rcl_ret_t rcl_subscription_get_publisher_count(const rcl_subscription_t *subscription_, size_t *publisher_count) {
  if (!rcl_subscription_is_valid(subscription_)) return RCL_RET_SUBSCRIPTION_INVALID;
  const rcl_node_t node = node_of(subscription_->impl->support);
  return rcl_count_publishers(&node, subscription_->impl->topic.name + strlen("rt"), publisher_count);
}

rcl_ret_t rcl_service_server_is_available(const rcl_node_t *node, const rcl_client_t *client, bool *is_available) {
  char name[TIDE_GRAPH_NAME_BYTES + sizeof "Request"];
  if (!rcl_client_is_valid(client) || is_available == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const char *topic = client->impl->end.request_topic + strlen("rq");
  const size_t characters = strlen(topic) - strlen("Request");
  if (characters >= sizeof name) return tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  memcpy(name, topic, characters);
  name[characters] = '\0';
  size_t servers = 0;
  rcl_ret_t result = look(node);
  if (result == RCL_RET_OK) result = count_all(TIDE_GRAPH_SERVER, name, &servers);
  *is_available = servers > 0;
  return result;
}

const rcl_guard_condition_t *rcl_node_get_graph_guard_condition(const rcl_node_t *node) {
  if (open(node) != RCL_RET_OK) return NULL;
  if (watched) return &changed;
  rcl_context_t context = rcl_get_zero_initialized_context();
  context.impl = node->impl->support;
  changed = rcl_get_zero_initialized_guard_condition();
  if (rcl_guard_condition_init(&changed, &context, rcl_guard_condition_get_default_options()) != RCL_RET_OK)
    return NULL;
  __atomic_store_n(&watched, true, __ATOMIC_RELEASE);
  (void)rcl_trigger_guard_condition(&changed); /* for what came before */
  return &changed;
}
