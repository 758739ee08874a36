/* SPDX-License-Identifier: Apache-2.0 */
/* Samples longer than any node. */
#include "tide/long_write.h"

#include "internal.h"

#define WRITE_BODY_BYTES 4u /* of the submessage before the sample: the two ids */
#define WRITE_HEADER_BYTES (TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + WRITE_BODY_BYTES)
#define NODES_MAXIMUM 4u
#define FRAGMENTS_ENOUGH 32u /* in all nodes: two windows */

static bool is_ready_locked(tide_session_t *session, uint16_t object) {
  const tide_object_t *writer = tide_session_find_object_locked(session, object);
  return session->state == TIDE_SESSION_READY && writer != NULL && writer->state == TIDE_OBJECT_CREATED;
}

static bool is_refused_locked(tide_session_t *session, uint16_t object) {
  const tide_object_t *writer = tide_session_find_object_locked(session, object);
  return writer != NULL && writer->state == TIDE_OBJECT_REFUSED;
}

static int may_begin(tide_session_t *session, uint16_t object, uint16_t *request) {
  const uintptr_t critical = session_enter(session);
  int status = is_ready_locked(session, object) ? TIDE_OK : TIDE_ERROR_DISCONNECTED;
  if (is_refused_locked(session, object)) {
    status = TIDE_ERROR_REFUSED;
  }
  session->reserve_needed = true;
  *request = tide_session_next_request_locked(session);
  session_exit(session, critical);
  return status;
}

static void keep(tide_long_message_t *message, tide_node_t *node) {
  node->next_free = message->free;
  message->free = node;
}

/* One is enough; more keep the line busy while the next part is written. */
static int take_nodes(tide_long_write_t *write, uint16_t object, tide_priority_t priority, uint32_t bytes) {
  tide_daemon_t *daemon = &write->session->daemon;
  const tide_transmitter_config_t *config = &daemon->transmitter.config;
  const uint32_t largest = config->classes[config->class_count - 1u].node_bytes;
  const uint32_t enough = FRAGMENTS_ENOUGH * config->message_bytes;
  uint32_t taken = 0;
  int status = TIDE_OK;
  for (uint32_t count = 0; count < NODES_MAXIMUM && taken < bytes && taken < enough; ++count) {
    tide_node_t *node = NULL;
    const uint32_t asked = bytes < largest ? bytes : largest;
    status = tide_daemon_acquire_for(daemon, asked, priority, object, &node);
    if (status != TIDE_OK) break;
    taken += node->capacity;
    keep(&write->message, node);
  }
  return write->message.free != NULL ? TIDE_OK : status;
}

static tide_node_t *take_free(tide_long_write_t *write) {
  const uintptr_t critical = session_enter(write->session);
  tide_node_t *node = write->message.free;
  if (node != NULL) {
    write->message.free = node->next_free;
  }
  session_exit(write->session, critical);
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
  tide_xrce_request_t request = {0u, object};
  int status = may_begin(session, object, &request.request);
  if (status == TIDE_OK && !tide_session_keep_reserve(session)) {
    status = TIDE_ERROR_FULL;
  }
  if (status == TIDE_OK) {
    status = take_nodes(write, object, priority, WRITE_HEADER_BYTES + bytes);
  }
  if (status != TIDE_OK) {
    return status;
  }
  write->node = take_free(write);
  TIDE_INVARIANT(write->node != NULL && write->node->capacity >= WRITE_HEADER_BYTES);
  const uint32_t body_bytes = WRITE_BODY_BYTES + bytes;
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
  if (write->node == NULL) {
    return NULL;
  }
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
    if (write->used < node->capacity && write->left > 0u) {
      return TIDE_OK;
    }
    node->length = write->used;
    status = tide_daemon_submit_part(&write->session->daemon, &write->message, node, write->stream, write->left == 0u);
    if (status == TIDE_ERROR_FULL) { /* another long message: this one has not begun and keeps its first part */
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
  if (write->message.lost) {
    status = TIDE_ERROR_DISCONNECTED;
  }
  return status;
}

int tide_session_long_poll(const tide_long_write_t *write) {
  const uintptr_t critical = session_enter(write->session);
  const tide_long_message_t *message = &write->message;
  int status = message->complete && message->parts == 0u ? TIDE_OK : TIDE_ERROR_FULL;
  if (message->lost) {
    status = TIDE_ERROR_DISCONNECTED;
  }
  session_exit(write->session, critical);
  return status;
}

uint16_t tide_session_long_progress(const tide_long_write_t *write) {
  tide_session_t *session = write->session;
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  uint16_t acknowledged = 0;
  const uintptr_t critical = session_enter(session);
  for (size_t i = 0; i < config->stream_count; ++i) {
    if (config->streams[i].id == write->stream) {
      acknowledged = config->streams[i].first_unacknowledged;
    }
  }
  session_exit(session, critical);
  return acknowledged;
}

void tide_session_long_end(tide_long_write_t *write) {
  tide_session_t *session = write->session;
  const uintptr_t critical = session_enter(session);
  const bool given_up =
      tide_transmitter_give_up_long(&session->daemon.transmitter, &write->message, session_now(session));
  session->agent_lost = session->agent_lost || (given_up && session_is_up(session));
  session_exit(session, critical);
  if (write->node != NULL) {
    tide_daemon_abandon(&session->daemon, write->node);
    write->node = NULL;
  }
  for (tide_node_t *node = take_free(write); node != NULL; node = take_free(write)) {
    tide_daemon_abandon(&session->daemon, node);
  }
  if (given_up) {
    tide_session_kick(session);
  }
}
