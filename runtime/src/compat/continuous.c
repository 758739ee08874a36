/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that the program writes in pieces: within one node where they fit, else as a long message. */
#include "internal.h"
#include "rmw_microros/continous_serialization.h"
#include "tide/long_write.h"

#ifndef TIDE_CONTINUOUS_PUBLISHERS
#define TIDE_CONTINUOUS_PUBLISHERS 4
#endif

/* Callbacks of a publisher; free when that one does not point here. */
typedef struct place {
  tide_continuous_t base; /* first member */
  const tide_publisher_handle_t *publisher;
  rmw_uros_continous_serialization_size size;
  rmw_uros_continous_serialization serialize;
} place_t;

static place_t places[TIDE_CONTINUOUS_PUBLISHERS];

typedef struct effort {
  tide_long_write_t write;
  const tide_publisher_handle_t *publisher;
  const place_t *place;
  uint32_t bytes;
  int (*step)(struct effort *effort);
  int status;
} effort_t;

/* ---- in one node ---- */

static int serialize_rest(const place_t *place, tide_cdr_t *cdr, uint32_t bytes) {
  const size_t written = cdr->position - cdr->origin;
  if (cdr->status != TIDE_OK) return cdr->status;
  if (place->serialize == NULL) return TIDE_OK;
  ucdrBuffer buffer;
  ucdr_init_buffer(&buffer, cdr->bytes + cdr->origin, bytes);
  buffer.iterator += written;
  place->serialize(&buffer);
  if (buffer.error) return TIDE_ERROR_TOO_LARGE;
  cdr->position = cdr->origin + ucdr_buffer_length(&buffer);
  return ucdr_buffer_remaining(&buffer) == 0u ? TIDE_OK : TIDE_ERROR_MALFORMED;
}

static int send_short(tide_publisher_handle_t *publisher, const place_t *place, const void *message, uint32_t bytes) {
  tide_write_t write;
  int status = tide_compat_begin_sample(publisher, &write, bytes);
  if (status != TIDE_OK) return status;
  publisher->type->encode(&write.cdr, message);
  status = serialize_rest(place, &write.cdr, bytes);
  if (status == TIDE_OK) return tide_compat_end_sample(publisher, &write);
  tide_session_write_abandon(&write);
  return status;
}

/* ---- in parts ---- */

static int begin_long(effort_t *effort) {
  const tide_publisher_handle_t *publisher = effort->publisher;
  const int status = tide_session_long_begin(&publisher->support->session, &effort->write, publisher->topic.endpoint.id,
                                             publisher->priority, effort->bytes);
  return status == TIDE_ERROR_DISCONNECTED ? TIDE_ERROR_FULL : status; /* the session may come back in time */
}

static int flush_long(effort_t *effort) { return tide_session_long_flush(&effort->write); }
static int poll_long(effort_t *effort) { return tide_session_long_poll(&effort->write); }

static bool has_gone_on(tide_support_t *support, void *context) {
  effort_t *effort = context;
  (void)support;
  effort->status = effort->step(effort);
  return effort->status != TIDE_ERROR_FULL;
}

static int wait_for(effort_t *effort, int (*step)(effort_t *effort)) {
  const tide_publisher_handle_t *publisher = effort->publisher;
  effort->step = step;
  const int status =
      tide_compat_wait(publisher->support, has_gone_on, effort, tide_compat_deadline(publisher->wait_ms), false);
  if (status != TIDE_OK) effort->status = status;
  return effort->status;
}

/* The same, for as long as the agent goes on acknowledging. */
static int go_on_until(effort_t *effort, int (*step)(effort_t *effort)) {
  uint16_t before;
  do {
    before = tide_session_long_progress(&effort->write);
  } while (wait_for(effort, step) == TIDE_ERROR_TIMEOUT && tide_session_long_progress(&effort->write) != before);
  return effort->status;
}

static void give_place(const effort_t *effort, ucdrBuffer *buffer) {
  uint32_t room = 0;
  buffer->init = buffer->iterator = tide_session_long_place(&effort->write, &room);
  buffer->final = buffer->init + room;
}

static bool hand_on(ucdrBuffer *buffer, void *args) {
  effort_t *effort = args;
  const size_t written = ucdr_buffer_length(buffer);
  tide_session_long_wrote(&effort->write, (uint32_t)written);
  buffer->offset += written;
  buffer->init = buffer->iterator; /* what was written is not counted again */
  if (effort->write.left == 0u) {
    effort->status = TIDE_ERROR_TOO_LARGE;
  } else if (go_on_until(effort, flush_long) == TIDE_OK) {
    give_place(effort, buffer);
  }
  return effort->status != TIDE_OK;
}

