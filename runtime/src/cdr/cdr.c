/* SPDX-License-Identifier: Apache-2.0 */
/* Every move of a cursor goes through place(). Copies and swaps use builtins, because a freestanding compiler turns a
 * plain memcpy into a call. */
#include "tide/cdr.h"

#include <string.h>

#include "tide/invariant.h"
#include "tide/status.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_IS_BIG_ENDIAN true
#else
#define HOST_IS_BIG_ENDIAN false
#endif

static void fail(tide_cdr_t *cdr, int status) {
  if (cdr->status == TIDE_OK) cdr->status = status;
}

static bool is_swapped(const tide_cdr_t *cdr) { return cdr->big_endian != HOST_IS_BIG_ENDIAN; }

static size_t padding_of(const tide_cdr_t *cdr, size_t alignment) {
  return (cdr->origin - cdr->position) & (alignment - 1u);
}

/* Skips the padding and `count` bytes, and returns where these bytes start. Returns null if there is nothing to copy:
 * after an error, or in a cursor that only measures. */
static uint8_t *place(tide_cdr_t *cdr, size_t alignment, size_t count, bool reading) {
  TIDE_INVARIANT(cdr->origin <= cdr->position && cdr->position <= cdr->capacity);
  TIDE_INVARIANT(alignment > 0u && (alignment & (alignment - 1u)) == 0u);
  const size_t position = cdr->position, room = cdr->capacity - position; /* locals, as the padding could alias them */
  const size_t padding = padding_of(cdr, alignment);
  if (cdr->status != TIDE_OK) return NULL;
  if (cdr->reading != reading) {
    cdr->status = TIDE_ERROR_ARGUMENT;
    return NULL;
  }
  if (padding > room || count > room - padding) {
    cdr->status = reading ? TIDE_ERROR_MALFORMED : TIDE_ERROR_TOO_LARGE;
    return NULL;
  }
  cdr->position = position + padding + count;
  uint8_t *bytes = cdr->bytes;
  if (bytes == NULL) return NULL;
  bytes += position;
  if (!reading)
    for (size_t i = 0; i < padding; ++i) bytes[i] = 0;
  return bytes + padding;
}

static uint8_t *put_place(tide_cdr_t *cdr, size_t alignment, size_t count) {
  return place(cdr, alignment, count, false);
}

static const uint8_t *get_place(tide_cdr_t *cdr, size_t alignment, size_t count) {
  return place(cdr, alignment, count, true);
}

void tide_cdr_writer(tide_cdr_t *cdr, uint8_t *bytes, size_t capacity) {
  tide_cdr_writer_at(cdr, bytes, bytes == NULL ? 0 : capacity, 0u);
}

void tide_cdr_reader(tide_cdr_t *cdr, const uint8_t *bytes, size_t length, bool big_endian) {
  static const uint8_t nothing;
  union {
    const uint8_t *readable;
    uint8_t *stored;
  } view = {.readable = bytes == NULL ? &nothing : bytes};
  tide_cdr_writer_at(cdr, view.stored, bytes == NULL ? 0 : length, 0u);
  cdr->big_endian = big_endian;
  cdr->reading = true;
}

void tide_cdr_measure(tide_cdr_t *cdr) { tide_cdr_writer_at(cdr, NULL, SIZE_MAX, 0u); }

void tide_cdr_set_origin(tide_cdr_t *cdr) { cdr->origin = cdr->position; }

size_t tide_cdr_remaining(const tide_cdr_t *cdr) { return cdr->capacity - cdr->position; }

void tide_cdr_align(tide_cdr_t *cdr, size_t alignment) { (void)place(cdr, alignment, 0, cdr->reading); }

void tide_cdr_put_u8(tide_cdr_t *cdr, uint8_t value) {
  uint8_t *place = put_place(cdr, 1, 1);
  if (place != NULL) *place = value;
}

void tide_cdr_put_u16(tide_cdr_t *cdr, uint16_t value) {
  uint8_t *place = put_place(cdr, 2, 2);
  if (is_swapped(cdr)) value = __builtin_bswap16(value);
  if (place != NULL) __builtin_memcpy(place, &value, 2);
}

