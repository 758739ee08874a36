/* SPDX-License-Identifier: Apache-2.0 */
/* Submessages from the agent. Those without a stream come from the reception handler, maybe an interrupt: they are
 * noted here and acted upon by poll. */
#include "internal.h"

static void on_status_agent(tide_session_t *session, const tide_xrce_header_t *header, tide_cdr_t *cdr) {
  tide_xrce_status_agent_t answer;
  tide_xrce_get_status_agent(cdr, &answer);
  if (cdr->status != TIDE_OK) {
    return;
  }
  const uintptr_t critical = session_enter(session);
  const bool awaited = session->state == TIDE_SESSION_CONNECTING || session->state == TIDE_SESSION_REFUSED;
  const bool ours = header->session == session->id || tide_xrce_is_error(answer.status);
  if (awaited && ours && session->attempts > 0u && !session->agent_answered) {
    session->agent_answered = true;
    session->agent_answer = answer;
    /* What follows belongs to the new session, although poll has not seen its beginning yet; what is late does not. */
    tide_receiver_reset(&session->daemon.receiver);
    if (!tide_xrce_is_error(answer.status)) {
      tide_receiver_set_session(&session->daemon.receiver, session->id, session->config.key);
    }
  }
  session_exit(session, critical);
}

static void on_get_info(tide_session_t *session, tide_cdr_t *cdr) {
  if (!TIDE_AGENT_QUESTIONS) return;
  tide_xrce_get_info_body_t body;
  tide_xrce_get_get_info(cdr, &body);
  if (cdr->status == TIDE_OK && body.request.object == TIDE_XRCE_OBJECT_CLIENT) {
    const uintptr_t critical = session_enter(session);
    session->info_due = true;
    session->info_request = body.request.request;
    session_exit(session, critical);
  }
}

static void on_reset(tide_session_t *session) {
  const uintptr_t critical = session_enter(session);
  session->agent_lost = session_is_up(session);
  session_exit(session, critical);
}

/* The agent has received what was never sent in this session: it goes on with an older one that had the same id, which
 * is that of this device before it was restarted. */
static void on_acknack(tide_session_t *session) {
  const uintptr_t critical = session_enter(session);
  session->agent_lost = session->agent_lost || (session_is_up(session) && session->daemon.out_of_step);
  session_exit(session, critical);
}

/* From wherever the reception handler runs: poll goes on with it, or whoever is in it now looks again. */
static void note_work(tide_session_t *session) {
  const uintptr_t critical = session_enter(session);
  session->work_noted = true;
  if (session->polling) {
    session->poll_again = true;
  } else {
    session->deadline_ns = session_now(session);
  }
  session_exit(session, critical);
}

static void on_answer(tide_session_t *session, const tide_delivery_t *delivery, tide_cdr_t *cdr) {
  tide_xrce_status_body_t status;
  tide_xrce_timestamp_reply_t reply;
  switch (delivery->submessage.id) {
    case TIDE_XRCE_STATUS:
      tide_xrce_get_status(cdr, &status);
      if (cdr->status == TIDE_OK) {
        tide_session_on_status(session, &status);
        note_work(session);
      }
      break;
    case TIDE_XRCE_INFO:
      tide_xrce_get_status(cdr, &status); /* an INFO begins like a STATUS, and the rest says nothing about us */
      if (cdr->status == TIDE_OK) {
        tide_session_on_info(session, &status, delivery->arrived_ns);
      }
      break;
    case TIDE_XRCE_TIMESTAMP_REPLY:
      if (!TIDE_TIME_SYNC) break;
      tide_xrce_get_timestamp_reply(cdr, &reply);
      if (cdr->status == TIDE_OK) {
        tide_session_on_timestamp_reply(session, &reply, delivery->arrived_ns);
      }
      break;
    case TIDE_XRCE_STATUS_AGENT:
      on_status_agent(session, &delivery->header, cdr);
      break;
    case TIDE_XRCE_GET_INFO:
      on_get_info(session, cdr);
      break;
    case TIDE_XRCE_RESET:
      on_reset(session);
      break;
    case TIDE_XRCE_ACKNACK:
      on_acknack(session);
      break;
    default: /* HEARTBEAT is the daemon's; others are for agents */
      break;
  }
}

static tide_cdr_t reader_of(const tide_xrce_submessage_t *submessage) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                  (submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0u);
  return cdr;
}

void tide_session_on_control(void *context, const tide_delivery_t *delivery) {
  tide_cdr_t cdr = reader_of(&delivery->submessage);
  on_answer(context, delivery, &cdr);
}

void tide_session_on_submessage(void *context, const tide_delivery_t *delivery) {
  tide_session_t *session = context;
  if (delivery->submessage.id == TIDE_XRCE_DATA) {
    tide_session_on_data(session, delivery);
    return;
  }
  tide_cdr_t cdr = reader_of(&delivery->submessage);
  on_answer(session, delivery, &cdr);
  tide_session_kick(session);
}
