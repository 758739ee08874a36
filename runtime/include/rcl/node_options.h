/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__NODE_OPTIONS_H_
#define RCL__NODE_OPTIONS_H_

#include "rcl/types.h"

TIDE_EXTERN_C_BEGIN

typedef struct rcl_node_options_s {
  size_t domain_id;
} rcl_node_options_t;

rcl_node_options_t rcl_node_get_default_options(void);
rcl_ret_t rcl_node_options_copy(const rcl_node_options_t *options, rcl_node_options_t *options_out);
rcl_ret_t rcl_node_options_fini(rcl_node_options_t *options);

TIDE_EXTERN_C_END
#endif
