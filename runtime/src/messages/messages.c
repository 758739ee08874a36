/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in memory and on the wire: the functions used by generated code and rosidl, from the allocator's blocks up
 * to sequences of messages. tide/message_memory.h and tide/message_heap.h describe what each call does. */
#include <stdint.h>
#include <string.h>

#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/primitives_sequence_functions.h"
#include "rosidl_runtime_c/service_type_support_struct.h"
#include "rosidl_runtime_c/string_functions.h"
#include "rosidl_runtime_c/u16string_functions.h"
#include "tide/message_heap.h"
#include "tide/message_memory.h"
#include "tide/options.h"
#include "tide/status.h"

#if TIDE_HEAP
#include <stdlib.h>
#endif

/* ---- blocks of the allocator ---- */

/* Records which blocks came from the default allocator. Entries are never freed, so lists are read without a lock. A
 * block is a whole allocation, and a program may release it directly with the allocator, as with the stock library. The
 * entry of such a block is dropped when the allocator returns any part of the block's memory again. Blocks within one
 * region are in that region's list, so that a search does not grow with the number of all blocks. Blocks that cross
 * regions, which are few or large, are in a separate list. */

#define REGION_BYTES 4096u
#define REGIONS (TIDE_DESKTOP ? 1024u : 8u) /* when there are more regions, they share lists */

typedef struct place {
  struct place *next;
  void *block; /* null if the entry is free; &taken while it is being set or cleared */
  size_t bytes;
  void (*deallocate)(void *block, void *state);
  void *state;
} place_t;

static void *lists[REGIONS + 1u]; /* lists of place_t, each with the newest entry first */
static char taken;

#if TIDE_HEAP
static void *heap_allocate(size_t bytes, void *state) {
  (void)state;
  return malloc(bytes);
}

static void heap_deallocate(void *block, void *state) {
  (void)state;
  free(block);
}

static tide_message_allocator_t allocator = {heap_allocate, heap_deallocate, NULL};
#else
static tide_message_allocator_t allocator;
#endif

void tide_message_set_allocator(const tide_message_allocator_t *given) { allocator = *given; }

/* Cores without compare-and-swap allow only one allocating thread (tide/message_heap.h). */
static bool exchange(void **cell, void *expected, void *desired) {
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4) || defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_8)
  return __atomic_compare_exchange_n(cell, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
#else
  if (*cell != expected) return false;
  *cell = desired;
  return true;
#endif
}

static void **list_of(const void *start, size_t bytes) {
  const uintptr_t first = (uintptr_t)start / REGION_BYTES, last = ((uintptr_t)start + (bytes - 1u)) / REGION_BYTES;
  return &lists[first == last ? first % REGIONS : REGIONS];
}

static place_t *first_of(void *const *list) { return __atomic_load_n(list, __ATOMIC_ACQUIRE); }

static place_t *take_place_in(void *const *list, void *expected) {
  for (place_t *place = first_of(list); place != NULL; place = place->next)
    if (exchange(&place->block, expected, &taken)) return place;
  return NULL;
}

/* Locks and returns the entry of this block; returns null if the block has no entry. */
static place_t *take_place_of(void *block) {
  place_t *place = take_place_in(list_of(block, 1), block);
  return place != NULL ? place : take_place_in(&lists[REGIONS], block);
}

/* True if the block overlaps the memory; false if the entry meanwhile holds another block or is locked. */
static bool meets(const void *block, size_t block_bytes, const void *start, size_t bytes) {
  if (block == NULL || block == &taken) return false;
  return (uintptr_t)start - (uintptr_t)block < block_bytes || (uintptr_t)block - (uintptr_t)start < bytes;
}

static place_t *find_in_list(void *const *list, const void *start, size_t bytes, void **found) {
  for (place_t *place = first_of(list); place != NULL; place = place->next) {
    *found = __atomic_load_n(&place->block, __ATOMIC_ACQUIRE);
    if (meets(*found, __atomic_load_n(&place->bytes, __ATOMIC_RELAXED), start, bytes)) return place;
  }
  return NULL;
}