void tide_cdr_put_u32(tide_cdr_t *cdr, uint32_t value) {
  uint8_t *place = put_place(cdr, 4, 4);
  if (is_swapped(cdr)) value = __builtin_bswap32(value);
  if (place != NULL) __builtin_memcpy(place, &value, 4);
}

void tide_cdr_put_u64(tide_cdr_t *cdr, uint64_t value) {
  uint8_t *place = put_place(cdr, 8, 8);
  if (is_swapped(cdr)) value = __builtin_bswap64(value);
  if (place != NULL) __builtin_memcpy(place, &value, 8);
}

void tide_cdr_put_f32(tide_cdr_t *cdr, float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  tide_cdr_put_u32(cdr, bits);
}

void tide_cdr_put_f64(tide_cdr_t *cdr, double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  tide_cdr_put_u64(cdr, bits);
}

void tide_cdr_put_bool(tide_cdr_t *cdr, bool value) { tide_cdr_put_u8(cdr, value ? 1 : 0); }

void tide_cdr_put_bytes(tide_cdr_t *cdr, const void *bytes, size_t count) {
  if (count == 0) return;
  if (bytes == NULL && cdr->bytes != NULL) fail(cdr, TIDE_ERROR_ARGUMENT);
  uint8_t *place = put_place(cdr, 1, count);
  if (place != NULL && bytes != NULL) memcpy(place, bytes, count);
}

static void copy_swapped(uint8_t *to, const uint8_t *from, size_t count, size_t element_bytes) {
  for (const uint8_t *end = from + count * element_bytes; from != end; from += element_bytes)
    for (size_t i = element_bytes; i-- > 0;) *to++ = from[i];
}

