/* SPDX-License-Identifier: Apache-2.0 */
/* Members that get memory from the allocator and give it back. */
#include <stdint.h>
#include <string.h>

#include "tide/message_memory.h"

static tide_sequence_t sequence_of(const void *member) {
  tide_sequence_t sequence;
  memcpy(&sequence, member, sizeof sequence);
  return sequence;
}

static bool has_room(const tide_sequence_t *held, size_t count) {
  return count == 0 || (held->data != NULL && count <= held->capacity);
}

static bool may_grow(const tide_sequence_t *held) {
  return held->capacity == 0 || held->data == NULL || tide_message_is_in_allocated(held->data);
}

static tide_sequence_t room_for(size_t count, size_t element_bytes) {
  tide_sequence_t room = {0};
  if (count <= SIZE_MAX / element_bytes) room.data = tide_message_allocate(count * element_bytes);
  if (room.data != NULL) room.capacity = count;
  return room;
}

bool tide_message_reserve(void *member, size_t count, size_t element_bytes) {
  const tide_sequence_t held = sequence_of(member);
  if (has_room(&held, count)) return true;
  if (!may_grow(&held)) return false;
  const tide_sequence_t room = room_for(count, element_bytes);
  if (room.data == NULL) return false;
  tide_message_drop(member);
  memcpy(member, &room, sizeof room);
  return true;
}

bool tide_message_resize(void *string, size_t size, size_t unit_bytes) {
  tide_sequence_t held = sequence_of(string);
  if (size == SIZE_MAX) return false;
  const size_t kept = held.data == NULL ? 0 : held.size < size ? held.size : size;
  if (!has_room(&held, size + 1u)) {
    if (!may_grow(&held)) return false;
    tide_sequence_t room = room_for(size + 1u, unit_bytes);
    if (room.data == NULL) return false;
    if (kept > 0) memcpy(room.data, held.data, kept * unit_bytes);
    tide_message_drop(string);
    held = room;
  }
  memset((uint8_t *)held.data + kept * unit_bytes, 0, (size + 1u - kept) * unit_bytes);
  held.size = size;
  memcpy(string, &held, sizeof held);
  return true;
}

bool tide_message_reserve_elements(const tide_field_t *field, void *sequence, size_t count) {
  const tide_sequence_t held = sequence_of(sequence);
  if (has_room(&held, count)) return true;
  if (!may_grow(&held)) return false;
  const tide_sequence_t room = room_for(count, tide_field_element_bytes(field));
  if (room.data == NULL) return false;
  tide_message_drop_elements(field, sequence);
  memcpy(sequence, &room, sizeof room);
  return true;
}

/* Literals have no capacity and are nobody's. */
void tide_message_drop(void *member) {
  const tide_sequence_t held = sequence_of(member);
  if (held.capacity > 0) tide_message_release(held.data);
  memset(member, 0, sizeof held);
}

/* Of elements that stay where they are: only what was allocated. */
static void release_member(const tide_field_t *field, uint8_t *member);

static void release_elements(const tide_field_t *field, uint8_t *elements, size_t count) {
  const size_t stride = tide_field_element_bytes(field);
  if (field->kind < TIDE_FIELD_STRING || elements == NULL) return;
  for (size_t i = 0; i < count; ++i, elements += stride) {
    if (field->kind == TIDE_FIELD_MESSAGE) {
      for (size_t j = 0; j < field->type->field_count; ++j)
        release_member(&field->type->fields[j], elements + field->type->fields[j].offset_bytes);
    } else if (tide_message_is_allocated(sequence_of(elements).data)) {
      tide_message_drop(elements);
    }
  }
}

/* All elements of allocated memory began as zeroes; of other memory only those within the size can be looked at. */
static size_t elements_to_release(const tide_sequence_t *held) {
  if (tide_message_is_in_allocated(held->data)) return held->capacity;
  return held->size < held->capacity ? held->size : held->capacity;
}

static void release_member(const tide_field_t *field, uint8_t *member) {
  if (field->shape != TIDE_SHAPE_SEQUENCE) {
    release_elements(field, member, field->shape == TIDE_SHAPE_ARRAY ? field->bound : 1);
    return;
  }
  const tide_sequence_t held = sequence_of(member);
  release_elements(field, held.data, elements_to_release(&held));
  if (tide_message_is_allocated(held.data)) tide_message_drop(member);
}

void tide_message_drop_elements(const tide_field_t *field, void *sequence) {
  release_member(field, sequence);
  memset(sequence, 0, sizeof(tide_sequence_t));
}

void tide_message_sequence_drop(const tide_message_type_t *type, void *sequence) {
  const tide_field_t field = {.kind = TIDE_FIELD_MESSAGE, .shape = TIDE_SHAPE_SEQUENCE, .type = type};
  if (sequence != NULL) tide_message_drop_elements(&field, sequence);
}

static void drop_field(const tide_field_t *field, uint8_t *member) {
  if (field->shape == TIDE_SHAPE_SEQUENCE) {
    tide_message_drop_elements(field, member);
    return;
  }
  const size_t count = field->shape == TIDE_SHAPE_ARRAY ? field->bound : 1;
  const size_t stride = tide_field_element_bytes(field);
  for (size_t i = 0; i < count && field->kind >= TIDE_FIELD_STRING; ++i, member += stride) {
    if (field->kind == TIDE_FIELD_MESSAGE) {
      tide_message_drop_members(field->type, member);
    } else {
      tide_message_drop(member);
    }
  }
}

void tide_message_drop_members(const tide_message_type_t *type, void *message) {
  for (size_t i = 0; i < type->field_count; ++i)
    drop_field(&type->fields[i], (uint8_t *)message + type->fields[i].offset_bytes);
}
