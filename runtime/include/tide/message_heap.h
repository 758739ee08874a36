/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of strings and sequences from the default allocator of programs: rcutils_set_default_allocator sets it, and
 * the initial one is malloc if the runtime was built with TIDE_HEAP. Each block allocated here has an entry of five
 * words, by which it is distinguished from the caller's memory. Entries are reused. The runtime itself never allocates.
 * Any thread may allocate and release; on cores without a compare-and-swap instruction (Cortex-M0, RISC-V without A)
 * only one thread may. Do not call these functions from a callback with a deadline: the cost is the allocator's plus a
 * search of the entries of nearby blocks, or of all entries for a block that crosses 4 KiB. Entries also come from the
 * allocator and are never returned, so the allocator's memory must not be reset as a whole. */
#ifndef TIDE_MESSAGE_HEAP_H
#define TIDE_MESSAGE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "tide/message.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_message_allocator {
  void *(*allocate)(size_t bytes, void *state); /* null: the program has no heap */
  void (*deallocate)(void *block, void *state);
  void *state;
} tide_message_allocator_t;

/* Set the allocator of new blocks; earlier blocks are returned to the allocator they came from. Do not call it while
 * other threads allocate. */
void tide_message_set_allocator(const tide_message_allocator_t *allocator);
/* Returns zeroed memory; null: no heap, no memory, or zero bytes requested. */
void *tide_message_allocate(size_t bytes);
/* Release a block. False, without effect, if it did not come from tide_message_allocate. */
bool tide_message_release(void *block);
bool tide_message_is_allocated(const void *block);
/* True if the pointer lies within such a block, as the storage of a message from X__create does. */
bool tide_message_is_in_allocated(const void *pointer);

/* member is a string or a sequence. True when it has memory for count elements; new memory is zeroed and leaves the
 * member empty. Returns false, without change, when the caller's memory is too small or the allocator has none left.
 * The elements of the sequence must be basic values. */
bool tide_message_reserve(void *member, size_t count, size_t element_bytes);
/* Set a string's size: the text is truncated or padded with zeroes. False, without change, as for
 * tide_message_reserve. */
bool tide_message_resize(void *string, size_t size, size_t unit_bytes);
/* Like tide_message_reserve, for any sequence; memory allocated for its elements is released with them. */
bool tide_message_reserve_elements(const tide_field_t *field, void *sequence, size_t count);
/* Empties a string, or a sequence of basic values, and releases its memory. */
void tide_message_drop(void *member);
/* Like tide_message_drop, for any sequence, with the memory of its elements. If the elements are in the caller's
 * memory, only memory that was allocated for their contents is released. */
void tide_message_drop_elements(const tide_field_t *field, void *sequence);
/* Like tide_message_drop, for all strings and sequences of a message, in nested messages too. */
void tide_message_drop_members(const tide_message_type_t *type, void *message);
/* Like tide_message_drop_elements, for messages of this type. Null: no effect. */
void tide_message_sequence_drop(const tide_message_type_t *type, void *sequence);

TIDE_EXTERN_C_END
#endif
