/* SPDX-License-Identifier: Apache-2.0 */
/* The session with the agent (tide/session.h, tide/long_write.h).
 *
 * Everything that takes time or sends happens in step(), which one caller at a time executes; other contexts set flags
 * and, if necessary, call kick(). Functions marked "Locked" are short and run with the critical section held. All
 * others enter it themselves and must be called without it. */
#include "tide/session.h"

#include <string.h>

#include "tide/invariant.h"
#include "tide/long_write.h"
#include "tide/status.h"

enum {
  REQUEST_DELETE_CLIENT = 2,
  PING_REQUEST_LEAST = 3,
  REQUEST_FIRST = 10,
  PING_REQUEST_USUAL = 10, /* as in the stock client */
  CLOSE_ATTEMPTS = 4,
  QUICK_ATTEMPTS = 3,
  STEPS_AT_ONCE_MAXIMUM = 8,
  /* A new session starts new streams, so messages that the agent received but could not acknowledge arrive twice if a
   * session is given up too early. A restarted agent is detected by its first answer to a ping; only a silent agent is
   * given time, for example until a cable is plugged in again. */
  PINGS_UNANSWERED_MAXIMUM = 8,
  HEARTBEATS_UNANSWERED_SUSPICIOUS = 3,
  RETRY_FULL_NS = 5000000 /* delay of the next attempt when no node was free */
};
#define NS_PER_S INT64_C(1000000000)
#define INFO_ACTIVITY 2u
/* Pings are short and rare, and must get through even if the link is saturated: otherwise a busy client would consider
 * its agent lost. */
#define CONTROL_PRIORITY TIDE_PRIORITY(TIDE_LEVEL_MAXIMUM, 0xFFu)
#define OWN_ID TIDE_XRCE_SESSION_ANY /* the current session, for tide_daemon_submit_control */
#define ANNOUNCED_LESS_BYTES 4u      /* the client announces an MTU that is smaller by this amount */
#define CREATIONS_AT_ONCE_DEFAULT 4u
#define MTU_BYTES_MINIMUM 68u
#define WITHOUT_KEY_FIRST 0x81u /* range of the session ids whose headers carry no key */
#define WITHOUT_KEY_LAST 0xFEu
#define WITH_KEY_FIRST 0x01u
#define WITH_KEY_LAST 0x7Fu
#define OBJECT_NUMBER_MAXIMUM 0xFFFu
#define READ_REPEATS_BEST_EFFORT 1u /* READ_DATA has no answer, so on a lossy stream it is sent twice */
#define SAMPLES_UNLIMITED 0xFFFFu
#define READ_BYTES 16u /* READ_DATA with delivery control and without a filter */
#define WRITE_HEADER_BYTES TIDE_WRITE_HEADER_BYTES
#define SAMPLE_BYTES_MAXIMUM (UINT16_MAX - 4u)
#define LONG_NODES_MAXIMUM 4u
#define LONG_FRAGMENTS_ENOUGH 32u /* limit for the fragments in all nodes of a long message: two windows */
#define CLOCK_DRIFT_ALLOWANCE_NS 1000000
#define CLOCK_STEP_MOST_NS 10000000 /* largest clock step of kernels with a tick clock */
/* Masking interrupts takes three instructions, a thread lock some twenty. So merging sections is worthwhile only where
 * a section is a lock. */
#define SECTIONS_ARE_DEAR (!TIDE_STATIC_PLATFORM)

_Static_assert(TIDE_XRCE_SESSION_NONE_WITHOUT_KEY + 1u == WITHOUT_KEY_FIRST &&
                   WITHOUT_KEY_LAST < TIDE_XRCE_SESSION_ANY && TIDE_XRCE_SESSION_NONE_WITH_KEY < WITH_KEY_FIRST &&
                   WITH_KEY_LAST < WITHOUT_KEY_FIRST,
               "ids of sessions leave out those that mean none and any");
_Static_assert(PING_REQUEST_LEAST > REQUEST_DELETE_CLIENT && PING_REQUEST_USUAL <= REQUEST_FIRST,
               "counted requests never reuse a reserved id, and pings use ids that no counted request has");
_Static_assert(TIDE_XRCE_OBJECT(OBJECT_NUMBER_MAXIMUM, 0xFu) <= UINT16_MAX, "number and kind are the sixteen bits");
_Static_assert(TIDE_XRCE_KIND_REPLIER < sizeof(((tide_session_t *)0)->object_numbers) / sizeof(uint16_t),
               "numbers are counted for each kind");
_Static_assert(WRITE_HEADER_BYTES == TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + TIDE_XRCE_REQUEST_BYTES,
               "two ids follow the header");
_Static_assert(SAMPLE_BYTES_MAXIMUM + WRITE_HEADER_BYTES - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES <= UINT16_MAX,
               "a submessage counts its bytes in sixteen bits");

static uintptr_t enter(const tide_session_t *session) { return tide_platform_enter(session->config.daemon.platform); }

static void leave(const tide_session_t *session, uintptr_t state) {
  tide_platform_exit(session->config.daemon.platform, state);
}

static int64_t now(const tide_session_t *session) { return tide_platform_now_ns(session->config.daemon.platform); }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static bool is_up(const tide_session_t *session) {
  return session->state == TIDE_SESSION_CREATING || session->state == TIDE_SESSION_READY;
}

/* Runs a step now, in the caller's context, and requests an early poll. */
static void kick(tide_session_t *session);

/* Wakes waiting callers after a change that was made in a critical section. A waiter registers before it enters the
 * section in which it checks its condition, so it either saw the change or is found here. */
static void wake_waiting(tide_session_t *session) {
  if (__atomic_load_n(&session->waiting, __ATOMIC_RELAXED)) {
    tide_platform_event_set(session->config.daemon.platform, &session->changed);
  }
}

/* ---- requests to the agent ---- */

static uint16_t next_request_locked(tide_session_t *session) {
  const uint16_t request = session->next_request;
  TIDE_INVARIANT(request >= REQUEST_FIRST);
  if (++session->next_request == 0u) session->next_request = REQUEST_FIRST;
  return request;
}

typedef void (*session_put_t)(tide_cdr_t *cdr, const void *body);
static void put_create_client(tide_cdr_t *cdr, const void *body) { tide_xrce_put_create_client(cdr, body); }
static void put_info(tide_cdr_t *cdr, const void *body) { tide_xrce_put_info(cdr, body); }
static void put_get_info(tide_cdr_t *cdr, const void *body) { tide_xrce_put_get_info(cdr, body); }
static void put_read(tide_cdr_t *cdr, const void *body) { tide_xrce_put_read_data(cdr, body); }

static void put_request(tide_cdr_t *cdr, const void *body) {
  tide_xrce_put_request(cdr, *(const tide_xrce_request_t *)body);
}

static void put_timestamp(tide_cdr_t *cdr, const void *body) {
  tide_xrce_put_timestamp(cdr, *(const tide_xrce_time_t *)body);
}

typedef struct creation {
  tide_xrce_request_t request;
  const tide_xrce_object_t *object;
} creation_t;

static void put_create(tide_cdr_t *cdr, const void *body) {
  const creation_t *creation = body;
  tide_xrce_put_creation(cdr, creation->request, creation->object);
}

/* Sends a control submessage with one request body at once. */
static int send_control(tide_session_t *session, uint8_t id, session_put_t put, const void *body, uint8_t header) {
  uint8_t bytes[40];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, sizeof bytes - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  put(&cdr, body);
  TIDE_INVARIANT(cdr.status == TIDE_OK); /* bodies of control submessages are of fixed size */
  if (cdr.status != TIDE_OK) return cdr.status;
  tide_xrce_put_submessage_header(bytes, id, TIDE_XRCE_FLAG_LITTLE_ENDIAN, (uint16_t)cdr.position);
  return tide_daemon_submit_control(&session->daemon, bytes, TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + cdr.position, header,
                                    CONTROL_PRIORITY);
}

static size_t measure(session_put_t put, const void *body) {
  tide_cdr_t cdr;
  tide_cdr_measure(&cdr);
  put(&cdr, body);
  return cdr.position;
}

/* Makes the reserve at least as large as a request with this many body bytes needs. */
static int plan_request(tide_session_t *session, size_t body_bytes) {
  const size_t bytes = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body_bytes;
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  const uint32_t largest = config->class_count == 0u ? 0u : config->classes[config->class_count - 1u].node_bytes;
  if (body_bytes > UINT16_MAX || bytes > largest) return TIDE_ERROR_TOO_LARGE;
  const uintptr_t critical = enter(session);
  if (bytes > session->request_bytes_maximum) session->request_bytes_maximum = (uint32_t)bytes;
  leave(session, critical);
  return TIDE_OK;
}

/* The reserve is a node kept for requests: if samples held all nodes, no object could be created, and the held samples
 * could never be sent. Returns true also if no request is planned. */
static bool has_reserve_locked(const tide_session_t *session) {
  const uint32_t bytes = session->request_bytes_maximum;
  return bytes == 0u || (session->reserve != NULL && session->reserve->capacity >= bytes);
}

/* True if the reserve is present or not needed. */
static bool keep_reserve(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return true;
  uintptr_t critical = enter(session);
  tide_node_t *node = session->reserve;
  const uint32_t bytes = session->request_bytes_maximum;
  const bool needed = session->reserve_needed && bytes > 0u;
  const bool small = node != NULL && node->capacity < bytes;
  if (small) session->reserve = NULL;
  leave(session, critical);
  if (small) {
    tide_daemon_abandon(&session->daemon, node);
  } else if (node != NULL) {
    return true;
  }
  if (!needed) return true;
  if (tide_daemon_acquire_own(&session->daemon, bytes, &node) != TIDE_OK) return false;
  critical = enter(session);
  if (session->reserve == NULL) {
    TIDE_INVARIANT(node->capacity >= bytes && !tide_queue_contains(&node->entry));
    session->reserve = node;
    node = NULL;
  }
  leave(session, critical);
  if (node != NULL) { /* the node is not needed: another thread has set the reserve */
    tide_daemon_abandon(&session->daemon, node);
  }
  return true;
}

static void drop_reserve(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return;
  const uintptr_t critical = enter(session);
  tide_node_t *node = session->reserve;
  session->reserve = NULL;
  session->reserve_needed = false;
  leave(session, critical);
  if (node != NULL) tide_daemon_abandon(&session->daemon, node);
}

/* A submessage on the object stream is sent in three steps, so that the body can be encoded from shared state with the
 * critical section held, while the node is acquired and submitted outside of it. TIDE_ERROR_FULL means that no node is
 * free now. */
static int acquire_request(tide_session_t *session, size_t body_bytes, tide_node_t **node) {
  const size_t bytes = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body_bytes;
  *node = NULL;
  const int status = tide_daemon_acquire_own(&session->daemon, (uint32_t)bytes, node);
  if (!TIDE_RELIABLE_STREAMS || status != TIDE_ERROR_FULL) return status;
  const uintptr_t critical = enter(session); /* the reserve is used only for a request that found no other node */
  if (session->reserve != NULL && session->reserve->capacity >= bytes) {
    *node = session->reserve;
    session->reserve = NULL;
  }
  leave(session, critical);
  return *node == NULL ? TIDE_ERROR_FULL : TIDE_OK;
}

