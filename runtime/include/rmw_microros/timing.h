/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__TIMING_H_
#define RMW_MICROROS__TIMING_H_

#include "rmw/types.h"

TIDE_EXTERN_C_BEGIN

/* Longest wait of a publish for a free pool buffer: 0 or more; default 1,000, best effort 0. With TIDE_SEND_STOCK a
 * reliable publish also waits for the acknowledgment, with the same limit. */
rmw_ret_t rmw_uros_set_publisher_session_timeout(rmw_publisher_t *publisher, int session_timeout);
/* Longest wait of rcl_send_request, or of the program's own rcl_send_response, for a free pool buffer (never for the
 * wire): 0 or more; default 0. A response that an executor sends after its callback waits without blocking. */
rmw_ret_t rmw_uros_set_client_session_timeout(rmw_client_t *client, int session_timeout);
rmw_ret_t rmw_uros_set_service_session_timeout(rmw_service_t *service, int session_timeout);
/* Longest wait for the agent's answer when an object is created or destroyed. */
rmw_ret_t rmw_uros_set_context_entity_creation_session_timeout(rmw_context_t *context, int session_timeout);
rmw_ret_t rmw_uros_set_context_entity_destroy_session_timeout(rmw_context_t *context, int session_timeout);

TIDE_EXTERN_C_END
#endif
