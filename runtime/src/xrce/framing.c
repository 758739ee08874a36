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

/* ---- checksum ----
 *
 * The polynomial of CRC-16/ARC is (x + 1) (x^15 + x + 1). The remainders by its two factors are computed separately,
 * because each takes a few instructions for four octets, without a table. The checksum follows from them (crc_of).
 *
 *   bits  exclusive or of all octets or words of the message. Its parity is the remainder by x + 1.
 *   rest  remainder of the message, times x^15, by x^15 + x + 1. Bit n is the coefficient of x^(14 - n), so the first
 *         bit of the message is the lowest one. */
typedef struct sum {
  uint32_t bits, rest;
} sum_t;

#define IN_PLACE static inline __attribute__((always_inline)) /* so that the sum stays in registers */

/* Times x^count, for up to 14 bits at once: each of the lowest bits becomes x^15 times a power of x, and x^15 is x + 1.
 */
IN_PLACE uint32_t times_x_to(uint32_t count, uint32_t rest) {
  const uint32_t lowest = rest & ((1u << count) - 1u);
  return rest >> count ^ (lowest ^ lowest << 1) << (14u - count);
}

IN_PLACE sum_t with_octet(sum_t sum, uint8_t octet) {
  return (sum_t){sum.bits ^ octet, times_x_to(8u, sum.rest ^ octet)};
}

IN_PLACE sum_t with_four(sum_t sum, uint32_t octets) { /* the first octet is the lowest */
  return (sum_t){sum.bits ^ octets, times_x_to(4u, times_x_to(14u, times_x_to(14u, sum.rest ^ octets)))};
}

/* A lean runtime handles octets one by one, which takes less code. */
#define IN_FOURS (!TIDE_LEAN)

IN_PLACE uint32_t first_lowest(uint32_t octets) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return __builtin_bswap32(octets);
#else
  return octets;
#endif
}

/* The checksum is the remainder of the message times x^16. So it is `rest` times x, or that plus x^15 + x + 1; the
 * parity decides which. */
static uint32_t crc_of(uint32_t bits, uint32_t message_rest) {
  const uint32_t rest = times_x_to(1u, message_rest);
  uint32_t odd = bits ^ rest;
  odd ^= odd >> 16;
  odd ^= odd >> 8;
  odd ^= odd >> 4;
  odd = 0x6996u >> (odd & 15u) & 1u; /* parity of four bits */
  return rest << 1 ^ (odd != 0u ? 0xC001u : 0u);
}

uint16_t tide_crc16(const uint8_t *bytes, size_t count) {
  sum_t sum = {0u, 0u};
  for (; IN_FOURS && count >= 4u; count -= 4u, bytes += 4) {
    uint32_t octets;
    __builtin_memcpy(&octets, bytes, sizeof octets);
    sum = with_four(sum, first_lowest(octets));
  }
  for (; count > 0u; --count) sum = with_octet(sum, *bytes++);
  return (uint16_t)crc_of(sum.bits, sum.rest);
}

/* ---- writing ---- */

static bool is_special(uint8_t octet) { return octet == TIDE_FRAMING_FLAG || octet == TIDE_FRAMING_ESCAPE; }

/* True if one of four octets is 0x7D to 0x7F: only these carry into their highest bit and do not have it already. */
IN_PLACE bool may_be_special(uint32_t octets) {
  return (((octets & 0x7F7F7F7Fu) + 0x03030303u) & ~octets & 0x80808080u) != 0u;
}

