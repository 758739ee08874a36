/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__PING_H_
#define RMW_MICROROS__PING_H_

#include "rmw/types.h"

TIDE_EXTERN_C_BEGIN

/* Pings the agent, `attempts` times with timeout_ms each. Within a live session this costs one small message; without a
 * session the link is opened during the call. Any thread may call it, also while an executor spins. RMW_RET_ERROR: no
 * answer. */
rmw_ret_t rmw_uros_ping_agent(const int timeout_ms, const uint8_t attempts);
rmw_ret_t rmw_uros_ping_agent_options(const int timeout_ms, const uint8_t attempts, rmw_init_options_t *rmw_options);

TIDE_EXTERN_C_END
#endif
