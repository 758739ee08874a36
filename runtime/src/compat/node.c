/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "rclc/node.h"

rcl_node_t rcl_get_zero_initialized_node(void) {
  rcl_node_t node = {NULL};
  return node;
}

rcl_node_options_t rcl_node_get_default_options(void) {
  rcl_node_options_t options = {0};
  return options;
}

static tide_node_handle_t *free_place(void) {
  for (size_t i = 0; i < tide_pools.node_count; i++) {
    tide_node_handle_t *handle = &tide_pools.nodes[i];
    if (handle->support != NULL) continue;
    memset(handle, 0, sizeof *handle);
    handle->full_name = tide_pools.node_names + 2u * i * tide_pools.name_bytes;
    handle->namespace_ = handle->full_name + tide_pools.name_bytes;
    return handle;
  }
  return NULL;
}

static int init_node(tide_node_handle_t *handle, const char *name, const char *namespace_, tide_support_t *support) {
  int status = tide_compat_node_name(handle, name, namespace_);
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
  tide_node_handle_t *handle = free_place();
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_NODES);
  handle->support = context->impl;
  int status = init_node(handle, name, namespace_, context->impl);
  if (status != TIDE_OK) {
    if (tide_compat_delete_object(context->impl, &handle->participant) == TIDE_OK) handle->support = NULL;
    if (status != TIDE_ERROR_NAME) return tide_compat_result(status);
    return tide_compat_refusal(
        status, tide_compat_is_node_name(name) ? RCL_RET_NODE_INVALID_NAMESPACE : RCL_RET_NODE_INVALID_NAME);
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

bool tide_compat_is_node(const rcl_node_t *node) {
  return node != NULL && node->impl != NULL && node->impl->support != NULL;
}

const char *rcl_node_get_name(const rcl_node_t *node) { return tide_compat_is_node(node) ? node->impl->name : NULL; }

const char *rcl_node_get_namespace(const rcl_node_t *node) {
  return tide_compat_is_node(node) ? node->impl->namespace_ : NULL;
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