/* Octets are written in fours while none of four is special and all of them fit, else one by one. */
size_t tide_framing_writer_output(tide_framing_writer_t *writer, uint8_t *bytes, size_t capacity) {
  const tide_framing_segment_t *const back = &writer->segments[TIDE_FRAMING_BACK];
  size_t room = capacity;
  sum_t sum = {writer->bits, writer->rest};
  uint32_t octets;
  if (writer->segment == TIDE_FRAMING_FRONT && room > 0u) {
    if (!writer->begun) {
      writer->begun = true;
      *bytes++ = TIDE_FRAMING_FLAG;
      room--;
    }
    __builtin_memcpy(&octets, writer->front, 4);
    if (IN_FOURS && room >= 4u && writer->segments[TIDE_FRAMING_FRONT].count == 4u && !may_be_special(octets)) {
      __builtin_memcpy(bytes, &octets, 4);
      bytes += 4;
      room -= 4u;
      writer->segment = TIDE_FRAMING_HEAD;
    }
  }
  tide_framing_segment_t *segment = &writer->segments[writer->segment];
  const uint8_t *from = segment->bytes;
  size_t left = segment->count;
  for (;;) {
    if (IN_FOURS && left >= 4u && room >= 4u) {
      __builtin_memcpy(&octets, from, 4);
      if (!may_be_special(octets)) {
        __builtin_memcpy(bytes, &octets, 4);
        sum = with_four(sum, first_lowest(octets));
        from += 4;
        bytes += 4;
        left -= 4u;
        room -= 4u;
        continue;
      }
    }
    if (left == 0u) {
      if (segment == back) break;
      ++segment;
      from = segment->bytes;
      left = segment->count;
      if (segment == back) {
        const uint32_t crc = crc_of(sum.bits, sum.rest);
        writer->back[0] = (uint8_t)crc;
        writer->back[1] = (uint8_t)(crc >> 8);
        if (IN_FOURS && room >= 2u && !may_be_special(crc)) {
          *bytes++ = writer->back[0];
          *bytes++ = writer->back[1];
          room -= 2u;
          left = 0u;
        }
      }
      continue;
    }
    if (room == 0u) break;
    const uint8_t octet = *from;
    room--;
    if (is_special(octet)) {
      writer->escaped = !writer->escaped;
      if (writer->escaped) {
        *bytes++ = TIDE_FRAMING_ESCAPE;
        continue; /* the octet itself may not fit any more */
      }
    }
    if (segment != writer->segments) sum = with_octet(sum, octet); /* the checksum is that of the message alone */
    *bytes++ = is_special(octet) ? octet ^ TIDE_FRAMING_XOR : octet;
    from++;
    left--;
  }
  segment->bytes = from;
  segment->count = left;
  writer->segment = (uint8_t)(segment - writer->segments);
  writer->bits = sum.bits;
  writer->rest = (uint16_t)sum.rest;
  return capacity - room;
}

int tide_framing_encode(uint8_t *frame, size_t capacity, uint8_t source, uint8_t destination, const uint8_t *head,
                        size_t head_bytes, const uint8_t *body, size_t body_bytes) {
  tide_framing_writer_t writer;
  const int status =
      tide_framing_writer_init(&writer, source, destination, head, head_bytes, body, body_bytes, NULL, 0u);
  if (status != TIDE_OK) return status;
  const size_t length = tide_framing_writer_output(&writer, frame, capacity < INT32_MAX ? capacity : INT32_MAX);
  return tide_framing_writer_is_complete(&writer) ? (int)length : TIDE_ERROR_TOO_LARGE;
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
    case WAIT_LENGTH_HIGH: open_message(reader, octet); return 0;
    case WAIT_CRC_LOW:
      reader->crc = octet;
      reader->state = WAIT_CRC_HIGH;
      return 0;
    case WAIT_CRC_HIGH:
      reader->crc |= (uint16_t)(octet << 8);
      reader->state = WAIT_FLAG;
      TIDE_COUNT(reader->counters.frames, 1u);
      return 1;
    case WAIT_FLAG: TIDE_COUNT(reader->counters.noise_bytes, 1u); return 0;
    default: return 0;
  }
}

/* Copies octets of the message unchanged, up to the next special one or to the end. */
static size_t take_plain(tide_framing_reader_t *reader, const uint8_t *bytes, size_t count) {
  size_t wanted = (size_t)reader->length - reader->received;
  uint8_t *to = reader->buffer + reader->received;
  size_t taken = 0;
  if (count > wanted) count = wanted;
  while (IN_FOURS && count - taken >= 4u) {
    uint32_t octets;
    __builtin_memcpy(&octets, bytes + taken, 4);
    if (may_be_special(octets)) break;
    __builtin_memcpy(to + taken, &octets, 4);
    taken += 4u;
  }
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
