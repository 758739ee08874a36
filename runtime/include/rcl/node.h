/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__NODE_H_
#define RCL__NODE_H_

#include "rcl/context.h"
#include "rcl/node_options.h"

TIDE_EXTERN_C_BEGIN

struct tide_node_handle;

typedef struct rcl_node_s {
  struct tide_node_handle *impl;
} rcl_node_t;

rcl_node_t rcl_get_zero_initialized_node(void);
rcl_ret_t rcl_node_init(rcl_node_t *node, const char *name, const char *namespace_, rcl_context_t *context,
                        const rcl_node_options_t *options);
rcl_ret_t rcl_node_fini(rcl_node_t *node);
/* True if the node is initialised and its support still exists. */
bool rcl_node_is_valid(const rcl_node_t *node);
const char *rcl_node_get_name(const rcl_node_t *node);
const char *rcl_node_get_namespace(const rcl_node_t *node);
/* "/namespace/name". */
const char *rcl_node_get_fully_qualified_name(const rcl_node_t *node);
/* "namespace.name", or the name alone. With a namespace the string outlives the node. All such names share
 * TIDE_LOGGER_NAME_BYTES (tide/options.h); null when these bytes are used up. */
const char *rcl_node_get_logger_name(const rcl_node_t *node);
rcl_ret_t rcl_node_get_domain_id(const rcl_node_t *node, size_t *domain_id);
rmw_node_t *rcl_node_get_rmw_handle(const rcl_node_t *node);

TIDE_EXTERN_C_END
#endif
