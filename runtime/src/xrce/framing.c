/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/framing.h"

#include <stdbool.h>

#include "tide/options.h"
#include "tide/status.h"

enum {
  WAIT_FLAG,
  SKIP,
  WAIT_SOURCE,
  WAIT_DESTINATION,
  WAIT_LENGTH_LOW,
  WAIT_LENGTH_HIGH,
  TAKE,
  WAIT_CRC_LOW,
  WAIT_CRC_HIGH
};

/* ---- checksum ---- */

/* Remainders of the sixteen nibbles for the reflected polynomial 0xA001. */
static const uint16_t remainders[16] = {0x0000, 0xCC01, 0xD801, 0x1400, 0xF001, 0x3C00, 0x2800, 0xE401,
                                        0xA001, 0x6C00, 0x7800, 0xB401, 0x5000, 0x9C01, 0x8801, 0x4400};

static inline uint32_t crc_of(uint32_t crc, uint8_t octet) {
  crc ^= octet;
  crc = crc >> 4 ^ remainders[crc & 15u];
  return crc >> 4 ^ remainders[crc & 15u];
}

uint16_t tide_crc16(uint16_t crc, const uint8_t *bytes, size_t count) {
  uint32_t mixed = crc;
  for (size_t i = 0; i < count; ++i) mixed = crc_of(mixed, bytes[i]);
  return (uint16_t)mixed;
}

/* ---- writing ---- */

static bool is_special(uint8_t octet) { return octet == TIDE_FRAMING_FLAG || octet == TIDE_FRAMING_ESCAPE; }

/* Writes the octets with escapes. Returns the new position, or capacity + 1 if they do not fit. */
static size_t put_escaped(uint8_t *frame, size_t capacity, size_t position, const uint8_t *octets, size_t count) {
  if (position > capacity || count > capacity - position) return capacity + 1u;
  for (size_t i = 0; i < count; ++i) {
    uint8_t octet = octets[i];
    if (capacity - position < 1u + (is_special(octet) ? 1u : 0u)) return capacity + 1u;
    if (is_special(octet)) {
      frame[position++] = TIDE_FRAMING_ESCAPE;
      octet ^= TIDE_FRAMING_XOR;
    }
    frame[position++] = octet;
  }
  return position;
}

int tide_framing_encode(uint8_t *frame, size_t capacity, uint8_t source, uint8_t destination, const uint8_t *head,
                        size_t head_bytes, const uint8_t *body, size_t body_bytes) {
  if (head_bytes > UINT16_MAX || body_bytes > UINT16_MAX - head_bytes) return TIDE_ERROR_ARGUMENT;
  if (capacity > INT32_MAX - 1) capacity = INT32_MAX - 1;
  if (capacity == 0) return TIDE_ERROR_TOO_LARGE;
  size_t length = head_bytes + body_bytes;
  uint16_t crc = tide_crc16(tide_crc16(0, head, head_bytes), body, body_bytes);
  const uint8_t front[4] = {source, destination, (uint8_t)length, (uint8_t)(length >> 8)};
  const uint8_t back[2] = {(uint8_t)crc, (uint8_t)(crc >> 8)};
  frame[0] = TIDE_FRAMING_FLAG;
  size_t position = put_escaped(frame, capacity, 1, front, sizeof front);
  position = put_escaped(frame, capacity, position, head, head_bytes);
  position = put_escaped(frame, capacity, position, body, body_bytes);
  position = put_escaped(frame, capacity, position, back, sizeof back);
  return position > capacity ? TIDE_ERROR_TOO_LARGE : (int)position;
}

enum { FRONT, HEAD, BODY, TAIL, BACK };

