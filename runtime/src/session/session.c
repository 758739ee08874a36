/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of the connection. Everything that takes time or sends happens in step(), by one caller at a
 * time; other contexts leave notes and, where it matters, call tide_session_kick. */
#include "internal.h"

#define QUICK_ATTEMPTS 3u
#define STEPS_AT_ONCE_MAXIMUM 8
#define WITHOUT_KEY_FIRST 0x81u /* ids of sessions whose headers carry no key */
#define WITHOUT_KEY_LAST 0xFEu
#define WITH_KEY_FIRST 0x01u
#define WITH_KEY_LAST 0x7Fu
_Static_assert(TIDE_XRCE_SESSION_NONE_WITHOUT_KEY + 1u == WITHOUT_KEY_FIRST &&
                   WITHOUT_KEY_LAST < TIDE_XRCE_SESSION_ANY && TIDE_XRCE_SESSION_NONE_WITH_KEY < WITH_KEY_FIRST &&
                   WITH_KEY_LAST < WITHOUT_KEY_FIRST,
               "ids of sessions leave out those that mean none and any");
_Static_assert(SESSION_REQUEST_DELETE_CLIENT < SESSION_REQUEST_FIRST, "counted requests never reuse a reserved id");

static void put_create_client(tide_cdr_t *cdr, const void *body) { tide_xrce_put_create_client(cdr, body); }
static void put_request(tide_cdr_t *cdr, const void *body) {
  tide_xrce_put_request(cdr, *(const tide_xrce_request_t *)body);
}
static void put_info(tide_cdr_t *cdr, const void *body) { tide_xrce_put_info(cdr, body); }

/* The change was made in a critical section before. Whoever waits has said so before the one in which it looked, so
 * either it has seen the change or it is seen here. */
void tide_session_changed(tide_session_t *session) {
  if (__atomic_load_n(&session->waiting, __ATOMIC_RELAXED)) {
    tide_platform_event_set(session->config.daemon.platform, &session->changed);
  }
}

static void ask_for_poll(tide_session_t *session) {
  if (session->config.on_work != NULL) {
    session->config.on_work(session->config.context);
  }
}

void tide_session_on_activity(void *context) {
  tide_session_t *session = context;
  const uintptr_t critical = session_enter(session);
  const bool work = session->work_noted;
  session->work_noted = false;
  session_exit(session, critical);
  tide_session_changed(session);
  if (work) {
    ask_for_poll(session);
  }
  if (session->config.daemon.on_activity != NULL) {
    session->config.daemon.on_activity(session->config.daemon.context);
  }
}

void tide_session_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_session_t *session = context;
  if (session->config.daemon.on_done != NULL) {
    session->config.daemon.on_done(session->config.daemon.context, node, outcome);
  }
}

/* True: it is another one than before; then tell_state follows when the critical section is left. */
static bool enter_state_locked(tide_session_t *session, tide_session_state_t state, int64_t now_ns) {
  TIDE_INVARIANT(session->objects_unanswered + session->objects_refused <= session->objects_used);
  TIDE_INVARIANT(state != TIDE_SESSION_READY || (session->objects_unanswered == 0u && session->held_first == NULL));
  TIDE_INVARIANT(state != TIDE_SESSION_READY || session->state == TIDE_SESSION_CREATING || session->state == state);
  TIDE_INVARIANT(state != TIDE_SESSION_IDLE || session->state == TIDE_SESSION_CLOSING);
  const bool changed = session->state != state;
  __atomic_store_n(&session->state, state, __ATOMIC_RELAXED);
  session->state_since_ns = now_ns;
  return changed;
}

static void tell_state(tide_session_t *session, tide_session_state_t state) {
  tide_session_changed(session);
  if (session->config.on_state != NULL) {
    session->config.on_state(session->config.context, state);
  }
}

static void set_state(tide_session_t *session, tide_session_state_t state, int64_t now_ns) {
  const uintptr_t critical = session_enter(session);
  const bool changed = enter_state_locked(session, state, now_ns);
  session_exit(session, critical);
  if (changed) {
    tell_state(session, state);
  }
}

static uint8_t id_after(uint8_t id) {
  TIDE_INVARIANT(id != TIDE_XRCE_SESSION_NONE_WITH_KEY && id != TIDE_XRCE_SESSION_NONE_WITHOUT_KEY);
  TIDE_INVARIANT(id != TIDE_XRCE_SESSION_ANY);
  if (id == WITHOUT_KEY_LAST) {
    return WITHOUT_KEY_FIRST;
  }
  return id == WITH_KEY_LAST ? (uint8_t)WITH_KEY_FIRST : (uint8_t)(id + 1u);
}

