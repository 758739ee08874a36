/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__NODE_H_
#define RCLC__NODE_H_

#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

rcl_ret_t rclc_node_init_default(rcl_node_t *node, const char *name, const char *namespace_, rclc_support_t *support);
rcl_ret_t rclc_node_init_with_options(rcl_node_t *node, const char *name, const char *namespace_,
                                      rclc_support_t *support, rcl_node_options_t *node_ops);

TIDE_EXTERN_C_END
#endif