/* Returns an entry whose block overlaps this memory, or null. */
static place_t *find_in(const void *start, size_t bytes, void **found) {
  void *const *list = list_of(start, bytes);
  place_t *place = find_in_list(&lists[REGIONS], start, bytes, found);
  if (place == NULL && list != &lists[REGIONS]) return find_in_list(list, start, bytes, found);
  for (size_t region = 0; place == NULL && list == &lists[REGIONS] && region < REGIONS; region++)
    place = find_in_list(&lists[region], start, bytes, found);
  return place;
}

static void forget_all_in(const void *start, size_t bytes) {
  void *block;
  for (place_t *place; (place = find_in(start, bytes, &block)) != NULL;) (void)exchange(&place->block, block, NULL);
}

/* Returns a locked entry of this list: a free one or, if none is free, a new one at the head. Returns null if there is
 * no memory. */
static place_t *free_place(void **list) {
  place_t *place = take_place_in(list, NULL);
  if (place != NULL) return place;
  place = allocator.allocate(sizeof *place, allocator.state);
  if (place == NULL) return NULL;
  place->block = &taken;
  do {
    place->next = first_of(list);
  } while (!exchange(list, place->next, place));
  return place;
}

void *tide_message_allocate(size_t bytes) {
  if (allocator.allocate == NULL || bytes == 0) return NULL;
  void *block = allocator.allocate(bytes, allocator.state);
  if (block == NULL) return NULL;
  forget_all_in(block, bytes);
  place_t *place = free_place(list_of(block, bytes));
  if (place == NULL) {
    allocator.deallocate(block, allocator.state);
    return NULL;
  }
  memset(block, 0, bytes);
  __atomic_store_n(&place->bytes, bytes, __ATOMIC_RELAXED);
  place->deallocate = allocator.deallocate;
  place->state = allocator.state;
  __atomic_store_n(&place->block, block, __ATOMIC_RELEASE);
  return block;
}

bool tide_message_release(void *block) {
  place_t *place = block == NULL ? NULL : take_place_of(block);
  if (place == NULL) return false;
  void (*deallocate)(void *block, void *state) = place->deallocate;
  void *state = place->state;
  __atomic_store_n(&place->block, NULL, __ATOMIC_RELEASE);
  deallocate(block, state);
  return true;
}

bool tide_message_is_allocated(const void *block) {
  void *found = NULL;
  return block != NULL && find_in(block, 1, &found) != NULL && found == block;
}

bool tide_message_is_in_allocated(const void *pointer) {
  void *block;
  return pointer != NULL && find_in(pointer, 1, &block) != NULL;
}

/* ---- allocation and release of members ---- */

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

/* Allocates memory for `count` elements of the member. `field` describes elements whose members must be released; it is
 * null if they have none. */
static bool reserve(void *member, size_t count, size_t element_bytes, const tide_field_t *field) {
  const tide_sequence_t held = sequence_of(member);
  if (has_room(&held, count)) return true;
  if (!may_grow(&held)) return false;
  const tide_sequence_t room = room_for(count, element_bytes);
  if (room.data == NULL) return false;
  if (field != NULL) {
    tide_message_drop_elements(field, member);
  } else {
    tide_message_drop(member);
  }
  memcpy(member, &room, sizeof room);
  return true;
}

bool tide_message_reserve(void *member, size_t count, size_t element_bytes) {
  return reserve(member, count, element_bytes, NULL);
}

