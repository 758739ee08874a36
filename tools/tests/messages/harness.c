/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes serialised messages of any generated type into C structures and encodes them again. Python calls it as a
 * library. Compiled as a program (HARNESS_PROGRAM), it reads records from standard input, under a sanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide/message.h"
#include "tide/message_memory.h"
#include "tide/status.h"
#include "tide_message_registry.h"

typedef struct memory {
  void *message;
  void *storage;
} memory_t;

static memory_t make(const tide_message_registry_entry_t *entry) {
  memory_t memory = {malloc(entry->type->structure_bytes), malloc(entry->storage_bytes)};
  if (memory.message == NULL || memory.storage == NULL) abort();
  memset(memory.message, 0xa5, entry->type->structure_bytes);
  memset(memory.storage, 0xa5, entry->storage_bytes);
  entry->bind(memory.message, memory.storage);
  return memory;
}

static void drop(memory_t memory) {
  free(memory.message);
  free(memory.storage);
}

size_t harness_count(void) { return tide_message_registry_count; }

const tide_message_type_t *harness_type(size_t index) { return tide_message_registry[index].type; }

size_t harness_stored_bytes(size_t index) { return tide_message_registry[index].stored_bytes; }

/* Takes a body without encapsulation, decodes it, copies the message into other memory, and encodes the copy. Returns
 * the length of the encoded copy, or the negative status. */
int harness_round_trip(size_t index, const uint8_t *bytes, size_t length, bool big_endian, uint8_t *out,
                       size_t out_capacity, bool out_big_endian) {
  const tide_message_registry_entry_t *entry = &tide_message_registry[index];
  memory_t first = make(entry);
  memory_t second = make(entry);
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes, length, big_endian);
  entry->type->decode(&cdr, first.message);
  int result = cdr.status;
  if (result == TIDE_OK) result = tide_message_copy(entry->type, first.message, second.message);
  if (result == TIDE_OK) {
    tide_cdr_writer(&cdr, out, out_capacity);
    cdr.big_endian = out_big_endian;
    entry->type->encode(&cdr, second.message);
    result = cdr.status == TIDE_OK ? (int)cdr.position : cdr.status;
    if (result > 0 && tide_message_size(entry->type, first.message) != (size_t)result) result = -1000;
    if (result > 0 && (size_t)result > entry->stored_bytes) result = -1001;
    if (result > 0 && entry->type->maximum_bytes != 0 && (size_t)result > entry->type->maximum_bytes) result = -1002;
  }
  drop(first);
  drop(second);
  return result;
}

#ifdef HARNESS_PROGRAM
static bool is_sound(const tide_message_type_t *type, const uint8_t *message);

static bool elements_are_sound(const tide_field_t *field, const uint8_t *element, size_t count) {
  for (size_t i = 0; i < count; ++i, element += tide_field_element_bytes(field)) {
    if (field->kind == TIDE_FIELD_STRING) {
      const rosidl_runtime_c__String *string = (const rosidl_runtime_c__String *)element;
      if (string->size >= string->capacity || string->data[string->size] != 0) return false;
    } else if (field->kind == TIDE_FIELD_WSTRING) {
      const rosidl_runtime_c__U16String *string = (const rosidl_runtime_c__U16String *)element;
      if (string->size >= string->capacity || string->data[string->size] != 0) return false;
    } else if (field->kind == TIDE_FIELD_MESSAGE && !is_sound(field->type, element)) {
      return false;
    }
  }
  return true;
}

/* True if the sizes are within the capacities of the memory and the texts are terminated, as they must be for any
 * input. */
static bool is_sound(const tide_message_type_t *type, const uint8_t *message) {
  for (size_t i = 0; i < type->field_count; ++i) {
    const tide_field_t *field = &type->fields[i];
    const uint8_t *member = message + field->offset_bytes;
    tide_sequence_t elements = {(uint8_t *)member, 1, 1};
    if (field->shape == TIDE_SHAPE_ARRAY) elements.size = elements.capacity = field->bound;
    if (field->shape == TIDE_SHAPE_SEQUENCE) memcpy(&elements, member, sizeof elements);
    if (elements.size > elements.capacity) return false;
    if (!elements_are_sound(field, elements.data, elements.capacity)) return false;
  }
  return true;
}

/* Decodes the bytes, encodes what was decoded into memory of exactly its size, and decodes the result. Returns whether
 * the bytes were a whole message. */
static bool survives(const tide_message_registry_entry_t *entry, const uint8_t *bytes, size_t length, bool big_endian) {
  memory_t memory = make(entry);
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes, length, big_endian);
  entry->type->decode(&cdr, memory.message);
  bool decoded = cdr.status == TIDE_OK;
  if (!is_sound(entry->type, memory.message)) abort();
  size_t size = tide_message_size(entry->type, memory.message);
  uint8_t *out = malloc(size + 1);
  if (size == 0 || out == NULL) abort(); /* a decoded message can always be encoded */
  tide_cdr_writer(&cdr, out, size);
  entry->type->encode(&cdr, memory.message);
  if (cdr.status != TIDE_OK || cdr.position != size) abort();
  tide_cdr_reader(&cdr, out, size, false);
  entry->type->decode(&cdr, memory.message);
  if (cdr.status != TIDE_OK) abort();
  free(out);
  drop(memory);
  return decoded;
}

/* Reads records of index, length (each 32 bits, in the byte order of this machine), byte order (one byte) and bytes.
 * Prints the number of records read and the number decoded. */
int main(void) {
  size_t records = 0, decoded = 0;
  uint32_t head[2];
  while (fread(head, sizeof head, 1, stdin) == 1) {
    int big_endian = getchar();
    uint8_t *bytes = malloc(head[1] + (head[1] == 0));
    if (bytes == NULL || head[0] >= tide_message_registry_count || fread(bytes, 1, head[1], stdin) != head[1]) return 2;
    decoded += survives(&tide_message_registry[head[0]], bytes, head[1], big_endian != 0);
    ++records;
    free(bytes);
  }
  printf("%zu %zu\n", records, decoded);
  return 0;
}
#endif