static void start_connecting(tide_session_t *session, int64_t now_ns) {
  const uintptr_t critical = session_enter(session);
  session->reset_due = true;
  session->agent_lost = session->agent_answered = false;
  if (session->id_used) {
    session->id = id_after(session->id);
    session->id_used = false;
  }
  session->attempts = 0;
  session->request_at_ns = now_ns;
  const bool changed = enter_state_locked(session, TIDE_SESSION_CONNECTING, now_ns);
  session_exit(session, critical);
  if (changed) {
    tell_state(session, TIDE_SESSION_CONNECTING);
  }
}

static void lose(tide_session_t *session, int64_t now_ns) {
  TIDE_COUNT(session->counters.reconnects, 1u);
  start_connecting(session, now_ns);
}

/* The objects are to be made anew. Between sessions what arrives may be an answer with any session id; samples of the
 * old session would be acknowledged and then forgotten. */
static void forget_session_locked(tide_session_t *session) {
  tide_receiver_set_session(&session->daemon.receiver, TIDE_XRCE_SESSION_NONE_WITHOUT_KEY, session->config.key);
  tide_session_forget_objects_locked(session);
  tide_session_forget_readers_locked(session);
}

static void leave_old_session(tide_session_t *session) {
  tide_session_take_back(session);
  tide_daemon_reset(&session->daemon, false);
  if (TIDE_LONG_MESSAGES) {
    tide_daemon_pause_streams(&session->daemon, false); /* one that was given up has paused them */
  }
  const uintptr_t critical = session_enter(session);
  TIDE_INVARIANT(!session_is_up(session));
  forget_session_locked(session);
  session->reset_due = false;
  session_exit(session, critical);
}

static int64_t send_create_client(tide_session_t *session, int64_t now_ns) {
  const tide_session_config_t *config = &session->config;
  const tide_xrce_create_client_t body = {.version_major = 1,
                                          .version_minor = 0,
                                          .vendor = config->vendor,
                                          .key = config->key,
                                          .session = session->id,
                                          .mtu = (uint16_t)(config->mtu - SESSION_ANNOUNCED_LESS_BYTES)};
  const uint8_t header =
      tide_xrce_session_has_key(body.session) ? TIDE_XRCE_SESSION_NONE_WITH_KEY : TIDE_XRCE_SESSION_NONE_WITHOUT_KEY;
  const int64_t period_ns = config->connect_period_ns;
  const uintptr_t critical = session_enter(session);
  session->attempts = session->attempts < UINT8_MAX ? (uint8_t)(session->attempts + 1u) : UINT8_MAX;
  const int64_t wait_ns = session->state == TIDE_SESSION_REFUSED ? 5 * period_ns
                          : session->attempts <= QUICK_ATTEMPTS  ? (int64_t)((uint64_t)period_ns / 5u)
                                                                 : period_ns;
  session->request_at_ns = now_ns + wait_ns;
  session_exit(session, critical);
  (void)tide_session_send_control(session, TIDE_XRCE_CREATE_CLIENT, put_create_client, &body, header,
                                  SESSION_CONTROL_PRIORITY);
  return now_ns + wait_ns;
}

static void accept_locked(tide_session_t *session, int64_t now_ns) {
  TIDE_INVARIANT(!session->reset_due);
  session->id_used = true;
  session->refusal = 0;
  session->agent_vendor = session->agent_answer.vendor;
  session->unanswered_pings = 0;
  if (!session->ping_asked) {
    session->ping_under_way = false;
    session->ping_sent_ns = now_ns;
  }
  session->agent_lost = false;
  session->progress_ns = now_ns;
  TIDE_COUNT(session->counters.connects, 1u);
}

static void on_agent_answer(tide_session_t *session, int64_t now_ns) {
  const tide_xrce_status_agent_t *answer = &session->agent_answer;
  const bool fits = answer->cookie_valid && answer->version_major == 1u;
  const bool accepted = !tide_xrce_is_error(answer->status) && fits;
  const tide_session_state_t state = accepted ? TIDE_SESSION_CREATING : TIDE_SESSION_REFUSED;
  if (accepted) {
    tide_session_take_back(
        session); /* requests that crossed the end of the old session; the receiver is reset already */
    tide_daemon_set_session(&session->daemon, session->id, session->config.key);
  }
  const uintptr_t critical = session_enter(session);
  session->agent_answered = false;
  if (accepted) {
    accept_locked(session, now_ns);
  } else {
    session->refusal = tide_xrce_is_error(answer->status) ? answer->status : (uint8_t)TIDE_XRCE_STATUS_ERR_INCOMPATIBLE;
    session->request_at_ns = now_ns + 5 * session->config.connect_period_ns;
  }
  const bool changed = enter_state_locked(session, state, now_ns);
  session_exit(session, critical);
  if (changed) {
    tell_state(session, state);
  }
}

