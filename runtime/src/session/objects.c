/* SPDX-License-Identifier: Apache-2.0 */
/* The table of objects: registration, creation in order, repeats, answers. */
#include "internal.h"

#define OBJECT_NUMBER_MAXIMUM 0xFFFu
_Static_assert(TIDE_XRCE_OBJECT(OBJECT_NUMBER_MAXIMUM, 0xFu) <= UINT16_MAX, "number and kind are the sixteen bits");
_Static_assert(TIDE_XRCE_KIND_REPLIER < sizeof(((tide_session_t *)0)->object_numbers) / sizeof(uint16_t),
               "numbers are counted for each kind");

/* What the session counts is what its objects say. O(n). */
static bool counts_hold(const tide_session_t *session) {
  size_t unanswered = 0, refused = 0;
  for (size_t i = 0; i < session->objects_used; ++i) {
    const tide_object_state_t state = session->config.objects[i]->state;
    unanswered += state == TIDE_OBJECT_WAITING || state == TIDE_OBJECT_ASKED ? 1u : 0u;
    refused += state == TIDE_OBJECT_REFUSED ? 1u : 0u;
    if (state == TIDE_OBJECT_REMOVED) return false;
  }
  return unanswered == session->objects_unanswered && refused == session->objects_refused &&
         session->objects_used <= session->config.object_count;
}

typedef struct creation {
  tide_xrce_request_t request;
  const tide_xrce_object_t *object;
} creation_t;

static void put_create(tide_cdr_t *cdr, const void *body) {
  const creation_t *creation = body;
  tide_xrce_put_creation(cdr, creation->request, creation->object);
}
static void put_request(tide_cdr_t *cdr, const void *body) {
  tide_xrce_put_request(cdr, *(const tide_xrce_request_t *)body);
}

tide_object_t *tide_session_find_object_locked(const tide_session_t *session, uint16_t id) {
  for (size_t i = session->objects_used; i-- > 0u;) {
    if (session->config.objects[i]->id == id) {
      return session->config.objects[i];
    }
  }
  return NULL;
}

static bool is_unanswered(const tide_object_t *object) {
  return object->state == TIDE_OBJECT_WAITING || object->state == TIDE_OBJECT_ASKED;
}

static bool is_registered_locked(const tide_session_t *session, const tide_object_t *object) {
  for (size_t i = 0; i < session->objects_used; ++i) {
    if (session->config.objects[i] == object) {
      return true;
    }
  }
  return false;
}

/* Numbers count up; only after the last one those that became free are used again. */
static int give_id_locked(tide_session_t *session, tide_object_t *object) {
  const uint8_t kind = object->description.kind;
  uint16_t *last = &session->object_numbers[kind];
  if (object->id != 0u) {
    const uint16_t number = (uint16_t)(object->id >> 4);
    *last = number > *last ? number : *last;
    return TIDE_OK;
  }
  if (*last < OBJECT_NUMBER_MAXIMUM) {
    *last = (uint16_t)(*last + 1u);
    object->id = TIDE_XRCE_OBJECT(*last, kind);
    return TIDE_OK;
  }
  for (uint16_t number = 1; number <= OBJECT_NUMBER_MAXIMUM; ++number) {
    const uint16_t id = TIDE_XRCE_OBJECT(number, kind);
    if (id != TIDE_XRCE_OBJECT_CLIENT && tide_session_find_object_locked(session, id) == NULL) {
      object->id = id;
      return TIDE_OK;
    }
  }
  return TIDE_ERROR_CAPACITY_OBJECTS;
}

static int register_locked(tide_session_t *session, tide_object_t *object) {
  if (is_registered_locked(session, object)) {
    return TIDE_ERROR_EXISTS;
  }
  if (session->objects_used >= session->config.object_count) {
    return TIDE_ERROR_CAPACITY_OBJECTS;
  }
  const int status = give_id_locked(session, object);
  if (status == TIDE_OK) {
    object->state = TIDE_OBJECT_WAITING;
    object->status = TIDE_XRCE_STATUS_OK;
    object->request = 0;
    session->config.objects[session->objects_used++] = object;
    ++session->objects_unanswered;
    TIDE_INVARIANT(counts_hold(session) && object->id != 0u);
  }
  return status;
}

static bool is_left_out(const tide_xrce_object_t *description) {
  return (!TIDE_SERVICE_OBJECTS && description->kind > TIDE_XRCE_KIND_DATAREADER) ||
         (!TIDE_TEXT_OBJECTS && description->representation != TIDE_XRCE_BY_BINARY);
}

int tide_session_add_object(tide_session_t *session, tide_object_t *object) {
  if (session == NULL || object == NULL || object->description.kind < TIDE_XRCE_KIND_PARTICIPANT ||
      object->description.kind > TIDE_XRCE_KIND_REPLIER) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (is_left_out(&object->description)) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  const creation_t create = {{0, object->id}, &object->description};
  int status = tide_session_plan_request(session, tide_session_measure(put_create, &create));
  if (status != TIDE_OK) {
    return status;
  }
  const uintptr_t critical = session_enter(session);
  status = register_locked(session, object);
  session_exit(session, critical);
  if (status == TIDE_OK) {
    tide_session_kick(session);
  }
  return status;
}