static bool is_element_size(size_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

void tide_cdr_put_array(tide_cdr_t *cdr, const void *elements, size_t count, size_t element_bytes) {
  if (count == 0) return; /* other DDS implementations do not align before an empty array */
  if (!is_element_size(element_bytes) || (elements == NULL && cdr->bytes != NULL)) {
    fail(cdr, TIDE_ERROR_ARGUMENT);
    return;
  }
  if (count > SIZE_MAX / element_bytes) {
    fail(cdr, TIDE_ERROR_TOO_LARGE);
    return;
  }
  uint8_t *place = put_place(cdr, element_bytes, count * element_bytes);
  if (place == NULL || elements == NULL) return;
  if (element_bytes == 1 || !is_swapped(cdr)) {
    memcpy(place, elements, count * element_bytes);
  } else {
    copy_swapped(place, elements, count, element_bytes);
  }
}

static void put_count(tide_cdr_t *cdr, size_t count) {
  if (count > UINT32_MAX) fail(cdr, TIDE_ERROR_TOO_LARGE);
  tide_cdr_put_u32(cdr, (uint32_t)count);
}

void tide_cdr_put_string(tide_cdr_t *cdr, const char *text, size_t length) {
  if (length > UINT32_MAX - 8u) fail(cdr, TIDE_ERROR_TOO_LARGE);
  if (text == NULL && length > 0u && cdr->bytes != NULL) fail(cdr, TIDE_ERROR_ARGUMENT);
  uint8_t *place = put_place(cdr, 4, 4u + length + 1u);
  if (place == NULL) return;
  uint32_t count = (uint32_t)length + 1u;
  if (is_swapped(cdr)) count = __builtin_bswap32(count);
  __builtin_memcpy(place, &count, 4);
  if (text != NULL && length > 0u) memcpy(place + 4u, text, length);
  place[4u + length] = 0u;
}

void tide_cdr_put_wstring(tide_cdr_t *cdr, const uint16_t *text, size_t length) {
  put_count(cdr, length);
  for (size_t i = 0; i < length && cdr->status == TIDE_OK; ++i) tide_cdr_put_u32(cdr, text[i]);
}

uint8_t tide_cdr_get_u8(tide_cdr_t *cdr) {
  const uint8_t *place = get_place(cdr, 1, 1);
  return place == NULL ? 0 : *place;
}

uint16_t tide_cdr_get_u16(tide_cdr_t *cdr) {
  const uint8_t *place = get_place(cdr, 2, 2);
  uint16_t value = 0;
  if (place != NULL) __builtin_memcpy(&value, place, 2);
  return is_swapped(cdr) ? __builtin_bswap16(value) : value;
}

uint32_t tide_cdr_get_u32(tide_cdr_t *cdr) {
  const uint8_t *place = get_place(cdr, 4, 4);
  uint32_t value = 0;
  if (place != NULL) __builtin_memcpy(&value, place, 4);
  return is_swapped(cdr) ? __builtin_bswap32(value) : value;
}

uint64_t tide_cdr_get_u64(tide_cdr_t *cdr) {
  const uint8_t *place = get_place(cdr, 8, 8);
  uint64_t value = 0;
  if (place != NULL) __builtin_memcpy(&value, place, 8);
  return is_swapped(cdr) ? __builtin_bswap64(value) : value;
}

float tide_cdr_get_f32(tide_cdr_t *cdr) {
  uint32_t bits = tide_cdr_get_u32(cdr);
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

double tide_cdr_get_f64(tide_cdr_t *cdr) {
  uint64_t bits = tide_cdr_get_u64(cdr);
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

bool tide_cdr_get_bool(tide_cdr_t *cdr) {
  uint8_t value = tide_cdr_get_u8(cdr);
  if (value > 1) fail(cdr, TIDE_ERROR_MALFORMED);
  return value == 1;
}

void tide_cdr_get_bytes(tide_cdr_t *cdr, void *bytes, size_t count) {
  const uint8_t *place = get_place(cdr, 1, count);
  if (place != NULL && count != 0) memcpy(bytes, place, count);
}

void tide_cdr_get_array(tide_cdr_t *cdr, void *elements, size_t count, size_t element_bytes) {
  if (count == 0) return;
  if (!is_element_size(element_bytes) || elements == NULL) {
    fail(cdr, TIDE_ERROR_ARGUMENT);
    return;
  }
  if (count > SIZE_MAX / element_bytes) {
    fail(cdr, TIDE_ERROR_MALFORMED);
    return;
  }
  const uint8_t *place = get_place(cdr, element_bytes, count * element_bytes);
  if (place == NULL || elements == NULL) return;
  if (element_bytes == 1 || !is_swapped(cdr)) {
    memcpy(elements, place, count * element_bytes);
  } else {
    copy_swapped(elements, place, count, element_bytes);
  }
}

void tide_cdr_get_bools(tide_cdr_t *cdr, bool *elements, size_t count) {
  const uint8_t *place = get_place(cdr, 1, count);
  if (place == NULL) return;
  for (size_t i = 0; i < count; ++i) {
    if (place[i] > 1) fail(cdr, TIDE_ERROR_MALFORMED);
    elements[i] = place[i] != 0;
  }
}

const char *tide_cdr_get_string(tide_cdr_t *cdr, size_t *length) {
  size_t count = tide_cdr_get_u32(cdr);
  *length = 0;
  if (cdr->status != TIDE_OK) return NULL;
  if (count == 0) return "";
  const uint8_t *text = get_place(cdr, 1, count);
  if (text == NULL) return NULL;
  if (text[count - 1u] != 0) {
    fail(cdr, TIDE_ERROR_MALFORMED);
    return NULL;
  }
  *length = count - 1u;
  return (const char *)text;
}

size_t tide_cdr_get_wstring(tide_cdr_t *cdr, uint16_t *text, size_t capacity) {
  size_t count = tide_cdr_get_count(cdr, 4);
  if (count > capacity) fail(cdr, TIDE_ERROR_CAPACITY_MESSAGE);
  for (size_t i = 0; i < count && cdr->status == TIDE_OK; ++i) {
    uint32_t character = tide_cdr_get_u32(cdr);
    if (character > UINT16_MAX) fail(cdr, TIDE_ERROR_MALFORMED);
    text[i] = (uint16_t)character;
  }
  return cdr->status == TIDE_OK ? count : 0;
}

const uint8_t *tide_cdr_view(tide_cdr_t *cdr, size_t count) { return get_place(cdr, 1, count); }

uint32_t tide_cdr_get_count(tide_cdr_t *cdr, size_t element_bytes_minimum) {
  uint32_t count = tide_cdr_get_u32(cdr);
  if (cdr->status != TIDE_OK) return 0;
  if (element_bytes_minimum != 0 && count > tide_cdr_remaining(cdr) / element_bytes_minimum) {
    fail(cdr, TIDE_ERROR_MALFORMED);
    return 0;
  }
  return count;
}
