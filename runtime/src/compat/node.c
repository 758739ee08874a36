/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, names of their entities, QoS profiles, and their objects on the agent. */
#include <string.h>

#include "internal.h"
#include "rclc/node.h"
#include "rmw/qos_profiles.h"

/* ---- names ---- */

/* Names as in rmw: "rt" precedes the fully qualified topic name; "rq" and "rr" precede a service's. "~" stands for the
 * node, a name without a leading "/" is relative to the node's namespace, and {node}, {ns} and {namespace} are
 * replaced.
 */

typedef struct text {
  char *characters;
  size_t capacity;
  size_t length;
  bool cut;
} text_t;

static void append_part(text_t *text, const char *more, size_t length) {
  text->cut = text->cut || text->length + length >= text->capacity;
  if (text->cut) return;
  memcpy(text->characters + text->length, more, length);
  text->length += length;
  text->characters[text->length] = '\0';
}

static void append(text_t *text, const char *more) { append_part(text, more, strlen(more)); }

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

static bool is_part_of_name(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || is_digit(character) ||
         character == '_';
}

/* True for a valid name of one part, or of several parts with a slash between them. */
static bool is_name(const char *name, bool one_part) {
  bool first = true; /* first character of a part */
  for (; *name != '\0'; name++) {
    if (*name == '/' ? first || one_part : !is_part_of_name(*name) || (first && is_digit(*name))) return false;
    first = *name == '/';
  }
  return !first;
}

/* Writes "/namespace/name" into full_name; its last part is the node's name. Returns TIDE_ERROR_NAME when a part breaks
 * the rules, TIDE_ERROR_CAPACITY_NAMES when the name does not fit. */
static int make_node_name(tide_node_handle_t *node, const char *name, const char *namespace_) {
  const char *inner = namespace_[0] == '/' ? namespace_ + 1 : namespace_;
  if (!is_name(name, true) || (inner[0] != '\0' && !is_name(inner, false))) return TIDE_ERROR_NAME;
  text_t space = {node->namespace_, tide_pools.name_bytes, 0, false};
  append(&space, "/");
  append(&space, inner);
  text_t full = {node->full_name, tide_pools.name_bytes, 0, false};
  if (inner[0] != '\0') append(&full, node->namespace_);
  append(&full, "/");
  node->name = node->full_name + full.length;
  append(&full, name);
  return space.cut || full.cut ? TIDE_ERROR_CAPACITY_NAMES : TIDE_OK;
}

/* The text that replaces a name in braces. *length is the name's length with its braces. Returns null if the name is
 * unknown. */
static const char *substitute(const char *braces, const tide_node_handle_t *node, size_t *length) {
  static const struct {
    char name[12];
    bool is_node;
  } known[] = {{"{node}", true}, {"{ns}", false}, {"{namespace}", false}};
  for (size_t i = 0; TIDE_NAME_SUBSTITUTIONS && i < sizeof known / sizeof known[0]; i++) {
    *length = strlen(known[i].name);
    if (strncmp(braces, known[i].name, *length) == 0) return known[i].is_node ? node->name : node->namespace_;
  }
  return NULL;
}

static void append_expanded(text_t *text, const char *name, const tide_node_handle_t *node) {
  while (*name != '\0') {
    size_t length = 1;
    const char *more = *name == '{' ? substitute(name, node, &length) : NULL;
    if (more != NULL) {
      append(text, more);
    } else {
      length = 1;
      append_part(text, name, 1);
    }
    name += length;
  }
}

static bool is_absolute(const char *name, const tide_node_handle_t *node) {
  size_t length = 0;
  const char *first = *name == '{' ? substitute(name, node, &length) : NULL;
  return (first != NULL ? first : name)[0] == '/';
}

/* Appends the fully qualified name to the text. */
static int append_name(text_t *text, const char *name, const tide_node_handle_t *node) {
  const size_t start = text->length;
  if (name[0] == '~') {
    if (name[1] != '\0' && name[1] != '/') return TIDE_ERROR_NAME;
    append(text, node->full_name);
    name++;
  } else if (!is_absolute(name, node)) {
    if (node->namespace_[1] != '\0') append(text, node->namespace_);
    append(text, "/");
  }
  append_expanded(text, name, node);
  return text->cut || is_name(text->characters + start + 1, false) ? TIDE_OK : TIDE_ERROR_NAME;
}

static int make_name(text_t *text, const char *prefix, const char *name, const char *suffix,
                     const tide_node_handle_t *node) {
  append(text, prefix);
  const int status = append_name(text, name, node);
  if (status != TIDE_OK) return status;
  append(text, suffix);
  return text->cut ? TIDE_ERROR_CAPACITY_NAMES : TIDE_OK;
}

