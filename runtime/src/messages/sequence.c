/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of messages, by the message's table of fields. */
#include <string.h>

#include "tide/message_memory.h"
#include "tide/status.h"

static tide_sequence_t sequence_of(const void *pointer) {
  tide_sequence_t sequence;
  memcpy(&sequence, pointer, sizeof sequence);
  return sequence;
}

bool tide_message_sequence_equal(const tide_message_type_t *type, const void *a, const void *b) {
  if (a == NULL || b == NULL) return false;
  const tide_sequence_t left = sequence_of(a), right = sequence_of(b);
  bool equal = left.size == right.size;
  for (size_t i = 0; i < left.size && equal; i++) {
    const size_t offset = i * type->structure_bytes;
    equal = tide_message_equal(type, (const uint8_t *)left.data + offset, (const uint8_t *)right.data + offset);
  }
  return equal;
}

bool tide_message_sequence_copy(const tide_message_type_t *type, const void *input, void *output) {
  if (input == NULL || output == NULL) return false;
  const tide_field_t field = {.kind = TIDE_FIELD_MESSAGE, .shape = TIDE_SHAPE_SEQUENCE, .type = type};
  const tide_sequence_t from = sequence_of(input);
  if (!tide_message_reserve_elements(&field, output, from.size)) return false;
  tide_sequence_t to = sequence_of(output);
  for (to.size = 0; to.size < from.size; to.size++) {
    const size_t offset = to.size * type->structure_bytes;
    if (tide_message_copy(type, (const uint8_t *)from.data + offset, (uint8_t *)to.data + offset) != TIDE_OK) break;
  }
  memcpy(output, &to, sizeof to);
  return to.size == from.size;
}
