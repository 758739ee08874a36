/* SPDX-License-Identifier: Apache-2.0 */
/* What few programs ask of a node. */
#include "internal.h"

const char *rcl_node_get_fully_qualified_name(const rcl_node_t *node) {
  return tide_compat_is_node(node) ? node->impl->full_name : NULL;
}

rcl_ret_t rcl_node_get_domain_id(const rcl_node_t *node, size_t *domain_id) {
  if (!tide_compat_is_node(node)) return RCL_RET_NODE_INVALID;
  if (domain_id == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *domain_id = node->impl->support->options.domain_id;
  return RCL_RET_OK;
}
