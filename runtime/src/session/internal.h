/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the session share. "Locked" functions run with the critical section held, and are short; all
 * others take it themselves and must be called without it. */
#ifndef TIDE_SESSION_INTERNAL_H
#define TIDE_SESSION_INTERNAL_H

#include "tide/invariant.h"
#include "tide/session.h"
#include "tide/status.h"

enum {
  SESSION_REQUEST_DELETE_CLIENT = 2,
  SESSION_REQUEST_FIRST = 10,
  SESSION_CLOSE_ATTEMPTS = 4,
  /* A new session starts new streams, so what the agent has but could not acknowledge any more comes twice. An agent
   * that was restarted says so at the first question; only one that is silent is given time, for a cable to be put
   * back. */
  SESSION_PINGS_UNANSWERED_MAXIMUM = 8,
  SESSION_HEARTBEATS_UNANSWERED_SUSPICIOUS = 3,
  SESSION_RETRY_FULL_NS = 5000000 /* when there was no node: try again so much later */
};
/* Signs of life are short and rare, and must get through a saturated link: otherwise a busy client would take its
 * agent for dead. */
#define SESSION_CONTROL_PRIORITY TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, 0xFFu)
#define SESSION_OWN_ID TIDE_XRCE_SESSION_ANY /* tide_daemon_submit_control: the session that was set */
#define SESSION_ANNOUNCED_LESS_BYTES 4u      /* than the MTU: what the agent is told that a message may have */

static inline uintptr_t session_enter(tide_session_t *session) {
  const tide_platform_t *platform = session->config.daemon.platform;
  return tide_platform_enter(platform);
}
static inline void session_exit(tide_session_t *session, uintptr_t state) {
  const tide_platform_t *platform = session->config.daemon.platform;
  tide_platform_exit(platform, state);
}
static inline int64_t session_now(tide_session_t *session) {
  const tide_platform_t *platform = session->config.daemon.platform;
  return tide_platform_now_ns(platform);
}
static inline bool session_is_up(const tide_session_t *session) {
  return session->state == TIDE_SESSION_CREATING || session->state == TIDE_SESSION_READY;
}
static inline int64_t session_earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* session.c */
void tide_session_changed(tide_session_t *session); /* wake who waits */
/* From the daemon. */
void tide_session_on_activity(void *context);
void tide_session_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome);
/* Move on now, in the caller's context, and have poll called soon. */
void tide_session_kick(tide_session_t *session);
int64_t tide_session_poll_daemon(tide_session_t *session); /* when the session is to be polled again */

/* rest.c */
bool tide_session_has_suspicion_locked(const tide_session_t *session);

/* requests.c */
uint16_t tide_session_next_request_locked(tide_session_t *session);
/* A control submessage of one request body, at once. */
typedef void (*session_put_t)(tide_cdr_t *cdr, const void *body);
int tide_session_send_control(tide_session_t *session, uint8_t id, session_put_t put, const void *body, uint8_t header,
                              tide_priority_t priority);
/* A submessage on the object stream, in three steps, so that the body can be encoded from shared state with the
 * critical section held, while the node comes and goes without. TIDE_ERROR_FULL: no node now. */
int tide_session_acquire_request(tide_session_t *session, size_t body_bytes, tide_node_t **node);
int tide_session_encode_request(tide_node_t *node, uint8_t id, uint8_t flags, session_put_t put, const void *body);
int tide_session_submit_request(tide_session_t *session, tide_node_t *node);
int tide_session_send_request(tide_session_t *session, uint8_t id, session_put_t put, const void *body); /* all three */
size_t tide_session_measure(session_put_t put, const void *body);
/* Room that a request of so many body bytes will need: the reserve is made at least as large. */
int tide_session_plan_request(tide_session_t *session, size_t body_bytes);
bool tide_session_has_reserve_locked(const tide_session_t *session); /* or no request is planned */
/* True when the reserve is there or not needed. */
bool tide_session_keep_reserve(tide_session_t *session);
void tide_session_drop_reserve(tide_session_t *session);

/* objects.c */
tide_object_t *tide_session_find_object_locked(const tide_session_t *session, uint16_t id);
void tide_session_forget_objects_locked(tide_session_t *session); /* all wait again */
int64_t tide_session_create_objects(tide_session_t *session, int64_t now_ns);
void tide_session_on_status(tide_session_t *session, const tide_xrce_status_body_t *status);

/* readers.c */
/* A frame has come for it: the oldest of its queue gives way if more wait than it keeps. */
void tide_session_give_way_locked(tide_session_t *session, tide_reader_t *reader);
int64_t tide_session_ask_readers(tide_session_t *session, int64_t now_ns);
void tide_session_forget_readers_locked(tide_session_t *session);
bool tide_session_status_of_reader_locked(tide_session_t *session, const tide_xrce_status_body_t *status);
int32_t tide_session_priority_of(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account);

/* samples.c */
void tide_session_on_data(tide_session_t *session, const tide_delivery_t *delivery);
tide_reader_t *tide_session_find_reader_locked(const tide_session_t *session, tide_xrce_request_t request);
void tide_session_release_samples(tide_session_t *session, tide_reader_t *reader);

/* write.c */
void tide_session_hold_locked(tide_session_t *session, tide_node_t *node);
/* Submit what is held and may go. True when nothing is held any more. */
bool tide_session_release_held(tide_session_t *session);
void tide_session_discard_held(tide_session_t *session);
/* Unacknowledged samples come back from the streams, to the front of what is held. */
void tide_session_take_back(tide_session_t *session);

/* control.c */
void tide_session_on_control(void *context, const tide_delivery_t *delivery);
void tide_session_on_submessage(void *context, const tide_delivery_t *delivery);

/* ping.c */
int64_t tide_session_answer_limit_ns(const tide_session_t *session);
int64_t tide_session_check_liveness(tide_session_t *session, int64_t now_ns);
void tide_session_on_info(tide_session_t *session, const tide_xrce_status_body_t *info, int64_t arrived_ns);

/* time_sync.c */
void tide_session_on_timestamp_reply(tide_session_t *session, const tide_xrce_timestamp_reply_t *reply,
                                     int64_t arrived_ns);

#endif
