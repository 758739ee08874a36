/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"
#include "rmw_microros/rmw_microros.h"

#define DEFAULT_AGENT_HOST "127.0.0.1"
#define DEFAULT_AGENT_PORT 8888
#define DEFAULT_BAUD 115200
#define MTU_BYTES_LEAST 68 /* as of a session */

rmw_init_options_t tide_compat_default_options(void) {
  rmw_init_options_t options;
  memset(&options, 0, sizeof options);
  options.link = TIDE_LINK_UDP;
  options.link_is_free = true;
  memcpy(options.host, DEFAULT_AGENT_HOST, sizeof DEFAULT_AGENT_HOST);
  options.port = DEFAULT_AGENT_PORT;
  options.baud = DEFAULT_BAUD;
  return options;
}

rcl_init_options_t rcl_get_zero_initialized_init_options(void) {
  rcl_init_options_t options;
  memset(&options, 0, sizeof options);
  return options;
}

rcl_ret_t rcl_init_options_init(rcl_init_options_t *init_options, rcl_allocator_t allocator) {
  (void)allocator;
  if (init_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (init_options->initialized) return tide_compat_result(TIDE_ERROR_EXISTS);
  init_options->rmw = tide_compat_default_options();
  init_options->initialized = true;
  return RCL_RET_OK;
}

rcl_ret_t rcl_init_options_fini(rcl_init_options_t *init_options) {
  if (init_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *init_options = rcl_get_zero_initialized_init_options();
  return RCL_RET_OK;
}

rcl_ret_t rcl_init_options_get_domain_id(const rcl_init_options_t *init_options, size_t *domain_id) {
  if (init_options == NULL || domain_id == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *domain_id = init_options->rmw.domain_id;
  return RCL_RET_OK;
}

rcl_ret_t rcl_init_options_set_domain_id(rcl_init_options_t *init_options, size_t domain_id) {
  if (init_options == NULL || domain_id > 232) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  init_options->rmw.domain_id = domain_id;
  return RCL_RET_OK;
}

rmw_init_options_t *rcl_init_options_get_rmw_init_options(rcl_init_options_t *init_options) {
  return init_options == NULL ? NULL : &init_options->rmw;
}

static int parse_port(const char *text, uint16_t *port) {
  uint32_t value = 0;
  if (*text == '\0') return TIDE_ERROR_ARGUMENT;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return TIDE_ERROR_ARGUMENT;
    value = value * 10u + (uint32_t)(*text - '0');
    if (value > 65535u) return TIDE_ERROR_ARGUMENT;
  }
  *port = (uint16_t)value;
  return value == 0 ? TIDE_ERROR_ARGUMENT : TIDE_OK;
}

rmw_ret_t rmw_uros_options_set_udp_address(const char *ip, const char *port, rmw_init_options_t *rmw_options) {
  if (ip == NULL || port == NULL || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (strlen(ip) >= sizeof rmw_options->host) return tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  int status = parse_port(port, &rmw_options->port);
  if (status != TIDE_OK) return tide_compat_result(status);
  memcpy(rmw_options->host, ip, strlen(ip) + 1);
  rmw_options->link = TIDE_LINK_UDP;
  rmw_options->link_is_free = false;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_serial(rmw_init_options_t *options, const char *device, uint32_t baud) {
  if (options == NULL || device == NULL || baud == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->link = TIDE_LINK_SERIAL;
  options->link_is_free = false;
  options->device = device;
  options->baud = baud;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_link_priority(rmw_init_options_t *options, int priority) {
  if (options == NULL || priority < TIDE_LINK_PRIORITY_INHERIT) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->thread_priority = priority;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_busy_poll(rmw_init_options_t *options, int32_t limit_us) {
  const bool known = limit_us >= TIDE_BUSY_POLL_OFF && limit_us <= TIDE_BUSY_POLL_MAXIMUM_US;
  if (options == NULL || !known) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->busy_poll_us = limit_us;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_mtu(rmw_init_options_t *options, size_t bytes) {
  const bool fits = bytes >= MTU_BYTES_LEAST && bytes <= tide_pools.mtu_bytes;
  if (options == NULL || !fits) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->mtu_bytes = (uint16_t)bytes;
  return RMW_RET_OK;
}

rmw_ret_t rmw_uros_options_set_serial_device(const char *dev, rmw_init_options_t *rmw_options) {
  return tide_rclc_options_set_serial(rmw_options, dev, DEFAULT_BAUD);
}

rmw_ret_t rmw_uros_options_set_client_key(uint32_t client_key, rmw_init_options_t *rmw_options) {
  if (client_key == 0 || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rmw_options->client_key = client_key;
  return RMW_RET_OK;
}
