/* SPDX-License-Identifier: Apache-2.0 */
/* Description of a message type: its ROS 2 name and its conversion to and from CDR. `tide generate` writes one for each
 * type; rosidl_message_type_support_t.data points to it. */
#ifndef TIDE_MESSAGE_H
#define TIDE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/cdr.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_field_kind {
  TIDE_FIELD_BOOL,
  TIDE_FIELD_OCTET,
  TIDE_FIELD_CHAR,
  TIDE_FIELD_I8,
  TIDE_FIELD_U8,
  TIDE_FIELD_I16,
  TIDE_FIELD_U16,
  TIDE_FIELD_WCHAR,
  TIDE_FIELD_I32,
  TIDE_FIELD_U32,
  TIDE_FIELD_I64,
  TIDE_FIELD_U64,
  TIDE_FIELD_F32,
  TIDE_FIELD_F64,
  TIDE_FIELD_STRING,
  TIDE_FIELD_WSTRING,
  TIDE_FIELD_MESSAGE
} tide_field_kind_t;

typedef enum tide_field_shape { TIDE_SHAPE_ONE, TIDE_SHAPE_ARRAY, TIDE_SHAPE_SEQUENCE } tide_field_shape_t;

struct tide_message_type;

/* One member of a message structure, laid out as rosidl does. Sequences are {T *data; size_t size; size_t capacity}
 * and strings are {char *data; size_t size; size_t capacity}. */
typedef struct tide_field {
  const char *name;
  tide_field_kind_t kind;
  tide_field_shape_t shape;
  uint32_t offset_bytes;                /* offset of the member in the structure */
  uint32_t bound;                       /* elements of an array; upper bound of a sequence, 0: unbounded */
  uint32_t string_bound;                /* upper bound of a string in characters, 0: unbounded */
  const struct tide_message_type *type; /* type of a nested message, else null */
} tide_field_t;

typedef struct tide_message_type {
  const char *package;      /* "std_msgs" */
  const char *kind;         /* "msg", "srv", "action" */
  const char *name;         /* "String" */
  const char *dds_name;     /* "std_msgs::msg::dds_::String_" */
  uint32_t structure_bytes; /* sizeof the C structure */
  uint32_t maximum_bytes;   /* largest serialised size from alignment 0, or 0 when a member is unbounded */
  uint16_t field_count;
  const tide_field_t *fields;
  /* Convert a message to and from CDR. Errors are in the status of the cursor. Decoding uses the memory that the
   * message's strings and sequences already have; a value that does not fit sets TIDE_ERROR_CAPACITY_MESSAGE and leaves
   * the member empty. */
  void (*encode)(tide_cdr_t *cdr, const void *message);
  void (*decode)(tide_cdr_t *cdr, void *message);
} tide_message_type_t;

/* Serialised size in bytes of a message, from alignment 0; 0 when it cannot be encoded (a member exceeds its bound).
 * Cost: one pass. */
size_t tide_message_size(const tide_message_type_t *type, const void *message);

/* Compare and copy sequences of messages of this type, as `tide generate` declares them. Returns false if a pointer is
 * null. */
bool tide_message_sequence_equal(const tide_message_type_t *type, const void *a, const void *b);
bool tide_message_sequence_copy(const tide_message_type_t *type, const void *input, void *output);

TIDE_EXTERN_C_END
#endif
