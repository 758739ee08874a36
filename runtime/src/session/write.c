/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing, and keeping what cannot be published yet.
 *
 * A sample may enter its stream only when the agent knows its writer: a WRITE_DATA for an unknown object is dropped
 * without a word. So while objects are being created, reliable samples are held here, in order, without a sequence
 * number, and enter their streams behind the creations. */
#include "internal.h"

#define WRITE_HEADER_BYTES 8u /* of the submessage, and the two ids */
#define WRITE_OBJECT_OFFSET 6u
#define SAMPLE_BYTES_MAXIMUM (UINT16_MAX - 4u)
/* Masking interrupts takes three instructions, a lock of threads some twenty: only there it pays to do all at once. */
#define SECTIONS_ARE_DEAR (!TIDE_STATIC_PLATFORM)
_Static_assert(WRITE_HEADER_BYTES == TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + 4u, "two ids follow the header");
_Static_assert(WRITE_OBJECT_OFFSET + 2u == WRITE_HEADER_BYTES, "the object's id is the second one");
_Static_assert(SAMPLE_BYTES_MAXIMUM + WRITE_HEADER_BYTES - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES <= UINT16_MAX,
               "a submessage counts its bytes in sixteen bits");

/* The list is as long as it says, ends where it says, and nobody else has its nodes. O(n). */
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
  if (TIDE_COUNTERS && session->held_count > session->counters.held_maximum) {
    session->counters.held_maximum = session->held_count;
  }
}

void tide_session_hold_locked(tide_session_t *session, tide_node_t *node) {
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
  if (session->held_last == node) {
    session->held_last = previous;
  }
  node->next_in_stream = NULL;
  --session->held_count;
  TIDE_INVARIANT(hold_is_whole(session));
}

static uint16_t object_of(const tide_node_t *node) {
  return (uint16_t)((node->bytes[WRITE_OBJECT_OFFSET] << 8) | node->bytes[WRITE_OBJECT_OFFSET + 1u]);
}

static bool is_answered_locked(const tide_session_t *session, uint16_t id) {
  if (session->objects_unanswered == 0u) {
    return true;
  }
  const tide_object_t *object = tide_session_find_object_locked(session, id);
  return object == NULL || (object->state != TIDE_OBJECT_WAITING && object->state != TIDE_OBJECT_ASKED);
}

/* The first held node whose object is there; those of one object stay in order. */
static tide_node_t *next_free_of_hold_locked(tide_session_t *session) {
  tide_node_t *previous = NULL;
  for (tide_node_t *node = session->held_first; node != NULL; node = node->next_in_stream) {
    if (is_answered_locked(session, object_of(node))) {
      unlink_held_locked(session, previous, node);
      return node;
    }
    previous = node;
  }
  return NULL;
}

bool tide_session_release_held(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return true;
  for (;;) {
    const uintptr_t critical = session_enter(session);
    tide_node_t *node = session_is_up(session) ? next_free_of_hold_locked(session) : NULL;
    const bool empty = session->held_first == NULL;
    session_exit(session, critical);
    if (node == NULL) {
      return empty;
    }
    (void)tide_daemon_submit(&session->daemon, node, TIDE_STREAM_RELIABLE(TIDE_PRIORITY_LEVEL(node->priority)));
  }
}

void tide_session_discard_held(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return;
  for (;;) {
    const uintptr_t critical = session_enter(session);
    tide_node_t *node = session->held_first;
    if (node != NULL) {
      unlink_held_locked(session, NULL, node);
    }
    session_exit(session, critical);
    if (node == NULL) {
      return;
    }
    tide_daemon_abandon(&session->daemon, node);
  }
}

/* Creations and READ_DATA are made anew in the next session, so only samples and DELETEs are worth keeping. */
static bool is_kept(const tide_node_t *node) {
  return node->bytes[0] == TIDE_XRCE_WRITE_DATA || node->bytes[0] == TIDE_XRCE_DELETE;
}

