/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that the program writes in pieces: within one node if they fit, otherwise as a long message. */
#include <string.h>

#include "internal.h"
#include "rmw_microros/continous_serialization.h"
#include "tide/long_write.h"
#include "ucdr/microcdr.h"

/* ---- CDR into a buffer that is sent whenever it is full ---- */

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_ENDIANNESS UCDR_BIG_ENDIANNESS
#else
#define HOST_ENDIANNESS UCDR_LITTLE_ENDIANNESS
#endif

void ucdr_init_buffer(ucdrBuffer *buffer, uint8_t *data, size_t size) {
  *buffer = (ucdrBuffer){.init = data, .final = data + size, .iterator = data, .endianness = UCDR_LITTLE_ENDIANNESS};
}

void ucdr_set_on_full_buffer_callback(ucdrBuffer *buffer, OnFullBuffer on_full_buffer, void *args) {
  buffer->on_full_buffer = on_full_buffer;
  buffer->args = args;
}

size_t ucdr_buffer_size(const ucdrBuffer *buffer) { return (size_t)(buffer->final - buffer->init); }
size_t ucdr_buffer_length(const ucdrBuffer *buffer) { return (size_t)(buffer->iterator - buffer->init); }
size_t ucdr_buffer_remaining(const ucdrBuffer *buffer) { return (size_t)(buffer->final - buffer->iterator); }
ucdrEndianness ucdr_buffer_endianness(const ucdrBuffer *buffer) { return buffer->endianness; }
bool ucdr_buffer_has_error(const ucdrBuffer *buffer) { return buffer->error; }

size_t ucdr_alignment(size_t buffer_position, size_t data_size) {
  return (data_size - buffer_position % data_size) & (data_size - 1u);
}

size_t ucdr_buffer_alignment(const ucdrBuffer *buffer, size_t data_size) {
  return ucdr_alignment(buffer->offset + ucdr_buffer_length(buffer), data_size);
}

/* True if at least one octet fits. */
static bool has_room(ucdrBuffer *buffer) {
  if (!buffer->error && buffer->iterator >= buffer->final) {
    buffer->error = buffer->on_full_buffer == NULL || buffer->on_full_buffer(buffer, buffer->args);
  }
  return !buffer->error;
}

/* If `bytes` is null, writes `count` zeros. */
static bool put_octets(ucdrBuffer *buffer, const uint8_t *bytes, size_t count) {
  while (count > 0u && has_room(buffer)) {
    const size_t room = ucdr_buffer_remaining(buffer);
    const size_t now = count < room ? count : room;
    if (bytes == NULL) {
      memset(buffer->iterator, 0, now);
    } else {
      memcpy(buffer->iterator, bytes, now);
      bytes += now;
    }
    buffer->iterator += now;
    count -= now;
  }
  return !buffer->error;
}

void ucdr_advance_buffer(ucdrBuffer *buffer, size_t size) { (void)put_octets(buffer, NULL, size); }

void ucdr_align_to(ucdrBuffer *buffer, size_t data_size) {
  (void)put_octets(buffer, NULL, ucdr_buffer_alignment(buffer, data_size));
}

static bool put_array(ucdrBuffer *buffer, const void *values, size_t count, size_t data_size) {
  if (count == 0u) return !buffer->error; /* other DDS implementations do not align an empty array */
  ucdr_align_to(buffer, data_size);
  const uint8_t *bytes = values;
  if (data_size == 1u || buffer->endianness == HOST_ENDIANNESS) return put_octets(buffer, bytes, count * data_size);
  for (size_t i = 0; i < count && !buffer->error; i++) {
    uint8_t swapped[8];
    for (size_t n = 0; n < data_size; n++) swapped[n] = bytes[i * data_size + data_size - 1u - n];
    (void)put_octets(buffer, swapped, data_size);
  }
  return !buffer->error;
}

#define DEFINE(suffix, type)                                                                                           \
  bool ucdr_serialize_##suffix(ucdrBuffer *buffer, type value) { return put_array(buffer, &value, 1u, sizeof value); } \
  bool ucdr_serialize_array_##suffix(ucdrBuffer *buffer, const type *values, size_t count) {                           \
    return put_array(buffer, values, count, sizeof *values);                                                           \
  }                                                                                                                    \
  bool ucdr_serialize_sequence_##suffix(ucdrBuffer *buffer, const type *values, uint32_t count) {                      \
    return ucdr_serialize_uint32_t(buffer, count) && put_array(buffer, values, count, sizeof *values);                 \
  }
DEFINE(uint32_t, uint32_t)
DEFINE(char, char)
DEFINE(bool, bool)
DEFINE(uint8_t, uint8_t)
DEFINE(uint16_t, uint16_t)
DEFINE(uint64_t, uint64_t)
DEFINE(int8_t, int8_t)
DEFINE(int16_t, int16_t)
DEFINE(int32_t, int32_t)
DEFINE(int64_t, int64_t)
DEFINE(float, float)
DEFINE(double, double)

bool ucdr_serialize_string(ucdrBuffer *buffer, const char *text) {
  return ucdr_serialize_sequence_char(buffer, text, (uint32_t)strlen(text) + 1u);
}

#ifndef TIDE_CONTINUOUS_PUBLISHERS
#define TIDE_CONTINUOUS_PUBLISHERS 4
#endif

/* The callbacks of one publisher; the entry is free if its publisher does not point here. */
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
                                             publisher->writer.priority, effort->bytes);
  return status == TIDE_ERROR_DISCONNECTED ? TIDE_ERROR_FULL
                                           : status; /* the caller then waits, because the session may return in time */
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

/* Like wait_for, but continues to wait as long as the agent acknowledges. */
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
  buffer->init = buffer->iterator; /* so that written octets are not counted again */
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
  if (publisher->wait_ms == 0) return TIDE_ERROR_TOO_LARGE; /* a long message cannot be sent without waiting */
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
  if (!publisher->writer.reliable || bytes <= largest_sample_bytes(publisher)) {
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