bool tide_message_reserve_elements(const tide_field_t *field, void *sequence, size_t count) {
  return reserve(sequence, count, tide_field_element_bytes(field), field);
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

/* String literals have no capacity, and the member does not own them. */
void tide_message_drop(void *member) {
  const tide_sequence_t held = sequence_of(member);
  if (held.capacity > 0) tide_message_release(held.data);
  memset(member, 0, sizeof held);
}

/* Used for elements in the caller's memory: releases only members that were allocated. */
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

/* All elements in allocated memory were zeroed, so all are valid; in other memory only those within the size are. */
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

/* ---- operations that walk the fields of any message ---- */

typedef struct elements {
  const void *data;
  size_t count;
} elements_t;

size_t tide_field_element_bytes(const tide_field_t *field) {
  switch (field->kind) {
    case TIDE_FIELD_BOOL: return sizeof(bool);
    case TIDE_FIELD_OCTET:
    case TIDE_FIELD_CHAR:
    case TIDE_FIELD_I8:
    case TIDE_FIELD_U8: return 1;
    case TIDE_FIELD_I16:
    case TIDE_FIELD_U16:
    case TIDE_FIELD_WCHAR: return 2;
    case TIDE_FIELD_I32:
    case TIDE_FIELD_U32:
    case TIDE_FIELD_F32: return 4;
    case TIDE_FIELD_I64:
    case TIDE_FIELD_U64:
    case TIDE_FIELD_F64: return 8;
    case TIDE_FIELD_STRING: return sizeof(rosidl_runtime_c__String);
    case TIDE_FIELD_WSTRING: return sizeof(rosidl_runtime_c__U16String);
    case TIDE_FIELD_MESSAGE: return field->type->structure_bytes;
  }
  return 0;
}

static elements_t elements_of(const tide_field_t *field, const void *message) {
  const uint8_t *member = (const uint8_t *)message + field->offset_bytes;
  if (field->shape == TIDE_SHAPE_ONE) return (elements_t){member, 1};
  if (field->shape == TIDE_SHAPE_ARRAY) return (elements_t){member, field->bound};
  const tide_sequence_t sequence = sequence_of(member);
  return (elements_t){sequence.data, sequence.data == NULL ? 0 : sequence.size};
}

static bool element_is_equal(const tide_field_t *field, const void *a, const void *b) {
  switch (field->kind) {
    case TIDE_FIELD_F32: return *(const float *)a == *(const float *)b;
    case TIDE_FIELD_F64: return *(const double *)a == *(const double *)b;
    case TIDE_FIELD_STRING: return rosidl_runtime_c__String__are_equal(a, b);
    case TIDE_FIELD_WSTRING: return rosidl_runtime_c__U16String__are_equal(a, b);
    default: return tide_message_equal(field->type, a, b);
  }
}

static bool field_is_equal(const tide_field_t *field, const void *message_a, const void *message_b) {
  const elements_t a = elements_of(field, message_a), b = elements_of(field, message_b);
  const size_t stride = tide_field_element_bytes(field);
  const bool is_number = field->kind == TIDE_FIELD_F32 || field->kind == TIDE_FIELD_F64; /* a NaN differs from itself */
  if (a.count != b.count) return false;
  if (field->kind < TIDE_FIELD_STRING && !is_number)
    return a.count == 0 || memcmp(a.data, b.data, a.count * stride) == 0;
  for (size_t i = 0; i < a.count; ++i) {
    if (!element_is_equal(field, (const uint8_t *)a.data + i * stride, (const uint8_t *)b.data + i * stride))
      return false;
  }
  return true;
}

bool tide_message_equal(const tide_message_type_t *type, const void *a, const void *b) {
  for (size_t i = 0; i < type->field_count; ++i)
    if (!field_is_equal(&type->fields[i], a, b)) return false;
  return true;
}

static bool copy_element(const tide_field_t *field, const void *from, void *to) {
  switch (field->kind) {
    case TIDE_FIELD_STRING: return rosidl_runtime_c__String__copy(from, to);
    case TIDE_FIELD_WSTRING: return rosidl_runtime_c__U16String__copy(from, to);
    case TIDE_FIELD_MESSAGE: return tide_message_copy(field->type, from, to) == TIDE_OK;
    default: memcpy(to, from, tide_field_element_bytes(field)); return true;
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

static bool copy_field(const tide_field_t *field, const void *input, void *output) {
  const elements_t from = elements_of(field, input);
  uint8_t *member = (uint8_t *)output + field->offset_bytes;
  if (field->shape != TIDE_SHAPE_SEQUENCE) return copy_elements(field, from.data, member, from.count);
  const bool fits_memory = tide_message_reserve_elements(field, member, from.count);
  tide_sequence_t to = sequence_of(member);
  to.size = 0; /* cleared before copying, so that the member is empty after an error */
  const bool fits = fits_memory && copy_elements(field, from.data, to.data, from.count);
  if (fits) to.size = from.count;
  memcpy(member, &to, sizeof to);
  return fits;
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

/* ---- sequences of messages ---- */

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

/* ---- strings and sequences to and from CDR ---- */

/* Reading never writes beyond a capacity. A member is emptied before it is read, so that it is empty after an error. */

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

/* The string ends at its first NUL even if the program's size counts that NUL. */
static size_t length_to_nul(const rosidl_runtime_c__String *string) {
  if (string->data == NULL || string->size == 0) return 0;
  const char *end = memchr(string->data, '\0', string->size);
  return end == NULL ? string->size : (size_t)(end - string->data);
}

void tide_message_put_strings(tide_cdr_t *cdr, const rosidl_runtime_c__String *strings, size_t count, uint32_t bound) {
  for (size_t i = 0; i < count && cdr->status == TIDE_OK; ++i) {
    const size_t length = length_to_nul(&strings[i]);
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

/* ---- strings and sequences of rosidl_runtime_c ---- */

/* Defines the functions of rosidl's String and U16String; UNIT is the type of a character. */
#define DEFINE_STRING(STRING, UNIT, KIND)                                                                             \
  bool rosidl_runtime_c__##STRING##__init(rosidl_runtime_c__##STRING *string) {                                       \
    if (string == NULL) return false;                                                                                 \
    *string = (rosidl_runtime_c__##STRING){0};                                                                        \
    return true;                                                                                                      \
  }                                                                                                                   \
  void rosidl_runtime_c__##STRING##__fini(rosidl_runtime_c__##STRING *string) {                                       \
    if (string != NULL) tide_message_drop(string);                                                                    \
  }                                                                                                                   \
  static size_t STRING##_length(const rosidl_runtime_c__##STRING *string) {                                           \
    return string->data == NULL ? 0 : string->size;                                                                   \
  }                                                                                                                   \
  bool rosidl_runtime_c__##STRING##__are_equal(const rosidl_runtime_c__##STRING *a,                                   \
                                               const rosidl_runtime_c__##STRING *b) {                                 \
    if (a == NULL || b == NULL) return false;                                                                         \
    const size_t length = STRING##_length(a);                                                                         \
    return length == STRING##_length(b) && (length == 0 || memcmp(a->data, b->data, length * sizeof(UNIT)) == 0);     \
  }                                                                                                                   \
  bool rosidl_runtime_c__##STRING##__assignn(rosidl_runtime_c__##STRING *string, const UNIT *value, size_t length) {  \
    if (string == NULL || (value == NULL && length > 0)) return false;                                                \
    if (length == 0 && string->capacity == 0) {                                                                       \
      string->size = 0;                                                                                               \
      return true;                                                                                                    \
    }                                                                                                                 \
    if (length == SIZE_MAX || !tide_message_reserve(string, length + 1u, sizeof(UNIT))) return false;                 \
    if (length > 0) memmove(string->data, value, length * sizeof(UNIT));                                              \
    string->data[length] = 0;                                                                                         \
    string->size = length;                                                                                            \
    return true;                                                                                                      \
  }                                                                                                                   \
  bool rosidl_runtime_c__##STRING##__copy(const rosidl_runtime_c__##STRING *input,                                    \
                                          rosidl_runtime_c__##STRING *output) {                                       \
    return input != NULL && rosidl_runtime_c__##STRING##__assignn(output, input->data, STRING##_length(input));       \
  }                                                                                                                   \
  bool rosidl_runtime_c__##STRING##__resize(rosidl_runtime_c__##STRING *string, size_t size) {                        \
    return string != NULL && tide_message_resize(string, size, sizeof(UNIT));                                         \
  }                                                                                                                   \
  static const tide_field_t STRING##_sequence = {.kind = (KIND), .shape = TIDE_SHAPE_SEQUENCE};                       \
  bool rosidl_runtime_c__##STRING##__Sequence__init(rosidl_runtime_c__##STRING##__Sequence *sequence, size_t size) {  \
    if (sequence == NULL) return false;                                                                               \
    *sequence = (rosidl_runtime_c__##STRING##__Sequence){0};                                                          \
    if (!tide_message_reserve_elements(&STRING##_sequence, sequence, size)) return false;                             \
    sequence->size = size;                                                                                            \
    return true;                                                                                                      \
  }                                                                                                                   \
  void rosidl_runtime_c__##STRING##__Sequence__fini(rosidl_runtime_c__##STRING##__Sequence *sequence) {               \
    if (sequence != NULL) tide_message_drop_elements(&STRING##_sequence, sequence);                                   \
  }                                                                                                                   \
  bool rosidl_runtime_c__##STRING##__Sequence__are_equal(const rosidl_runtime_c__##STRING##__Sequence *a,             \
                                                         const rosidl_runtime_c__##STRING##__Sequence *b) {           \
    if (a == NULL || b == NULL || a->size != b->size) return false;                                                   \
    for (size_t i = 0; i < a->size; ++i)                                                                              \
      if (!rosidl_runtime_c__##STRING##__are_equal(&a->data[i], &b->data[i])) return false;                           \
    return true;                                                                                                      \
  }                                                                                                                   \
  bool rosidl_runtime_c__##STRING##__Sequence__copy(const rosidl_runtime_c__##STRING##__Sequence *input,              \
                                                    rosidl_runtime_c__##STRING##__Sequence *output) {                 \
    if (input == NULL || output == NULL) return false;                                                                \
    if (!tide_message_reserve_elements(&STRING##_sequence, output, input->size)) return false;                        \
    output->size = 0;                                                                                                 \
    for (; output->size < input->size; ++output->size)                                                                \
      if (!rosidl_runtime_c__##STRING##__copy(&input->data[output->size], &output->data[output->size])) return false; \
    return true;                                                                                                      \
  }

DEFINE_STRING(String, char, TIDE_FIELD_STRING)
DEFINE_STRING(U16String, uint16_t, TIDE_FIELD_WSTRING)

bool rosidl_runtime_c__String__assign(rosidl_runtime_c__String *string, const char *value) {
  return value != NULL && rosidl_runtime_c__String__assignn(string, value, strlen(value));
}

size_t rosidl_runtime_c__U16String__len(const uint16_t *value) {
  size_t count = 0;
  while (value != NULL && value[count] != 0) ++count;
  return count;
}

bool rosidl_runtime_c__U16String__assign(rosidl_runtime_c__U16String *string, const uint16_t *value) {
  return value != NULL && rosidl_runtime_c__U16String__assignn(string, value, rosidl_runtime_c__U16String__len(value));
}

bool rosidl_runtime_c__U16String__assignn_from_char(rosidl_runtime_c__U16String *string, const char *value,
                                                    size_t bytes) {
  const size_t length = bytes / sizeof *string->data;
  if (string == NULL || bytes % sizeof *string->data != 0 || (value == NULL && bytes > 0)) return false;
  if (!tide_message_reserve(string, length + 1u, sizeof *string->data)) return false;
  if (bytes > 0) memmove(string->data, value, bytes);
  string->data[length] = 0;
  string->size = length;
  return true;
}

#define DEFINE_SEQUENCE(NAME, TYPE)                                                                              \
  bool rosidl_runtime_c__##NAME##__Sequence__init(rosidl_runtime_c__##NAME##__Sequence *sequence, size_t size) { \
    if (sequence == NULL) return false;                                                                          \
    *sequence = (rosidl_runtime_c__##NAME##__Sequence){0};                                                       \
    if (!tide_message_reserve(sequence, size, sizeof(TYPE))) return false;                                       \
    sequence->size = size;                                                                                       \
    return true;                                                                                                 \
  }                                                                                                              \
  void rosidl_runtime_c__##NAME##__Sequence__fini(rosidl_runtime_c__##NAME##__Sequence *sequence) {              \
    if (sequence != NULL) tide_message_drop(sequence);                                                           \
  }                                                                                                              \
  bool rosidl_runtime_c__##NAME##__Sequence__are_equal(const rosidl_runtime_c__##NAME##__Sequence *a,            \
                                                       const rosidl_runtime_c__##NAME##__Sequence *b) {          \
    if (a == NULL || b == NULL || a->size != b->size) return false;                                              \
    for (size_t i = 0; i < a->size; ++i)                                                                         \
      if (!(a->data[i] == b->data[i])) return false;                                                             \
    return true;                                                                                                 \
  }                                                                                                              \
  bool rosidl_runtime_c__##NAME##__Sequence__copy(const rosidl_runtime_c__##NAME##__Sequence *input,             \
                                                  rosidl_runtime_c__##NAME##__Sequence *output) {                \
    if (input == NULL || output == NULL) return false;                                                           \
    if (!tide_message_reserve(output, input->size, sizeof(TYPE))) return false;                                  \
    if (input->size > 0) memmove(output->data, input->data, input->size * sizeof(TYPE));                         \
    output->size = input->size;                                                                                  \
    return true;                                                                                                 \
  }

DEFINE_SEQUENCE(float, float)
DEFINE_SEQUENCE(double, double)
DEFINE_SEQUENCE(long_double, long double)
DEFINE_SEQUENCE(char, signed char)
DEFINE_SEQUENCE(wchar, uint16_t)
DEFINE_SEQUENCE(boolean, bool)
DEFINE_SEQUENCE(octet, uint8_t)
DEFINE_SEQUENCE(uint8, uint8_t)
DEFINE_SEQUENCE(int8, int8_t)
DEFINE_SEQUENCE(uint16, uint16_t)
DEFINE_SEQUENCE(int16, int16_t)
DEFINE_SEQUENCE(uint32, uint32_t)
DEFINE_SEQUENCE(int32, int32_t)
DEFINE_SEQUENCE(uint64, uint64_t)
DEFINE_SEQUENCE(int64, int64_t)

/* ---- type supports ---- */

const rosidl_message_type_support_t *get_message_typesupport_handle_function(
    const rosidl_message_type_support_t *handle, const char *identifier) {
  if (handle == NULL || identifier == NULL) return NULL;
  return strcmp(handle->typesupport_identifier, identifier) == 0 ? handle : NULL;
}

const rosidl_message_type_support_t *get_message_typesupport_handle(const rosidl_message_type_support_t *handle,
                                                                    const char *identifier) {
  return handle == NULL ? NULL : handle->func(handle, identifier);
}

const rosidl_service_type_support_t *get_service_typesupport_handle_function(
    const rosidl_service_type_support_t *handle, const char *identifier) {
  if (handle == NULL || identifier == NULL) return NULL;
  return strcmp(handle->typesupport_identifier, identifier) == 0 ? handle : NULL;
}

const rosidl_service_type_support_t *get_service_typesupport_handle(const rosidl_service_type_support_t *handle,
                                                                    const char *identifier) {
  return handle == NULL ? NULL : handle->func(handle, identifier);
}
