/* SPDX-License-Identifier: Apache-2.0 */
/* The ROS graph as micro-ROS agents publish it: micro_ros_msgs/Graph on ros_to_microros_graph. The message is stored as
 * received and decoded again for each query. */
#include <string.h>

#include "internal.h"
#include "rcl/graph.h"
#include "rclc/subscription.h"
#include "tide/pool_graph.h"

/* Kinds of micro_ros_msgs/Entity. */
enum { PUBLISHER, SUBSCRIPTION, SERVER, CLIENT };

/* For programs whose pools have no graph. This is an alias, because for a weak constant Clang would use the value here
 * even if the program defines another one. */
static const tide_graph_pool_t no_graph = {NULL, 0};
extern const tide_graph_pool_t tide_graph_pool __attribute__((weak, alias("no_graph")));

static rcl_subscription_t subscription;
static rcl_guard_condition_t changed;
static const tide_support_t *owner; /* the support whose graph is stored */
static uint32_t graph_bytes;        /* size of the latest message; 0: none yet, or it did not fit the pool */
static bool is_too_large;           /* true: the latest message did not fit the pool */
static uint32_t told;               /* number of messages received */
static bool watched;                /* true when `changed` is initialised */

static void keep(tide_cdr_t *cdr, void *message) {
  (void)message;
  const size_t count = tide_cdr_remaining(cdr);
  told++;
  is_too_large = count > tide_graph_pool.capacity;
  if (is_too_large) {
    graph_bytes = 0; /* the graph before it is outdated */
    cdr->status = TIDE_ERROR_TOO_LARGE;
    return;
  }
  tide_cdr_get_bytes(cdr, tide_graph_pool.bytes, count);
  graph_bytes = (uint32_t)count;
}

static const tide_message_type_t graph_type =
    TIDE_COMPAT_MESSAGE_TYPE("micro_ros_msgs", "Graph", 0, tide_compat_encode_nothing, keep);
static const rosidl_message_type_support_t graph_support = TIDE_COMPAT_MESSAGE_SUPPORT(graph_type);

/* Called in the context that delivers the message. */
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
  return graph_bytes > 0 || is_too_large;
}

static rcl_ret_t subscribe(const rcl_node_t *node) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.durability = RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL;
  qos.depth = 1;
  rcl_node_t whose = *node;
  subscription = rcl_get_zero_initialized_subscription();
  const rcl_ret_t result =
      rclc_subscription_init(&subscription, &whose, &graph_support, "/ros_to_microros_graph", &qos);
  if (result != RCL_RET_OK) return result;
  graph_bytes = 0;
  is_too_large = false;
  watched = false;
  subscription.impl->reader.on_sample = on_sample;
  owner = node->impl->support;
  return RCL_RET_OK;
}

/* Subscribes to the graph of this node's support, unless this was done before. */
static rcl_ret_t open(const rcl_node_t *node) {
  if (tide_graph_pool.capacity == 0) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  if (!tide_compat_is_node(node)) return RCL_RET_NODE_INVALID;
  const bool mine = rcl_subscription_is_valid(&subscription) && subscription.impl->type == &graph_type;
  return mine && owner == node->impl->support ? RCL_RET_OK : subscribe(node);
}

/* Waits until a graph has arrived, and takes the newest one. TIDE_ERROR_TOO_LARGE: it did not fit the pool. */
static rcl_ret_t look(const rcl_node_t *node) {
  if (node == NULL || node->impl == NULL) return RCL_RET_NODE_INVALID;
  const rcl_ret_t opened = open(node);
  if (opened != RCL_RET_OK) return opened;
  tide_support_t *support = node->impl->support;
  const int64_t deadline_ns = tide_compat_deadline(support->creation_timeout_ms);
  const int status = tide_compat_wait(support, has_come, NULL, deadline_ns, true);
  return tide_compat_result(status == TIDE_OK && is_too_large ? TIDE_ERROR_TOO_LARGE : status);
}

