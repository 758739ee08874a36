/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__TIMING_H_
#define RMW_MICROROS__TIMING_H_

#include "rmw/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long a publish waits for a place at most: 0 or more; default 1,000, best effort 0. The wire is waited for with
 * TIDE_SEND_STOCK only, as long for each reliable message. */
rmw_ret_t rmw_uros_set_publisher_session_timeout(rmw_publisher_t *publisher, int session_timeout);
/* How long rcl_send_request, or the program's own rcl_send_response, waits for a place at most (the wire is never
 * waited for): 0 or more; default 0. A response that an executor sends after its callback waits for its place by
 * itself. */
rmw_ret_t rmw_uros_set_client_session_timeout(rmw_client_t *client, int session_timeout);
rmw_ret_t rmw_uros_set_service_session_timeout(rmw_service_t *service, int session_timeout);
/* How long creating (destroying) an object may wait for the agent's answer. */
rmw_ret_t rmw_uros_set_context_entity_creation_session_timeout(rmw_context_t *context, int session_timeout);
rmw_ret_t rmw_uros_set_context_entity_destroy_session_timeout(rmw_context_t *context, int session_timeout);

#ifdef __cplusplus
}
#endif
#endif