int tide_framing_writer_init(tide_framing_writer_t *writer, uint8_t source, uint8_t destination, const uint8_t *head,
                             size_t head_bytes, const uint8_t *body, size_t body_bytes, const uint8_t *tail,
                             size_t tail_bytes) {
  if (head_bytes > UINT16_MAX || body_bytes > UINT16_MAX - head_bytes ||
      tail_bytes > UINT16_MAX - head_bytes - body_bytes)
    return TIDE_ERROR_ARGUMENT;
  const size_t length = head_bytes + body_bytes + tail_bytes;
  /* assigned member by member, because a literal would be built on the stack and copied */
  writer->segments[FRONT].bytes = writer->front;
  writer->segments[FRONT].count = sizeof writer->front;
  writer->segments[HEAD].bytes = head;
  writer->segments[HEAD].count = head_bytes;
  writer->segments[BODY].bytes = body;
  writer->segments[BODY].count = body_bytes;
  writer->segments[TAIL].bytes = tail;
  writer->segments[TAIL].count = tail_bytes;
  writer->segments[BACK].bytes = writer->back;
  writer->segments[BACK].count = sizeof writer->back;
  writer->front[0] = source;
  writer->front[1] = destination;
  writer->front[2] = (uint8_t)length;
  writer->front[3] = (uint8_t)(length >> 8);
  writer->crc = 0u;
  writer->segment = FRONT;
  writer->begun = writer->escaped = false;
  writer->position = 0u;
  return TIDE_OK;
}

/* Moves to the next octet to write. Returns false if all octets are written. */
static bool find_octet(tide_framing_writer_t *writer) {
  while (writer->position == writer->segments[writer->segment].count) {
    if (writer->segment == BACK) return false;
    writer->segment++;
    writer->position = 0;
    writer->back[0] = (uint8_t)writer->crc; /* the checksum is complete before the last segment */
    writer->back[1] = (uint8_t)(writer->crc >> 8);
  }
  return true;
}

static bool is_of_message(const tide_framing_writer_t *writer) {
  return writer->segment != FRONT && writer->segment != BACK;
}

/* Writes octets up to the next special one, or to the end of their segment. */
static size_t put_plain(tide_framing_writer_t *writer, uint8_t *bytes, size_t capacity) {
  const uint8_t *const first = writer->segments[writer->segment].bytes + writer->position, *from = first;
  const size_t left = writer->segments[writer->segment].count - writer->position;
  const uint8_t *const end = first + (left < capacity ? left : capacity);
  uint32_t crc = writer->crc;
  while (from != end) { /* this loop takes a third of a publish's instructions on a microcontroller */
    const uint8_t octet = *from;
    if (is_special(octet)) break;
    *bytes++ = octet;
    crc = crc_of(crc, octet);
    ++from;
  }
  const size_t count = (size_t)(from - first);
  if (is_of_message(writer)) writer->crc = (uint16_t)crc;
  writer->position += count;
  return count;
}

/* Writes the escape of a special octet, then the octet. */
static uint8_t next_of_special(tide_framing_writer_t *writer) {
  writer->escaped = !writer->escaped;
  if (writer->escaped) return TIDE_FRAMING_ESCAPE;
  const uint8_t octet = writer->segments[writer->segment].bytes[writer->position++];
  if (is_of_message(writer)) writer->crc = tide_crc16(writer->crc, &octet, 1);
  return octet ^ TIDE_FRAMING_XOR;
}

size_t tide_framing_writer_output(tide_framing_writer_t *writer, uint8_t *bytes, size_t capacity) {
  size_t count = 0;
  if (!writer->begun && capacity > 0) {
    writer->begun = true;
    bytes[count++] = TIDE_FRAMING_FLAG;
  }
  while (count < capacity && find_octet(writer)) {
    const size_t plain = writer->escaped ? 0 : put_plain(writer, bytes + count, capacity - count);
    count += plain;
    if (plain == 0) bytes[count++] = next_of_special(writer);
  }
  return count;
}

/* ---- reading ---- */

void tide_framing_reader_init(tide_framing_reader_t *reader, uint8_t address) {
  *reader = (tide_framing_reader_t){.address = address};
}

static bool is_inside(const tide_framing_reader_t *reader) { return reader->state > SKIP; }

void tide_framing_reader_set_buffer(tide_framing_reader_t *reader, uint8_t *buffer, size_t capacity) {
  if (reader->state >= TAKE && (buffer != reader->buffer || capacity < reader->length)) {
    TIDE_COUNT(reader->counters.truncated, 1u); /* the message's beginning is in the old buffer */
    reader->state = SKIP;
  }
  reader->buffer = buffer;
  reader->capacity = buffer == NULL ? 0 : capacity;
}

