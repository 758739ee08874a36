/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__PING_H_
#define RMW_MICROROS__PING_H_

#include "rmw/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Asks the agent for a sign of life, attempts times for timeout_ms each. Within a live session this costs one small
 * message and disturbs nothing; without one the link is opened for the time of the call. From any thread, also while an
 * executor spins. RMW_RET_ERROR: no answer. */
rmw_ret_t rmw_uros_ping_agent(const int timeout_ms, const uint8_t attempts);
rmw_ret_t rmw_uros_ping_agent_options(const int timeout_ms, const uint8_t attempts, rmw_init_options_t *rmw_options);

#ifdef __cplusplus
}
#endif
#endif