static int encode_request(tide_node_t *node, uint8_t id, uint8_t flags, session_put_t put, const void *body) {
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, node->bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES,
                  node->capacity - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  TIDE_INVARIANT(node->capacity >= TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  put(&cdr, body);
  if (cdr.status != TIDE_OK || cdr.position > UINT16_MAX) return TIDE_ERROR_TOO_LARGE;
  tide_xrce_put_submessage_header(node->bytes, id, (uint8_t)(flags | TIDE_XRCE_FLAG_LITTLE_ENDIAN),
                                  (uint16_t)cdr.position);
  node->length = (uint32_t)(TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + cdr.position);
  TIDE_INVARIANT(node->length <= node->capacity);
  return TIDE_OK;
}

static int submit_request(tide_session_t *session, tide_node_t *node) {
  return tide_daemon_submit(&session->daemon, node, session->config.object_stream);
}

static int send_request(tide_session_t *session, uint8_t id, session_put_t put, const void *body) {
  tide_node_t *node = NULL;
  int status = acquire_request(session, measure(put, body), &node);
  if (status != TIDE_OK) return status;
  status = encode_request(node, id, 0, put, body);
  if (status != TIDE_OK) {
    tide_daemon_abandon(&session->daemon, node);
    return status;
  }
  return submit_request(session, node);
}

/* ---- objects: registration, creation in order, repeated requests, and answers ---- */

static tide_object_t *find_object_locked(const tide_session_t *session, uint16_t id) {
  for (size_t i = session->objects_used; i-- > 0u;) {
    if (session->config.objects[i]->id == id) return session->config.objects[i];
  }
  return NULL;
}

static bool is_unanswered(const tide_object_t *object) {
  return object->state == TIDE_OBJECT_WAITING || object->state == TIDE_OBJECT_ASKED;
}

/* Invariant: the session's counts agree with its objects. O(n). */
static bool counts_hold(const tide_session_t *session) {
  size_t unanswered = 0, refused = 0;
  for (size_t i = 0; i < session->objects_used; ++i) {
    const tide_object_state_t state = session->config.objects[i]->state;
    unanswered += is_unanswered(session->config.objects[i]) ? 1u : 0u;
    refused += state == TIDE_OBJECT_REFUSED ? 1u : 0u;
    if (state == TIDE_OBJECT_REMOVED) return false;
  }
  return unanswered == session->objects_unanswered && refused == session->objects_refused &&
         session->objects_used <= session->config.object_count;
}

/* The index of a registered object; objects_used if it is not registered. */
static size_t index_of_locked(const tide_session_t *session, const tide_object_t *object) {
  size_t i = 0;
  while (i < session->objects_used && session->config.objects[i] != object) ++i;
  return i;
}

/* Numbers count up; freed numbers are reused only after the largest possible number was given. */
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
    if (id != TIDE_XRCE_OBJECT_CLIENT && find_object_locked(session, id) == NULL) {
      object->id = id;
      return TIDE_OK;
    }
  }
  return TIDE_ERROR_CAPACITY_OBJECTS;
}

