/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__CUSTOM_TRANSPORT_H_
#define RMW_MICROROS__CUSTOM_TRANSPORT_H_

#include "rmw/types.h"
#include "uxr/client/transport.h"

TIDE_EXTERN_C_BEGIN

/* Value of `framing` below. */
#define MICROROS_TRANSPORTS_FRAMING_MODE 1
#define MICROROS_TRANSPORTS_PACKET_MODE 0

/* Each rclc support that is initialised from now on reaches the agent through these functions. framing: serial stream
 * framing around each message, for byte streams. Without framing each write and read moves one whole message. */
rmw_ret_t rmw_uros_set_custom_transport(bool framing, void *args, open_custom_func open_cb, close_custom_func close_cb,
                                        write_custom_func write_cb, read_custom_func read_cb);
/* Sets the functions for these options only. The options then use this transport, whatever else is set. There is one
 * custom transport at a time. */
rmw_ret_t rmw_uros_options_set_custom_transport(bool framing, void *args, open_custom_func open_cb,
                                                close_custom_func close_cb, write_custom_func write_cb,
                                                read_custom_func read_cb, rmw_init_options_t *rmw_options);

TIDE_EXTERN_C_END
#endif