/* Positions the cursor at the first node; the position stays valid until the next call. */
static rcl_ret_t read_graph(const rcl_node_t *node, tide_cdr_t *cdr) {
  const rcl_ret_t result = look(node);
  if (result == RCL_RET_OK) tide_cdr_reader(cdr, tide_graph_pool.bytes, graph_bytes, false);
  return result;
}

/* ---- reading the graph ---- */

typedef struct entity {
  const char *space, *node_name; /* the node of the entity */
  uint8_t kind;
  const char *name;
  tide_cdr_t types; /* count of the strings, then the strings */
} entity_t;

typedef bool (*visit_t)(const entity_t *entity, void *context);

/* Strings in the buffer end with NUL; an empty one may have none. */
static const char *get_text(tide_cdr_t *cdr) {
  size_t length;
  const char *text = tide_cdr_get_string(cdr, &length);
  return text == NULL || length == 0 ? "" : text;
}

static int visit_entities(tide_cdr_t *cdr, entity_t *entity, visit_t visit, void *context) {
  const uint32_t count = tide_cdr_get_count(cdr, 2 * sizeof(uint32_t) + 1);
  for (uint32_t i = 0; i < count && cdr->status == TIDE_OK; i++) {
    entity->kind = tide_cdr_get_u8(cdr);
    entity->name = get_text(cdr);
    entity->types = *cdr;
    const uint32_t types = tide_cdr_get_count(cdr, sizeof(uint32_t));
    for (uint32_t j = 0; j < types && cdr->status == TIDE_OK; j++) (void)get_text(cdr);
    if (cdr->status == TIDE_OK && visit != NULL && !visit(entity, context)) return TIDE_ERROR_NO_HEAP;
  }
  return cdr->status;
}

/* Returns TIDE_ERROR_NO_HEAP if a visit could not allocate. */
static int visit_all(tide_cdr_t cdr, visit_t visit, void *context) {
  int status = TIDE_OK;
  const uint32_t nodes = tide_cdr_get_count(&cdr, 3 * sizeof(uint32_t));
  for (uint32_t i = 0; i < nodes && status == TIDE_OK; i++) {
    entity_t entity;
    entity.space = get_text(&cdr);
    entity.node_name = get_text(&cdr);
    status = visit_entities(&cdr, &entity, visit, context);
  }
  return status == TIDE_OK ? cdr.status : status;
}

typedef struct query {
  uint8_t kinds[2];
  const char *space, *node_name; /* null selects every node */
  const char *topic;             /* null: any */
  rcl_allocator_t *allocator;
  size_t count;
  rcl_names_and_types_t *names_and_types;
  rcl_topic_endpoint_info_array_t *infos;
} query_t;

static bool is_wanted(const query_t *query, const entity_t *entity) {
  if (entity->kind != query->kinds[0] && entity->kind != query->kinds[1]) return false;
  if (query->topic != NULL && strcmp(query->topic, entity->name) != 0) return false;
  return query->node_name == NULL ||
         (strcmp(query->node_name, entity->node_name) == 0 && strcmp(query->space, entity->space) == 0);
}

static bool count_entity(const entity_t *entity, void *context) {
  query_t *query = context;
  query->count += is_wanted(query, entity);
  return true;
}

/* ---- counts ---- */

static rcl_ret_t count_all(uint8_t kind, const char *name, size_t *count) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, tide_graph_pool.bytes, graph_bytes, false);
  query_t query = {.kinds = {kind, kind}, .topic = name};
  const int status = visit_all(cdr, count_entity, &query);
  *count = query.count;
  return tide_compat_result(status);
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
  return count_topic(node, PUBLISHER, topic_name, count);
}

rcl_ret_t rcl_count_subscribers(const rcl_node_t *node, const char *topic_name, size_t *count) {
  return count_topic(node, SUBSCRIPTION, topic_name, count);
}

rcl_ret_t rcl_count_clients(const rcl_node_t *node, const char *service_name, size_t *count) {
  return count_topic(node, CLIENT, service_name, count);
}

rcl_ret_t rcl_count_services(const rcl_node_t *node, const char *service_name, size_t *count) {
  return count_topic(node, SERVER, service_name, count);
}

