/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__INIT_H_
#define RCL__INIT_H_

#include "rcl/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the link and waits for a session with the agent, at most tide_pools.connect_timeout_ms.
 * RCL_RET_ERROR when there is none (tide_rclc_last_status says why). */
rcl_ret_t rcl_init(int argc, char const *const *argv, const rcl_init_options_t *options, rcl_context_t *context);
/* Waits until what was published is acknowledged, at most as long as objects may take to be destroyed (1 s, see
 * rmw_uros_set_context_entity_destroy_session_timeout), and says goodbye. What the program has not finished is invalid
 * then, and its places are free. Spins of other threads return behind the callback that runs. */
rcl_ret_t rcl_shutdown(rcl_context_t *context);

#ifdef __cplusplus
}
#endif
#endif
