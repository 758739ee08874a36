/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

enum { WAIT_GOES_ON = 1 };

typedef struct wait_for {
  tide_session_t *session;
  tide_session_state_t state;
  tide_object_t *object;
  uint8_t stream;
} wait_for_t;

static int refusal_of(const tide_session_t *session) {
  if (session->state != TIDE_SESSION_REFUSED) {
    return WAIT_GOES_ON;
  }
  return session->refusal == TIDE_XRCE_STATUS_ERR_INCOMPATIBLE ? TIDE_ERROR_VERSION : TIDE_ERROR_REFUSED;
}

static int check_state(const wait_for_t *wait) {
  return wait->session->state == wait->state ? TIDE_OK : refusal_of(wait->session);
}

static int check_object(const wait_for_t *wait) {
  switch (wait->object->state) {
    case TIDE_OBJECT_CREATED:
      return TIDE_OK;
    case TIDE_OBJECT_REFUSED:
      return TIDE_ERROR_REFUSED;
    case TIDE_OBJECT_REMOVED:
      return TIDE_ERROR_NOT_FOUND;
    default:
      return refusal_of(wait->session);
  }
}

static int check_ping(const wait_for_t *wait) { return wait->session->ping_asked ? WAIT_GOES_ON : TIDE_OK; }
static int check_synchronised(const wait_for_t *wait) {
  return wait->session->time_sync_under_way ? WAIT_GOES_ON : TIDE_OK;
}
static int check_idle(const wait_for_t *wait) {
  return tide_session_is_idle(wait->session, wait->stream) ? TIDE_OK : WAIT_GOES_ON;
}

static void process_frames(tide_session_t *session) {
  while (tide_daemon_most_urgent(&session->daemon) != TIDE_PRIORITY_NONE) {
    (void)tide_daemon_process_most_urgent(&session->daemon);
  }
}

static int check_locked(const wait_for_t *wait, int (*check)(const wait_for_t *wait)) {
  const uintptr_t critical = session_enter(wait->session);
  const int status = check(wait);
  session_exit(wait->session, critical);
  return status;
}

static void set_waiting(tide_session_t *session, bool waiting) {
  const uintptr_t critical = session_enter(session);
  __atomic_store_n(&session->waiting, waiting, __ATOMIC_RELAXED);
  session_exit(session, critical);
}

static int wait_until(const wait_for_t *wait, int (*check)(const wait_for_t *wait), int64_t deadline_ns,
                      const tide_pump_t *pump) {
  tide_session_t *session = wait->session;
  int status = WAIT_GOES_ON;
  set_waiting(session, true);
  while (status == WAIT_GOES_ON) {
    const int64_t next_ns = session_earlier(tide_session_poll(session), deadline_ns);
    process_frames(session);
    status = check_locked(wait, check);
    if (status == WAIT_GOES_ON && session_now(session) >= deadline_ns) {
      status = TIDE_ERROR_TIMEOUT;
    } else if (status == WAIT_GOES_ON && pump != NULL) {
      pump->run(pump->context, next_ns);
    } else if (status == WAIT_GOES_ON) {
      (void)tide_daemon_wait(&session->daemon, &session->changed, next_ns);
    }
  }
  set_waiting(session, false);
  return status;
}

int tide_session_wait_state(tide_session_t *session, tide_session_state_t state, int64_t deadline_ns,
                            const tide_pump_t *pump) {
  const wait_for_t wait = {.session = session, .state = state};
  return wait_until(&wait, check_state, deadline_ns, pump);
}

int tide_session_wait_object(tide_session_t *session, tide_object_t *object, int64_t deadline_ns,
                             const tide_pump_t *pump) {
  const wait_for_t wait = {.session = session, .object = object};
  return wait_until(&wait, check_object, deadline_ns, pump);
}

int tide_session_wait_ping(tide_session_t *session, int64_t deadline_ns, const tide_pump_t *pump) {
  const wait_for_t wait = {.session = session};
  return wait_until(&wait, check_ping, deadline_ns, pump);
}

int tide_session_wait_synchronised(tide_session_t *session, int64_t deadline_ns, const tide_pump_t *pump) {
  const wait_for_t wait = {.session = session};
  return wait_until(&wait, check_synchronised, deadline_ns, pump);
}

int tide_session_wait_idle(tide_session_t *session, uint8_t stream, int64_t deadline_ns, const tide_pump_t *pump) {
  const wait_for_t wait = {.session = session, .stream = stream};
  return wait_until(&wait, check_idle, deadline_ns, pump);
}
