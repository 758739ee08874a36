/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and sequences to and from CDR. Reading never writes beyond a capacity, and empties a member before it is
 * read, so that an error leaves it empty. */
#include <string.h>

#include "tide/message_memory.h"
#include "tide/status.h"

static void fail(tide_cdr_t *cdr, int status) {
  if (cdr->status == TIDE_OK) cdr->status = status;
}

static bool is_over(size_t count, uint32_t bound) { return bound != 0 && count > bound; }

void tide_message_put_count(tide_cdr_t *cdr, size_t count, uint32_t bound) {
  if (is_over(count, bound) || count > UINT32_MAX) fail(cdr, TIDE_ERROR_TOO_LARGE);
  tide_cdr_put_u32(cdr, (uint32_t)count);
}

void tide_message_put_sequence(tide_cdr_t *cdr, const void *data, size_t size, size_t unit_bytes, size_t units,
                               uint32_t bound) {
  if (size > SIZE_MAX / units) fail(cdr, TIDE_ERROR_TOO_LARGE);
  tide_message_put_count(cdr, size, bound);
  tide_cdr_put_array(cdr, data, size * units, unit_bytes);
}

/* Up to the first NUL, as programs that count it in size expect. */
static size_t length_of(const rosidl_runtime_c__String *string) {
  if (string->data == NULL || string->size == 0) return 0;
  const char *end = memchr(string->data, '\0', string->size);
  return end == NULL ? string->size : (size_t)(end - string->data);
}

void tide_message_put_strings(tide_cdr_t *cdr, const rosidl_runtime_c__String *strings, size_t count, uint32_t bound) {
  for (size_t i = 0; i < count && cdr->status == TIDE_OK; ++i) {
    const size_t length = length_of(&strings[i]);
    if (is_over(length, bound)) fail(cdr, TIDE_ERROR_TOO_LARGE);
    tide_cdr_put_string(cdr, strings[i].data, length);
  }
}

void tide_message_put_wstrings(tide_cdr_t *cdr, const rosidl_runtime_c__U16String *strings, size_t count,
                               uint32_t bound) {
  for (size_t i = 0; i < count && cdr->status == TIDE_OK; ++i) {
    size_t length = strings[i].data == NULL ? 0 : strings[i].size;
    if (is_over(length, bound)) fail(cdr, TIDE_ERROR_TOO_LARGE);
    tide_cdr_put_wstring(cdr, strings[i].data, length);
  }
}

size_t tide_message_get_count(tide_cdr_t *cdr, size_t capacity, size_t minimum_bytes, uint32_t bound) {
  size_t count = tide_cdr_get_count(cdr, minimum_bytes);
  if (cdr->status != TIDE_OK) return 0;
  if (is_over(count, bound)) fail(cdr, TIDE_ERROR_MALFORMED);
  if (count > capacity) fail(cdr, TIDE_ERROR_CAPACITY_MESSAGE);
  return cdr->status == TIDE_OK ? count : 0;
}

size_t tide_message_get_sequence(tide_cdr_t *cdr, void *data, size_t capacity, size_t unit_bytes, size_t units,
                                 uint32_t bound) {
  size_t count = tide_message_get_count(cdr, capacity, unit_bytes * units, bound);
  tide_cdr_get_array(cdr, data, count * units, unit_bytes);
  return cdr->status == TIDE_OK ? count : 0;
}

size_t tide_message_get_bools(tide_cdr_t *cdr, bool *data, size_t capacity, uint32_t bound) {
  size_t count = tide_message_get_count(cdr, capacity, 1, bound);
  tide_cdr_get_bools(cdr, data, count);
  return cdr->status == TIDE_OK ? count : 0;
}

static void get_string(tide_cdr_t *cdr, rosidl_runtime_c__String *string, uint32_t bound) {
  size_t length;
  string->size = 0;
  if (string->capacity > 0) string->data[0] = '\0';
  const char *text = tide_cdr_get_string(cdr, &length);
  if (text == NULL) return;
  if (is_over(length, bound)) {
    fail(cdr, TIDE_ERROR_MALFORMED);
  } else if (length < string->capacity) {
    memcpy(string->data, text, length);
    string->data[length] = '\0';
    string->size = length;
  } else if (length > 0) {
    fail(cdr, TIDE_ERROR_CAPACITY_MESSAGE);
  }
}

void tide_message_get_strings(tide_cdr_t *cdr, rosidl_runtime_c__String *strings, size_t count, uint32_t bound) {
  for (size_t i = 0; i < count && cdr->status == TIDE_OK; ++i) get_string(cdr, &strings[i], bound);
}

static void get_wstring(tide_cdr_t *cdr, rosidl_runtime_c__U16String *string, uint32_t bound) {
  size_t capacity = string->capacity > 0 ? string->capacity - 1u : 0;
  string->size = 0;
  string->size = tide_cdr_get_wstring(cdr, string->data, capacity);
  if (is_over(string->size, bound)) {
    fail(cdr, TIDE_ERROR_MALFORMED);
    string->size = 0;
  }
  if (string->capacity > 0) string->data[string->size] = 0;
}

void tide_message_get_wstrings(tide_cdr_t *cdr, rosidl_runtime_c__U16String *strings, size_t count, uint32_t bound) {
  for (size_t i = 0; i < count && cdr->status == TIDE_OK; ++i) get_wstring(cdr, &strings[i], bound);
}

size_t tide_message_bind_elements(void *memory, size_t capacity, const void *elements, size_t size,
                                  size_t element_bytes) {
  size_t kept = size < capacity ? size : capacity;
  if (kept > 0 && elements != NULL) memmove(memory, elements, kept * element_bytes);
  return elements == NULL ? 0 : kept;
}

void tide_message_bind_string(rosidl_runtime_c__String *string, char *memory, size_t capacity) {
  string->size = capacity == 0 ? 0 : tide_message_bind_elements(memory, capacity - 1u, string->data, string->size, 1);
  string->data = memory;
  string->capacity = capacity;
  if (capacity > 0) memory[string->size] = '\0';
}

void tide_message_bind_wstring(rosidl_runtime_c__U16String *string, uint16_t *memory, size_t capacity) {
  string->size = capacity == 0 ? 0 : tide_message_bind_elements(memory, capacity - 1u, string->data, string->size, 2);
  string->data = memory;
  string->capacity = capacity;
  if (capacity > 0) memory[string->size] = 0;
}
