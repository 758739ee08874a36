/* SPDX-License-Identifier: Apache-2.0 */
/* The agent of this network, without its address. */
#include "internal.h"
#include "rmw_microros/rmw_microros.h"
#include "tide/port.h"
#include "tide/xrce.h"

#define TIMEOUT_MS 1000 /* as the stock: one question */

#if TIDE_SOCKETS
static int discover(rmw_init_options_t *options) {
  uint16_t port = 0;
  const int status = tide_port_discover_agent(TIDE_XRCE_DISCOVERY_PORT, TIMEOUT_MS, options->host, &port);
  if (status != TIDE_OK) return status;
  options->port = port;
  options->link = TIDE_LINK_UDP;
  options->link_is_free = false;
  return TIDE_OK;
}
#else
static int discover(rmw_init_options_t *options) {
  (void)options;
  return TIDE_ERROR_UNSUPPORTED;
}
#endif

rmw_ret_t rmw_uros_discover_agent(rmw_init_options_t *rmw_options) {
  return tide_compat_result(rmw_options == NULL ? TIDE_ERROR_ARGUMENT : discover(rmw_options));
}
