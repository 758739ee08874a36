/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__INIT_H_
#define RCL__INIT_H_

#include "rcl/context.h"

TIDE_EXTERN_C_BEGIN

/* Opens the link and waits for a session with the agent, at most tide_pools.connect_timeout_ms.
 * RCL_RET_ERROR: no session (tide_rclc_last_status says why). */
rcl_ret_t rcl_init(int argc, char const *const *argv, const rcl_init_options_t *options, rcl_context_t *context);
/* Waits until published messages are acknowledged, at most the timeout of destroying objects (1 s, see
 * rmw_uros_set_context_entity_destroy_session_timeout), then closes the session. Objects that the program has not
 * finalised become invalid, and their memory is free. Spins of other threads return after the running callback. */
rcl_ret_t rcl_shutdown(rcl_context_t *context);

TIDE_EXTERN_C_END
#endif