static int64_t connect(tide_session_t *session, int64_t now_ns) {
  uintptr_t critical = session_enter(session);
  const bool reset_due = session->reset_due;
  session_exit(session, critical);
  if (reset_due) {
    leave_old_session(session);
  }
  critical = session_enter(session);
  const bool answered = session->agent_answered;
  const int64_t request_at_ns = session->request_at_ns;
  session_exit(session, critical);
  if (answered) {
    on_agent_answer(session, now_ns);
    return now_ns;
  }
  return now_ns >= request_at_ns ? send_create_client(session, now_ns) : request_at_ns;
}

/* READY begins in the moment in which nothing is held any more, so that no new sample overtakes a kept one. */
static void become_ready(tide_session_t *session, int64_t now_ns) {
  while (tide_session_release_held(session)) {
    const uintptr_t critical = session_enter(session);
    const bool more_objects = session->objects_unanswered > 0u;
    const bool ready = session->held_first == NULL && !more_objects && session->state == TIDE_SESSION_CREATING;
    if (ready) {
      (void)enter_state_locked(session, TIDE_SESSION_READY, now_ns);
    }
    session_exit(session, critical);
    if (ready) {
      tell_state(session, TIDE_SESSION_READY);
    }
    if (ready || more_objects) {
      return;
    }
  }
}

static bool is_agent_lost(tide_session_t *session, int64_t now_ns) {
  const uintptr_t critical = session_enter(session);
  const bool waiting = session->state == TIDE_SESSION_CREATING && session->objects_unanswered > 0u;
  const bool stalled = waiting && now_ns - session->progress_ns >= 10 * session->config.request_period_ns;
  const bool lost = session->agent_lost || stalled;
  session_exit(session, critical);
  return lost;
}

static int64_t serve(tide_session_t *session, int64_t now_ns) {
  if (is_agent_lost(session, now_ns)) {
    lose(session, now_ns);
    return now_ns;
  }
  (void)tide_session_keep_reserve(session);
  int64_t next_ns = tide_session_create_objects(session, now_ns);
  next_ns = session_earlier(next_ns, tide_session_ask_readers(session, now_ns));
  next_ns = session_earlier(next_ns, tide_session_check_liveness(session, now_ns));
  const uintptr_t critical = session_enter(session);
  const tide_session_state_t state = session->state;
  const bool unanswered = session->objects_unanswered > 0u, held = session->held_first != NULL;
  session_exit(session, critical);
  if (state == TIDE_SESSION_CREATING && !unanswered) {
    become_ready(session, now_ns);
  } else if (state == TIDE_SESSION_READY && held) {
    (void)tide_session_release_held(session);
  }
  return next_ns;
}

static void end(tide_session_t *session, int64_t now_ns) {
  tide_session_discard_held(session);
  tide_session_drop_reserve(session);
  tide_daemon_reset(&session->daemon, false);
  const uintptr_t critical = session_enter(session);
  forget_session_locked(session);
  const bool again = session->wanted;
  session_exit(session, critical);
  set_state(session, TIDE_SESSION_IDLE, now_ns);
  if (again) {
    start_connecting(session, now_ns);
  }
}

/* What was published before the goodbye goes first, but a line that is stuck does not keep the program. */
static bool may_say_goodbye(tide_session_t *session, int64_t now_ns) {
  const uintptr_t critical = session_enter(session);
  const bool waits =
      session->attempts == 0u && now_ns - session->state_since_ns < session->config.connect_period_ns / 5;
  session_exit(session, critical);
  return !waits || tide_daemon_is_idle(&session->daemon, 0);
}

static int64_t say_goodbye(tide_session_t *session, int64_t now_ns) {
  const tide_xrce_request_t request = {SESSION_REQUEST_DELETE_CLIENT, TIDE_XRCE_OBJECT_CLIENT};
  if (!may_say_goodbye(session, now_ns)) {
    return now_ns + SESSION_RETRY_FULL_NS;
  }
  const uintptr_t critical = session_enter(session);
  const bool due = now_ns >= session->request_at_ns;
  const bool over = session->close_answered || (due && session->attempts >= SESSION_CLOSE_ATTEMPTS);
  if (due && !over) {
    ++session->attempts;
    session->request_at_ns = now_ns + session->config.connect_period_ns / 5;
  }
  const int64_t next_ns = session->request_at_ns;
  session_exit(session, critical);
  if (over) {
    end(session, now_ns);
    return now_ns;
  }
  if (due) { /* as urgent as CREATE_CLIENT, so that on a line that was down it never comes behind a later one */
    (void)tide_session_send_control(session, TIDE_XRCE_DELETE, put_request, &request, SESSION_OWN_ID,
                                    SESSION_CONTROL_PRIORITY);
  }
  return next_ns;
}

