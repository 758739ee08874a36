/* SPDX-License-Identifier: Apache-2.0 */
/* Writes CDR into a buffer that may be replaced when it is full, like micro-CDR; for callbacks of continuous
 * serialisation (rmw_microros/continous_serialization.h). Primitives are aligned to their size from the
 * start of the message, across buffers. After an error every call returns false. */
#ifndef UCDR_MICROCDR_H_
#define UCDR_MICROCDR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef enum ucdrEndianness { UCDR_BIG_ENDIANNESS = 0, UCDR_LITTLE_ENDIANNESS = 1 } ucdrEndianness;

struct ucdrBuffer;
/* Called when the buffer is full. Returns true for an error; false after it has set a new buffer (init, iterator,
 * final, offset). */
typedef bool (*OnFullBuffer)(struct ucdrBuffer *buffer, void *args);

typedef struct ucdrBuffer {
  uint8_t *init;     /* start of this buffer */
  uint8_t *final;    /* its end (exclusive) */
  uint8_t *iterator; /* the next octet */
  size_t offset;     /* offset of init in the message */
  ucdrEndianness endianness;
  bool error;
  OnFullBuffer on_full_buffer; /* null: a full buffer is an error */
  void *args;
} ucdrBuffer;

void ucdr_init_buffer(ucdrBuffer *buffer, uint8_t *data, size_t size); /* little-endian */
void ucdr_set_on_full_buffer_callback(ucdrBuffer *buffer, OnFullBuffer on_full_buffer, void *args);
size_t ucdr_buffer_size(const ucdrBuffer *buffer);
size_t ucdr_buffer_length(const ucdrBuffer *buffer); /* octets written to this buffer */
size_t ucdr_buffer_remaining(const ucdrBuffer *buffer);
ucdrEndianness ucdr_buffer_endianness(const ucdrBuffer *buffer);
bool ucdr_buffer_has_error(const ucdrBuffer *buffer);
/* Octets from a position to the next multiple of data_size (1, 2, 4, 8). */
size_t ucdr_alignment(size_t buffer_position, size_t data_size);
size_t ucdr_buffer_alignment(const ucdrBuffer *buffer, size_t data_size);
void ucdr_align_to(ucdrBuffer *buffer, size_t data_size);  /* writes zeros */
void ucdr_advance_buffer(ucdrBuffer *buffer, size_t size); /* writes zeros */

#define UCDR_DECLARE(suffix, type)                                                          \
  bool ucdr_serialize_##suffix(ucdrBuffer *buffer, type value);                             \
  bool ucdr_serialize_array_##suffix(ucdrBuffer *buffer, const type *values, size_t count); \
  /* an array preceded by its count */                                                      \
  bool ucdr_serialize_sequence_##suffix(ucdrBuffer *buffer, const type *values, uint32_t count);
UCDR_DECLARE(char, char)
UCDR_DECLARE(bool, bool)
UCDR_DECLARE(uint8_t, uint8_t)
UCDR_DECLARE(uint16_t, uint16_t)
UCDR_DECLARE(uint32_t, uint32_t)
UCDR_DECLARE(uint64_t, uint64_t)
UCDR_DECLARE(int8_t, int8_t)
UCDR_DECLARE(int16_t, int16_t)
UCDR_DECLARE(int32_t, int32_t)
UCDR_DECLARE(int64_t, int64_t)
UCDR_DECLARE(float, float)
UCDR_DECLARE(double, double)
#undef UCDR_DECLARE
bool ucdr_serialize_string(ucdrBuffer *buffer, const char *text); /* a string, whose length counts the NUL */

TIDE_EXTERN_C_END
#endif