static int register_locked(tide_session_t *session, tide_object_t *object) {
  if (index_of_locked(session, object) < session->objects_used) return TIDE_ERROR_EXISTS;
  if (session->objects_used >= session->config.object_count) return TIDE_ERROR_CAPACITY_OBJECTS;
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

int tide_session_add_object(tide_session_t *session, tide_object_t *object) {
  if (session == NULL || object == NULL || object->description.kind < TIDE_XRCE_KIND_PARTICIPANT ||
      object->description.kind > TIDE_XRCE_KIND_REPLIER) {
    return TIDE_ERROR_ARGUMENT;
  }
  const creation_t create = {{0, object->id}, &object->description};
  int status = plan_request(session, measure(put_create, &create));
  if (status != TIDE_OK) return status;
  const uintptr_t critical = enter(session);
  status = register_locked(session, object);
  leave(session, critical);
  if (status == TIDE_OK) kick(session);
  return status;
}

static void remove_locked(tide_session_t *session, tide_object_t *object) {
  size_t i = index_of_locked(session, object);
  if (i == session->objects_used) return; /* the object was removed meanwhile */
  if (is_unanswered(object)) {
    --session->objects_unanswered;
  } else if (object->state == TIDE_OBJECT_REFUSED) {
    --session->objects_refused;
  }
  for (; i + 1u < session->objects_used; ++i) session->config.objects[i] = session->config.objects[i + 1u];
  --session->objects_used;
  object->state = TIDE_OBJECT_REMOVED;
  TIDE_INVARIANT(counts_hold(session) && index_of_locked(session, object) == session->objects_used);
}

int tide_session_remove_object(tide_session_t *session, tide_object_t *object) {
  if (TIDE_LEAN) return TIDE_ERROR_UNSUPPORTED;
  if (session == NULL || object == NULL) return TIDE_ERROR_ARGUMENT;
  uintptr_t critical = enter(session);
  const bool known = index_of_locked(session, object) < session->objects_used;
  const bool on_agent = is_up(session) && (object->state == TIDE_OBJECT_CREATED || object->state == TIDE_OBJECT_ASKED);
  tide_xrce_request_t request = {0, object->id};
  if (known && on_agent) {
    request.request = next_request_locked(session);
    ++session->deletes_unanswered;
  }
  leave(session, critical);
  if (!known) return TIDE_ERROR_NOT_FOUND;
  const int status = on_agent ? send_request(session, TIDE_XRCE_DELETE, put_request, &request) : TIDE_OK;
  critical = enter(session);
  if (status == TIDE_OK) {
    remove_locked(session, object);
  } else if (session->deletes_unanswered > 0u) { /* no answer is awaited from a lost session */
    --session->deletes_unanswered;
  }
  leave(session, critical);
  if (status == TIDE_OK) { /* not on errors: a caller that waits for a free node would be woken by its own attempts and
                              never sleep */
    kick(session);
  }
  return status;
}

/* Marks all objects as waiting again. */
static void forget_objects_locked(tide_session_t *session) {
  for (size_t i = 0; i < session->objects_used; ++i) session->config.objects[i]->state = TIDE_OBJECT_WAITING;
  session->objects_unanswered = (uint16_t)session->objects_used;
  session->objects_refused = 0;
  session->deletes_unanswered = 0;
  TIDE_INVARIANT(counts_hold(session));
}

/* Repeats come first, then the first waiting object, as long as few enough requests are pending. Returns NULL if none
 * is due before *next_ns. On a reliable stream unacknowledged requests need no repeat: the stream repeats them. */
static tide_object_t *object_in_turn_locked(const tide_session_t *session, int64_t now_ns, bool idle,
                                            int64_t *next_ns) {
  const int64_t patience_ns = idle ? 0 : 4 * session->config.request_period_ns;
  tide_object_t *waiting = NULL;
  unsigned under_way = 0;
  *next_ns = TIDE_FOREVER;
  for (size_t i = 0; i < session->objects_used; ++i) {
    tide_object_t *object = session->config.objects[i];
    if (object->state == TIDE_OBJECT_ASKED) {
      ++under_way;
      if (now_ns - object->retry_at_ns >= patience_ns) return object;
      const int64_t retry_ns = object->retry_at_ns > now_ns ? object->retry_at_ns : now_ns + RETRY_FULL_NS;
      *next_ns = earlier(*next_ns, retry_ns);
    } else if (object->state == TIDE_OBJECT_WAITING && waiting == NULL) {
      waiting = object;
    }
  }
  return under_way < session->config.creations_at_once ? waiting : NULL;
}

/* A repeated request keeps its request id, so whichever answer comes first counts. The state changes before the frame
 * is sent, because the answer may arrive in another context. */
static int encode_create_locked(tide_session_t *session, tide_object_t *object, tide_node_t *node, int64_t now_ns) {
  const bool first = object->state == TIDE_OBJECT_WAITING;
  const creation_t create = {{first ? session->next_request : object->request, object->id}, &object->description};
  const uint8_t flags = session->config.create_flags & (TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE);
  const int status = encode_request(node, TIDE_XRCE_CREATE, flags, put_create, &create);
  if (status != TIDE_OK) return status;
  if (first) {
    object->request = next_request_locked(session);
  } else {
    TIDE_COUNT(session->counters.requests_repeated, 1u);
  }
  TIDE_INVARIANT(is_unanswered(object) && object->id != 0u && object->request >= REQUEST_FIRST);
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

static int create_next(tide_session_t *session, int64_t now_ns, bool idle, int64_t *next_ns) {
  uintptr_t critical = enter(session);
  tide_object_t *object = object_in_turn_locked(session, now_ns, idle, next_ns);
  size_t bytes = 0;
  if (object != NULL) {
    const creation_t create = {{0, object->id}, &object->description};
    bytes = measure(put_create, &create);
  }
  leave(session, critical);
  if (object == NULL) return TIDE_ERROR_NOT_FOUND;
  tide_node_t *node = NULL;
  int status = acquire_request(session, bytes, &node);
  if (status != TIDE_OK) return status;
  critical = enter(session);
  if (!TIDE_SINGLE_CONTEXT) { /* another thread may have changed the table meanwhile */
    int64_t ignored_ns;
    if (!TIDE_LEAN) {
      object = object_in_turn_locked(session, now_ns, idle, &ignored_ns);
    } else if (!is_unanswered(object)) {
      object = NULL;
    }
  }
  const uint16_t id = object != NULL ? object->id : 0u;
  status = object != NULL ? encode_create_locked(session, object, node, now_ns) : TIDE_ERROR_NOT_FOUND;
  leave(session, critical);
  if (status != TIDE_OK) {
    tide_daemon_abandon(&session->daemon, node);
    return status;
  }
  if (submit_request(session, node) == TIDE_OK) return TIDE_OK;
  /* The stream cannot carry the request (best effort, and longer than a message). This is an error of the program,
   * reported as a refusal. */
  critical = enter(session);
  object = find_object_locked(session, id);
  if (object != NULL && is_unanswered(object)) refuse_locked(session, object, TIDE_XRCE_STATUS_ERR_RESOURCES);
  leave(session, critical);
  wake_waiting(session);
  return TIDE_OK;
}

static int64_t create_objects(tide_session_t *session, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  const uintptr_t critical = enter(session);
  const bool any = session->objects_unanswered > 0u;
  leave(session, critical);
  if (!any) return next_ns;
  const uint8_t stream = session->config.object_stream;
  const bool idle = !TIDE_STREAM_IS_RELIABLE(stream) || tide_daemon_is_idle(&session->daemon, stream);
  int status = TIDE_OK;
  for (size_t turns = 0; status == TIDE_OK && turns <= session->config.object_count; ++turns) {
    status = create_next(session, now_ns, idle, &next_ns);
  }
  return status == TIDE_ERROR_NOT_FOUND ? next_ns : now_ns + RETRY_FULL_NS;
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
    session->progress_ns = now(session);
    return true;
  }
  return false;
}

/* ---- readers: which samples the program wants, and their queues ---- */

static tide_reader_t **bucket_of(tide_session_t *session, uint16_t object) {
  return &session->readers[(object >> 4) % TIDE_SESSION_READER_BUCKETS];
}

static tide_reader_t *find_reader_locked(const tide_session_t *session, tide_xrce_request_t request) {
  tide_reader_t *reader = session->readers[(request.object >> 4) % TIDE_SESSION_READER_BUCKETS];
  while (reader != NULL && (reader->object != request.object || reader->request != request.request)) {
    reader = reader->next;
  }
  return reader;
}

static bool has_reader_locked(tide_session_t *session, const tide_reader_t *reader) {
  const tide_reader_t *other = *bucket_of(session, reader->object);
  while (other != NULL && other != reader) other = other->next;
  return other != NULL;
}

/* The queued sample at distance `behind` from the first one. */
static tide_sample_t *sample_at(const tide_reader_t *reader, size_t behind) {
  const size_t index = reader->first + behind;
  return &reader->samples[index < reader->depth ? index : index - reader->depth];
}

static tide_sample_t *remove_first_locked(tide_reader_t *reader) {
  tide_sample_t *first = &reader->samples[reader->first++];
  if (reader->first == reader->depth) reader->first = 0;
  --reader->count;
  return first;
}

/* True if the reader's first sample arrived at least TIDE_BURST_NS ago. */
static bool is_old_locked(tide_session_t *session, const tide_reader_t *reader) {
  return reader->count > 0u && now(session) - sample_at(reader, 0)->arrived_ns >= TIDE_BURST_NS;
}

/* True if more samples wait (or, with `more`, will wait) than the history depth, and the oldest is older than a
 * burst. */
static bool has_old_locked(tide_session_t *session, const tide_reader_t *reader, size_t more) {
  if (!is_old_locked(session, reader)) return false;
  return tide_receiver_is_behind(&session->daemon.receiver, &reader->account, reader->count + more, true);
}

/* Evicts the reader's first sample. */
static void evict_first_locked(tide_session_t *session, tide_reader_t *reader) {
  const tide_sample_t *oldest = remove_first_locked(reader);
  ++reader->dropped;
  tide_receiver_release(&session->daemon.receiver, oldest->memory, oldest->reassembled);
}

/* While newer frames find no slot, evicts old samples of keep-last readers that exceed their history or use all slots
 * reserved for them. Returns the time when the next sample becomes old. */
static int64_t make_room(tide_session_t *session) {
  int64_t next_ns = TIDE_FOREVER;
  if (!TIDE_RESERVATIONS) return next_ns;
  const uintptr_t critical = enter(session);
  for (size_t i = 0; session->daemon.receiver.withheld && i < TIDE_SESSION_READER_BUCKETS; ++i) {
    for (tide_reader_t *reader = session->readers[i]; reader != NULL; reader = reader->next) {
      if (reader->keep_last == 0u) continue;
      while (has_old_locked(session, reader, 0u)) evict_first_locked(session, reader);
      if (reader->count > 0u && !is_old_locked(session, reader))
        next_ns = earlier(next_ns, sample_at(reader, 0)->arrived_ns + TIDE_BURST_NS);
    }
  }
  leave(session, critical);
  return next_ns;
}

static int32_t session_priority_of(void *context, uint8_t stream, tide_xrce_request_t request,
                                   tide_account_t **account) {
  tide_session_t *session = context;
  (void)stream;
  int32_t priority = TIDE_PRIORITY_NONE;
  const uintptr_t critical = enter(session);
  tide_reader_t *reader = find_reader_locked(session, request);
  if (reader == NULL || reader->state != TIDE_OBJECT_CREATED) {
    TIDE_COUNT(session->counters.samples_unwanted, 1u);
  } else {
    priority = (int32_t)reader->priority | TIDE_FRAME_OWNER(reader->owner);
    *account = &reader->account;
    if (TIDE_RESERVATIONS && has_old_locked(session, reader, 1u)) { /* makes room for this sample */
      evict_first_locked(session, reader);
    }
  }
  leave(session, critical);
  return priority;
}

int tide_session_add_reader(tide_session_t *session, tide_reader_t *reader) {
  if (session == NULL || reader == NULL || reader->samples == NULL || reader->depth == 0u || reader->object == 0u ||
      TIDE_PRIORITY_LEVEL(reader->priority) > TIDE_LEVEL_MAXIMUM) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (!TIDE_RELIABLE_STREAMS && reader->reliable) return TIDE_ERROR_UNSUPPORTED;
  const int status = plan_request(session, READ_BYTES);
  if (status != TIDE_OK) return status;
  const uintptr_t critical = enter(session);
  const bool known = has_reader_locked(session, reader);
  if (!known) {
    reader->state = TIDE_OBJECT_WAITING;
    reader->status = TIDE_XRCE_STATUS_OK;
    reader->first = reader->count = 0;
    reader->received = reader->dropped = 0;
    reader->request = 0;
    reader->current.memory = NULL;
    tide_reader_t **link = bucket_of(session, reader->object);
    while (*link != NULL) link = &(*link)->next;
    reader->next = NULL;
    *link = reader;
    tide_receiver_open_account(&session->daemon.receiver, &reader->account, reader->depth);
    reader->account.keep = reader->keep_last;
    session->readers_waiting = true;
  }
  leave(session, critical);
  if (known) return TIDE_ERROR_EXISTS;
  kick(session);
  return TIDE_OK;
}

size_t tide_session_queued(tide_session_t *session, const tide_reader_t *reader) {
  const uintptr_t critical = enter(session);
  const size_t count = reader->count;
  leave(session, critical);
  return count;
}

const tide_sample_t *tide_session_peek(tide_session_t *session, tide_reader_t *reader) {
  const uintptr_t critical = enter(session);
  if (reader->current.memory == NULL && reader->count > 0u) reader->current = *remove_first_locked(reader);
  const bool any = reader->current.memory != NULL;
  const bool resumes = TIDE_RESERVATIONS && reader->account.full && reader->count < reader->depth;
  leave(session, critical);
  if (resumes) tide_daemon_resume(&session->daemon, &reader->account);
  return any ? &reader->current : NULL;
}

void tide_session_take_done(tide_session_t *session, tide_reader_t *reader) {
  const uintptr_t critical = enter(session);
  const tide_sample_t sample = reader->current;
  reader->current.memory = NULL;
  leave(session, critical);
  if (sample.memory != NULL) tide_daemon_release(&session->daemon, sample.memory, sample.reassembled);
}

int tide_session_remove_reader(tide_session_t *session, tide_reader_t *reader) {
  if (TIDE_LEAN) return TIDE_ERROR_UNSUPPORTED;
  if (session == NULL || reader == NULL) return TIDE_ERROR_ARGUMENT;
  uintptr_t critical = enter(session);
  tide_reader_t **link = bucket_of(session, reader->object);
  while (*link != NULL && *link != reader) link = &(*link)->next;
  const bool known = *link != NULL;
  if (known) {
    *link = reader->next;
    TIDE_INVARIANT(reader->first < reader->depth && reader->count <= reader->depth);
    tide_receiver_close_account(&session->daemon.receiver, &reader->account);
  }
  const bool cancel = known && is_up(session) && reader->state == TIDE_OBJECT_CREATED;
  reader->state = TIDE_OBJECT_REMOVED;
  tide_xrce_read_data_t read = {.has_delivery_control = true};
  read.request.object = reader->object;
  if (cancel) read.request.request = next_request_locked(session);
  leave(session, critical);
  if (!known) return TIDE_ERROR_NOT_FOUND;
  do {
    tide_session_take_done(session, reader);
  } while (tide_session_peek(session, reader) != NULL);
  return cancel ? send_request(session, TIDE_XRCE_READ_DATA, put_read, &read) : TIDE_OK;
}

void tide_session_set_reader_owner(tide_session_t *session, tide_reader_t *reader, uint8_t owner) {
  const uintptr_t critical = enter(session);
  reader->owner = owner;
  leave(session, critical);
}

int tide_session_set_reader_priority(tide_session_t *session, tide_reader_t *reader, tide_priority_t priority) {
  if (session == NULL || reader == NULL || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) {
    return TIDE_ERROR_ARGUMENT;
  }
  const uintptr_t critical = enter(session);
  const bool other_stream = TIDE_PRIORITY_LEVEL(priority) != TIDE_PRIORITY_LEVEL(reader->priority);
  reader->priority = priority;
  if (other_stream && has_reader_locked(session, reader) && reader->state == TIDE_OBJECT_CREATED) {
    reader->retry_at_ns = 0; /* stays CREATED: samples on the old stream are accepted until the agent has switched */
    reader->repeats = 1;
    session->readers_waiting = true;
  }
  leave(session, critical);
  if (other_stream) kick(session);
  return TIDE_OK;
}

static void forget_readers_locked(tide_session_t *session) {
  for (size_t i = 0; i < TIDE_SESSION_READER_BUCKETS; ++i) {
    for (tide_reader_t *reader = session->readers[i]; reader != NULL; reader = reader->next) {
      reader->state = TIDE_OBJECT_WAITING;
    }
  }
  session->readers_waiting = true;
}

/* ---- READ_DATA: one for each reader when its object exists, and repeated on a lossy stream ---- */

/* *loser: set if the status reports undelivered messages of this service or client. */
static bool status_of_reader_locked(tide_session_t *session, const tide_xrce_status_body_t *status,
                                    tide_reader_t **loser) {
  tide_reader_t *reader = find_reader_locked(session, status->related);
  if (reader == NULL || reader->state != TIDE_OBJECT_CREATED) return false;
  /* An agent of tide reports dropped messages by two statuses with their number: samples that are too long for this
   * link or its client, and undelivered requests or replies. */
  const uint8_t count = status->implementation_status;
  if (status->status == TIDE_XRCE_STATUS_ERR_RESOURCES) {
    TIDE_COUNT(session->counters.samples_too_large, count);
    return true;
  }
  if (!TIDE_LEAN && status->status == TIDE_XRCE_STATUS_ERR_DDS && count != 0u) {
    session->counters.undelivered += count;
    __atomic_store_n(&reader->undelivered, reader->undelivered + count, __ATOMIC_RELAXED);
    *loser = reader;
    return true;
  }
  reader->status = status->status;
  reader->repeats = 0;
  if (tide_xrce_is_error(status->status)) reader->state = TIDE_OBJECT_REFUSED;
  return true;
}

/* True if the reader's READ_DATA may be sent or repeated now: its object exists, or another program creates it. */
static bool may_ask_locked(const tide_session_t *session, const tide_reader_t *reader, int64_t now_ns) {
  if (reader->state == TIDE_OBJECT_CREATED) return reader->repeats > 0u && now_ns >= reader->retry_at_ns;
  if (reader->state != TIDE_OBJECT_WAITING) return false;
  const tide_object_t *object = find_object_locked(session, reader->object);
  return object == NULL || object->state == TIDE_OBJECT_CREATED;
}

/* Returns the next reader for which READ_DATA is due, or NULL; *next_ns becomes the time of the earliest repeat. The
 * order of the readers does not matter, because readers are independent. */
static tide_reader_t *reader_in_turn_locked(tide_session_t *session, int64_t now_ns, int64_t *next_ns, bool *waiting) {
  *next_ns = TIDE_FOREVER;
  *waiting = false;
  for (size_t i = 0; i < TIDE_SESSION_READER_BUCKETS; ++i) {
    for (tide_reader_t *reader = session->readers[i]; reader != NULL; reader = reader->next) {
      if (may_ask_locked(session, reader, now_ns)) return reader;
      if (reader->state == TIDE_OBJECT_CREATED && reader->repeats > 0u) {
        *next_ns = earlier(*next_ns, reader->retry_at_ns);
        *waiting = true;
      }
    }
  }
  return NULL;
}

static void mark_asked_locked(tide_session_t *session, tide_reader_t *reader, int64_t now_ns) {
  if (reader->state == TIDE_OBJECT_WAITING) {
    reader->repeats = (uint8_t)(TIDE_STREAM_IS_RELIABLE(session->config.object_stream) ? 0u : READ_REPEATS_BEST_EFFORT);
  } else {
    TIDE_INVARIANT(reader->state == TIDE_OBJECT_CREATED && reader->repeats > 0u);
    --reader->repeats;
  }
  if (reader->request == 0u) reader->request = next_request_locked(session);
  reader->state = TIDE_OBJECT_CREATED;
  reader->retry_at_ns = now_ns + session->config.request_period_ns;
}

static void encode_read_locked(const tide_reader_t *reader, tide_node_t *node) {
  const uint8_t level = TIDE_PRIORITY_LEVEL(reader->priority);
  const tide_xrce_read_data_t read = {
      .request = {reader->request, reader->object},
      .stream = reader->reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level),
      .has_delivery_control = true,
      .max_samples = reader->max_samples == 0u ? SAMPLES_UNLIMITED : reader->max_samples,
      .max_elapsed_time_s = reader->max_elapsed_s,
      .max_bytes_per_second = reader->max_bytes_per_s,
      .min_pace_period_ms = reader->min_pace_ms};
  const int status = encode_request(node, TIDE_XRCE_READ_DATA, 0, put_read, &read);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK); /* READ_BYTES were acquired for it */
}

