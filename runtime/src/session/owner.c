/* SPDX-License-Identifier: Apache-2.0 */
/* The session as the owner that its daemon calls by name. */
#include "internal.h"

#if TIDE_STATIC_SESSION

_Static_assert(offsetof(tide_session_t, daemon) + sizeof(tide_daemon_t) <= sizeof(tide_session_t),
               "a daemon lies in its session");

static tide_session_t *session_of(tide_daemon_t *daemon) {
  return (tide_session_t *)(void *)((uint8_t *)daemon - offsetof(tide_session_t, daemon));
}

int32_t tide_daemon_owner_priority_of(tide_daemon_t *daemon, uint8_t stream, tide_xrce_request_t request,
                                      tide_account_t **account) {
  return tide_session_priority_of(session_of(daemon), stream, request, account);
}

void tide_daemon_owner_on_submessage(tide_daemon_t *daemon, const tide_delivery_t *delivery) {
  tide_session_on_submessage(session_of(daemon), delivery);
}

void tide_daemon_owner_on_control(tide_daemon_t *daemon, const tide_delivery_t *delivery) {
  tide_session_on_control(session_of(daemon), delivery);
}

void tide_daemon_owner_on_activity(tide_daemon_t *daemon) { tide_session_on_activity(session_of(daemon)); }

void tide_daemon_owner_on_done(tide_daemon_t *daemon, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_session_on_done(session_of(daemon), node, outcome);
}

#endif
