/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples the program wants: registration of readers and their READ_DATA. */
#include "internal.h"

#define READ_REPEATS_BEST_EFFORT 1u /* nothing answers a READ_DATA, so on a lossy stream it is sent twice */
#define SAMPLES_UNLIMITED 0xFFFFu
#define READ_BYTES 16u /* with delivery control and without a filter */

static void put_read(tide_cdr_t *cdr, const void *body) { tide_xrce_put_read_data(cdr, body); }

static tide_reader_t **bucket_of(tide_session_t *session, uint16_t object) {
  return &session->readers[(object >> 4) % TIDE_SESSION_READER_BUCKETS];
}

tide_reader_t *tide_session_find_reader_locked(const tide_session_t *session, tide_xrce_request_t request) {
  tide_reader_t *reader = session->readers[(request.object >> 4) % TIDE_SESSION_READER_BUCKETS];
  while (reader != NULL && (reader->object != request.object || reader->request != request.request ||
                            reader->state != TIDE_OBJECT_CREATED)) {
    reader = reader->next;
  }
  return reader;
}

int32_t tide_session_priority_of(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account) {
  tide_session_t *session = context;
  (void)stream;
  const uintptr_t critical = session_enter(session);
  tide_reader_t *reader = tide_session_find_reader_locked(session, request);
  const int32_t priority =
      reader != NULL ? (int32_t)reader->priority | TIDE_FRAME_OWNER(reader->owner) : TIDE_PRIORITY_NONE;
  if (reader == NULL) {
    TIDE_COUNT(session->counters.samples_unwanted, 1u);
  } else {
    *account = &reader->account;
    if (TIDE_RESERVATIONS) tide_session_give_way_locked(session, reader);
  }
  session_exit(session, critical);
  return priority;
}

static bool is_registered_locked(tide_session_t *session, const tide_reader_t *reader) {
  const tide_reader_t *other = *bucket_of(session, reader->object);
  while (other != NULL && other != reader) {
    other = other->next;
  }
  return other != NULL;
}

/* The queue of a reader stays within its places, and the sample that is being read is in none. */
static bool queue_holds(const tide_reader_t *reader) {
  return reader->first < reader->depth && reader->count <= reader->depth;
}

static void append_locked(tide_session_t *session, tide_reader_t *reader) {
  tide_reader_t **place = bucket_of(session, reader->object);
  while (*place != NULL) {
    place = &(*place)->next;
  }
  reader->next = NULL;
  *place = reader;
  TIDE_INVARIANT(queue_holds(reader) && is_registered_locked(session, reader));
}

int tide_session_add_reader(tide_session_t *session, tide_reader_t *reader) {
  if (session == NULL || reader == NULL || reader->samples == NULL || reader->depth == 0u || reader->object == 0u ||
      TIDE_PRIORITY_LEVEL(reader->priority) > TIDE_LEVEL_MAXIMUM) {
    return TIDE_ERROR_ARGUMENT;
  }
  if (!TIDE_RELIABLE_STREAMS && reader->reliable) return TIDE_ERROR_UNSUPPORTED;
  const int status = tide_session_plan_request(session, READ_BYTES);
  if (status != TIDE_OK) {
    return status;
  }
  const uintptr_t critical = session_enter(session);
  const bool known = is_registered_locked(session, reader);
  if (!known) {
    reader->state = TIDE_OBJECT_WAITING;
    reader->status = TIDE_XRCE_STATUS_OK;
    reader->first = reader->count = 0;
    reader->received = reader->dropped = 0;
    reader->request = 0;
    reader->current.memory = NULL;
    append_locked(session, reader);
    tide_receiver_open_account(&session->daemon.receiver, &reader->account, reader->depth);
    reader->account.keep = reader->keep_last;
    session->readers_waiting = true;
  }
  session_exit(session, critical);
  if (known) {
    return TIDE_ERROR_EXISTS;
  }
  tide_session_kick(session);
  return TIDE_OK;
}