static int write_all(effort_t *effort, const void *message) {
  uint32_t room = 0;
  uint8_t *start = tide_session_long_place(&effort->write, &room);
  tide_cdr_t cdr;
  tide_cdr_writer(&cdr, start, room);
  effort->publisher->type->encode(&cdr, message);
  if (cdr.status != TIDE_OK) return cdr.status;
  ucdrBuffer buffer;
  ucdr_init_buffer(&buffer, start, room);
  ucdr_set_on_full_buffer_callback(&buffer, hand_on, effort);
  buffer.iterator += cdr.position;
  if (effort->place->serialize != NULL) effort->place->serialize(&buffer);
  if (buffer.error) return effort->status;
  tide_session_long_wrote(&effort->write, (uint32_t)ucdr_buffer_length(&buffer));
  if (effort->write.left > 0u) return TIDE_ERROR_MALFORMED;
  const int status = go_on_until(effort, flush_long);
  return status == TIDE_OK ? go_on_until(effort, poll_long) : status;
}

static int send_long(tide_publisher_handle_t *publisher, const place_t *place, const void *message, uint32_t bytes) {
  effort_t effort = {.publisher = publisher, .place = place, .bytes = bytes};
  if (publisher->wait_ms == 0) return TIDE_ERROR_TOO_LARGE; /* it would have to wait in the middle */
  int status = wait_for(&effort, begin_long);
  if (status == TIDE_ERROR_TIMEOUT) {
    return tide_compat_is_ready(publisher->support) ? TIDE_ERROR_FULL : TIDE_ERROR_DISCONNECTED;
  }
  if (status != TIDE_OK) return status;
  status = write_all(&effort, message);
  tide_session_long_end(&effort.write);
  return status == TIDE_ERROR_TIMEOUT ? TIDE_ERROR_EXPIRED : status;
}

/* ---- the publisher ---- */

static uint32_t largest_sample_bytes(const tide_publisher_handle_t *publisher) {
  const tide_transmitter_config_t *config = &publisher->support->session.daemon.transmitter.config;
  const uint32_t node_bytes = config->classes[config->class_count - 1u].node_bytes - 8u;
  return node_bytes < UINT16_MAX - 4u ? node_bytes : UINT16_MAX - 4u;
}

static int send_in_pieces(tide_publisher_handle_t *publisher, const void *message) {
  const place_t *place = (const place_t *)(const void *)publisher->continuous;
  uint32_t bytes = (uint32_t)tide_message_size(publisher->type, message);
  if (place->size != NULL) place->size(&bytes);
  if (!publisher->reliable || bytes <= largest_sample_bytes(publisher)) {
    return send_short(publisher, place, message, bytes);
  }
  return send_long(publisher, place, message, bytes);
}

static int refuse_pieces(tide_publisher_handle_t *publisher, const void *message) {
  (void)publisher;
  (void)message;
  return TIDE_ERROR_CAPACITY_PUBLISHERS;
}

static const tide_continuous_t refusal = {refuse_pieces};

static place_t *place_for(const tide_publisher_handle_t *publisher) {
  place_t *found = NULL;
  for (size_t i = 0; i < TIDE_CONTINUOUS_PUBLISHERS; i++) {
    place_t *place = &places[i];
    const bool is_taken = place->publisher != NULL && place->publisher->continuous == &place->base;
    if (is_taken && place->publisher == publisher) return place;
    if (!is_taken && found == NULL) found = place;
  }
  return found;
}

void rmw_uros_set_continous_serialization_callbacks(rmw_publisher_t *publisher,
                                                    rmw_uros_continous_serialization_size size_cb,
                                                    rmw_uros_continous_serialization serialization_cb) {
  tide_publisher_handle_t *handle = (tide_publisher_handle_t *)(void *)publisher;
  if (handle == NULL) return;
  if (size_cb == NULL && serialization_cb == NULL) {
    handle->continuous = NULL;
    return;
  }
  place_t *place = place_for(handle);
  if (place == NULL) {
    tide_compat_result(TIDE_ERROR_CAPACITY_PUBLISHERS);
    handle->continuous = &refusal;
    return;
  }
  *place = (place_t){{send_in_pieces}, handle, size_cb, serialization_cb};
  handle->continuous = &place->base;
}
