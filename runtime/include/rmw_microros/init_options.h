/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__INIT_OPTIONS_H_
#define RMW_MICROROS__INIT_OPTIONS_H_

#include "rmw/init_options.h"

TIDE_EXTERN_C_BEGIN

/* Sets the link from command-line arguments: an address and a port, or a serial device. RMW_RET_INVALID_ARGUMENT: the
 * arguments contain neither. */
rmw_ret_t rmw_uros_init_options(int argc, const char *const argv[], rmw_init_options_t *rmw_options);
rmw_ret_t rmw_uros_options_set_udp_address(const char *ip, const char *port, rmw_init_options_t *rmw_options);
rmw_ret_t rmw_uros_options_set_serial_device(const char *dev, rmw_init_options_t *rmw_options);
rmw_ret_t rmw_uros_options_set_client_key(uint32_t client_key, rmw_init_options_t *rmw_options);

TIDE_EXTERN_C_END
#endif
