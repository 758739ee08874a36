/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is before its first step: its settings checked, what they leave out, and its daemon. */
#include <string.h>

#include "internal.h"

#define NS_PER_S INT64_C(1000000000)
#define CREATIONS_AT_ONCE_DEFAULT 4u
#define MTU_BYTES_MINIMUM 68u

static void set_defaults(tide_session_config_t *config) {
  if (config->vendor == 0u) {
    config->vendor = TIDE_XRCE_VENDOR;
  }
  if (config->object_stream == 0u) {
    config->object_stream = TIDE_RELIABLE_STREAMS ? TIDE_STREAM_RELIABLE(0) : TIDE_STREAM_BEST_EFFORT(0);
  }
  if (config->create_flags == 0u) {
    config->create_flags = TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE;
  }
  if (config->creations_at_once == 0u) {
    config->creations_at_once = CREATIONS_AT_ONCE_DEFAULT;
  }
  if (!TIDE_STREAM_IS_RELIABLE(config->object_stream)) { /* a child must not overtake its parent's repeat */
    config->creations_at_once = 1;
  }
  config->connect_period_ns = config->connect_period_ns == 0 ? NS_PER_S : config->connect_period_ns;
  config->request_period_ns = config->request_period_ns == 0 ? NS_PER_S : config->request_period_ns;
  config->silence_limit_ns = config->silence_limit_ns == 0 ? NS_PER_S : config->silence_limit_ns;
}

static bool is_usable(const tide_session_config_t *config) {
  return (TIDE_STATIC_PLATFORM || config->daemon.platform != NULL) && config->key != 0u &&
         config->mtu >= MTU_BYTES_MINIMUM && !tide_xrce_is_no_session(config->session) &&
         config->session != TIDE_XRCE_SESSION_ANY && (config->objects != NULL || config->object_count == 0u) &&
         config->connect_period_ns >= 0 && config->request_period_ns >= 0 && config->silence_limit_ns >= 0 &&
         config->daemon.receiver.slot_bytes + SESSION_ANNOUNCED_LESS_BYTES >= config->mtu;
}

int tide_session_init(tide_session_t *session, const tide_session_config_t *config) {
  if (TIDE_CONFIG_CHECKS && (session == NULL || config == NULL || !is_usable(config))) {
    return TIDE_ERROR_ARGUMENT;
  }
  memset(session, 0, sizeof *session);
  session->ping_round_trip_ns = -1;
  session->config = *config;
  session->id = config->session;
  session->next_request = SESSION_REQUEST_FIRST;
  session->ping_request = SESSION_REQUEST_FIRST;
  session->deadline_ns = TIDE_FOREVER;
  set_defaults(&session->config);
  tide_daemon_config_t *const daemon = &session->config.daemon;
  if (!TIDE_STATIC_SESSION) {
    daemon->receiver.context = session;
    daemon->receiver.priority_of = tide_session_priority_of;
    daemon->receiver.on_submessage = tide_session_on_submessage;
    daemon->receiver.on_control = tide_session_on_control;
  }
  const int status = tide_daemon_init(&session->daemon, daemon);
  if (status == TIDE_OK) {
    if (!TIDE_STATIC_SESSION) { /* it hears first, and tells the program */
      session->daemon.owner.on_activity = tide_session_on_activity;
      session->daemon.owner.on_done = tide_session_on_done;
      session->daemon.owner.context = session;
    }
    tide_platform_event_init(daemon->platform, &session->changed);
    tide_daemon_set_session(&session->daemon, session->id, session->config.key);
  }
  return status;
}
