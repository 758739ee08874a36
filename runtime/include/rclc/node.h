/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__NODE_H_
#define RCLC__NODE_H_

#include "rclc/types.h"

#ifdef __cplusplus
extern "C" {
#endif

rcl_ret_t rclc_node_init_default(rcl_node_t *node, const char *name, const char *namespace_, rclc_support_t *support);
rcl_ret_t rclc_node_init_with_options(rcl_node_t *node, const char *name, const char *namespace_,
                                      rclc_support_t *support, rcl_node_options_t *node_ops);

#ifdef __cplusplus
}
#endif
#endif
