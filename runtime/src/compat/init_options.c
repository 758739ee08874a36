/* SPDX-License-Identifier: Apache-2.0 */
/* Further ways to say how the agent is reached. */
#include "internal.h"
#include "rmw_microros/rmw_microros.h"

rmw_ret_t rmw_uros_init_options(int argc, const char *const argv[], rmw_init_options_t *rmw_options) {
  if (argv == NULL || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (argc == 3) return rmw_uros_options_set_udp_address(argv[1], argv[2], rmw_options);
  if (argc == 2) return rmw_uros_options_set_serial_device(argv[1], rmw_options);
  return tide_compat_result(TIDE_ERROR_ARGUMENT);
}

rmw_ret_t rmw_uros_options_set_custom_transport(bool framing, void *args, open_custom_func open_cb,
                                                close_custom_func close_cb, write_custom_func write_cb,
                                                read_custom_func read_cb, rmw_init_options_t *rmw_options) {
  if (rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rmw_ret_t result = rmw_uros_set_custom_transport(framing, args, open_cb, close_cb, write_cb, read_cb);
  if (result != RMW_RET_OK) return result;
  rmw_options->link = TIDE_LINK_CUSTOM;
  rmw_options->link_is_free = false;
  return RMW_RET_OK;
}