int tide_compat_topic_name(char *destination, const char *topic, const tide_node_handle_t *node) {
  text_t text = {destination, tide_pools.name_bytes, 0, false};
  return make_name(&text, "rt", topic, "", node);
}

int tide_compat_service_names(char *request, char *reply, const char *service, const tide_node_handle_t *node) {
  text_t asking = {request, tide_pools.service_name_bytes, 0, false};
  text_t answering = {reply, tide_pools.service_name_bytes, 0, false};
  const int status = make_name(&asking, "rq", service, "Request", node);
  return status == TIDE_OK ? make_name(&answering, "rr", service, "Reply", node) : status;
}

/* ---- QoS ---- */

#define NO_TIME \
  { 0, 0 }
#define PROFILE(HISTORY, DEPTH, RELIABILITY, DURABILITY, LIFESPAN, LIVELINESS)                                      \
  {                                                                                                                 \
    RMW_QOS_POLICY_HISTORY_##HISTORY, DEPTH, RMW_QOS_POLICY_RELIABILITY_##RELIABILITY,                              \
        RMW_QOS_POLICY_DURABILITY_##DURABILITY, NO_TIME, LIFESPAN, RMW_QOS_POLICY_LIVELINESS_##LIVELINESS, NO_TIME, \
        false                                                                                                       \
  }
#define KEPT_LAST(DEPTH, RELIABILITY) PROFILE(KEEP_LAST, DEPTH, RELIABILITY, VOLATILE, NO_TIME, SYSTEM_DEFAULT)
#define TEN_SECONDS \
  { 10, 0 }

const rmw_qos_profile_t rmw_qos_profile_default = KEPT_LAST(10, RELIABLE);
const rmw_qos_profile_t rmw_qos_profile_services_default = KEPT_LAST(10, RELIABLE);
const rmw_qos_profile_t rmw_qos_profile_sensor_data = KEPT_LAST(5, BEST_EFFORT);
const rmw_qos_profile_t rmw_qos_profile_parameters = KEPT_LAST(1000, RELIABLE);
const rmw_qos_profile_t rmw_qos_profile_parameter_events = KEPT_LAST(1000, RELIABLE);
const rmw_qos_profile_t rmw_qos_profile_rosout_default =
    PROFILE(KEEP_LAST, 1000, RELIABLE, TRANSIENT_LOCAL, TEN_SECONDS, SYSTEM_DEFAULT);
const rmw_qos_profile_t rmw_qos_profile_system_default =
    PROFILE(SYSTEM_DEFAULT, 0, SYSTEM_DEFAULT, SYSTEM_DEFAULT, NO_TIME, SYSTEM_DEFAULT);
const rmw_qos_profile_t rmw_qos_profile_best_available =
    PROFILE(KEEP_LAST, 10, BEST_AVAILABLE, BEST_AVAILABLE, NO_TIME, BEST_AVAILABLE);
const rmw_qos_profile_t rmw_qos_profile_unknown = PROFILE(UNKNOWN, 0, UNKNOWN, UNKNOWN, NO_TIME, UNKNOWN);

bool tide_compat_is_reliable(const rmw_qos_profile_t *qos) {
  return qos->reliability != RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
}

/* ---- objects on the agent ---- */

int tide_compat_create_object(tide_support_t *support, tide_object_t *object, bool wait) {
  int status = tide_session_add_object(&support->session, object);
  if (status != TIDE_OK || !wait) return status;
  return tide_compat_wait_session(support, object, TIDE_SESSION_READY,
                                  tide_compat_deadline(support->creation_timeout_ms));
}

typedef struct removal {
  tide_object_t *object;
  int status;
} removal_t;

static bool is_removed(tide_support_t *support, void *context) {
  removal_t *removal = context;
  removal->status = tide_session_remove_object(&support->session, removal->object);
  if (removal->status == TIDE_ERROR_NOT_FOUND) removal->status = TIDE_OK;
  return removal->status != TIDE_ERROR_FULL;
}

int tide_compat_delete_object(tide_support_t *support, tide_object_t *object) {
  removal_t removal = {object, TIDE_OK};
  tide_compat_wait(support, is_removed, &removal, tide_compat_deadline(support->destroy_timeout_ms), false);
  return removal.status;
}

/* ---- nodes ---- */

bool tide_compat_is_node(const rcl_node_t *node) {
  return node != NULL && node->impl != NULL && node->impl->support != NULL;
}

rcl_node_t rcl_get_zero_initialized_node(void) {
  rcl_node_t node = {NULL};
  return node;
}