static bool unlink_locked(tide_session_t *session, const tide_reader_t *reader) {
  tide_reader_t **place = bucket_of(session, reader->object);
  while (*place != NULL && *place != reader) {
    place = &(*place)->next;
  }
  if (*place == NULL) {
    return false;
  }
  *place = reader->next;
  TIDE_INVARIANT(queue_holds(reader) && !is_registered_locked(session, reader));
  return true;
}

int tide_session_remove_reader(tide_session_t *session, tide_reader_t *reader) {
  if (!TIDE_REMOVAL) return TIDE_ERROR_UNSUPPORTED;
  if (session == NULL || reader == NULL) {
    return TIDE_ERROR_ARGUMENT;
  }
  uintptr_t critical = session_enter(session);
  const bool known = unlink_locked(session, reader);
  if (known) {
    tide_receiver_close_account(&session->daemon.receiver, &reader->account);
  }
  const bool cancel = known && session_is_up(session) && reader->state == TIDE_OBJECT_CREATED;
  reader->state = TIDE_OBJECT_REMOVED;
  tide_xrce_read_data_t read = {.has_delivery_control = true};
  read.request.object = reader->object;
  if (cancel) {
    read.request.request = tide_session_next_request_locked(session);
  }
  session_exit(session, critical);
  if (!known) {
    return TIDE_ERROR_NOT_FOUND;
  }
  tide_session_release_samples(session, reader);
  return cancel ? tide_session_send_request(session, TIDE_XRCE_READ_DATA, put_read, &read) : TIDE_OK;
}

void tide_session_set_reader_owner(tide_session_t *session, tide_reader_t *reader, uint8_t owner) {
  const uintptr_t critical = session_enter(session);
  reader->owner = owner;
  session_exit(session, critical);
}

int tide_session_set_reader_priority(tide_session_t *session, tide_reader_t *reader, tide_priority_t priority) {
  if (session == NULL || reader == NULL || TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) {
    return TIDE_ERROR_ARGUMENT;
  }
  const uintptr_t critical = session_enter(session);
  const bool other_stream = TIDE_PRIORITY_LEVEL(priority) != TIDE_PRIORITY_LEVEL(reader->priority);
  reader->priority = priority;
  if (other_stream && is_registered_locked(session, reader) && reader->state == TIDE_OBJECT_CREATED) {
    reader->retry_at_ns = 0; /* stays CREATED: what arrives on the old stream is wanted until the agent has moved */
    reader->repeats = 1;
    session->readers_waiting = true;
  }
  session_exit(session, critical);
  if (other_stream) {
    tide_session_kick(session);
  }
  return TIDE_OK;
}

void tide_session_forget_readers_locked(tide_session_t *session) {
  for (size_t i = 0; i < TIDE_SESSION_READER_BUCKETS; ++i) {
    for (tide_reader_t *reader = session->readers[i]; reader != NULL; reader = reader->next) {
      reader->state = TIDE_OBJECT_WAITING;
    }
  }
  session->readers_waiting = true;
}

bool tide_session_status_of_reader_locked(tide_session_t *session, const tide_xrce_status_body_t *status) {
  tide_reader_t *reader = tide_session_find_reader_locked(session, status->related);
  if (reader == NULL) {
    return false;
  }
  reader->status = status->status;
  reader->repeats = 0;
  if (tide_xrce_is_error(status->status)) {
    reader->state = TIDE_OBJECT_REFUSED;
  }
  return true;
}

static uint16_t or_unlimited(uint16_t samples) { return samples == 0u ? SAMPLES_UNLIMITED : samples; }

