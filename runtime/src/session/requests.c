/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

uint16_t tide_session_next_request_locked(tide_session_t *session) {
  const uint16_t request = session->next_request;
  TIDE_INVARIANT(request >= SESSION_REQUEST_FIRST);
  if (++session->next_request == 0u) {
    session->next_request = SESSION_REQUEST_FIRST;
  }
  return request;
}

int tide_session_send_control(tide_session_t *session, uint8_t id, session_put_t put, const void *body, uint8_t header,
                              tide_priority_t priority) {
  uint8_t bytes[40];
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES, sizeof bytes - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  put(&cdr, body);
  TIDE_INVARIANT(cdr.status == TIDE_OK); /* bodies of control submessages are of fixed size */
  if (cdr.status != TIDE_OK) {
    return cdr.status;
  }
  tide_xrce_put_submessage_header(bytes, id, TIDE_XRCE_FLAG_LITTLE_ENDIAN, (uint16_t)cdr.position);
  return tide_daemon_submit_control(&session->daemon, bytes, TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + cdr.position, header,
                                    priority);
}

size_t tide_session_measure(session_put_t put, const void *body) {
  tide_cdr_t cdr;
  tide_cdr_measure(&cdr);
  put(&cdr, body);
  return cdr.position;
}

static uint32_t largest_node_bytes(const tide_session_t *session) {
  const tide_transmitter_config_t *config = &session->daemon.transmitter.config;
  return config->class_count == 0u ? 0u : config->classes[config->class_count - 1u].node_bytes;
}

int tide_session_plan_request(tide_session_t *session, size_t body_bytes) {
  const size_t bytes = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body_bytes;
  if (body_bytes > UINT16_MAX || bytes > largest_node_bytes(session)) {
    return TIDE_ERROR_TOO_LARGE;
  }
  const uintptr_t critical = session_enter(session);
  if (bytes > session->request_bytes_maximum) {
    session->request_bytes_maximum = (uint32_t)bytes;
  }
  session_exit(session, critical);
  return TIDE_OK;
}

/* The reserve goes only to a request that found no other node. */
static tide_node_t *take_reserve(tide_session_t *session, size_t bytes) {
  const uintptr_t critical = session_enter(session);
  tide_node_t *node = session->reserve;
  if (node != NULL && node->capacity >= bytes) {
    session->reserve = NULL;
  } else {
    node = NULL;
  }
  session_exit(session, critical);
  return node;
}

bool tide_session_has_reserve_locked(const tide_session_t *session) {
  const uint32_t bytes = session->request_bytes_maximum;
  return bytes == 0u || (session->reserve != NULL && session->reserve->capacity >= bytes);
}

bool tide_session_keep_reserve(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return true;
  uintptr_t critical = session_enter(session);
  tide_node_t *node = session->reserve;
  const uint32_t bytes = session->request_bytes_maximum;
  const bool needed = session->reserve_needed && bytes > 0u;
  const bool small = node != NULL && node->capacity < bytes;
  if (small) {
    session->reserve = NULL;
  }
  session_exit(session, critical);
  if (small) {
    tide_daemon_abandon(&session->daemon, node);
  } else if (node != NULL) {
    return true;
  }
  if (!needed) {
    return true;
  }
  if (tide_daemon_acquire_own(&session->daemon, bytes, &node) != TIDE_OK) {
    return false;
  }
  critical = session_enter(session);
  if (session->reserve == NULL) {
    TIDE_INVARIANT(node->capacity >= bytes && !tide_queue_contains(&node->entry));
    session->reserve = node;
    node = NULL;
  }
  session_exit(session, critical);
  if (node != NULL) { /* another thread was faster */
    tide_daemon_abandon(&session->daemon, node);
  }
  return true;
}

void tide_session_drop_reserve(tide_session_t *session) {
  if (!TIDE_RELIABLE_STREAMS) return;
  const uintptr_t critical = session_enter(session);
  tide_node_t *node = session->reserve;
  session->reserve = NULL;
  session->reserve_needed = false;
  session_exit(session, critical);
  if (node != NULL) {
    tide_daemon_abandon(&session->daemon, node);
  }
}

int tide_session_acquire_request(tide_session_t *session, size_t body_bytes, tide_node_t **node) {
  const size_t bytes = TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body_bytes;
  *node = NULL;
  int status = tide_daemon_acquire_own(&session->daemon, (uint32_t)bytes, node);
  if (TIDE_RELIABLE_STREAMS && status == TIDE_ERROR_FULL) {
    *node = take_reserve(session, bytes);
    status = *node == NULL ? TIDE_ERROR_FULL : TIDE_OK;
  }
  return status;
}

int tide_session_encode_request(tide_node_t *node, uint8_t id, uint8_t flags, session_put_t put, const void *body) {
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, node->bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES,
                  node->capacity - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  TIDE_INVARIANT(node->capacity >= TIDE_XRCE_SUBMESSAGE_HEADER_BYTES);
  put(&cdr, body);
  if (cdr.status != TIDE_OK || cdr.position > UINT16_MAX) {
    return TIDE_ERROR_TOO_LARGE;
  }
  tide_xrce_put_submessage_header(node->bytes, id, (uint8_t)(flags | TIDE_XRCE_FLAG_LITTLE_ENDIAN),
                                  (uint16_t)cdr.position);
  node->length = (uint32_t)(TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + cdr.position);
  TIDE_INVARIANT(node->length <= node->capacity);
  return TIDE_OK;
}

int tide_session_submit_request(tide_session_t *session, tide_node_t *node) {
  return tide_daemon_submit(&session->daemon, node, session->config.object_stream);
}

int tide_session_send_request(tide_session_t *session, uint8_t id, session_put_t put, const void *body) {
  tide_node_t *node = NULL;
  int status = tide_session_acquire_request(session, tide_session_measure(put, body), &node);
  if (status != TIDE_OK) {
    return status;
  }
  status = tide_session_encode_request(node, id, 0, put, body);
  if (status != TIDE_OK) {
    tide_daemon_abandon(&session->daemon, node);
    return status;
  }
  return tide_session_submit_request(session, node);
}