rcl_node_options_t rcl_node_get_default_options(void) {
  rcl_node_options_t options = {0};
  return options;
}

static int open_node(tide_node_handle_t *handle, const char *name, const char *namespace_, tide_support_t *support) {
  const int status = make_node_name(handle, name, namespace_);
  if (status != TIDE_OK) return status;
  tide_xrce_object_t *description = &handle->participant.description;
  description->kind = TIDE_XRCE_KIND_PARTICIPANT;
  description->representation = TIDE_XRCE_BY_BINARY;
  description->domain = (int16_t)support->options.domain_id;
  description->has_name = true;
  description->name.characters = handle->namespace_[1] == '\0' ? handle->name : handle->full_name;
  description->name.length = strlen(description->name.characters);
  return tide_compat_create_object(support, &handle->participant, true);
}

rcl_ret_t rcl_node_init(rcl_node_t *node, const char *name, const char *namespace_, rcl_context_t *context,
                        const rcl_node_options_t *options) {
  (void)options;
  if (node == NULL || name == NULL || namespace_ == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(context)) return tide_compat_refusal(TIDE_ERROR_STATE, RCL_RET_NOT_INIT);
  size_t place = 0;
  while (place < tide_pools.node_count && tide_pools.nodes[place].support != NULL) place++;
  if (place == tide_pools.node_count) return tide_compat_result(TIDE_ERROR_CAPACITY_NODES);
  tide_node_handle_t *handle = &tide_pools.nodes[place];
  memset(handle, 0, sizeof *handle);
  handle->full_name = tide_pools.node_names + 2u * place * tide_pools.name_bytes;
  handle->namespace_ = handle->full_name + tide_pools.name_bytes;
  handle->support = context->impl;
  const int status = open_node(handle, name, namespace_, context->impl);
  if (status != TIDE_OK) {
    if (tide_compat_delete_object(context->impl, &handle->participant) == TIDE_OK) handle->support = NULL;
    if (status != TIDE_ERROR_NAME) return tide_compat_result(status);
    return tide_compat_refusal(status,
                               is_name(name, true) ? RCL_RET_NODE_INVALID_NAMESPACE : RCL_RET_NODE_INVALID_NAME);
  }
  node->impl = handle;
  return RCL_RET_OK;
}

rcl_ret_t rcl_node_fini(rcl_node_t *node) {
  if (node == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_NODE_INVALID);
  tide_node_handle_t *handle = node->impl;
  if (tide_compat_is_node(node)) {
    int status = tide_compat_delete_object(handle->support, &handle->participant);
    if (status != TIDE_OK) return tide_compat_result(status);
    handle->support = NULL;
  }
  node->impl = NULL;
  return RCL_RET_OK;
}

const char *rcl_node_get_name(const rcl_node_t *node) { return tide_compat_is_node(node) ? node->impl->name : NULL; }

const char *rcl_node_get_namespace(const rcl_node_t *node) {
  return tide_compat_is_node(node) ? node->impl->namespace_ : NULL;
}

rcl_ret_t rcl_node_options_copy(const rcl_node_options_t *options, rcl_node_options_t *options_out) {
  if (options == NULL || options_out == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *options_out = *options;
  return RCL_RET_OK;
}

rcl_ret_t rcl_node_options_fini(rcl_node_options_t *options) {
  return options == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

bool rcl_node_is_valid(const rcl_node_t *node) { return tide_compat_is_node(node); }

rmw_node_t *rcl_node_get_rmw_handle(const rcl_node_t *node) {
  return tide_compat_is_node(node) ? (rmw_node_t *)(void *)node->impl : NULL;
}

rcl_ret_t rclc_node_init_default(rcl_node_t *node, const char *name, const char *namespace_, rclc_support_t *support) {
  if (support == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return rcl_node_init(node, name, namespace_, &support->context, NULL);
}

rcl_ret_t rclc_node_init_with_options(rcl_node_t *node, const char *name, const char *namespace_,
                                      rclc_support_t *support, rcl_node_options_t *node_ops) {
  if (support == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return rcl_node_init(node, name, namespace_, &support->context, node_ops);
}

const char *rcl_node_get_fully_qualified_name(const rcl_node_t *node) {
  return tide_compat_is_node(node) ? node->impl->full_name : NULL;
}

rcl_ret_t rcl_node_get_domain_id(const rcl_node_t *node, size_t *domain_id) {
  if (!tide_compat_is_node(node)) return RCL_RET_NODE_INVALID;
  if (domain_id == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *domain_id = node->impl->support->options.domain_id;
  return RCL_RET_OK;
}