/* Returns false if no reader is due, or no node is free. */
static bool ask_next(tide_session_t *session, int64_t now_ns, int64_t *next_ns) {
  tide_node_t *node = NULL;
  bool waiting = false;
  uintptr_t critical = enter(session);
  tide_reader_t *reader = reader_in_turn_locked(session, now_ns, next_ns, &waiting);
  if (reader == NULL) session->readers_waiting = waiting;
  leave(session, critical);
  if (reader == NULL) return false;
  if (acquire_request(session, READ_BYTES, &node) != TIDE_OK) {
    *next_ns = now_ns + RETRY_FULL_NS;
    return false;
  }
  critical = enter(session);
  if (!TIDE_SINGLE_CONTEXT) {
    if (!TIDE_LEAN) {
      reader = reader_in_turn_locked(session, now_ns, next_ns, &waiting);
    } else if (!may_ask_locked(session, reader, now_ns)) {
      reader = NULL;
    }
  }
  if (reader != NULL) {
    mark_asked_locked(session, reader, now_ns);
    encode_read_locked(reader, node);
  }
  leave(session, critical);
  if (reader == NULL) {
    tide_daemon_abandon(&session->daemon, node);
    return false;
  }
  return submit_request(session, node) == TIDE_OK;
}

static int64_t ask_readers(tide_session_t *session, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  const uintptr_t critical = enter(session);
  const bool waiting = session->readers_waiting;
  leave(session, critical);
  while (waiting && ask_next(session, now_ns, &next_ns)) {}
  return next_ns;
}

/* ---- samples arrive and stay in their frames ---- */