static void answer_agent(tide_session_t *session) {
  if (!TIDE_AGENT_QUESTIONS) return;
  const uintptr_t critical = session_enter(session);
  const bool due = session->info_due;
  const uint16_t request = session->info_request;
  session->info_due = false;
  session_exit(session, critical);
  if (due) {
    const tide_xrce_info_t info = {.related = {request, TIDE_XRCE_OBJECT_CLIENT},
                                   .implementation_status = 1,
                                   .vendor = session->config.vendor,
                                   .version_major = 1};
    (void)tide_session_send_control(session, TIDE_XRCE_INFO, put_info, &info, SESSION_OWN_ID, SESSION_CONTROL_PRIORITY);
  }
}

static int64_t step(tide_session_t *session, int64_t now_ns) {
  answer_agent(session);
  switch (__atomic_load_n(&session->state, __ATOMIC_RELAXED)) {
    case TIDE_SESSION_CONNECTING:
    case TIDE_SESSION_REFUSED:
      return connect(session, now_ns);
    case TIDE_SESSION_CREATING:
    case TIDE_SESSION_READY:
      return serve(session, now_ns);
    case TIDE_SESSION_CLOSING:
      return !TIDE_REMOVAL ? TIDE_FOREVER : say_goodbye(session, now_ns);
    case TIDE_SESSION_IDLE:
    default:
      return TIDE_FOREVER;
  }
}

/* Whoever comes while another one is at it has nothing to do before that one tells: it may be an interrupt on top of
 * it, which would keep it from ever ending if it looked again at once. */
static bool begin_run(tide_session_t *session) {
  const uintptr_t critical = session_enter(session);
  const bool mine = !session->polling;
  session->polling = true;
  session->poll_again = session->poll_refused = !mine;
  session->deadline_ns = TIDE_FOREVER;
  TIDE_COUNT(session->counters.polls, 1u);
  session_exit(session, critical);
  return mine;
}

static bool end_run(tide_session_t *session, int64_t next_ns, bool *refused) {
  const uintptr_t critical = session_enter(session);
  TIDE_INVARIANT(session->polling);
  const bool ended = !session->poll_again;
  *refused = session->poll_refused;
  session->poll_again = false;
  session->polling = !ended;
  session->deadline_ns = ended ? next_ns : TIDE_FOREVER;
  session_exit(session, critical);
  return ended;
}

/* One caller does the work, also for those who come meanwhile. True: there were some. */
static bool run(tide_session_t *session) {
  if (!begin_run(session)) {
    return false;
  }
  int64_t next_ns = 0;
  bool refused = false;
  do {
    int64_t now_ns = 0;
    int steps = 0;
    do {
      now_ns = session_now(session);
      next_ns = step(session, now_ns);
    } while (next_ns <= now_ns && ++steps < STEPS_AT_ONCE_MAXIMUM);
  } while (!end_run(session, next_ns, &refused));
  return !TIDE_SINGLE_CONTEXT && refused;
}

void tide_session_kick(tide_session_t *session) {
  (void)run(session);
  ask_for_poll(session);
}

/* The daemon's poll may send the heartbeat that makes a stream suspicious: the question is due at once, or when the one
 * before has had its time. */
int64_t tide_session_poll_daemon(tide_session_t *session) {
  const int64_t daemon_ns = tide_daemon_poll(&session->daemon);
  const uintptr_t critical = session_enter(session);
  int64_t next_ns = session_earlier(session->deadline_ns, daemon_ns);
  if (session_is_up(session) && !session->ping_under_way && tide_session_has_suspicion_locked(session)) {
    next_ns = session_earlier(next_ns, session->ping_sent_ns + tide_session_answer_limit_ns(session));
  }
  session_exit(session, critical);
  return next_ns;
}

int64_t tide_session_poll(tide_session_t *session) {
  if (run(session)) {
    ask_for_poll(session);
  }
  return tide_session_poll_daemon(session);
}

void tide_session_open(tide_session_t *session) {
  const uintptr_t critical = session_enter(session);
  const bool idle = session->state == TIDE_SESSION_IDLE && !session->wanted;
  session->wanted = true;
  session_exit(session, critical);
  if (idle) {
    start_connecting(session, session_now(session));
  }
  tide_session_kick(session);
}

void tide_session_close(tide_session_t *session) {
  const int64_t now_ns = session_now(session);
  const uintptr_t critical = session_enter(session);
  const bool open = session->wanted && session->state != TIDE_SESSION_CLOSING;
  const bool up = session_is_up(session);
  session->wanted = false;
  if (open) {
    session->attempts = up ? 0u : (uint8_t)SESSION_CLOSE_ATTEMPTS; /* an agent that never answered needs no goodbye */
    session->close_answered = false;
    session->reset_due = false;
    session->request_at_ns = now_ns;
  }
  session_exit(session, critical);
  if (open) {
    set_state(session, TIDE_SESSION_CLOSING, now_ns);
  }
  tide_session_kick(session);
}
