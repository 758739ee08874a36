/* SPDX-License-Identifier: Apache-2.0 */
/* Serial stream framing of DDS-XRCE (OMG DDS-XRCE 1.0, annex C): flag 0x7E, source, destination, length (u16 LE),
 * message, CRC-16/ARC (u16 LE) over the unescaped message; after the flag every 0x7E and 0x7D becomes 0x7D followed by
 * the octet XOR 0x20. There is no closing flag. A flag always starts a new frame. So a reader resynchronises at the
 * next flag, whatever preceded it. */
#ifndef TIDE_FRAMING_H
#define TIDE_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/status.h"

TIDE_EXTERN_C_BEGIN

#define TIDE_FRAMING_FLAG 0x7Eu
#define TIDE_FRAMING_ESCAPE 0x7Du
#define TIDE_FRAMING_XOR 0x20u
/* Octets a frame adds to a message when nothing is escaped. */
#define TIDE_FRAMING_OVERHEAD_BYTES 7u
/* Largest frame that a message of this many bytes can become. */
#define TIDE_FRAMING_WORST_BYTES(message_bytes) (1u + 2u * ((message_bytes) + 6u))

/* CRC-16/ARC. Cost: linear, four octets at a time, without a table. */
uint16_t tide_crc16(const uint8_t *bytes, size_t count);

/* Write one frame of a message given in two parts (either may be empty). Returns the bytes written, or
 * TIDE_ERROR_TOO_LARGE (capacity), TIDE_ERROR_ARGUMENT (message above 65,535 bytes). */
int tide_framing_encode(uint8_t *frame, size_t capacity, uint8_t source, uint8_t destination, const uint8_t *head,
                        size_t head_bytes, const uint8_t *body, size_t body_bytes);

/* Part of a frame that is still to be written. */
typedef struct tide_framing_segment {
  const uint8_t *bytes;
  size_t count;
} tide_framing_segment_t;

/* Writes a frame octet by octet, as a transmitter needs them. It needs no buffer, and no preparation that grows with
 * the message, so a link starts a frame in a short time. Memory: the owner's, 56 bytes with 32-bit pointers, not to be
 * moved while in use. */
enum { TIDE_FRAMING_FRONT, TIDE_FRAMING_HEAD, TIDE_FRAMING_BODY, TIDE_FRAMING_TAIL, TIDE_FRAMING_BACK };
typedef struct tide_framing_writer {
  tide_framing_segment_t segments[5]; /* addresses and length, parts of the message, checksum */
  uint8_t front[4], back[2];
  uint16_t rest; /* rest and bits: state of the checksum */
  uint32_t bits;
  uint8_t segment; /* index of the segment being written */
  bool begun, escaped;
} tide_framing_writer_t;

/* Begin the frame of a message in three parts (any may be empty). The parts must not change until the frame is
 * complete. O(1). TIDE_ERROR_ARGUMENT: more than 65,535 bytes. */
static inline int tide_framing_writer_init(tide_framing_writer_t *writer, uint8_t source, uint8_t destination,
                                           const uint8_t *head, size_t head_bytes, const uint8_t *body,
                                           size_t body_bytes, const uint8_t *tail, size_t tail_bytes) {
  const size_t length = head_bytes + body_bytes + tail_bytes;
  if ((head_bytes | body_bytes | tail_bytes | length) > UINT16_MAX) return TIDE_ERROR_ARGUMENT;
  writer->segments[TIDE_FRAMING_FRONT].bytes = writer->front;
  writer->segments[TIDE_FRAMING_FRONT].count = sizeof writer->front;
  writer->segments[TIDE_FRAMING_HEAD].bytes = head;
  writer->segments[TIDE_FRAMING_HEAD].count = head_bytes;
  writer->segments[TIDE_FRAMING_BODY].bytes = body;
  writer->segments[TIDE_FRAMING_BODY].count = body_bytes;
  writer->segments[TIDE_FRAMING_TAIL].bytes = tail;
  writer->segments[TIDE_FRAMING_TAIL].count = tail_bytes;
  writer->segments[TIDE_FRAMING_BACK].bytes = writer->back;
  writer->segments[TIDE_FRAMING_BACK].count = sizeof writer->back;
  writer->front[0] = source;
  writer->front[1] = destination;
  writer->front[2] = (uint8_t)length;
  writer->front[3] = (uint8_t)(length >> 8);
  writer->segment = TIDE_FRAMING_FRONT;
  writer->begun = writer->escaped = false;
  writer->rest = 0u;
  writer->bits = 0u;
  return TIDE_OK;
}
/* True when all octets of the frame were written. */
static inline bool tide_framing_writer_is_complete(const tide_framing_writer_t *writer) {
  return writer->segment == TIDE_FRAMING_BACK && writer->segments[TIDE_FRAMING_BACK].count == 0u;
}
/* Write the next octets, at most capacity (for a DMA in pieces). Returns their number; 0: the frame is complete.
 * O(capacity). */
size_t tide_framing_writer_output(tide_framing_writer_t *writer, uint8_t *bytes, size_t capacity);

typedef struct tide_framing_counters {
  uint32_t frames;      /* complete frames passed on (CRC not yet checked) */
  uint32_t truncated;   /* frames cut off by the next flag, or by the removal of their buffer */
  uint32_t oversize;    /* frames that announced more than the buffer holds */
  uint32_t foreign;     /* frames for another address */
  uint32_t noise_bytes; /* octets before any flag or after a complete frame */
} tide_framing_counters_t;

/* Reads a byte stream, unescapes it into the caller's buffer, and reports complete messages. It does not check the CRC:
 * the receiver does that when it processes the message (tide_crc16 against .crc). */
typedef struct tide_framing_reader {
  uint8_t *buffer; /* where the current message goes */
  size_t capacity;
  uint8_t address; /* our address; frames for others are skipped */
  uint8_t state;
  uint8_t escaped;
  uint8_t source;  /* source address of the current frame */
  uint16_t length; /* length of the current message */
  uint16_t received;
  uint16_t crc; /* checksum received with the message */
  tide_framing_counters_t counters;
} tide_framing_reader_t;

void tide_framing_reader_init(tide_framing_reader_t *reader, uint8_t address);
/* Where the next message goes. Null means no room: messages are then skipped and counted as oversize. A message being
 * read into another buffer is dropped and counted as truncated. */
void tide_framing_reader_set_buffer(tide_framing_reader_t *reader, uint8_t *buffer, size_t capacity);
/* Consume bytes up to and including the byte that completes a message. Returns the number of bytes consumed; *complete
 * is 1 when reader->buffer holds reader->length bytes of a whole message. Call again with the rest, after
 * set_buffer. */
size_t tide_framing_reader_input(tide_framing_reader_t *reader, const uint8_t *bytes, size_t count, int *complete);
/* Forget a partial frame (the link was cut). */
void tide_framing_reader_reset(tide_framing_reader_t *reader);

TIDE_EXTERN_C_END
#endif
