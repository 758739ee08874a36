/* SPDX-License-Identifier: Apache-2.0 */
/* Support for generated messages: conversion of strings and sequences to and from CDR, and operations on any message by
 * its table of fields. A message's strings and sequences use memory that the caller provides (`tide generate` declares
 * it: PACKAGE__msg__NAME__Storage and PACKAGE__msg__NAME__bind, or micro_ros_utilities at run time), or that of the
 * default allocator. Neither the runtime itself nor decoding a message allocates. Re-entrant; cost proportional to the
 * bytes moved. */
#ifndef TIDE_MESSAGE_MEMORY_H
#define TIDE_MESSAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rosidl_runtime_c/string.h"
#include "rosidl_runtime_c/u16string.h"
#include "tide/cdr.h"
#include "tide/message.h"
#include "tide/message_heap.h"

TIDE_EXTERN_C_BEGIN

/* Target of rosidl_service_type_support_t.data. */
typedef struct tide_service_type {
  const char *package;
  const char *name;
  const tide_message_type_t *request;
  const tide_message_type_t *response;
} tide_service_type_t;

/* Layout of the header of every sequence and string. The header is read and written by copying, never by casting. */
typedef struct tide_sequence {
  void *data;
  size_t size;
  size_t capacity;
} tide_sequence_t;

/* Bytes of one element of this field in memory. */
size_t tide_field_element_bytes(const tide_field_t *field);

/* a and b are messages of this type. Floating point compares by ==, so a NaN differs from itself. */
bool tide_message_equal(const tide_message_type_t *type, const void *a, const void *b);
/* Copies into the output's memory. Strings and sequences without memory, or with memory of the allocator, are enlarged
 * from the allocator if need be. TIDE_ERROR_CAPACITY_MESSAGE when memory is too small: the member is then empty and the
 * members after it are unchanged. */
int tide_message_copy(const tide_message_type_t *type, const void *input, void *output);
/* Resets all strings and sequences, in nested messages too, without releasing memory. */
void tide_message_forget(const tide_message_type_t *type, void *message);

/* The following functions serve generated code. bound: as in tide_field_t, 0 is unbounded. Writing more than the bound
 * is TIDE_ERROR_TOO_LARGE, reading more is TIDE_ERROR_MALFORMED. */
void tide_message_put_count(tide_cdr_t *cdr, size_t count, uint32_t bound);
/* An element consists of `units` basic values of unit_bytes each. */
void tide_message_put_sequence(tide_cdr_t *cdr, const void *data, size_t size, size_t unit_bytes, size_t units,
                               uint32_t bound);
void tide_message_put_strings(tide_cdr_t *cdr, const rosidl_runtime_c__String *strings, size_t count, uint32_t bound);
void tide_message_put_wstrings(tide_cdr_t *cdr, const rosidl_runtime_c__U16String *strings, size_t count,
                               uint32_t bound);
/* Reads the count of a sequence that has memory for capacity elements, each of at least minimum_bytes on the wire.
 * Returns 0 after an error. */
size_t tide_message_get_count(tide_cdr_t *cdr, size_t capacity, size_t minimum_bytes, uint32_t bound);
size_t tide_message_get_sequence(tide_cdr_t *cdr, void *data, size_t capacity, size_t unit_bytes, size_t units,
                                 uint32_t bound);
size_t tide_message_get_bools(tide_cdr_t *cdr, bool *data, size_t capacity, uint32_t bound);
void tide_message_get_strings(tide_cdr_t *cdr, rosidl_runtime_c__String *strings, size_t count, uint32_t bound);
void tide_message_get_wstrings(tide_cdr_t *cdr, rosidl_runtime_c__U16String *strings, size_t count, uint32_t bound);
/* Assigns memory to a string, keeping its text as far as it fits. */
void tide_message_bind_string(rosidl_runtime_c__String *string, char *memory, size_t capacity);
void tide_message_bind_wstring(rosidl_runtime_c__U16String *string, uint16_t *memory, size_t capacity);
/* Assigns memory to a sequence, keeping its first elements; returns how many were kept (at most size and capacity). */
size_t tide_message_bind_elements(void *memory, size_t capacity, const void *elements, size_t size,
                                  size_t element_bytes);

TIDE_EXTERN_C_END
#endif
