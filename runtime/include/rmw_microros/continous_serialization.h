/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__CONTINOUS_SERIALIZATION_H_
#define RMW_MICROROS__CONTINOUS_SERIALIZATION_H_

#include "rmw/types.h"
#include "ucdr/microcdr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds to *topic_length, the octets of the serialised message, those that the other callback will write. */
typedef void (*rmw_uros_continous_serialization_size)(uint32_t *topic_length);
/* Writes as many octets behind the message, by the functions of ucdr/microcdr.h. */
typedef void (*rmw_uros_continous_serialization)(ucdrBuffer *ucdr);

/* From the next rcl_publish on what this publisher sends is the message and then what serialization_cb writes; null for
 * both: the message alone again. Where the message ends in an empty sequence, its count is the last four octets before
 * ucdr->iterator: write the true one there.
 *
 * What fits one node of the pool is published as ever. What is longer leaves while serialization_cb writes, needs a
 * reliable publisher, and makes rcl_publish wait until the agent has all of it, for at most the publisher's session
 * timeout without progress (RCL_RET_ERROR; rmw_uros_set_publisher_session_timeout). Then, or when fewer octets were
 * written than announced, none of it is delivered and the session begins anew (tide/long_write.h); a new session lets
 * serialization_cb run to its end without effect (ucdr->error). The message itself must fit one node.
 *
 * For TIDE_CONTINUOUS_PUBLISHERS publishers at a time (4, when the runtime is built); further ones cannot publish
 * (RCL_RET_BAD_ALLOC). While this publisher does not publish. */
void rmw_uros_set_continous_serialization_callbacks(rmw_publisher_t *publisher,
                                                    rmw_uros_continous_serialization_size size_cb,
                                                    rmw_uros_continous_serialization serialization_cb);

#ifdef __cplusplus
}
#endif
#endif
