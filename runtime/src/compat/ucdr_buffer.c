/* SPDX-License-Identifier: Apache-2.0 */
/* CDR into a buffer that is handed on when it is full. */
#include <string.h>

#include "ucdr/microcdr.h"

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

/* Room for one octet or more. */
static bool has_room(ucdrBuffer *buffer) {
  if (!buffer->error && buffer->iterator >= buffer->final) {
    buffer->error = buffer->on_full_buffer == NULL || buffer->on_full_buffer(buffer, buffer->args);
  }
  return !buffer->error;
}

/* Null: so many zeros. */
static bool put(ucdrBuffer *buffer, const uint8_t *bytes, size_t count) {
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

void ucdr_advance_buffer(ucdrBuffer *buffer, size_t size) { (void)put(buffer, NULL, size); }

void ucdr_align_to(ucdrBuffer *buffer, size_t data_size) {
  (void)put(buffer, NULL, ucdr_buffer_alignment(buffer, data_size));
}

static bool put_array(ucdrBuffer *buffer, const void *values, size_t count, size_t data_size) {
  if (count == 0u) return !buffer->error; /* nothing is not aligned, as peers do */
  ucdr_align_to(buffer, data_size);
  const uint8_t *bytes = values;
  if (data_size == 1u || buffer->endianness == HOST_ENDIANNESS) return put(buffer, bytes, count * data_size);
  for (size_t i = 0; i < count && !buffer->error; i++) {
    uint8_t swapped[8];
    for (size_t n = 0; n < data_size; n++) swapped[n] = bytes[i * data_size + data_size - 1u - n];
    (void)put(buffer, swapped, data_size);
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
