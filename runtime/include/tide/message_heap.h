/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of strings and sequences from the default allocator of programs: rcutils_set_default_allocator sets it, and
 * before that it is malloc where the runtime was built with TIDE_HEAP. What came from here is remembered, so that it
 * is told from memory that the caller gave, in a place of five words which is kept for the next block. The runtime
 * itself never allocates.
 * Any thread may allocate and release; on cores without an instruction for compare and swap (Cortex-M0, RISC-V without
 * A) only one. Not from a callback with a deadline: the cost is the allocator's and a look at the places of blocks
 * nearby, or of all for a block that crosses 4 KiB. Places come from the allocator, too, and stay out, so its memory
 * may not be reset as a whole. */
#ifndef TIDE_MESSAGE_HEAP_H
#define TIDE_MESSAGE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "tide/message.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_message_allocator {
  void *(*allocate)(size_t bytes, void *state); /* null: there is no heap */
  void (*deallocate)(void *block, void *state);
  void *state;
} tide_message_allocator_t;

/* For blocks from now on; the earlier ones go back to whom they came from. Not beside other threads that allocate. */
void tide_message_set_allocator(const tide_message_allocator_t *allocator);
/* Zeroes; or null: no heap, no memory, or no bytes asked for. */
void *tide_message_allocate(size_t bytes);
/* False, and no effect, for what did not come from tide_message_allocate. */
bool tide_message_release(void *block);
bool tide_message_is_allocated(const void *block);
/* The same of anything within such a block, as the storage in those of X__create. */
bool tide_message_is_in_allocated(const void *pointer);

/* member is a string or a sequence. True when it has memory for count elements; if need be that is other memory, all
 * zeroes, and the member is empty. False, and no change, when it has too little memory of the caller, or none is left.
 * Elements are basic values here. */
bool tide_message_reserve(void *member, size_t count, size_t element_bytes);
/* A string gets this size and keeps its text as far as that goes, with zeroes behind it. False, and no change, as
 * above. */
bool tide_message_resize(void *string, size_t size, size_t unit_bytes);
/* As tide_message_reserve, of any sequence: what was allocated for its elements is released with them. */
bool tide_message_reserve_elements(const tide_field_t *field, void *sequence, size_t count);
/* Empties a string, or a sequence of basic values, and releases its memory. */
void tide_message_drop(void *member);
/* The same of any sequence, with the memory of its elements. Elements in memory of the caller stay, without what was
 * allocated for them. */
void tide_message_drop_elements(const tide_field_t *field, void *sequence);
/* Strings and sequences of a message, in nested messages too. */
void tide_message_drop_members(const tide_message_type_t *type, void *message);
/* A sequence of messages of this type. Null: no effect. */
void tide_message_sequence_drop(const tide_message_type_t *type, void *sequence);

#ifdef __cplusplus
}
#endif
#endif
