/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__DISCOVERY_H_
#define RMW_MICROROS__DISCOVERY_H_

#include "rmw/types.h"

TIDE_EXTERN_C_BEGIN

/* Searches this network for an agent (UDP, group 239.255.0.2, port 7400; tide-agent --discovery 7400). Waits one second
 * for the first agent that answers; the options then have its address. Any host on the network can answer.
 * RMW_RET_TIMEOUT: no answer, and the options are unchanged. RMW_RET_UNSUPPORTED: a board without sockets. */
rmw_ret_t rmw_uros_discover_agent(rmw_init_options_t *rmw_options);

TIDE_EXTERN_C_END
#endif