/* True if a newer message than the last one read has arrived. */
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
  return wait_for(PUBLISHER, node, allocator, topic_name, count, timeout, success);
}

rcl_ret_t rcl_wait_for_subscribers(const rcl_node_t *node, rcl_allocator_t *allocator, const char *topic_name,
                                   size_t count, rcutils_duration_value_t timeout, bool *success) {
  return wait_for(SUBSCRIPTION, node, allocator, topic_name, count, timeout, success);
}

/* Returns some live node of the support, because publishers and subscriptions do not store their own node. */
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
  if (result == RCL_RET_OK) result = count_all(SERVER, name, &servers);
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
  (void)rcl_trigger_guard_condition(&changed); /* reports the changes that were made before this call */
  return &changed;
}

/* ---- names and types, in memory of the caller's allocator: the graph is read twice, to count and to copy ---- */

static char *copy_of(const char *text, const rcl_allocator_t *allocator) {
  const size_t bytes = strlen(text) + 1;
  char *copy = allocator->allocate(bytes, allocator->state);
  if (copy != NULL) memcpy(copy, text, bytes);
  return copy;
}

/* Types of a topic or service: those of its first endpoint. */
static bool copy_types(rcutils_string_array_t *array, tide_cdr_t types, rcl_allocator_t *allocator) {
  const uint32_t count = tide_cdr_get_count(&types, sizeof(uint32_t));
  if (rcutils_string_array_init(array, count, allocator) != RCUTILS_RET_OK) return false;
  for (uint32_t i = 0; i < count; i++) {
    array->data[i] = copy_of(get_text(&types), allocator);
    if (array->data[i] == NULL) return false;
  }
  return true;
}

static bool has_name(const rcl_names_and_types_t *known, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(known->names.data[i], name) == 0) return true;
  }
  return false;
}

static bool add_name(const entity_t *entity, void *context) {
  query_t *query = context;
  rcl_names_and_types_t *known = query->names_and_types;
  if (!is_wanted(query, entity) || has_name(known, query->count, entity->name)) return true;
  known->names.data[query->count] = copy_of(entity->name, query->allocator);
  if (known->names.data[query->count] == NULL) return false;
  return copy_types(&known->types[query->count++], entity->types, query->allocator);
}

