/* SPDX-License-Identifier: Apache-2.0 */
/* The same for services and clients, apart from programs without them. */
#include "internal.h"
#include "rmw_microros/timing.h"

rmw_service_t *rcl_service_get_rmw_handle(const rcl_service_t *service) {
  return rcl_service_is_valid(service) ? (rmw_service_t *)(void *)service->impl : NULL;
}

rmw_client_t *rcl_client_get_rmw_handle(const rcl_client_t *client) {
  return rcl_client_is_valid(client) ? (rmw_client_t *)(void *)client->impl : NULL;
}

static rmw_ret_t set_wait(tide_service_end_t *end, int session_timeout) {
  if (end == NULL || end->support == NULL || session_timeout < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  end->wait_ms = session_timeout;
  return RMW_RET_OK;
}

rmw_ret_t rmw_uros_set_client_session_timeout(rmw_client_t *client, int session_timeout) {
  return set_wait((tide_service_end_t *)(void *)client, session_timeout);
}

rmw_ret_t rmw_uros_set_service_session_timeout(rmw_service_t *service, int session_timeout) {
  return set_wait((tide_service_end_t *)(void *)service, session_timeout);
}