static void encode_read_locked(const tide_reader_t *reader, tide_node_t *node) {
  const uint8_t level = TIDE_PRIORITY_LEVEL(reader->priority);
  const tide_xrce_read_data_t read = {
      .request = {reader->request, reader->object},
      .stream = reader->reliable ? TIDE_STREAM_RELIABLE(level) : TIDE_STREAM_BEST_EFFORT(level),
      .has_delivery_control = true,
      .max_samples = or_unlimited(reader->max_samples),
      .max_elapsed_time_s = reader->max_elapsed_s,
      .max_bytes_per_second = reader->max_bytes_per_s,
      .min_pace_period_ms = reader->min_pace_ms};
  const int status = tide_session_encode_request(node, TIDE_XRCE_READ_DATA, 0, put_read, &read);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK); /* READ_BYTES were asked for */
}

/* A reader whose object is not ours to create (made by another program) is asked for at once. */
static bool may_ask_locked(const tide_session_t *session, const tide_reader_t *reader, int64_t now_ns) {
  if (reader->state == TIDE_OBJECT_CREATED) {
    return reader->repeats > 0u && now_ns >= reader->retry_at_ns;
  }
  if (reader->state != TIDE_OBJECT_WAITING) {
    return false;
  }
  const tide_object_t *object = tide_session_find_object_locked(session, reader->object);
  return object == NULL || object->state == TIDE_OBJECT_CREATED;
}

/* The reader that is next, or null; next_ns is when the earliest repeat is due. Readers are asked for in the order of
 * their objects' numbers, as far as buckets go: they are independent of each other. */
static tide_reader_t *whose_turn_locked(tide_session_t *session, int64_t now_ns, int64_t *next_ns, bool *waiting) {
  *next_ns = TIDE_FOREVER;
  *waiting = false;
  for (size_t i = 0; i < TIDE_SESSION_READER_BUCKETS; ++i) {
    for (tide_reader_t *reader = session->readers[i]; reader != NULL; reader = reader->next) {
      if (may_ask_locked(session, reader, now_ns)) {
        return reader;
      }
      if (reader->state == TIDE_OBJECT_CREATED && reader->repeats > 0u) {
        *next_ns = session_earlier(*next_ns, reader->retry_at_ns);
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
  if (reader->request == 0u) {
    reader->request = tide_session_next_request_locked(session);
  }
  reader->state = TIDE_OBJECT_CREATED;
  reader->retry_at_ns = now_ns + session->config.request_period_ns;
}

/* Returns false when there is nobody to ask for, or no node. */
static bool ask_next(tide_session_t *session, int64_t now_ns, int64_t *next_ns) {
  tide_node_t *node = NULL;
  bool waiting = false;
  uintptr_t critical = session_enter(session);
  tide_reader_t *reader = whose_turn_locked(session, now_ns, next_ns, &waiting);
  if (reader == NULL) {
    session->readers_waiting = waiting;
  }
  session_exit(session, critical);
  if (reader == NULL) {
    return false;
  }
  if (tide_session_acquire_request(session, READ_BYTES, &node) != TIDE_OK) {
    *next_ns = now_ns + SESSION_RETRY_FULL_NS;
    return false;
  }
  critical = session_enter(session);
  if (!TIDE_SINGLE_CONTEXT) {
    if (TIDE_REMOVAL) {
      reader = whose_turn_locked(session, now_ns, next_ns, &waiting);
    } else if (!may_ask_locked(session, reader, now_ns)) {
      reader = NULL;
    }
  }
  if (reader != NULL) {
    mark_asked_locked(session, reader, now_ns);
    encode_read_locked(reader, node);
  }
  session_exit(session, critical);
  if (reader == NULL) {
    tide_daemon_abandon(&session->daemon, node);
    return false;
  }
  return tide_session_submit_request(session, node) == TIDE_OK;
}

int64_t tide_session_ask_readers(tide_session_t *session, int64_t now_ns) {
  int64_t next_ns = TIDE_FOREVER;
  const uintptr_t critical = session_enter(session);
  const bool waiting = session->readers_waiting;
  session_exit(session, critical);
  while (waiting && ask_next(session, now_ns, &next_ns)) {
  }
  return next_ns;
}
