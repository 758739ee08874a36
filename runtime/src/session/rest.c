/* SPDX-License-Identifier: Apache-2.0 */
/* A session that rests: all objects are there, nothing is held, and nobody has left a note. */
#include "internal.h"

/* Some stream's heartbeats stay unanswered, even if frames still arrive: only an INFO clears that up. */
bool tide_session_has_suspicion_locked(const tide_session_t *session) {
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  for (size_t i = 0; TIDE_RELIABLE_STREAMS && i < config->stream_count; ++i) {
    const tide_output_stream_t *stream = &config->streams[i];
    if (stream->id != 0u && stream->heartbeats_unanswered >= SESSION_HEARTBEATS_UNANSWERED_SUSPICIOUS) {
      return true;
    }
  }
  return false;
}

static bool has_requests_locked(const tide_session_t *session) {
  const bool lacks_reserve = session->reserve_needed && !tide_session_has_reserve_locked(session);
  return session->objects_unanswered > 0u || session->readers_waiting || session->held_first != NULL || lacks_reserve;
}

static bool has_notes_locked(const tide_session_t *session) {
  return session->polling || session->agent_lost || session->info_due;
}

/* Everything that tide_session_poll would look at, beside the daemon. */
static bool rests_locked(const tide_session_t *session, int64_t now_ns) {
  return session->state == TIDE_SESSION_READY && now_ns < session->deadline_ns && !has_notes_locked(session) &&
         !has_requests_locked(session) && !tide_session_has_suspicion_locked(session);
}

int64_t tide_session_poll_received(tide_session_t *session) {
  const int64_t now_ns = session_now(session);
  uintptr_t critical = session_enter(session);
  const bool rests = rests_locked(session, now_ns);
  session_exit(session, critical);
  if (!rests) {
    return tide_session_poll(session);
  }
  return tide_session_poll_daemon(session);
}