static bool remove_locked(tide_session_t *session, tide_object_t *object) {
  size_t i = 0;
  while (i < session->objects_used && session->config.objects[i] != object) {
    ++i;
  }
  if (i == session->objects_used) {
    return false;
  }
  if (is_unanswered(object)) {
    --session->objects_unanswered;
  } else if (object->state == TIDE_OBJECT_REFUSED) {
    --session->objects_refused;
  }
  for (; i + 1u < session->objects_used; ++i) {
    session->config.objects[i] = session->config.objects[i + 1u];
  }
  --session->objects_used;
  object->state = TIDE_OBJECT_REMOVED;
  TIDE_INVARIANT(counts_hold(session) && !is_registered_locked(session, object));
  return true;
}

int tide_session_remove_object(tide_session_t *session, tide_object_t *object) {
  if (!TIDE_REMOVAL) return TIDE_ERROR_UNSUPPORTED;
  if (session == NULL || object == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  uintptr_t critical = session_enter(session);
  const bool known = is_registered_locked(session, object);
  const bool on_agent =
      session_is_up(session) && (object->state == TIDE_OBJECT_CREATED || object->state == TIDE_OBJECT_ASKED);
  tide_xrce_request_t request = {0, object->id};
  if (known && on_agent) {
    request.request = tide_session_next_request_locked(session);
    ++session->deletes_unanswered;
  }
  session_exit(session, critical);
  if (!known) {
    return TIDE_ERROR_NOT_FOUND;
  }
  const int status = on_agent ? tide_session_send_request(session, TIDE_XRCE_DELETE, put_request, &request) : TIDE_OK;
  critical = session_enter(session);
  if (status == TIDE_OK) {
    remove_locked(session, object);
  } else if (session->deletes_unanswered > 0u) { /* none is awaited of a session that was lost meanwhile */
    --session->deletes_unanswered;
  }
  session_exit(session, critical);
  if (status == TIDE_OK) { /* who waits for a place would else be woken by its own attempts, and never sleep */
    tide_session_kick(session);
  }
  return status;
}

void tide_session_forget_objects_locked(tide_session_t *session) {
  for (size_t i = 0; i < session->objects_used; ++i) {
    session->config.objects[i]->state = TIDE_OBJECT_WAITING;
  }
  session->objects_unanswered = (uint16_t)session->objects_used;
  session->objects_refused = 0;
  session->deletes_unanswered = 0;
  TIDE_INVARIANT(counts_hold(session));
}

/* On a reliable stream a request that is not acknowledged needs no repeat: the stream does that. */
static bool is_repeat_due(const tide_session_t *session, const tide_object_t *object, int64_t now_ns, bool idle) {
  const int64_t patience_ns = idle ? 0 : 4 * session->config.request_period_ns;
  return now_ns - object->retry_at_ns >= patience_ns;
}

typedef struct turn {
  tide_object_t *object; /* whose turn it is; null: nobody's */
  int64_t next_ns;       /* when to look again */
} turn_t;

/* Repeats first, then the first object that waits, while not too many are under way. */
static turn_t whose_turn_locked(const tide_session_t *session, int64_t now_ns, bool idle) {
  turn_t turn = {NULL, TIDE_FOREVER};
  tide_object_t *waiting = NULL;
  unsigned under_way = 0;
  for (size_t i = 0; i < session->objects_used; ++i) {
    tide_object_t *object = session->config.objects[i];
    if (object->state == TIDE_OBJECT_ASKED) {
      ++under_way;
      if (is_repeat_due(session, object, now_ns, idle)) {
        turn.object = object;
        return turn;
      }
      const int64_t retry_ns = object->retry_at_ns > now_ns ? object->retry_at_ns : now_ns + SESSION_RETRY_FULL_NS;
      turn.next_ns = session_earlier(turn.next_ns, retry_ns);
    } else if (object->state == TIDE_OBJECT_WAITING && waiting == NULL) {
      waiting = object;
    }
  }
  if (under_way < session->config.creations_at_once) {
    turn.object = waiting;
  }
  return turn;
}

/* A repeat keeps its request id: whichever answer comes first counts. The state changes before the frame leaves,
 * because the answer may come in another context. */
static int encode_create_locked(tide_session_t *session, tide_object_t *object, tide_node_t *node, int64_t now_ns) {
  const bool first = object->state == TIDE_OBJECT_WAITING;
  const creation_t create = {{first ? session->next_request : object->request, object->id}, &object->description};
  const uint8_t flags = session->config.create_flags & (TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE);
  const int status = tide_session_encode_request(node, TIDE_XRCE_CREATE, flags, put_create, &create);
  if (status != TIDE_OK) {
    return status;
  }
  if (first) {
    object->request = tide_session_next_request_locked(session);
  } else {
    TIDE_COUNT(session->counters.requests_repeated, 1u);
  }
  TIDE_INVARIANT(is_unanswered(object) && object->id != 0u && object->request >= SESSION_REQUEST_FIRST);
  object->state = TIDE_OBJECT_ASKED;
  object->retry_at_ns = now_ns + session->config.request_period_ns;
  return TIDE_OK;
}

static void refuse_locked(tide_session_t *session, tide_object_t *object, uint8_t status) {
  TIDE_INVARIANT(session->objects_unanswered > 0u && is_unanswered(object) && status != TIDE_XRCE_STATUS_OK);
  --session->objects_unanswered;
  ++session->objects_refused;
  object->state = TIDE_OBJECT_REFUSED;
  object->status = status;
}

/* The stream cannot carry it (best effort, longer than a message): the program's mistake, told as a refusal. */
static void refuse_unsendable(tide_session_t *session, uint16_t id) {
  const uintptr_t critical = session_enter(session);
  tide_object_t *object = tide_session_find_object_locked(session, id);
  if (object != NULL && is_unanswered(object)) {
    refuse_locked(session, object, TIDE_XRCE_STATUS_ERR_RESOURCES);
  }
  session_exit(session, critical);
  tide_session_changed(session);
}

static int create_next(tide_session_t *session, int64_t now_ns, bool idle, int64_t *next_ns) {
  uintptr_t critical = session_enter(session);
  turn_t turn = whose_turn_locked(session, now_ns, idle);
  *next_ns = turn.next_ns;
  size_t bytes = 0;
  if (turn.object != NULL) {
    const creation_t create = {{0, turn.object->id}, &turn.object->description};
    bytes = tide_session_measure(put_create, &create);
  }
  session_exit(session, critical);
  tide_node_t *node = NULL;
  if (turn.object == NULL) {
    return TIDE_ERROR_NOT_FOUND;
  }
  int status = tide_session_acquire_request(session, bytes, &node);
  if (status != TIDE_OK) {
    return status;
  }
  critical = session_enter(session);
  if (!TIDE_SINGLE_CONTEXT) { /* the table may have changed meanwhile */
    if (TIDE_REMOVAL) {
      turn = whose_turn_locked(session, now_ns, idle);
    } else if (!is_unanswered(turn.object)) {
      turn.object = NULL;
    }
  }
  const uint16_t id = turn.object != NULL ? turn.object->id : 0u;
  status = turn.object != NULL ? encode_create_locked(session, turn.object, node, now_ns) : TIDE_ERROR_NOT_FOUND;
  session_exit(session, critical);
  if (status != TIDE_OK) {
    tide_daemon_abandon(&session->daemon, node);
    return status;
  }
  status = tide_session_submit_request(session, node);
  if (status != TIDE_OK) {
    refuse_unsendable(session, id);
  }
  return TIDE_OK;
}

int64_t tide_session_create_objects(tide_session_t *session, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  const uintptr_t critical = session_enter(session);
  const bool any = session->objects_unanswered > 0u;
  session_exit(session, critical);
  if (!any) {
    return next_ns;
  }
  const uint8_t stream = session->config.object_stream;
  const bool idle = !TIDE_STREAM_IS_RELIABLE(stream) || tide_daemon_is_idle(&session->daemon, stream);
  int status = TIDE_OK;
  for (size_t turns = 0; status == TIDE_OK && turns <= session->config.object_count; ++turns) {
    status = create_next(session, now_ns, idle, &next_ns);
  }
  return status == TIDE_ERROR_NOT_FOUND ? next_ns : now_ns + SESSION_RETRY_FULL_NS;
}

static bool status_of_object_locked(tide_session_t *session, const tide_xrce_status_body_t *status) {
  for (size_t i = session->objects_used; i-- > 0u;) {
    tide_object_t *object = session->config.objects[i];
    if (object->id != status->related.object || object->request != status->related.request ||
        object->state != TIDE_OBJECT_ASKED) {
      continue;
    }
    if (!tide_xrce_is_error(status->status)) {
      --session->objects_unanswered;
      TIDE_COUNT(session->counters.objects_created, 1u);
      object->state = TIDE_OBJECT_CREATED;
      object->status = status->status;
      session->readers_waiting = true;
      TIDE_INVARIANT(counts_hold(session));
    } else {
      refuse_locked(session, object, status->status);
    }
    session->progress_ns = session_now(session);
    return true;
  }
  return false;
}

void tide_session_on_status(tide_session_t *session, const tide_xrce_status_body_t *status) {
  const uintptr_t critical = session_enter(session);
  if (status->related.object == TIDE_XRCE_OBJECT_CLIENT) {
    session->close_answered = session->state == TIDE_SESSION_CLOSING;
  } else if (status_of_object_locked(session, status) || tide_session_status_of_reader_locked(session, status)) {
    /* noted there */
  } else if (session->deletes_unanswered > 0u &&
             tide_session_find_object_locked(session, status->related.object) == NULL) {
    --session->deletes_unanswered;
  } else {
    TIDE_COUNT(session->counters.statuses_unexpected, 1u);
  }
  session_exit(session, critical);
  tide_session_changed(session);
}