void tide_session_take_back(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return;
  const uintptr_t critical = session_enter(session);
  tide_node_t *later = session->held_first, *last = session->held_last;
  const uint16_t count = session->held_count;
  tide_node_t *node = tide_transmitter_take_back(&session->daemon.transmitter);
  session->held_first = session->held_last = NULL;
  session->held_count = 0;
  while (node != NULL) {
    tide_node_t *next = node->next_in_stream;
    if (is_kept(node)) {
      tide_session_hold_locked(session, node);
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
  session_exit(session, critical);
}

static int may_write_locked(tide_session_t *session, uint16_t object, bool reliable) {
  if (session->state == TIDE_SESSION_CLOSING || (!reliable && session->state != TIDE_SESSION_READY)) {
    return TIDE_ERROR_DISCONNECTED;
  }
  if (session->objects_refused > 0u) {
    const tide_object_t *writer = tide_session_find_object_locked(session, object);
    return writer != NULL && writer->state == TIDE_OBJECT_REFUSED ? TIDE_ERROR_REFUSED : TIDE_OK;
  }
  return TIDE_OK;
}

/* In one critical section when a node and the reserve are at hand, as they are unless the pool runs short. */
static int reserve_node(tide_session_t *session, tide_write_t *write, bool reliable, tide_priority_t priority,
                        uint32_t bytes, tide_xrce_request_t *request) {
  const uintptr_t critical = session_enter(session);
  const int status = may_write_locked(session, request->object, reliable);
  session->reserve_needed = session->reserve_needed || reliable;
  const bool reserved =
      !TIDE_RELIABLE_STREAMS || !reliable || (SECTIONS_ARE_DEAR && tide_session_has_reserve_locked(session));
  request->request = tide_session_next_request_locked(session);
  if (SECTIONS_ARE_DEAR && status == TIDE_OK && reserved) {
    (void)tide_daemon_acquire_locked(&session->daemon, bytes, priority, request->object, &write->node);
  }
  session_exit(session, critical);
  if (status != TIDE_OK || write->node != NULL) {
    return status;
  }
  if (!reserved && !tide_session_keep_reserve(session)) {
    return TIDE_ERROR_FULL;
  }
  const int acquired = tide_daemon_acquire_for(&session->daemon, bytes, priority, request->object, &write->node);
  /* Meanwhile the reserve may have gone to a request whose node this one is: were all nodes held, no object could be
   * made, and nothing held could ever leave. */
  if (!TIDE_SINGLE_CONTEXT && reliable && acquired == TIDE_OK && !tide_session_keep_reserve(session)) {
    tide_daemon_abandon(&session->daemon, write->node);
    write->node = NULL;
    return TIDE_ERROR_FULL;
  }
  return acquired;
}

/* Best-effort samples travel whole. The answer is the same however full the pool is. */
static bool fits_one_message(const tide_session_t *session, uint32_t bytes) {
  const tide_transmitter_t *transmitter = &session->daemon.transmitter;
  return WRITE_HEADER_BYTES + bytes + tide_xrce_header_bytes(transmitter->session) <= transmitter->config.message_bytes;
}

int tide_session_write_begin(tide_session_t *session, tide_write_t *write, uint16_t object, bool reliable,
                             tide_priority_t priority, uint32_t bytes) {
  if (session == NULL || write == NULL || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) {
    return TIDE_ERROR_ARGUMENT;
  }
  write->node = NULL;
  if (!TIDE_RELIABLE_STREAMS && reliable) return TIDE_ERROR_UNSUPPORTED;
  if (bytes > SAMPLE_BYTES_MAXIMUM || (!reliable && !fits_one_message(session, bytes))) {
    return TIDE_ERROR_TOO_LARGE;
  }
  tide_xrce_request_t request = {0u, object};
  const int status = reserve_node(session, write, reliable, priority, WRITE_HEADER_BYTES + bytes, &request);
  if (status != TIDE_OK) {
    return status;
  }
  TIDE_INVARIANT(write->node->capacity >= WRITE_HEADER_BYTES + bytes && write->node != session->reserve);
  const uint8_t level = TIDE_PRIORITY_LEVEL(priority);
  write->session = session;
  write->stream = reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level);
  tide_cdr_writer(&write->cdr, write->node->bytes, WRITE_HEADER_BYTES + bytes);
  write->cdr.position = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  tide_xrce_put_request(&write->cdr, request);
  tide_cdr_set_origin(&write->cdr);
  return TIDE_OK;
}

/* A reliable sample waits while there is no session, or its writer has no answer. */
static bool is_to_hold_locked(tide_session_t *session, const tide_node_t *node) {
  return session->state != TIDE_SESSION_READY || !is_answered_locked(session, object_of(node));
}

int tide_session_write_end(tide_write_t *write) {
  if (write == NULL || write->node == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
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
  /* One section for the decision and the submission: none comes between the old session and the new one. */
  const uintptr_t critical = session_enter(session);
  if (TIDE_RELIABLE_STREAMS && reliable && is_to_hold_locked(session, node)) {
    tide_session_hold_locked(session, node);
    session_exit(session, critical);
    return TIDE_OK;
  }
  return tide_daemon_submit_and_leave(&session->daemon, node, write->stream, critical);
}

void tide_session_write_abandon(tide_write_t *write) {
  if (write != NULL && write->node != NULL) {
    tide_daemon_abandon(&write->session->daemon, write->node);
    write->node = NULL;
  }
}

bool tide_session_is_idle(tide_session_t *session, uint8_t stream) {
  const uintptr_t critical = session_enter(session);
  bool held = stream == 0u && session->held_first != NULL;
  for (const tide_node_t *node = session->held_first; node != NULL && !held; node = node->next_in_stream) {
    held = TIDE_STREAM_RELIABLE(TIDE_PRIORITY_LEVEL(node->priority)) == stream;
  }
  session_exit(session, critical);
  return !held && tide_daemon_is_idle(&session->daemon, stream);
}