static rcl_ret_t get_names(const rcl_node_t *node, query_t *query) {
  tide_cdr_t cdr;
  rcl_names_and_types_t *result = query->names_and_types;
  if (query->allocator == NULL || result == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t looked = read_graph(node, &cdr);
  if (looked != RCL_RET_OK) return looked;
  int status = visit_all(cdr, count_entity, query);
  if (status != TIDE_OK) return tide_compat_result(status);
  const size_t most = query->count;
  query->count = 0;
  *result = rcl_get_zero_initialized_names_and_types();
  if (most == 0) return RCL_RET_OK;
  status = TIDE_ERROR_NO_HEAP;
  if (rcutils_string_array_init(&result->names, most, query->allocator) == RCUTILS_RET_OK) {
    result->types = query->allocator->zero_allocate(most, sizeof *result->types, query->allocator->state);
    if (result->types != NULL) status = visit_all(cdr, add_name, query);
  }
  if (status == TIDE_OK) {
    result->names.size = query->count; /* entries beyond this count are empty */
  } else {
    (void)rcl_names_and_types_fini(result);
  }
  return tide_compat_result(status);
}

rcl_names_and_types_t rcl_get_zero_initialized_names_and_types(void) {
  const rcl_names_and_types_t none = {{0, NULL, {0}}, NULL};
  return none;
}

rcl_ret_t rcl_names_and_types_fini(rcl_names_and_types_t *names_and_types) {
  if (names_and_types == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_allocator_t allocator = names_and_types->names.allocator;
  for (size_t i = 0; names_and_types->types != NULL && i < names_and_types->names.size; i++) {
    if (names_and_types->types[i].data != NULL) (void)rcutils_string_array_fini(&names_and_types->types[i]);
  }
  if (names_and_types->types != NULL) allocator.deallocate(names_and_types->types, allocator.state);
  names_and_types->types = NULL;
  (void)rcutils_string_array_fini(&names_and_types->names);
  return RCL_RET_OK;
}

/* ---- questions ---- */

rcl_ret_t rcl_get_topic_names_and_types(const rcl_node_t *node, rcl_allocator_t *allocator, bool no_demangle,
                                        rcl_names_and_types_t *topic_names_and_types) {
  (void)no_demangle; /* ignored, because the agent reports only names of ROS 2 */
  query_t query = {{PUBLISHER, SUBSCRIPTION}, NULL, NULL, NULL, allocator, 0, topic_names_and_types, NULL};
  return get_names(node, &query);
}

rcl_ret_t rcl_get_service_names_and_types(const rcl_node_t *node, rcl_allocator_t *allocator,
                                          rcl_names_and_types_t *service_names_and_types) {
  query_t query = {{SERVER, CLIENT}, NULL, NULL, NULL, allocator, 0, service_names_and_types, NULL};
  return get_names(node, &query);
}

static rcl_ret_t get_of_node(const rcl_node_t *node, rcl_allocator_t *allocator, uint8_t kind, const char *node_name,
                             const char *space, rcl_names_and_types_t *names_and_types) {
  if (node_name == NULL || space == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  query_t query = {{kind, kind}, space[0] == '\0' ? "/" : space, node_name, NULL, allocator, 0, names_and_types, NULL};
  return get_names(node, &query);
}

rcl_ret_t rcl_get_publisher_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                    bool no_demangle, const char *node_name, const char *node_namespace,
                                                    rcl_names_and_types_t *topic_names_and_types) {
  (void)no_demangle;
  return get_of_node(node, allocator, PUBLISHER, node_name, node_namespace, topic_names_and_types);
}

rcl_ret_t rcl_get_subscriber_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                     bool no_demangle, const char *node_name,
                                                     const char *node_namespace,
                                                     rcl_names_and_types_t *topic_names_and_types) {
  (void)no_demangle;
  return get_of_node(node, allocator, SUBSCRIPTION, node_name, node_namespace, topic_names_and_types);
}

rcl_ret_t rcl_get_service_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                  const char *node_name, const char *node_namespace,
                                                  rcl_names_and_types_t *service_names_and_types) {
  return get_of_node(node, allocator, SERVER, node_name, node_namespace, service_names_and_types);
}

rcl_ret_t rcl_get_client_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                 const char *node_name, const char *node_namespace,
                                                 rcl_names_and_types_t *service_names_and_types) {
  return get_of_node(node, allocator, CLIENT, node_name, node_namespace, service_names_and_types);
}

