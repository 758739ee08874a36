/* SPDX-License-Identifier: Apache-2.0 */
/* The sending side of a serial link, without I/O: one frame in serial framing, and the time at which its last bit
 * leaves the line. Drivers whose hardware reports the end of transmission (a UART with DMA) need only the framing.
 * Drivers without such a report (a pseudo terminal, most USB adapters) use the computed time. Not thread-safe. */
#ifndef TIDE_LINK_SERIAL_H
#define TIDE_LINK_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/framing.h"
#include "tide/transmitter.h"

TIDE_EXTERN_C_BEGIN

/* Stock clients and agents use these addresses. */
#define TIDE_SERIAL_ADDRESS_AGENT 0x00u
#define TIDE_SERIAL_ADDRESS_CLIENT 0x01u
#define TIDE_SERIAL_BITS_A_BYTE 10u /* 8N1 */
/* heartbeat_floor_ns of tide_link_t: two frames of 100 bytes at 115,200 baud, so a client does not request the
 * acknowledgment of a message that is still on the line. */
#define TIDE_SERIAL_HEARTBEAT_FLOOR_NS INT64_C(20000000)

typedef struct tide_serial_output {
  uint8_t *frame; /* the owner's buffer of TIDE_FRAMING_WORST_BYTES(largest message) */
  size_t capacity;
  size_t length, written; /* bytes of the frame, and how many of them were handed to the driver */
  uint32_t baud;          /* 0: no pacing, bytes take no time */
  uint8_t source, destination;
  int64_t free_at_ns; /* time at which the bytes handed over so far have left the line */
} tide_serial_output_t;

/* source: our address on the line. */
void tide_serial_output_init(tide_serial_output_t *output, uint8_t *storage, size_t capacity, uint32_t baud,
                             uint8_t source, uint8_t destination);
/* Make a frame of the message. Linear in its length. TIDE_ERROR_STATE: the last frame is not completely handed over
 * yet. TIDE_ERROR_TOO_LARGE: does not fit the storage. */
int tide_serial_output_load(tide_serial_output_t *output, const tide_frame_parts_t *parts);
/* Returns the number of bytes that the driver still has to take, and a pointer to them. */
size_t tide_serial_output_rest(const tide_serial_output_t *output, const uint8_t **bytes);
/* Report that the driver took count bytes now. */
void tide_serial_output_wrote(tide_serial_output_t *output, size_t count, int64_t now_ns);
/* Time at which the last bit leaves, or TIDE_FOREVER (INT64_MAX) while bytes are still to be handed over. The time is
 * never too early if the driver sends without gaps. */
int64_t tide_serial_output_complete_ns(const tide_serial_output_t *output);
/* Forget the frame: the line was cut. */
void tide_serial_output_reset(tide_serial_output_t *output);

/* Transmission time of `bytes` on the line, rounded up. */
int64_t tide_serial_duration_ns(size_t bytes, uint32_t baud);

TIDE_EXTERN_C_END
#endif