static void deliver(tide_session_t *session, const tide_delivery_t *delivery, tide_xrce_request_t request,
                    const uint8_t *bytes, size_t length) {
  const bool big_endian = (delivery->submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0u;
  const tide_sample_t sample = {bytes,      (uint32_t)length,    delivery->memory, delivery->reassembled,
                                big_endian, delivery->arrived_ns};
  tide_sample_t oldest = {.memory = NULL};
  const uintptr_t critical = enter(session);
  tide_reader_t *reader = find_reader_locked(session, request);
  if (reader != NULL) {
    tide_receiver_retain(&session->daemon.receiver, delivery);
    if (reader->count == reader->depth) { /* keep last: the oldest sample is evicted */
      oldest = *remove_first_locked(reader);
      ++reader->dropped;
    }
    *sample_at(reader, reader->count) = sample;
    ++reader->count;
    ++reader->received;
    if (TIDE_RESERVATIONS && reader->keep_all && reader->count == reader->depth) {
      tide_receiver_set_full(&session->daemon.receiver, &reader->account, true);
    }
  } else {
    TIDE_COUNT(session->counters.samples_unwanted, 1u);
  }
  leave(session, critical);
  if (oldest.memory != NULL) tide_daemon_release(&session->daemon, oldest.memory, oldest.reassembled);
  if (reader != NULL && reader->on_sample != NULL) reader->on_sample(reader->context, reader);
}

/* State of is_welcome while it inspects the waiting frames of equal urgency one after another. */
typedef struct welcome {
  tide_session_t *session;
  const tide_reader_t *stuck; /* reader of the first frame, if it keeps its last samples and has no room for the frame;
                               * else null */
} welcome_t;

/* True if the next frame can be processed now: its reader's queue has room for it, or it or a later frame must replace
 * an old sample, or frames of other readers wait behind it. Those must not be delayed by a reader whose history is
 * deeper than its queue. */
static bool is_welcome(void *context, const tide_account_t *account, bool is_first) {
  welcome_t *welcome = context;
  tide_session_t *session = welcome->session;
  if (account == &session->daemon.receiver.nobody) return is_first;
  const tide_reader_t *reader =
      (const tide_reader_t *)(const void *)((const uint8_t *)account - offsetof(tide_reader_t, account));
  if (!TIDE_RESERVATIONS) {
    return reader->count < reader->depth || (reader->keep_last > 0u && is_old_locked(session, reader));
  }
  if (has_old_locked(session, reader, 0u)) return true;
  if (!is_first) return welcome->stuck != NULL && reader != welcome->stuck;
  if (reader->count < reader->depth) return true;
  if (reader->keep_last > 0u && is_old_locked(session, reader)) welcome->stuck = reader;
  return false;
}

bool tide_session_is_welcome(tide_session_t *session, const tide_frame_share_t *share) {
  const uintptr_t critical = enter(session);
  welcome_t welcome = {session, NULL};
  const bool is_one = tide_receiver_any_of(&session->daemon.receiver, share, &welcome, is_welcome);
  leave(session, critical);
  return is_one;
}

static void on_data(tide_session_t *session, const tide_delivery_t *delivery) {
  const tide_xrce_submessage_t *submessage = &delivery->submessage;
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                  (submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0u);
  const tide_xrce_request_t request = tide_xrce_get_request(&cdr);
  const size_t length = tide_cdr_remaining(&cdr);
  const uint8_t *bytes = tide_cdr_view(&cdr, length);
  /* READ_DATA requests the format DATA, so no other format is expected */
  if (cdr.status == TIDE_OK && (submessage->flags & TIDE_XRCE_FORMAT_MASK) == TIDE_XRCE_FORMAT_DATA) {
    deliver(session, delivery, request, bytes, length);
    return;
  }
  const uintptr_t critical = enter(session);
  TIDE_COUNT(session->counters.samples_malformed, 1u);
  leave(session, critical);
}

/* ---- publishing, and holding samples that cannot be published yet ----
 *
 * A sample may enter its stream only when the agent knows its writer: a WRITE_DATA for an unknown object is dropped
 * silently. While objects are being created, reliable samples are therefore held here, in order and without a sequence
 * number. They enter their streams after the creations. */

/* Invariant: the list's length and end are consistent, and its nodes are in no other list. O(n). */
static bool hold_is_whole(const tide_session_t *session) {
  size_t count = 0;
  const tide_node_t *last = NULL;
  for (const tide_node_t *node = session->held_first; node != NULL; node = node->next_in_stream) {
    last = node;
    ++count;
    if (tide_queue_contains(&node->entry) || node == session->reserve) return false;
  }
  return count == session->held_count && last == session->held_last;
}

static void note_held_maximum(tide_session_t *session) {
  if (!TIDE_LEAN && session->held_count > session->counters.held_maximum) {
    session->counters.held_maximum = session->held_count;
  }
}

static void hold_locked(tide_session_t *session, tide_node_t *node) {
  node->next_in_stream = NULL;
  if (session->held_last == NULL) {
    session->held_first = node;
  } else {
    session->held_last->next_in_stream = node;
  }
  session->held_last = node;
  ++session->held_count;
  note_held_maximum(session);
  TIDE_INVARIANT(hold_is_whole(session));
}

static void unlink_held_locked(tide_session_t *session, tide_node_t *previous, tide_node_t *node) {
  TIDE_INVARIANT(session->held_count > 0u &&
                 (previous == NULL ? session->held_first : previous->next_in_stream) == node);
  if (previous == NULL) {
    session->held_first = node->next_in_stream;
  } else {
    previous->next_in_stream = node->next_in_stream;
  }
  if (session->held_last == node) session->held_last = previous;
  node->next_in_stream = NULL;
  --session->held_count;
  TIDE_INVARIANT(hold_is_whole(session));
}

static uint16_t object_of(const tide_node_t *node) {
  return tide_xrce_read_request(node->bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES).object;
}

static bool is_answered_locked(const tide_session_t *session, uint16_t id) {
  if (session->objects_unanswered == 0u) return true;
  const tide_object_t *object = find_object_locked(session, id);
  return object == NULL || (object->state != TIDE_OBJECT_WAITING && object->state != TIDE_OBJECT_ASKED);
}

/* A held node is a sample, or the DELETE request of an object. */
static uint8_t stream_of_held(const tide_session_t *session, const tide_node_t *node) {
  if (node->bytes[0] == TIDE_XRCE_DELETE) return session->config.object_stream;
  return TIDE_STREAM_RELIABLE(TIDE_PRIORITY_LEVEL(node->priority));
}

/* Submits held nodes whose object exists; the nodes of one object stay in order. Returns true if none is held any
 * more. */
static bool release_held(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return true;
  for (;;) {
    const uintptr_t critical = enter(session);
    tide_node_t *previous = NULL, *node = is_up(session) ? session->held_first : NULL;
    while (node != NULL && !is_answered_locked(session, object_of(node))) {
      previous = node;
      node = node->next_in_stream;
    }
    if (node != NULL) unlink_held_locked(session, previous, node);
    const bool empty = session->held_first == NULL;
    leave(session, critical);
    if (node == NULL) return empty;
    (void)tide_daemon_submit(&session->daemon, node, stream_of_held(session, node));
  }
}

static void discard_held(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return;
  for (;;) {
    const uintptr_t critical = enter(session);
    tide_node_t *node = session->held_first;
    if (node != NULL) unlink_held_locked(session, NULL, node);
    leave(session, critical);
    if (node == NULL) return;
    tide_daemon_abandon(&session->daemon, node);
  }
}

/* Moves unacknowledged samples from the streams to the front of the list of held samples. */
static void take_back(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return;
  const uintptr_t critical = enter(session);
  tide_node_t *later = session->held_first, *last = session->held_last;
  const uint16_t count = session->held_count;
  tide_node_t *node = tide_transmitter_take_back(&session->daemon.transmitter);
  session->held_first = session->held_last = NULL;
  session->held_count = 0;
  while (node != NULL) {
    tide_node_t *next = node->next_in_stream;
    /* the next session repeats creations and READ_DATA itself, so only samples and DELETEs are kept */
    if (node->bytes[0] == TIDE_XRCE_WRITE_DATA || node->bytes[0] == TIDE_XRCE_DELETE) {
      hold_locked(session, node);
    } else {
      tide_daemon_abandon(&session->daemon, node);
    }
    node = next;
  }
  if (later != NULL) {
    *(session->held_last == NULL ? &session->held_first : &session->held_last->next_in_stream) = later;
    session->held_last = last;
    session->held_count = (uint16_t)(session->held_count + count);
    note_held_maximum(session);
  }
  TIDE_INVARIANT(hold_is_whole(session));
  leave(session, critical);
}

static int may_write_locked(tide_session_t *session, uint16_t object, bool reliable) {
  if (session->state == TIDE_SESSION_CLOSING || (!reliable && session->state != TIDE_SESSION_READY)) {
    return TIDE_ERROR_DISCONNECTED;
  }
  if (session->objects_refused > 0u) {
    const tide_object_t *writer = find_object_locked(session, object);
    return writer != NULL && writer->state == TIDE_OBJECT_REFUSED ? TIDE_ERROR_REFUSED : TIDE_OK;
  }
  return TIDE_OK;
}

/* If SECTIONS_ARE_DEAR, one critical section suffices while a node and the reserve are available, as they are unless
 * the pool runs short. */
static int reserve_node(tide_session_t *session, tide_write_t *write, const tide_writer_t *writer, uint32_t bytes,
                        uint16_t *request) {
  const bool reliable = writer->reliable;
  const uintptr_t critical = enter(session);
  const int status = may_write_locked(session, writer->object, reliable);
  session->reserve_needed = session->reserve_needed || reliable;
  const bool reserved = !TIDE_RELIABLE_STREAMS || !reliable || (SECTIONS_ARE_DEAR && has_reserve_locked(session));
  *request = next_request_locked(session);
  if (SECTIONS_ARE_DEAR && status == TIDE_OK && reserved) {
    (void)tide_transmitter_acquire_free(&session->daemon.transmitter, bytes, writer->priority, writer->object,
                                        &write->node);
  }
  leave(session, critical);
  if (status != TIDE_OK || write->node != NULL) return status;
  if (!reserved && !keep_reserve(session)) return TIDE_ERROR_FULL;
  const int acquired =
      !TIDE_LEAN && writer->keep_last > 0u
          ? tide_daemon_acquire_last(&session->daemon, bytes, writer->priority, writer->object, &write->node)
          : tide_daemon_acquire_for(&session->daemon, bytes, writer->priority, writer->object, &write->node);
  /* Meanwhile a request may have taken the reserve. If no other node can replace it, this node is given back. Otherwise
   * samples could hold all nodes, no object could be created, and no held sample could ever leave. */
  if (!TIDE_SINGLE_CONTEXT && reliable && acquired == TIDE_OK && !keep_reserve(session)) {
    tide_daemon_abandon(&session->daemon, write->node);
    write->node = NULL;
    return TIDE_ERROR_FULL;
  }
  return acquired;
}

/* Best-effort samples are not fragmented, so one that is too long for a frame is refused. The result does not depend on
 * how full the pool is. */
static bool is_too_long(const tide_session_t *session, const tide_writer_t *writer, uint32_t bytes) {
  if (bytes > SAMPLE_BYTES_MAXIMUM) return true;
  return !writer->reliable && WRITE_HEADER_BYTES + bytes + (uint32_t)tide_xrce_header_bytes(session->config.session) >
                                  session->daemon.transmitter.config.message_bytes;
}

int tide_session_write_begin_by(tide_session_t *session, tide_write_t *write, const tide_writer_t *writer,
                                uint32_t bytes) {
  const uint8_t level = TIDE_PRIORITY_LEVEL(writer->priority);
  if (level > TIDE_LEVEL_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  write->node = NULL;
  if (!TIDE_RELIABLE_STREAMS && writer->reliable) return TIDE_ERROR_UNSUPPORTED;
  if (is_too_long(session, writer, bytes)) return TIDE_ERROR_TOO_LARGE;
  tide_xrce_request_t request = {0u, writer->object};
  const int status = reserve_node(session, write, writer, WRITE_HEADER_BYTES + bytes, &request.request);
  if (status != TIDE_OK) return status;
  TIDE_INVARIANT(write->node->capacity >= WRITE_HEADER_BYTES + bytes && write->node != session->reserve);
  write->session = session;
  write->stream = writer->reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  write->keep_last = writer->keep_last;
  uint8_t *const place = write->node->bytes;
  tide_xrce_write_request(place + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, request);
  tide_cdr_writer_at(&write->cdr, place, WRITE_HEADER_BYTES + bytes, WRITE_HEADER_BYTES);
  return TIDE_OK;
}

int tide_session_write_begin(tide_session_t *session, tide_write_t *write, uint16_t object, bool reliable,
                             tide_priority_t priority, uint32_t bytes) {
  const tide_writer_t writer = {.object = object, .priority = priority, .reliable = reliable};
  if (session == NULL || write == NULL) return TIDE_ERROR_ARGUMENT;
  return tide_session_write_begin_by(session, write, &writer, bytes);
}

int tide_session_write_end(tide_write_t *write) {
  if (write == NULL || write->node == NULL) return TIDE_ERROR_ARGUMENT;
  tide_session_t *session = write->session;
  tide_node_t *node = write->node;
  const bool reliable = TIDE_STREAM_IS_RELIABLE(write->stream);
  if (write->cdr.status != TIDE_OK) {
    const int status = write->cdr.status;
    tide_session_write_abandon(write);
    return status;
  }
  write->node = NULL;
  TIDE_INVARIANT(write->cdr.position >= WRITE_HEADER_BYTES && write->cdr.position <= node->capacity);
  node->length = (uint32_t)write->cdr.position;
  tide_xrce_put_submessage_header(node->bytes, TIDE_XRCE_WRITE_DATA, TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                  (uint16_t)(node->length - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES));
  /* Decides and submits in one critical section, so that no sample falls between the old and the new session. */
  const uintptr_t critical = enter(session);
  if (TIDE_RELIABLE_STREAMS && reliable &&
      (session->state != TIDE_SESSION_READY || !is_answered_locked(session, object_of(node)))) {
    hold_locked(session, node);
    leave(session, critical);
    return TIDE_OK;
  }
  if (!TIDE_LEAN && write->keep_last > 0u && session->daemon.transmitter.execution_buffer.count >= write->keep_last)
    tide_daemon_keep_last_locked(&session->daemon, node, write->stream, write->keep_last);
  return tide_daemon_submit_and_leave(&session->daemon, node, write->stream, critical);
}

void tide_session_write_abandon(tide_write_t *write) {
  if (write != NULL && write->node != NULL) {
    tide_daemon_abandon(&write->session->daemon, write->node);
    write->node = NULL;
  }
}

bool tide_session_is_idle(tide_session_t *session, uint8_t stream) {
  const uintptr_t critical = enter(session);
  bool held = stream == 0u && session->held_first != NULL;
  for (const tide_node_t *node = session->held_first; node != NULL && !held; node = node->next_in_stream) {
    held = stream_of_held(session, node) == stream;
  }
  leave(session, critical);
  return !held && tide_daemon_is_idle(&session->daemon, stream);
}

/* ---- samples longer than any node ---- */

static tide_node_t *take_free(tide_long_write_t *write) {
  const uintptr_t critical = enter(write->session);
  tide_node_t *node = write->message.free;
  if (node != NULL) write->message.free = node->next_free;
  leave(write->session, critical);
  return node;
}

int tide_session_long_begin(tide_session_t *session, tide_long_write_t *write, uint16_t object,
                            tide_priority_t priority, uint32_t bytes) {
  if (session == NULL || write == NULL || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM ||
      bytes > UINT32_MAX - WRITE_HEADER_BYTES) {
    return TIDE_ERROR_ARGUMENT;
  }
  *write = (tide_long_write_t){.session = session, .stream = TIDE_STREAM_RELIABLE(TIDE_PRIORITY_LEVEL(priority))};
  if (!TIDE_LONG_MESSAGES) return TIDE_ERROR_UNSUPPORTED;
  const uintptr_t critical = enter(session);
  const tide_object_t *writer = find_object_locked(session, object);
  const bool refused = writer != NULL && writer->state == TIDE_OBJECT_REFUSED;
  const bool ready = session->state == TIDE_SESSION_READY && writer != NULL && writer->state == TIDE_OBJECT_CREATED;
  int status = refused ? TIDE_ERROR_REFUSED : ready ? TIDE_OK : TIDE_ERROR_DISCONNECTED;
  session->reserve_needed = true;
  const tide_xrce_request_t request = {next_request_locked(session), object};
  leave(session, critical);
  if (status != TIDE_OK) return status;
  if (!keep_reserve(session)) return TIDE_ERROR_FULL;

  /* One node is enough; more nodes keep the link busy while the next part is written. */
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  const uint32_t largest = config->classes[config->class_count - 1u].node_bytes;
  const uint32_t whole = WRITE_HEADER_BYTES + bytes, asked = whole < largest ? whole : largest;
  const uint32_t enough = LONG_FRAGMENTS_ENOUGH * config->message_bytes;
  uint32_t taken = 0;
  for (uint32_t count = 0; count < LONG_NODES_MAXIMUM && taken < whole && taken < enough; ++count) {
    tide_node_t *node = NULL;
    status = tide_daemon_acquire_for(&session->daemon, asked, priority, object, &node);
    if (status != TIDE_OK) break;
    taken += node->capacity;
    node->next_free = write->message.free;
    write->message.free = node;
  }
  if (write->message.free == NULL) return status;
  write->node = take_free(write);
  TIDE_INVARIANT(write->node != NULL && write->node->capacity >= WRITE_HEADER_BYTES);
  const uint32_t body_bytes = WRITE_HEADER_BYTES - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + bytes;
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, write->node->bytes, write->node->capacity);
  cdr.position = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  tide_xrce_put_request(&cdr, request);
  tide_xrce_put_submessage_header(write->node->bytes, TIDE_XRCE_WRITE_DATA, TIDE_XRCE_FLAG_LITTLE_ENDIAN,
                                  body_bytes <= UINT16_MAX ? (uint16_t)body_bytes : 0u);
  write->used = WRITE_HEADER_BYTES;
  write->left = bytes;
  return TIDE_OK;
}

uint8_t *tide_session_long_place(const tide_long_write_t *write, uint32_t *bytes) {
  *bytes = 0;
  if (write->node == NULL) return NULL;
  const uint32_t room = write->node->capacity - write->used;
  *bytes = room < write->left ? room : write->left;
  return write->node->bytes + write->used;
}

void tide_session_long_wrote(tide_long_write_t *write, uint32_t bytes) {
  TIDE_INVARIANT(write->node != NULL && bytes <= write->left && bytes <= write->node->capacity - write->used);
  write->used += bytes;
  write->left -= bytes;
}

int tide_session_long_flush(tide_long_write_t *write) {
  tide_node_t *node = write->node;
  int status = TIDE_OK;
  if (node != NULL) {
    if (write->used < node->capacity && write->left > 0u) return TIDE_OK;
    node->length = write->used;
    status = tide_daemon_submit_part(&write->session->daemon, &write->message, node, write->stream, write->left == 0u);
    if (status == TIDE_ERROR_FULL) { /* another long message occupies the stream, so this one has not begun and keeps
                                        its first part */
      write->node = take_free(write);
      TIDE_INVARIANT(write->node == node);
      return status;
    }
    write->node = NULL;
    write->used = 0;
  }
  if (status == TIDE_OK && write->left > 0u) {
    write->node = take_free(write);
    status = write->node != NULL ? TIDE_OK : TIDE_ERROR_FULL;
  }
  if (write->message.lost) status = TIDE_ERROR_DISCONNECTED;
  return status;
}

int tide_session_long_poll(const tide_long_write_t *write) {
  const uintptr_t critical = enter(write->session);
  const tide_long_message_t *message = &write->message;
  int status = message->complete && message->parts == 0u ? TIDE_OK : TIDE_ERROR_FULL;
  if (message->lost) status = TIDE_ERROR_DISCONNECTED;
  leave(write->session, critical);
  return status;
}

uint16_t tide_session_long_progress(const tide_long_write_t *write) {
  tide_session_t *session = write->session;
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  uint16_t acknowledged = 0;
  const uintptr_t critical = enter(session);
  for (size_t i = 0; i < config->stream_count; ++i) {
    if (config->streams[i].id == write->stream) acknowledged = config->streams[i].first_unacknowledged;
  }
  leave(session, critical);
  return acknowledged;
}

void tide_session_long_end(tide_long_write_t *write) {
  tide_session_t *session = write->session;
  const uintptr_t critical = enter(session);
  const bool given_up = tide_transmitter_give_up_long(&session->daemon.transmitter, &write->message, now(session));
  session->agent_lost = session->agent_lost || (given_up && is_up(session));
  leave(session, critical);
  if (write->node != NULL) {
    tide_daemon_abandon(&session->daemon, write->node);
    write->node = NULL;
  }
  for (tide_node_t *node = take_free(write); node != NULL; node = take_free(write)) {
    tide_daemon_abandon(&session->daemon, node);
  }
  if (given_up) kick(session);
}

/* ---- liveness: whether the agent answers and knows the session; the program and this check share one GET_INFO at a
 * time ---- */

static int send_ping(tide_session_t *session, int64_t now_ns) {
  uintptr_t critical = enter(session);
  if (session->ping_under_way) { /* a late answer to the previous ping must not count for this one */
    session->ping_request = session->ping_request > PING_REQUEST_LEAST ? (uint16_t)(session->ping_request - 1u)
                                                                       : (uint16_t)PING_REQUEST_USUAL;
  }
  TIDE_INVARIANT(session->ping_request >= PING_REQUEST_LEAST && session->ping_request <= PING_REQUEST_USUAL);
  session->ping_under_way = true;
  session->ping_sent_ns = now_ns;
  TIDE_COUNT(session->counters.pings, 1u);
  const tide_xrce_get_info_body_t body = {{session->ping_request, TIDE_XRCE_OBJECT_AGENT}, INFO_ACTIVITY};
  const uint8_t header =
      is_up(session) || session->state == TIDE_SESSION_CLOSING ? OWN_ID : TIDE_XRCE_SESSION_NONE_WITHOUT_KEY;
  leave(session, critical);
  return send_control(session, TIDE_XRCE_GET_INFO, put_get_info, &body, header);
}

int tide_session_ping(tide_session_t *session) {
  if (session == NULL) return TIDE_ERROR_ARGUMENT;
  const uintptr_t critical = enter(session);
  session->ping_asked = true;
  session->ping_round_trip_ns = -1;
  leave(session, critical);
  const int status = send_ping(session, now(session));
  kick(session);
  return status;
}

static void on_info(tide_session_t *session, const tide_xrce_status_body_t *info, int64_t arrived_ns) {
  const uintptr_t critical = enter(session);
  if (session->ping_under_way && info->related.object == TIDE_XRCE_OBJECT_AGENT &&
      info->related.request == session->ping_request) {
    session->ping_under_way = session->ping_asked = false;
    session->ping_request = PING_REQUEST_USUAL;
    session->ping_round_trip_ns = arrived_ns - session->ping_sent_ns;
    session->ping_answers++;
    session->unanswered_pings = 0;
    session->info_knows_us = info->implementation_status == 1u;
    session->agent_lost = session->agent_lost || (is_up(session) && !session->info_knows_us);
  }
  leave(session, critical);
  wake_waiting(session);
}

/* How long a ping waits for its answer. */
static int64_t answer_limit_ns(const tide_session_t *session) {
  return (int64_t)((uint64_t)session->config.silence_limit_ns / 2u);
}

/* True if a stream's HEARTBEATs stay unanswered, even if frames still arrive; only an INFO can then tell whether the
 * session exists. */
static bool has_suspicion_locked(const tide_session_t *session) {
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  for (size_t i = 0; TIDE_RELIABLE_STREAMS && i < session->daemon.transmitter.stream_places; ++i) {
    const tide_output_stream_t *stream = &config->streams[i];
    if (stream->id != 0u && stream->heartbeats_unanswered >= HEARTBEATS_UNANSWERED_SUSPICIOUS) return true;
  }
  return false;
}

typedef enum verdict { LIVENESS_WAIT, LIVENESS_ASK, LIVENESS_LOST, LIVENESS_REST } verdict_t;

static verdict_t judge_locked(tide_session_t *session, int64_t now_ns, int64_t heard_ns, bool suspicious) {
  const bool rested = now_ns - session->ping_sent_ns >= answer_limit_ns(session);
  if (session->ping_under_way) {
    if (!rested) return LIVENESS_WAIT;
    const bool well = heard_ns > session->ping_sent_ns && !suspicious; /* frames arrive */
    session->unanswered_pings = well ? 0u : (uint8_t)(session->unanswered_pings + 1u);
    if (!well || session->ping_asked) {
      if (session->unanswered_pings < PINGS_UNANSWERED_MAXIMUM) return LIVENESS_ASK;
      session->ping_under_way = false;
      session->agent_lost = true;
      return LIVENESS_LOST;
    }
    session->ping_under_way = false;
  }
  const bool silent = now_ns - heard_ns >= session->config.silence_limit_ns;
  return silent || (suspicious && rested) ? LIVENESS_ASK : LIVENESS_REST;
}

static int64_t check_liveness(tide_session_t *session, int64_t now_ns) {
  const uintptr_t critical = enter(session);
  const bool suspicious = has_suspicion_locked(session);
  const int64_t received_ns = session->daemon.last_received_ns;
  const int64_t heard_ns = received_ns > session->state_since_ns ? received_ns : session->state_since_ns;
  const int64_t asked_ns = session->ping_sent_ns;
  const verdict_t verdict = judge_locked(session, now_ns, heard_ns, suspicious);
  leave(session, critical);
  switch (verdict) {
    case LIVENESS_ASK: (void)send_ping(session, now_ns); return now_ns + answer_limit_ns(session);
    case LIVENESS_WAIT: return asked_ns + answer_limit_ns(session);
    case LIVENESS_LOST: return now_ns;
    case LIVENESS_REST:
    default: return heard_ns + session->config.silence_limit_ns;
  }
}

/* ---- time synchronisation ----
 *
 * The error of an exchange is at most half its round trip (if all the delay is on one side), so the quickest recent
 * exchange is used. If a new exchange contradicts it by more than the sum of both errors, one of the clocks was set,
 * and the history is discarded. */

int tide_session_synchronise(tide_session_t *session) {
  if (TIDE_LEAN) return TIDE_ERROR_UNSUPPORTED;
  if (session == NULL) return TIDE_ERROR_ARGUMENT;
  const int64_t now_ns = now(session);
  const tide_xrce_time_t originate = tide_xrce_time_from_ns(now_ns);
  const uintptr_t critical = enter(session);
  const bool up = is_up(session);
  if (up) {
    session->time_sync_sent_ns = now_ns;
    session->time_sync_under_way = true;
  }
  leave(session, critical);
  if (!up) return TIDE_ERROR_DISCONNECTED;
  return send_control(session, TIDE_XRCE_TIMESTAMP, put_timestamp, &originate, OWN_ID);
}

static void add_time_sample_locked(tide_session_t *session, int64_t offset_ns, int64_t round_trip_ns) {
  const tide_time_sync_t *sync = &session->time_sync;
  const int64_t doubt_ns = (round_trip_ns + sync->round_trip_ns) / 2 + CLOCK_DRIFT_ALLOWANCE_NS;
  const int64_t change_ns = offset_ns - sync->offset_ns;
  if (sync->exchanges > 0u && (change_ns < -doubt_ns || change_ns > doubt_ns)) {
    session->time_sample_count = session->time_sample_next = 0;
  }
  session->time_samples[session->time_sample_next].offset_ns = offset_ns;
  session->time_samples[session->time_sample_next].round_trip_ns = round_trip_ns;
  session->time_sample_next = (uint8_t)((session->time_sample_next + 1u) % TIDE_SESSION_TIME_SAMPLES);
  if (session->time_sample_count < TIDE_SESSION_TIME_SAMPLES) ++session->time_sample_count;
  uint8_t best = 0;
  for (uint8_t i = 1; i < session->time_sample_count; ++i) {
    if (session->time_samples[i].round_trip_ns < session->time_samples[best].round_trip_ns) best = i;
  }
  session->time_sync.offset_ns = session->time_samples[best].offset_ns;
  session->time_sync.round_trip_ns = session->time_samples[best].round_trip_ns;
  ++session->time_sync.exchanges;
}

static void on_timestamp_reply(tide_session_t *session, const tide_xrce_timestamp_reply_t *reply, int64_t arrived_ns) {
  if (TIDE_LEAN) return;
  const int64_t sent_ns = tide_xrce_time_to_ns(reply->originate);
  const int64_t agent_received_ns = tide_xrce_time_to_ns(reply->receive);
  const int64_t agent_sent_ns = tide_xrce_time_to_ns(reply->transmit);
  const int64_t measured_ns = (arrived_ns - sent_ns) - (agent_sent_ns - agent_received_ns);
  /* The client's tick clock may not have advanced although the agent's finer clock did, so the difference may be
   * negative. */
  const int64_t there_and_back_ns = measured_ns < 0 && measured_ns >= -CLOCK_STEP_MOST_NS ? 0 : measured_ns;
  const uintptr_t critical = enter(session);
  if (session->time_sync_under_way && sent_ns == session->time_sync_sent_ns && there_and_back_ns >= 0 &&
      agent_sent_ns >= agent_received_ns) {
    session->time_sync_under_way = false;
    /* As in NTP: the mean of the offsets that the two directions show. */
    const int64_t offset_ns = ((agent_received_ns - sent_ns) + (agent_sent_ns - arrived_ns)) / 2;
    add_time_sample_locked(session, offset_ns, there_and_back_ns);
  } else {
    ++session->time_sync.ignored;
  }
  leave(session, critical);
  wake_waiting(session);
}

/* ---- submessages from the agent ----
 *
 * Submessages without a stream come from the reception handler, which may be an interrupt: they only set flags here,
 * and poll handles these. */

static void on_status(tide_session_t *session, const tide_xrce_status_body_t *status) {
  tide_reader_t *loser = NULL;
  const uintptr_t critical = enter(session);
  if (status->related.object == TIDE_XRCE_OBJECT_CLIENT) {
    session->close_answered = session->state == TIDE_SESSION_CLOSING;
  } else if (status_of_object_locked(session, status) || status_of_reader_locked(session, status, &loser)) {
    /* one of these two functions has handled the status */
  } else if (session->deletes_unanswered > 0u && find_object_locked(session, status->related.object) == NULL) {
    --session->deletes_unanswered;
  } else {
    TIDE_COUNT(session->counters.statuses_unexpected, 1u);
  }
  leave(session, critical);
  if (loser != NULL && loser->on_sample != NULL) loser->on_sample(loser->context, loser);
  wake_waiting(session);
}

static void on_status_agent(tide_session_t *session, const tide_xrce_header_t *header, tide_cdr_t *cdr) {
  tide_xrce_status_agent_t answer;
  tide_xrce_get_status_agent(cdr, &answer);
  if (cdr->status != TIDE_OK) return;
  const uintptr_t critical = enter(session);
  const bool awaited = session->state == TIDE_SESSION_CONNECTING || session->state == TIDE_SESSION_REFUSED;
  const bool ours = header->session == session->id || tide_xrce_is_error(answer.status);
  if (awaited && ours && session->attempts > 0u && !session->agent_answered) {
    session->agent_answered = true;
    session->agent_answer = answer;
    /* From now on messages belong to the new session, although poll has not handled its beginning yet; earlier messages
     * do not. */
    tide_receiver_reset(&session->daemon.receiver);
    if (!tide_xrce_is_error(answer.status)) {
      tide_receiver_set_session(&session->daemon.receiver, session->id, session->config.key);
    }
  }
  leave(session, critical);
}

/* Called by the reception handler: makes tide_session_poll due now, or makes a running one check again. */
static void note_work(tide_session_t *session) {
  const uintptr_t critical = enter(session);
  __atomic_store_n(&session->work_noted, true, __ATOMIC_RELAXED);
  if (session->polling) {
    session->poll_again = true;
  } else {
    session->deadline_ns = now(session);
  }
  leave(session, critical);
}

static void on_answer(tide_session_t *session, const tide_delivery_t *delivery) {
  tide_xrce_status_body_t status;
  tide_xrce_timestamp_reply_t reply;
  tide_xrce_get_info_body_t question;
  uintptr_t critical;
  tide_cdr_t cdr;
  const tide_xrce_submessage_t *submessage = &delivery->submessage;
  tide_cdr_reader(&cdr, submessage->body, submessage->body_bytes,
                  (submessage->flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0u);
  switch (submessage->id) {
    case TIDE_XRCE_STATUS:
      tide_xrce_get_status(&cdr, &status);
      if (cdr.status != TIDE_OK) break;
      on_status(session, &status);
      note_work(session);
      break;
    case TIDE_XRCE_INFO:
      tide_xrce_get_status(&cdr, &status); /* an INFO begins like a STATUS, and the rest is of no use to this client */
      if (cdr.status == TIDE_OK) on_info(session, &status, delivery->arrived_ns);
      break;
    case TIDE_XRCE_TIMESTAMP_REPLY:
      if (TIDE_LEAN) break;
      tide_xrce_get_timestamp_reply(&cdr, &reply);
      if (cdr.status == TIDE_OK) on_timestamp_reply(session, &reply, delivery->arrived_ns);
      break;
    case TIDE_XRCE_STATUS_AGENT: on_status_agent(session, &delivery->header, &cdr); break;
    case TIDE_XRCE_GET_INFO:
      if (TIDE_LEAN) break;
      tide_xrce_get_get_info(&cdr, &question);
      if (cdr.status != TIDE_OK || question.request.object != TIDE_XRCE_OBJECT_CLIENT) break;
      critical = enter(session);
      session->info_due = true;
      session->info_request = question.request.request;
      leave(session, critical);
      break;
    case TIDE_XRCE_RESET:
      critical = enter(session);
      session->agent_lost = is_up(session);
      leave(session, critical);
      break;
    default: /* the daemon handles HEARTBEAT; the others are for agents */ break;
  }
}

static void session_on_control(void *context, const tide_delivery_t *delivery) {
  tide_session_t *session = context;
  if (delivery->submessage.id != TIDE_XRCE_ACKNACK) {
    on_answer(session, delivery);
  } else if (session->daemon.out_of_step && is_up(session)) {
    /* the agent acknowledges messages that were never sent in this session, so it does not know the session */
    session->agent_lost = true;
  }
}

static void session_on_submessage(void *context, const tide_delivery_t *delivery) {
  tide_session_t *session = context;
  if (delivery->submessage.id == TIDE_XRCE_DATA) {
    on_data(session, delivery);
    return;
  }
  on_answer(session, delivery);
  kick(session);
}

/* ---- the state machine of the connection ---- */

static void ask_for_poll(tide_session_t *session) {
  if (session->config.on_work != NULL) session->config.on_work(session->config.context);
}

static void session_on_activity(void *context) {
  tide_session_t *session = context;
  wake_waiting(session);
  if (__atomic_load_n(&session->work_noted, __ATOMIC_RELAXED)) {
    __atomic_store_n(&session->work_noted, false, __ATOMIC_RELAXED);
    ask_for_poll(session);
  }
  if (session->config.daemon.on_activity != NULL) session->config.daemon.on_activity(session->config.daemon.context);
}

static void session_on_done(void *context, tide_node_t *node, tide_node_outcome_t outcome) {
  tide_session_t *session = context;
  if (session->config.daemon.on_done != NULL) {
    session->config.daemon.on_done(session->config.daemon.context, node, outcome);
  }
}

/* Returns true if the state has changed, so that tell_state must follow after the critical section. */
static bool enter_state_locked(tide_session_t *session, tide_session_state_t state, int64_t now_ns) {
  TIDE_INVARIANT(session->objects_unanswered + session->objects_refused <= session->objects_used);
  TIDE_INVARIANT(state != TIDE_SESSION_READY || (session->objects_unanswered == 0u && session->held_first == NULL));
  TIDE_INVARIANT(state != TIDE_SESSION_READY || session->state == TIDE_SESSION_CREATING || session->state == state);
  TIDE_INVARIANT(state != TIDE_SESSION_IDLE || session->state == TIDE_SESSION_CLOSING);
  const bool changed = session->state != state;
  __atomic_store_n(&session->state, state, __ATOMIC_RELEASE);
  session->state_since_ns = now_ns;
  return changed;
}

static void tell_state(tide_session_t *session, tide_session_state_t state) {
  wake_waiting(session);
  if (session->config.on_state != NULL) session->config.on_state(session->config.context, state);
}

static void set_state(tide_session_t *session, tide_session_state_t state, int64_t now_ns) {
  const uintptr_t critical = enter(session);
  const bool changed = enter_state_locked(session, state, now_ns);
  leave(session, critical);
  if (changed) tell_state(session, state);
}

static uint8_t id_after(uint8_t id) {
  TIDE_INVARIANT(id != TIDE_XRCE_SESSION_NONE_WITH_KEY && id != TIDE_XRCE_SESSION_NONE_WITHOUT_KEY);
  TIDE_INVARIANT(id != TIDE_XRCE_SESSION_ANY);
  if (id == WITHOUT_KEY_LAST) return WITHOUT_KEY_FIRST;
  return id == WITH_KEY_LAST ? (uint8_t)WITH_KEY_FIRST : (uint8_t)(id + 1u);
}

static void start_connecting(tide_session_t *session, int64_t now_ns) {
  const uintptr_t critical = enter(session);
  session->reset_due = true;
  session->agent_lost = session->agent_answered = false;
  if (session->id_used) {
    session->id = id_after(session->id);
    session->id_used = false;
  }
  session->attempts = 0;
  session->request_at_ns = now_ns;
  const bool changed = enter_state_locked(session, TIDE_SESSION_CONNECTING, now_ns);
  leave(session, critical);
  if (changed) tell_state(session, TIDE_SESSION_CONNECTING);
}

/* Resets everything that belongs to a session; all objects must be created again. Between sessions, answers with any
 * session id are accepted. Samples of the old session are not accepted, because they would be acknowledged and then
 * lost. */
static void forget_session_locked(tide_session_t *session) {
  tide_receiver_set_session(&session->daemon.receiver, TIDE_XRCE_SESSION_NONE_WITHOUT_KEY, session->config.key);
  forget_objects_locked(session);
  forget_readers_locked(session);
}

static void leave_old_session(tide_session_t *session) {
  take_back(session);
  tide_daemon_reset(&session->daemon, false);
  if (TIDE_LONG_MESSAGES) {
    tide_daemon_pause_streams(&session->daemon, false); /* because an abandoned long message has paused the streams */
  }
  const uintptr_t critical = enter(session);
  TIDE_INVARIANT(!is_up(session));
  forget_session_locked(session);
  session->reset_due = false;
  leave(session, critical);
}

static int64_t send_create_client(tide_session_t *session, int64_t now_ns) {
  const tide_session_config_t *config = &session->config;
  const tide_xrce_create_client_t body = {.version_major = 1,
                                          .version_minor = 0,
                                          .vendor = config->vendor,
                                          .key = config->key,
                                          .session = session->id,
                                          .mtu = (uint16_t)(config->mtu - ANNOUNCED_LESS_BYTES)};
  const uint8_t header =
      tide_xrce_session_has_key(body.session) ? TIDE_XRCE_SESSION_NONE_WITH_KEY : TIDE_XRCE_SESSION_NONE_WITHOUT_KEY;
  const int64_t period_ns = config->connect_period_ns;
  const uintptr_t critical = enter(session);
  session->attempts = session->attempts < UINT8_MAX ? (uint8_t)(session->attempts + 1u) : UINT8_MAX;
  const int64_t wait_ns = session->state == TIDE_SESSION_REFUSED ? 5 * period_ns
                          : session->attempts <= QUICK_ATTEMPTS  ? (int64_t)((uint64_t)period_ns / 5u)
                                                                 : period_ns;
  session->request_at_ns = now_ns + wait_ns;
  leave(session, critical);
  (void)send_control(session, TIDE_XRCE_CREATE_CLIENT, put_create_client, &body, header);
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
    take_back(session); /* drops requests submitted while the old session ended; the receiver is already reset */
    tide_daemon_set_session(&session->daemon, session->id, session->config.key);
  }
  const uintptr_t critical = enter(session);
  session->agent_answered = false;
  if (accepted) {
    accept_locked(session, now_ns);
  } else {
    session->refusal = tide_xrce_is_error(answer->status) ? answer->status : (uint8_t)TIDE_XRCE_STATUS_ERR_INCOMPATIBLE;
    session->request_at_ns = now_ns + 5 * session->config.connect_period_ns;
  }
  const bool changed = enter_state_locked(session, state, now_ns);
  leave(session, critical);
  if (changed) tell_state(session, state);
}

static int64_t connect(tide_session_t *session, int64_t now_ns) {
  uintptr_t critical = enter(session);
  const bool reset_due = session->reset_due;
  leave(session, critical);
  if (reset_due) leave_old_session(session);
  critical = enter(session);
  const bool answered = session->agent_answered;
  const int64_t request_at_ns = session->request_at_ns;
  leave(session, critical);
  if (answered) {
    on_agent_answer(session, now_ns);
    return now_ns;
  }
  return now_ns >= request_at_ns ? send_create_client(session, now_ns) : request_at_ns;
}

/* READY begins only when no sample is held any more, so that no new sample overtakes a held one. */
static void become_ready(tide_session_t *session, int64_t now_ns) {
  while (release_held(session)) {
    const uintptr_t critical = enter(session);
    const bool more_objects = session->objects_unanswered > 0u;
    const bool ready = session->held_first == NULL && !more_objects && session->state == TIDE_SESSION_CREATING;
    if (ready) (void)enter_state_locked(session, TIDE_SESSION_READY, now_ns);
    leave(session, critical);
    if (ready) tell_state(session, TIDE_SESSION_READY);
    if (ready || more_objects) return;
  }
}

static int64_t serve(tide_session_t *session, int64_t now_ns) {
  uintptr_t critical = enter(session);
  const bool waiting = session->state == TIDE_SESSION_CREATING && session->objects_unanswered > 0u;
  const bool stalled = waiting && now_ns - session->progress_ns >= 10 * session->config.request_period_ns;
  const bool lost = session->agent_lost || stalled;
  leave(session, critical);
  if (lost) {
    TIDE_COUNT(session->counters.reconnects, 1u);
    start_connecting(session, now_ns);
    return now_ns;
  }
  (void)keep_reserve(session);
  int64_t next_ns = create_objects(session, now_ns);
  next_ns = earlier(next_ns, ask_readers(session, now_ns));
  next_ns = earlier(next_ns, check_liveness(session, now_ns));
  critical = enter(session);
  const tide_session_state_t state = session->state;
  const bool unanswered = session->objects_unanswered > 0u, held = session->held_first != NULL;
  leave(session, critical);
  if (state == TIDE_SESSION_CREATING && !unanswered) {
    become_ready(session, now_ns);
  } else if (state == TIDE_SESSION_READY && held) {
    (void)release_held(session);
  }
  return next_ns;
}

static void end(tide_session_t *session, int64_t now_ns) {
  discard_held(session);
  drop_reserve(session);
  tide_daemon_reset(&session->daemon, false);
  const uintptr_t critical = enter(session);
  forget_session_locked(session);
  const bool again = session->wanted;
  leave(session, critical);
  set_state(session, TIDE_SESSION_IDLE, now_ns);
  if (again) start_connecting(session, now_ns);
}

static int64_t say_goodbye(tide_session_t *session, int64_t now_ns) {
  const tide_xrce_request_t request = {REQUEST_DELETE_CLIENT, TIDE_XRCE_OBJECT_CLIENT};
  /* Messages published before the session was closed are sent first, but a blocked link does not delay the program for
   * long. */
  uintptr_t critical = enter(session);
  const bool waits =
      session->attempts == 0u && now_ns - session->state_since_ns < session->config.connect_period_ns / 5;
  leave(session, critical);
  if (waits && !tide_daemon_is_idle(&session->daemon, 0)) return now_ns + RETRY_FULL_NS;
  critical = enter(session);
  const bool due = now_ns >= session->request_at_ns;
  const bool over = session->close_answered || (due && session->attempts >= CLOSE_ATTEMPTS);
  if (due && !over) {
    ++session->attempts;
    session->request_at_ns = now_ns + session->config.connect_period_ns / 5;
  }
  const int64_t next_ns = session->request_at_ns;
  leave(session, critical);
  if (over) {
    end(session, now_ns);
    return now_ns;
  }
  if (due) { /* as urgent as CREATE_CLIENT: if it is queued while the link is down, it must not leave after the next
                session's CREATE_CLIENT */
    (void)send_control(session, TIDE_XRCE_DELETE, put_request, &request, OWN_ID);
  }
  return next_ns;
}

static void answer_agent(tide_session_t *session) {
  if (TIDE_LEAN) return;
  const uintptr_t critical = enter(session);
  const bool due = session->info_due;
  const uint16_t request = session->info_request;
  session->info_due = false;
  leave(session, critical);
  if (due) {
    const tide_xrce_info_t info = {.related = {request, TIDE_XRCE_OBJECT_CLIENT},
                                   .implementation_status = 1,
                                   .vendor = session->config.vendor,
                                   .version_major = 1};
    (void)send_control(session, TIDE_XRCE_INFO, put_info, &info, OWN_ID);
  }
}

static int64_t step(tide_session_t *session, int64_t now_ns) {
  answer_agent(session);
  switch (__atomic_load_n(&session->state, __ATOMIC_RELAXED)) {
    case TIDE_SESSION_CONNECTING:
    case TIDE_SESSION_REFUSED: return connect(session, now_ns);
    case TIDE_SESSION_CREATING:
    case TIDE_SESSION_READY: return serve(session, now_ns);
    case TIDE_SESSION_CLOSING: return TIDE_LEAN ? TIDE_FOREVER : say_goodbye(session, now_ns);
    case TIDE_SESSION_IDLE:
    default: return TIDE_FOREVER;
  }
}

/* If a step is already running, a second caller returns at once and is notified later. The second caller may be an
 * interrupt that preempts the first caller; if it polled again at once, the first caller could never finish. */
static bool begin_run(tide_session_t *session) {
  const uintptr_t critical = enter(session);
  const bool mine = !session->polling;
  session->polling = true;
  session->poll_again = session->poll_refused = !mine;
  session->deadline_ns = TIDE_FOREVER;
  TIDE_COUNT(session->counters.polls, 1u);
  leave(session, critical);
  return mine;
}

static bool end_run(tide_session_t *session, int64_t next_ns, bool *refused) {
  const uintptr_t critical = enter(session);
  TIDE_INVARIANT(session->polling);
  const bool ended = !session->poll_again;
  *refused = session->poll_refused;
  session->poll_again = false;
  session->polling = !ended;
  session->deadline_ns = ended ? next_ns : TIDE_FOREVER;
  leave(session, critical);
  return ended;
}

/* One caller does the work, also for callers that arrive meanwhile. Returns true if there were such callers. */
static bool run(tide_session_t *session) {
  if (!begin_run(session)) return false;
  int64_t next_ns = 0;
  bool refused = false;
  do {
    int64_t now_ns = 0;
    int steps = 0;
    do {
      now_ns = now(session);
      next_ns = step(session, now_ns);
    } while (next_ns <= now_ns && ++steps < STEPS_AT_ONCE_MAXIMUM);
  } while (!end_run(session, next_ns, &refused));
  return !TIDE_SINGLE_CONTEXT && refused;
}

static void kick(tide_session_t *session) {
  (void)run(session);
  ask_for_poll(session);
}

/* The daemon's poll may send the HEARTBEAT that makes a stream suspicious: the ping is then due at once, or as soon as
 * the previous one has timed out. */
static int64_t poll_daemon(tide_session_t *session) {
  const int64_t room_ns = make_room(session);
  const int64_t daemon_ns = earlier(tide_daemon_poll(&session->daemon), room_ns);
  const uintptr_t critical = enter(session);
  int64_t next_ns = earlier(session->deadline_ns, daemon_ns);
  if (is_up(session) && !session->ping_under_way && has_suspicion_locked(session)) {
    next_ns = earlier(next_ns, session->ping_sent_ns + answer_limit_ns(session));
  }
  leave(session, critical);
  return next_ns;
}

int64_t tide_session_poll(tide_session_t *session) {
  if (run(session)) ask_for_poll(session);
  return poll_daemon(session);
}

int64_t tide_session_poll_received(tide_session_t *session) {
  const int64_t now_ns = now(session);
  uintptr_t critical = enter(session);
  /* A session rests when all objects exist, no sample is held, and no flag is set. tide_session_poll then only has to
   * poll the daemon, when one of the daemon's deadlines has passed. */
  const bool marked = session->polling || session->agent_lost || session->info_due;
  const bool lacks_reserve = session->reserve_needed && !has_reserve_locked(session);
  const bool requests = session->objects_unanswered > 0u || session->readers_waiting || session->held_first != NULL;
  const bool rests = session->state == TIDE_SESSION_READY && now_ns < session->deadline_ns && !marked && !requests &&
                     !lacks_reserve && !has_suspicion_locked(session);
  const tide_transmitter_t *transmitter = &session->daemon.transmitter;
  const bool is_still = !session->daemon.changed && !tide_receiver_is_short(&session->daemon.receiver) &&
                        (transmitter->busy || !tide_transmitter_has_next(transmitter));
  const int64_t next_ns = earlier(session->deadline_ns, tide_transmitter_deadline(transmitter));
  leave(session, critical);
  if (rests && is_still && now_ns < next_ns) return next_ns;
  return rests ? poll_daemon(session) : tide_session_poll(session);
}

void tide_session_open(tide_session_t *session) {
  const uintptr_t critical = enter(session);
  const bool idle = session->state == TIDE_SESSION_IDLE && !session->wanted;
  session->wanted = true;
  leave(session, critical);
  if (idle) start_connecting(session, now(session));
  kick(session);
}

void tide_session_close(tide_session_t *session) {
  const int64_t now_ns = now(session);
  const uintptr_t critical = enter(session);
  const bool open = session->wanted && session->state != TIDE_SESSION_CLOSING;
  const bool up = is_up(session);
  session->wanted = false;
  if (open) {
    session->attempts = up ? 0u : (uint8_t)CLOSE_ATTEMPTS; /* an agent that has never answered needs no DELETE */
    session->close_answered = false;
    session->reset_due = false;
    session->request_at_ns = now_ns;
  }
  leave(session, critical);
  if (open) set_state(session, TIDE_SESSION_CLOSING, now_ns);
  kick(session);
}

/* ---- waiting ---- */

enum { WAIT_GOES_ON = 1 };

typedef struct wait_for {
  tide_session_t *session;
  tide_session_state_t state;
  tide_object_t *object;
  uint8_t stream;
} wait_for_t;

static int refusal_of(const tide_session_t *session) {
  if (session->state != TIDE_SESSION_REFUSED) return WAIT_GOES_ON;
  return session->refusal == TIDE_XRCE_STATUS_ERR_INCOMPATIBLE ? TIDE_ERROR_VERSION : TIDE_ERROR_REFUSED;
}

static int check_state(const wait_for_t *wait) {
  return wait->session->state == wait->state ? TIDE_OK : refusal_of(wait->session);
}

static int check_object(const wait_for_t *wait) {
  switch (wait->object->state) {
    case TIDE_OBJECT_CREATED: return TIDE_OK;
    case TIDE_OBJECT_REFUSED: return TIDE_ERROR_REFUSED;
    case TIDE_OBJECT_REMOVED: return TIDE_ERROR_NOT_FOUND;
    default: return refusal_of(wait->session);
  }
}

static int check_idle(const wait_for_t *wait) {
  return tide_session_is_idle(wait->session, wait->stream) ? TIDE_OK : WAIT_GOES_ON;
}

static void set_waiting(tide_session_t *session, bool waiting) {
  const uintptr_t critical = enter(session);
  __atomic_store_n(&session->waiting, waiting, __ATOMIC_RELAXED);
  leave(session, critical);
}

static int wait_until(const wait_for_t *wait, int (*check)(const wait_for_t *wait), int64_t deadline_ns,
                      const tide_pump_t *pump) {
  tide_session_t *session = wait->session;
  int status = WAIT_GOES_ON;
  set_waiting(session, true);
  while (status == WAIT_GOES_ON) {
    const int64_t next_ns = earlier(tide_session_poll(session), deadline_ns);
    while (tide_daemon_most_urgent(&session->daemon) != TIDE_PRIORITY_NONE) {
      (void)tide_daemon_process_most_urgent(&session->daemon);
    }
    const uintptr_t critical = enter(session);
    status = check(wait);
    leave(session, critical);
    if (status == WAIT_GOES_ON && now(session) >= deadline_ns) {
      status = TIDE_ERROR_TIMEOUT;
    } else if (status == WAIT_GOES_ON && pump != NULL) {
      pump->run(pump->context, next_ns);
    } else if (status == WAIT_GOES_ON) {
      (void)tide_daemon_wait(&session->daemon, &session->changed, next_ns, TIDE_WAIT_ANSWER);
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

int tide_session_wait_idle(tide_session_t *session, uint8_t stream, int64_t deadline_ns, const tide_pump_t *pump) {
  const wait_for_t wait = {.session = session, .stream = stream};
  return wait_until(&wait, check_idle, deadline_ns, pump);
}

/* ---- set-up ---- */

/* With TIDE_STATIC_PLATFORM the daemon calls these functions directly, otherwise through pointers. */
#if TIDE_STATIC_PLATFORM
_Static_assert(offsetof(tide_session_t, daemon) + sizeof(tide_daemon_t) <= sizeof(tide_session_t),
               "a daemon lies in its session");

static tide_session_t *session_of(tide_daemon_t *daemon) {
  return (tide_session_t *)(void *)((uint8_t *)daemon - offsetof(tide_session_t, daemon));
}

int32_t tide_daemon_owner_priority_of(tide_daemon_t *daemon, uint8_t stream, tide_xrce_request_t request,
                                      tide_account_t **account) {
  return session_priority_of(session_of(daemon), stream, request, account);
}

void tide_daemon_owner_on_submessage(tide_daemon_t *daemon, const tide_delivery_t *delivery) {
  session_on_submessage(session_of(daemon), delivery);
}

void tide_daemon_owner_on_control(tide_daemon_t *daemon, const tide_delivery_t *delivery) {
  session_on_control(session_of(daemon), delivery);
}

void tide_daemon_owner_on_activity(tide_daemon_t *daemon) { session_on_activity(session_of(daemon)); }

void tide_daemon_owner_on_done(tide_daemon_t *daemon, tide_node_t *node, tide_node_outcome_t outcome) {
  session_on_done(session_of(daemon), node, outcome);
}

#endif

static void set_defaults(tide_session_config_t *config) {
  if (config->vendor == 0u) config->vendor = TIDE_XRCE_VENDOR;
  if (config->object_stream == 0u) {
    config->object_stream = TIDE_RELIABLE_STREAMS ? TIDE_STREAM_REQUESTS : TIDE_STREAM_BEST_EFFORT(0);
  }
  if (config->create_flags == 0u) config->create_flags = TIDE_XRCE_FLAG_REUSE | TIDE_XRCE_FLAG_REPLACE;
  if (config->creations_at_once == 0u) config->creations_at_once = CREATIONS_AT_ONCE_DEFAULT;
  if (!TIDE_STREAM_IS_RELIABLE(config->object_stream)) { /* no child may overtake a repeat of its parent */
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
         config->daemon.receiver.slot_bytes + ANNOUNCED_LESS_BYTES >= config->mtu;
}

int tide_session_init(tide_session_t *session, const tide_session_config_t *config) {
  if (!TIDE_LEAN && (session == NULL || config == NULL || !is_usable(config))) return TIDE_ERROR_ARGUMENT;
  memset(session, 0, sizeof *session);
  session->ping_round_trip_ns = -1;
  session->config = *config;
  session->id = config->session;
  session->next_request = REQUEST_FIRST;
  session->ping_request = REQUEST_FIRST;
  session->deadline_ns = TIDE_FOREVER;
  set_defaults(&session->config);
  tide_daemon_config_t *const daemon = &session->config.daemon;
  if (!TIDE_STATIC_PLATFORM) {
    daemon->receiver.context = session;
    daemon->receiver.priority_of = session_priority_of;
    daemon->receiver.on_submessage = session_on_submessage;
    daemon->receiver.on_control = session_on_control;
  }
  const int status = tide_daemon_init(&session->daemon, daemon);
  if (status == TIDE_OK) {
    if (!TIDE_STATIC_PLATFORM) { /* the daemon calls the session first, and the session calls the program */
      session->daemon.owner.on_activity = session_on_activity;
      session->daemon.owner.on_done = daemon->on_done != NULL ? session_on_done : NULL;
      session->daemon.owner.context = session;
    }
    tide_platform_event_init(daemon->platform, &session->changed);
    tide_daemon_set_session(&session->daemon, session->id, session->config.key);
  }
  return status;
}
