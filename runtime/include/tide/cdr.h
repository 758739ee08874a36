/* SPDX-License-Identifier: Apache-2.0 */
/* CDR (XCDR version 1, plain) as DDS-XRCE and ROS 2 use it. Primitives are aligned to their size (at most 8) from the
 * origin of the stream, strings have a length that counts the NUL, and sequences have a 32-bit count.
 *
 * A cursor's error is sticky: after the first failure further calls do nothing, so a sequence of calls needs only one
 * check at its end. No allocation, re-entrant, cost proportional to the bytes moved. */
#ifndef TIDE_CDR_H
#define TIDE_CDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_cdr {
  uint8_t *bytes;  /* the buffer; written only by the put functions. Null for a cursor that only measures. */
  size_t capacity; /* bytes in the buffer */
  size_t position; /* next byte */
  size_t origin;   /* position from which alignment counts */
  bool big_endian; /* byte order of the stream; false: little-endian */
  bool reading;    /* made by tide_cdr_reader */
  int status;      /* TIDE_OK, or the first error: TIDE_ERROR_TOO_LARGE (put), TIDE_ERROR_MALFORMED (get),
                      TIDE_ERROR_CAPACITY_MESSAGE (get into memory that is too small), TIDE_ERROR_ARGUMENT (put on a
                      reader, get on a writer, wrong element size) */
} tide_cdr_t;

/* Start writing. Little-endian. */
void tide_cdr_writer(tide_cdr_t *cdr, uint8_t *bytes, size_t capacity);
/* Like tide_cdr_writer, but starts after `position` octets; alignment counts from there. Members
 * are assigned one by one: to clear a whole structure, GCC calls memset on a Cortex-M, which takes four times as long.
 */
static inline void tide_cdr_writer_at(tide_cdr_t *cdr, uint8_t *bytes, size_t capacity, size_t position) {
  cdr->bytes = bytes;
  cdr->capacity = capacity;
  cdr->position = cdr->origin = position;
  cdr->big_endian = cdr->reading = false;
  cdr->status = 0; /* TIDE_OK */
}
/* Start reading; never writes to bytes. */
void tide_cdr_reader(tide_cdr_t *cdr, const uint8_t *bytes, size_t length, bool big_endian);
/* Start measuring: the put functions only advance position. */
void tide_cdr_measure(tide_cdr_t *cdr);

/* From here on alignment counts from the current position (the body of a nested encapsulation). */
void tide_cdr_set_origin(tide_cdr_t *cdr);
/* Writing: zero bytes up to the alignment (1, 2, 4, 8). Reading: skips. */
void tide_cdr_align(tide_cdr_t *cdr, size_t alignment);
size_t tide_cdr_remaining(const tide_cdr_t *cdr);

void tide_cdr_put_u8(tide_cdr_t *cdr, uint8_t value);
void tide_cdr_put_u16(tide_cdr_t *cdr, uint16_t value);
void tide_cdr_put_u32(tide_cdr_t *cdr, uint32_t value);
void tide_cdr_put_u64(tide_cdr_t *cdr, uint64_t value);
void tide_cdr_put_f32(tide_cdr_t *cdr, float value);
void tide_cdr_put_f64(tide_cdr_t *cdr, double value);
void tide_cdr_put_bool(tide_cdr_t *cdr, bool value);
/* Raw bytes, not aligned. */
void tide_cdr_put_bytes(tide_cdr_t *cdr, const void *bytes, size_t count);
/* count elements of element_bytes (1, 2, 4, 8) each, aligned to their size, in the byte order of the stream. Without
 * elements nothing is written, not even padding for alignment, as in other implementations. */
void tide_cdr_put_array(tide_cdr_t *cdr, const void *elements, size_t count, size_t element_bytes);
/* length counts the characters without the NUL; text need not be terminated. */
void tide_cdr_put_string(tide_cdr_t *cdr, const char *text, size_t length);
/* Encoded as rosidl encodes wstring: a 32-bit count, then each 16-bit character in 32 bits; no terminator. */
void tide_cdr_put_wstring(tide_cdr_t *cdr, const uint16_t *text, size_t length);

uint8_t tide_cdr_get_u8(tide_cdr_t *cdr);
uint16_t tide_cdr_get_u16(tide_cdr_t *cdr);
uint32_t tide_cdr_get_u32(tide_cdr_t *cdr);
uint64_t tide_cdr_get_u64(tide_cdr_t *cdr);
float tide_cdr_get_f32(tide_cdr_t *cdr);
double tide_cdr_get_f64(tide_cdr_t *cdr);
bool tide_cdr_get_bool(tide_cdr_t *cdr); /* a value above 1 is TIDE_ERROR_MALFORMED */
void tide_cdr_get_bytes(tide_cdr_t *cdr, void *bytes, size_t count);
void tide_cdr_get_array(tide_cdr_t *cdr, void *elements, size_t count, size_t element_bytes);
/* count bools; a value above 1 is TIDE_ERROR_MALFORMED. */
void tide_cdr_get_bools(tide_cdr_t *cdr, bool *elements, size_t count);
/* Returns a view of the characters in the buffer; *length excludes the NUL. Null after an error. An absent NUL or a
 * length beyond the buffer is TIDE_ERROR_MALFORMED. Length 0 (no NUL counted) is read as an empty string, as other
 * implementations send it. */
const char *tide_cdr_get_string(tide_cdr_t *cdr, size_t *length);
/* Copies the characters of a wstring and returns their number, 0 after an error. More than capacity is
 * TIDE_ERROR_CAPACITY_MESSAGE, a character beyond 16 bits TIDE_ERROR_MALFORMED. */
size_t tide_cdr_get_wstring(tide_cdr_t *cdr, uint16_t *text, size_t capacity);
/* A view of count raw bytes in the buffer; null after an error. */
const uint8_t *tide_cdr_view(tide_cdr_t *cdr, size_t count);
/* Returns the count of a sequence whose elements take at least element_bytes_minimum each on the wire. A count that
 * cannot fit in the remaining bytes is TIDE_ERROR_MALFORMED, so a hostile count never drives a long loop. */
uint32_t tide_cdr_get_count(tide_cdr_t *cdr, size_t element_bytes_minimum);

TIDE_EXTERN_C_END
#endif
