/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that walk the fields of any message. */
#include <string.h>

#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_runtime_c/u16string_functions.h"
#include "tide/message_memory.h"
#include "tide/status.h"

typedef struct elements {
  const void *data;
  size_t count;
} elements_t;

size_t tide_field_element_bytes(const tide_field_t *field) {
  switch (field->kind) {
    case TIDE_FIELD_BOOL:
      return sizeof(bool);
    case TIDE_FIELD_OCTET:
    case TIDE_FIELD_CHAR:
    case TIDE_FIELD_I8:
    case TIDE_FIELD_U8:
      return 1;
    case TIDE_FIELD_I16:
    case TIDE_FIELD_U16:
    case TIDE_FIELD_WCHAR:
      return 2;
    case TIDE_FIELD_I32:
    case TIDE_FIELD_U32:
    case TIDE_FIELD_F32:
      return 4;
    case TIDE_FIELD_I64:
    case TIDE_FIELD_U64:
    case TIDE_FIELD_F64:
      return 8;
    case TIDE_FIELD_STRING:
      return sizeof(rosidl_runtime_c__String);
    case TIDE_FIELD_WSTRING:
      return sizeof(rosidl_runtime_c__U16String);
    case TIDE_FIELD_MESSAGE:
      return field->type->structure_bytes;
  }
  return 0;
}

static elements_t elements_of(const tide_field_t *field, const void *message) {
  const uint8_t *member = (const uint8_t *)message + field->offset_bytes;
  tide_sequence_t sequence;
  if (field->shape == TIDE_SHAPE_ONE) return (elements_t){member, 1};
  if (field->shape == TIDE_SHAPE_ARRAY) return (elements_t){member, field->bound};
  memcpy(&sequence, member, sizeof sequence);
  return (elements_t){sequence.data, sequence.data == NULL ? 0 : sequence.size};
}

static bool floats_are_equal(const float *a, const float *b, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

static bool doubles_are_equal(const double *a, const double *b, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

static bool strings_are_equal(const rosidl_runtime_c__String *a, const rosidl_runtime_c__String *b, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!rosidl_runtime_c__String__are_equal(&a[i], &b[i])) return false;
  return true;
}

static bool wstrings_are_equal(const rosidl_runtime_c__U16String *a, const rosidl_runtime_c__U16String *b,
                               size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!rosidl_runtime_c__U16String__are_equal(&a[i], &b[i])) return false;
  return true;
}

static bool messages_are_equal(const tide_message_type_t *type, const uint8_t *a, const uint8_t *b, size_t count) {
  for (size_t i = 0; i < count; ++i, a += type->structure_bytes, b += type->structure_bytes)
    if (!tide_message_equal(type, a, b)) return false;
  return true;
}

static bool field_is_equal(const tide_field_t *field, const void *message_a, const void *message_b) {
  elements_t a = elements_of(field, message_a);
  elements_t b = elements_of(field, message_b);
  if (a.count != b.count) return false;
  if (a.count == 0) return true;
  switch (field->kind) {
    case TIDE_FIELD_F32:
      return floats_are_equal(a.data, b.data, a.count);
    case TIDE_FIELD_F64:
      return doubles_are_equal(a.data, b.data, a.count);
    case TIDE_FIELD_STRING:
      return strings_are_equal(a.data, b.data, a.count);
    case TIDE_FIELD_WSTRING:
      return wstrings_are_equal(a.data, b.data, a.count);
    case TIDE_FIELD_MESSAGE:
      return messages_are_equal(field->type, a.data, b.data, a.count);
    default:
      return memcmp(a.data, b.data, a.count * tide_field_element_bytes(field)) == 0;
  }
}

bool tide_message_equal(const tide_message_type_t *type, const void *a, const void *b) {
  for (size_t i = 0; i < type->field_count; ++i)
    if (!field_is_equal(&type->fields[i], a, b)) return false;
  return true;
}

static bool copy_element(const tide_field_t *field, const void *from, void *to) {
  switch (field->kind) {
    case TIDE_FIELD_STRING:
      return rosidl_runtime_c__String__copy(from, to);
    case TIDE_FIELD_WSTRING:
      return rosidl_runtime_c__U16String__copy(from, to);
    case TIDE_FIELD_MESSAGE:
      return tide_message_copy(field->type, from, to) == TIDE_OK;
    default:
      memcpy(to, from, tide_field_element_bytes(field));
      return true;
  }
}

static bool copy_elements(const tide_field_t *field, const void *from, void *to, size_t count) {
  size_t stride = tide_field_element_bytes(field);
  if (count == 0) return true;
  if (field->kind < TIDE_FIELD_STRING) {
    memmove(to, from, count * stride);
    return true;
  }
  for (size_t i = 0; i < count; ++i)
    if (!copy_element(field, (const uint8_t *)from + i * stride, (uint8_t *)to + i * stride)) return false;
  return true;
}

static bool copy_sequence(const tide_field_t *field, elements_t from, uint8_t *member) {
  const bool fits_memory = tide_message_reserve_elements(field, member, from.count);
  tide_sequence_t to;
  memcpy(&to, member, sizeof to);
  to.size = 0;
  const bool fits = fits_memory && copy_elements(field, from.data, to.data, from.count);
  if (fits) to.size = from.count;
  memcpy(member, &to, sizeof to);
  return fits;
}

static bool copy_field(const tide_field_t *field, const void *input, void *output) {
  elements_t from = elements_of(field, input);
  uint8_t *member = (uint8_t *)output + field->offset_bytes;
  if (field->shape == TIDE_SHAPE_SEQUENCE) return copy_sequence(field, from, member);
  return copy_elements(field, from.data, member, from.count);
}

int tide_message_copy(const tide_message_type_t *type, const void *input, void *output) {
  if (input == output) return TIDE_OK;
  for (size_t i = 0; i < type->field_count; ++i)
    if (!copy_field(&type->fields[i], input, output)) return TIDE_ERROR_CAPACITY_MESSAGE;
  return TIDE_OK;
}

static void forget_field(const tide_field_t *field, uint8_t *member) {
  size_t count = field->shape == TIDE_SHAPE_ARRAY ? field->bound : 1;
  size_t stride = tide_field_element_bytes(field);
  if (field->shape == TIDE_SHAPE_SEQUENCE) {
    memset(member, 0, sizeof(tide_sequence_t));
  } else if (field->kind == TIDE_FIELD_STRING || field->kind == TIDE_FIELD_WSTRING) {
    memset(member, 0, count * stride);
  } else if (field->kind == TIDE_FIELD_MESSAGE) {
    for (size_t i = 0; i < count; ++i) tide_message_forget(field->type, member + i * stride);
  }
}

void tide_message_forget(const tide_message_type_t *type, void *message) {
  for (size_t i = 0; i < type->field_count; ++i)
    forget_field(&type->fields[i], (uint8_t *)message + type->fields[i].offset_bytes);
}