void tide_framing_reader_reset(tide_framing_reader_t *reader) {
  reader->state = WAIT_FLAG;
  reader->escaped = 0;
}

static void begin(tide_framing_reader_t *reader) {
  if (is_inside(reader)) TIDE_COUNT(reader->counters.truncated, 1u);
  reader->state = WAIT_SOURCE;
  reader->escaped = 0;
}

static void refuse(tide_framing_reader_t *reader, uint32_t *counter) {
  TIDE_COUNT(*counter, 1u);
  reader->state = SKIP;
}

/* The length is known, so this decides whether the message is read or skipped. */
static void open_message(tide_framing_reader_t *reader, uint8_t length_high) {
  reader->length |= (uint16_t)(length_high << 8);
  reader->received = 0;
  if (reader->length > reader->capacity || reader->buffer == NULL) {
    refuse(reader, &reader->counters.oversize);
  } else {
    reader->state = TAKE;
  }
}

/* Processes an unescaped octet of the header or of the checksum. Returns 1 if it completes a frame. */
static int take_outside(tide_framing_reader_t *reader, uint8_t octet) {
  switch (reader->state) {
    case WAIT_SOURCE:
      reader->source = octet;
      reader->state = WAIT_DESTINATION;
      return 0;
    case WAIT_DESTINATION:
      reader->state = WAIT_LENGTH_LOW;
      if (octet != reader->address) refuse(reader, &reader->counters.foreign);
      return 0;
    case WAIT_LENGTH_LOW:
      reader->length = octet;
      reader->state = WAIT_LENGTH_HIGH;
      return 0;
    case WAIT_LENGTH_HIGH:
      open_message(reader, octet);
      return 0;
    case WAIT_CRC_LOW:
      reader->crc = octet;
      reader->state = WAIT_CRC_HIGH;
      return 0;
    case WAIT_CRC_HIGH:
      reader->crc |= (uint16_t)(octet << 8);
      reader->state = WAIT_FLAG;
      TIDE_COUNT(reader->counters.frames, 1u);
      return 1;
    case WAIT_FLAG:
      TIDE_COUNT(reader->counters.noise_bytes, 1u);
      return 0;
    default:
      return 0;
  }
}

/* Copies octets of the message unchanged, up to the next special one or to the end. */
static size_t take_plain(tide_framing_reader_t *reader, const uint8_t *bytes, size_t count) {
  size_t wanted = (size_t)reader->length - reader->received;
  uint8_t *to = reader->buffer + reader->received;
  size_t taken = 0;
  if (count > wanted) count = wanted;
  while (taken < count && !is_special(bytes[taken])) {
    to[taken] = bytes[taken];
    ++taken;
  }
  reader->received = (uint16_t)(reader->received + taken);
  if (taken == wanted) reader->state = WAIT_CRC_LOW;
  return taken;
}

/* Processes the octet after an escape. The peer may also escape octets that need no escape. */
static int take_escaped(tide_framing_reader_t *reader, uint8_t octet) {
  reader->escaped = 0;
  octet ^= TIDE_FRAMING_XOR;
  if (reader->state != TAKE) return take_outside(reader, octet);
  reader->buffer[reader->received++] = octet;
  if (reader->received == reader->length) reader->state = WAIT_CRC_LOW;
  return 0;
}

static int take_one(tide_framing_reader_t *reader, uint8_t octet) {
  if (octet == TIDE_FRAMING_FLAG) {
    begin(reader);
  } else if (reader->escaped) {
    return take_escaped(reader, octet);
  } else if (octet == TIDE_FRAMING_ESCAPE && is_inside(reader)) {
    reader->escaped = 1;
  } else {
    return take_outside(reader, octet);
  }
  return 0;
}

size_t tide_framing_reader_input(tide_framing_reader_t *reader, const uint8_t *bytes, size_t count, int *complete) {
  size_t used = 0;
  *complete = 0;
  while (used < count) {
    if (reader->state == TAKE && !reader->escaped) {
      size_t taken = take_plain(reader, bytes + used, count - used);
      used += taken;
      if (taken != 0) continue;
    }
    if (take_one(reader, bytes[used++])) {
      *complete = 1;
      break;
    }
  }
  return used;
}
