/* SPDX-License-Identifier: Apache-2.0 */
/* tide's additions to lifecycle nodes: two services that `ros2 lifecycle` calls and rclc does not offer. */
#ifndef TIDE_RCLC_LIFECYCLE_H
#define TIDE_RCLC_LIFECYCLE_H

#include <rclc_lifecycle/rclc_lifecycle.h>

TIDE_EXTERN_C_BEGIN

/* Each creates its service and takes a handle of the executor. The reply with the transition graph has some 1,800
 * bytes: it needs fragments and a node of that size (TIDE_LARGE_NODE_BYTES of tide/pools.h). */
rcl_ret_t tide_rclc_lifecycle_init_get_available_transitions_server(rclc_lifecycle_service_context_t *context,
                                                                    rclc_executor_t *executor);
rcl_ret_t tide_rclc_lifecycle_init_get_transition_graph_server(rclc_lifecycle_service_context_t *context,
                                                               rclc_executor_t *executor);

TIDE_EXTERN_C_END
#endif
