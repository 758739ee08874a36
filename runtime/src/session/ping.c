/* SPDX-License-Identifier: Apache-2.0 */
/* Is the agent there, and does it know us? One GET_INFO at a time, for the program and for the liveness check alike. */
#include "internal.h"

#define INFO_ACTIVITY 2u
#define PING_REQUEST_USUAL 10u /* what the stock client uses */
#define PING_REQUEST_LEAST 3u

_Static_assert(PING_REQUEST_LEAST > SESSION_REQUEST_DELETE_CLIENT && PING_REQUEST_USUAL <= SESSION_REQUEST_FIRST,
               "pings use ids that no counted request has");

static void put_get_info(tide_cdr_t *cdr, const void *body) { tide_xrce_put_get_info(cdr, body); }

static uint8_t header_session(const tide_session_t *session) {
  return session_is_up(session) || session->state == TIDE_SESSION_CLOSING ? SESSION_OWN_ID
                                                                          : TIDE_XRCE_SESSION_NONE_WITHOUT_KEY;
}

static int send_ping(tide_session_t *session, int64_t now_ns) {
  uintptr_t critical = session_enter(session);
  if (session->ping_under_way) { /* unanswered so far: its late answer must not count for this one */
    session->ping_request = session->ping_request > PING_REQUEST_LEAST ? (uint16_t)(session->ping_request - 1u)
                                                                       : (uint16_t)PING_REQUEST_USUAL;
  }
  TIDE_INVARIANT(session->ping_request >= PING_REQUEST_LEAST && session->ping_request <= PING_REQUEST_USUAL);
  session->ping_under_way = true;
  session->ping_sent_ns = now_ns;
  TIDE_COUNT(session->counters.pings, 1u);
  const tide_xrce_get_info_body_t body = {{session->ping_request, TIDE_XRCE_OBJECT_AGENT}, INFO_ACTIVITY};
  const uint8_t header = header_session(session);
  session_exit(session, critical);
  return tide_session_send_control(session, TIDE_XRCE_GET_INFO, put_get_info, &body, header, SESSION_CONTROL_PRIORITY);
}

int tide_session_ping(tide_session_t *session) {
  if (session == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  const uintptr_t critical = session_enter(session);
  session->ping_asked = true;
  session->ping_round_trip_ns = -1;
  session_exit(session, critical);
  const int status = send_ping(session, session_now(session));
  tide_session_kick(session);
  return status;
}

void tide_session_on_info(tide_session_t *session, const tide_xrce_status_body_t *info, int64_t arrived_ns) {
  const uintptr_t critical = session_enter(session);
  if (session->ping_under_way && info->related.object == TIDE_XRCE_OBJECT_AGENT &&
      info->related.request == session->ping_request) {
    session->ping_under_way = session->ping_asked = false;
    session->ping_request = PING_REQUEST_USUAL;
    session->ping_round_trip_ns = arrived_ns - session->ping_sent_ns;
    session->ping_answers++;
    session->unanswered_pings = 0;
    session->info_knows_us = info->implementation_status == 1u;
    session->agent_lost = session->agent_lost || (session_is_up(session) && !session->info_knows_us);
  }
  session_exit(session, critical);
  tide_session_changed(session);
}

/* How long a question waits for its answer. */
int64_t tide_session_answer_limit_ns(const tide_session_t *session) {
  return (int64_t)((uint64_t)session->config.silence_limit_ns / 2u);
}

/* What to do about a question that is under way. */
typedef enum verdict { LIVENESS_WAIT, LIVENESS_ASK, LIVENESS_LOST, LIVENESS_REST } verdict_t;

static verdict_t judge_question_locked(tide_session_t *session, int64_t heard_ns, bool suspicious, bool rested) {
  if (!rested) {
    return LIVENESS_WAIT;
  }
  const bool frames_come = heard_ns > session->ping_sent_ns;
  const bool well = frames_come && !suspicious;
  session->unanswered_pings = well ? 0u : (uint8_t)(session->unanswered_pings + 1u);
  if (well && !session->ping_asked) {
    session->ping_under_way = false;
    return LIVENESS_REST;
  }
  if (session->unanswered_pings < SESSION_PINGS_UNANSWERED_MAXIMUM) {
    return LIVENESS_ASK;
  }
  session->ping_under_way = false;
  session->agent_lost = true;
  return LIVENESS_LOST;
}

static verdict_t judge_locked(tide_session_t *session, int64_t now_ns, int64_t heard_ns, bool suspicious) {
  const bool rested = now_ns - session->ping_sent_ns >= tide_session_answer_limit_ns(session);
  if (session->ping_under_way) {
    const verdict_t verdict = judge_question_locked(session, heard_ns, suspicious, rested);
    if (verdict != LIVENESS_REST) {
      return verdict;
    }
  }
  const bool silent = now_ns - heard_ns >= session->config.silence_limit_ns;
  return silent || (suspicious && rested) ? LIVENESS_ASK : LIVENESS_REST;
}

int64_t tide_session_check_liveness(tide_session_t *session, int64_t now_ns) {
  const uintptr_t critical = session_enter(session);
  const bool suspicious = tide_session_has_suspicion_locked(session);
  const int64_t received_ns = session->daemon.last_received_ns;
  const int64_t heard_ns = received_ns > session->state_since_ns ? received_ns : session->state_since_ns;
  const int64_t asked_ns = session->ping_sent_ns;
  const verdict_t verdict = judge_locked(session, now_ns, heard_ns, suspicious);
  session_exit(session, critical);
  switch (verdict) {
    case LIVENESS_ASK:
      (void)send_ping(session, now_ns);
      return now_ns + tide_session_answer_limit_ns(session);
    case LIVENESS_WAIT:
      return asked_ns + tide_session_answer_limit_ns(session);
    case LIVENESS_LOST:
      return now_ns;
    case LIVENESS_REST:
    default:
      return heard_ns + session->config.silence_limit_ns;
  }
}