rcl_ret_t rcl_get_node_names(const rcl_node_t *node, rcl_allocator_t allocator, rcutils_string_array_t *node_names,
                             rcutils_string_array_t *node_namespaces) {
  tide_cdr_t cdr;
  if (node_names == NULL || node_namespaces == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t looked = read_graph(node, &cdr);
  if (looked != RCL_RET_OK) return looked;
  const uint32_t count = tide_cdr_get_count(&cdr, 3 * sizeof(uint32_t));
  bool complete = rcutils_string_array_init(node_names, count, &allocator) == RCUTILS_RET_OK;
  complete = rcutils_string_array_init(node_namespaces, count, &allocator) == RCUTILS_RET_OK && complete;
  for (uint32_t i = 0; i < count && complete; i++) {
    entity_t entity;
    node_namespaces->data[i] = copy_of(get_text(&cdr), &allocator);
    node_names->data[i] = copy_of(get_text(&cdr), &allocator);
    complete = node_namespaces->data[i] != NULL && node_names->data[i] != NULL &&
               visit_entities(&cdr, &entity, NULL, NULL) == TIDE_OK;
  }
  if (complete) return RCL_RET_OK;
  (void)rcutils_string_array_fini(node_names);
  (void)rcutils_string_array_fini(node_namespaces);
  return tide_compat_result(cdr.status == TIDE_OK ? TIDE_ERROR_NO_HEAP : cdr.status);
}

/* ---- endpoints of a topic ---- */

rcl_topic_endpoint_info_array_t rcl_get_zero_initialized_topic_endpoint_info_array(void) {
  const rcl_topic_endpoint_info_array_t none = {0, NULL};
  return none;
}

static void release_text(const char *text, const rcl_allocator_t *allocator) {
  if (text != NULL) allocator->deallocate((void *)text, allocator->state);
}

rcl_ret_t rcl_topic_endpoint_info_array_fini(rcl_topic_endpoint_info_array_t *info_array,
                                             rcutils_allocator_t *allocator) {
  if (info_array == NULL || allocator == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  for (size_t i = 0; i < info_array->size; i++) {
    release_text(info_array->info_array[i].node_name, allocator);
    release_text(info_array->info_array[i].node_namespace, allocator);
    release_text(info_array->info_array[i].topic_type, allocator);
  }
  if (info_array->info_array != NULL) allocator->deallocate(info_array->info_array, allocator->state);
  *info_array = rcl_get_zero_initialized_topic_endpoint_info_array();
  return RCL_RET_OK;
}

static bool add_info(const entity_t *entity, void *context) {
  query_t *query = context;
  if (!is_wanted(query, entity)) return true;
  rmw_topic_endpoint_info_t *info = &query->infos->info_array[query->count++];
  tide_cdr_t types = entity->types;
  const uint32_t count = tide_cdr_get_count(&types, sizeof(uint32_t));
  info->node_name = copy_of(entity->node_name, query->allocator);
  info->node_namespace = copy_of(entity->space, query->allocator);
  info->topic_type = copy_of(count == 0 ? "" : get_text(&types), query->allocator);
  info->endpoint_type = entity->kind == PUBLISHER ? RMW_ENDPOINT_PUBLISHER : RMW_ENDPOINT_SUBSCRIPTION;
  return info->node_name != NULL && info->node_namespace != NULL && info->topic_type != NULL;
}

static rcl_ret_t get_infos(const rcl_node_t *node, query_t *query) {
  tide_cdr_t cdr;
  if (query->allocator == NULL || query->topic == NULL || query->infos == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  const rcl_ret_t looked = read_graph(node, &cdr);
  if (looked != RCL_RET_OK) return looked;
  int status = visit_all(cdr, count_entity, query);
  if (status != TIDE_OK) return tide_compat_result(status);
  *query->infos = rcl_get_zero_initialized_topic_endpoint_info_array();
  if (query->count == 0) return RCL_RET_OK;
  query->infos->info_array =
      query->allocator->zero_allocate(query->count, sizeof *query->infos->info_array, query->allocator->state);
  if (query->infos->info_array == NULL) return tide_compat_result(TIDE_ERROR_NO_HEAP);
  query->infos->size = query->count;
  query->count = 0;
  status = visit_all(cdr, add_info, query);
  if (status != TIDE_OK) (void)rcl_topic_endpoint_info_array_fini(query->infos, query->allocator);
  return tide_compat_result(status);
}

rcl_ret_t rcl_get_publishers_info_by_topic(const rcl_node_t *node, rcutils_allocator_t *allocator,
                                           const char *topic_name, bool no_mangle,
                                           rcl_topic_endpoint_info_array_t *publishers_info) {
  (void)no_mangle;
  query_t query = {{PUBLISHER, PUBLISHER}, NULL, NULL, topic_name, allocator, 0, NULL, publishers_info};
  return get_infos(node, &query);
}

rcl_ret_t rcl_get_subscriptions_info_by_topic(const rcl_node_t *node, rcutils_allocator_t *allocator,
                                              const char *topic_name, bool no_mangle,
                                              rcl_topic_endpoint_info_array_t *subscriptions_info) {
  (void)no_mangle;
  query_t query = {{SUBSCRIPTION, SUBSCRIPTION}, NULL, NULL, topic_name, allocator, 0, NULL, subscriptions_info};
  return get_infos(node, &query);
}
