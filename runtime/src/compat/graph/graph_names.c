/* SPDX-License-Identifier: Apache-2.0 */
/* Names and types of the graph, in memory of the caller's allocator. Each question reads the graph twice: how many
 * there are at most, then each. */
#include <string.h>

#include "graph.h"

typedef struct entity {
  const char *space, *node_name; /* whose it is */
  uint8_t kind;
  const char *name;
  tide_cdr_t types; /* count and texts */
} entity_t;

typedef bool (*visit_t)(const entity_t *entity, void *context);

/* In the buffer they end with NUL; an empty one may have none. */
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

/* TIDE_ERROR_NO_HEAP: a visit was refused memory. */
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

/* ---- what is looked for ---- */

typedef struct query {
  uint8_t kinds[2];
  const char *space, *node_name; /* null: of any node */
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

static char *copy_of(const char *text, const rcl_allocator_t *allocator) {
  const size_t bytes = strlen(text) + 1;
  char *copy = allocator->allocate(bytes, allocator->state);
  if (copy != NULL) memcpy(copy, text, bytes);
  return copy;
}

/* Types of one name: those of its first endpoint. */
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
  const rcl_ret_t looked = tide_graph_look(node, &cdr);
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
    result->names.size = query->count; /* the places behind are empty */
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
  (void)no_demangle; /* names come as ROS 2 has them */
  query_t query = {
      {TIDE_GRAPH_PUBLISHER, TIDE_GRAPH_SUBSCRIPTION}, NULL, NULL, NULL, allocator, 0, topic_names_and_types, NULL};
  return get_names(node, &query);
}

rcl_ret_t rcl_get_service_names_and_types(const rcl_node_t *node, rcl_allocator_t *allocator,
                                          rcl_names_and_types_t *service_names_and_types) {
  query_t query = {
      {TIDE_GRAPH_SERVER, TIDE_GRAPH_CLIENT}, NULL, NULL, NULL, allocator, 0, service_names_and_types, NULL};
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
  return get_of_node(node, allocator, TIDE_GRAPH_PUBLISHER, node_name, node_namespace, topic_names_and_types);
}

rcl_ret_t rcl_get_subscriber_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                     bool no_demangle, const char *node_name,
                                                     const char *node_namespace,
                                                     rcl_names_and_types_t *topic_names_and_types) {
  (void)no_demangle;
  return get_of_node(node, allocator, TIDE_GRAPH_SUBSCRIPTION, node_name, node_namespace, topic_names_and_types);
}

rcl_ret_t rcl_get_service_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                  const char *node_name, const char *node_namespace,
                                                  rcl_names_and_types_t *service_names_and_types) {
  return get_of_node(node, allocator, TIDE_GRAPH_SERVER, node_name, node_namespace, service_names_and_types);
}

rcl_ret_t rcl_get_client_names_and_types_by_node(const rcl_node_t *node, rcl_allocator_t *allocator,
                                                 const char *node_name, const char *node_namespace,
                                                 rcl_names_and_types_t *service_names_and_types) {
  return get_of_node(node, allocator, TIDE_GRAPH_CLIENT, node_name, node_namespace, service_names_and_types);
}

rcl_ret_t rcl_get_node_names(const rcl_node_t *node, rcl_allocator_t allocator, rcutils_string_array_t *node_names,
                             rcutils_string_array_t *node_namespaces) {
  tide_cdr_t cdr;
  if (node_names == NULL || node_namespaces == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t looked = tide_graph_look(node, &cdr);
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
  info->endpoint_type = entity->kind == TIDE_GRAPH_PUBLISHER ? RMW_ENDPOINT_PUBLISHER : RMW_ENDPOINT_SUBSCRIPTION;
  return info->node_name != NULL && info->node_namespace != NULL && info->topic_type != NULL;
}

static rcl_ret_t get_infos(const rcl_node_t *node, query_t *query) {
  tide_cdr_t cdr;
  if (query->allocator == NULL || query->topic == NULL || query->infos == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  const rcl_ret_t looked = tide_graph_look(node, &cdr);
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
  query_t query = {
      {TIDE_GRAPH_PUBLISHER, TIDE_GRAPH_PUBLISHER}, NULL, NULL, topic_name, allocator, 0, NULL, publishers_info};
  return get_infos(node, &query);
}

rcl_ret_t rcl_get_subscriptions_info_by_topic(const rcl_node_t *node, rcutils_allocator_t *allocator,
                                              const char *topic_name, bool no_mangle,
                                              rcl_topic_endpoint_info_array_t *subscriptions_info) {
  (void)no_mangle;
  query_t query = {{TIDE_GRAPH_SUBSCRIPTION, TIDE_GRAPH_SUBSCRIPTION},
                   NULL,
                   NULL,
                   topic_name,
                   allocator,
                   0,
                   NULL,
                   subscriptions_info};
  return get_infos(node, &query);
}
