/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__TIMING_H_
#define RMW_MICROROS__TIMING_H_

#include "rmw/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long creating (destroying) an object may wait for the agent's answer. */
rmw_ret_t rmw_uros_set_context_entity_creation_session_timeout(rmw_context_t *context, int session_timeout);
rmw_ret_t rmw_uros_set_context_entity_destroy_session_timeout(rmw_context_t *context, int session_timeout);

#ifdef __cplusplus
}
#endif
#endif
