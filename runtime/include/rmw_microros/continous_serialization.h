/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__CONTINOUS_SERIALIZATION_H_
#define RMW_MICROROS__CONTINOUS_SERIALIZATION_H_

#include "rmw/types.h"
#include "ucdr/microcdr.h"

TIDE_EXTERN_C_BEGIN

/* Increases *topic_length, the length of the serialised message, by the number of octets that the other callback will
 * append. */
typedef void (*rmw_uros_continous_serialization_size)(uint32_t *topic_length);
/* Appends the announced number of octets to the message, with the functions of ucdr/microcdr.h. */
typedef void (*rmw_uros_continous_serialization)(ucdrBuffer *ucdr);

/* From the next rcl_publish on, this publisher sends the message followed by the output of serialization_cb. Null for
 * both callbacks: the publisher sends the message alone again. If the message ends in an empty sequence, the sequence's
 * count is the last four octets before ucdr->iterator: write the true count there.
 *
 * A sample that fits one pool buffer (node) is published as usual. A longer sample needs a reliable publisher. It is
 * sent while serialization_cb writes it, and rcl_publish returns when the agent has acknowledged all of it. rcl_publish
 * returns RCL_RET_ERROR if fewer octets were written than announced, or after the publisher's session timeout without
 * progress (rmw_uros_set_publisher_session_timeout). Then nothing is delivered and the session starts anew
 * (tide/long_write.h). If the session is lost meanwhile, serialization_cb runs to its end without effect (ucdr->error).
 * The message itself must fit one node.
 *
 * At most TIDE_CONTINUOUS_PUBLISHERS publishers at a time can use this (4; set when the runtime is built). Further
 * publishers cannot publish (RCL_RET_BAD_ALLOC). Call it while this publisher does not publish. */
void rmw_uros_set_continous_serialization_callbacks(rmw_publisher_t *publisher,
                                                    rmw_uros_continous_serialization_size size_cb,
                                                    rmw_uros_continous_serialization serialization_cb);

TIDE_EXTERN_C_END
#endif
