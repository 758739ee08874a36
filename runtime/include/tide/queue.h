/* SPDX-License-Identifier: Apache-2.0 */
/* The one priority queue of the runtime: a binary heap of pointers to intrusive entries. timer_list (next expiry),
 * ready_list (priority and order of arrival in one key, made by enqueue of executor.c), execution_buffer (priority),
 * pending_buffer (timestamp) and the queued received frames all use this heap. The key is a 64-bit number. The entry
 * with the smallest key is the head; entries with equal keys leave in FIFO order (as long as fewer than 2^31 pushes lie
 * between them). Push, pop and remove cost O(log n), head O(1); to change a key, remove and push. Not thread-safe: the
 * owner locks. Memory: one pointer for each entry, in the owner's memory, and the entry itself (16 bytes) inside the
 * queued object.
 */
#ifndef TIDE_QUEUE_H
#define TIDE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_queue_entry {
  int64_t key;
  uint32_t order; /* order of arrival */
  uint32_t place; /* 1-based index in the heap; 0: not queued. Zero the entry before first use. */
} tide_queue_entry_t;

typedef struct tide_queue {
  tide_queue_entry_t **entries;
  size_t capacity;
  size_t count; /* written atomically */
  uint32_t next_order;
} tide_queue_t;

void tide_queue_init(tide_queue_t *queue, tide_queue_entry_t **storage, size_t capacity);
/* The entry stays the caller's and must not move while it is queued. TIDE_ERROR_FULL when the queue is full,
 * TIDE_ERROR_STATE when the entry is queued already. */
int tide_queue_push(tide_queue_t *queue, tide_queue_entry_t *entry, int64_t key);
/* Null when empty. */
static inline tide_queue_entry_t *tide_queue_head(const tide_queue_t *queue) {
  return queue->count == 0u ? (tide_queue_entry_t *)0 : queue->entries[0];
}
/* The key of the entry that follows the head; INT64_MAX when there is none. O(1). */
static inline int64_t tide_queue_second_key(const tide_queue_t *queue) {
  int64_t key = INT64_MAX;
  for (size_t index = 1u; index < queue->count && index <= 2u; index++) {
    key = queue->entries[index]->key < key ? queue->entries[index]->key : key;
  }
  return key;
}
/* Callable from any context, without the owner's lock; a concurrent change may or may not be visible. */
static inline bool tide_queue_looks_empty(const tide_queue_t *queue) {
  return __atomic_load_n(&queue->count, __ATOMIC_RELAXED) == 0u;
}
tide_queue_entry_t *tide_queue_pop(tide_queue_t *queue);
/* Does nothing when the entry is not queued; a queued entry must be in this queue. */
void tide_queue_remove(tide_queue_t *queue, tide_queue_entry_t *entry);
static inline bool tide_queue_contains(const tide_queue_entry_t *entry) { return entry->place != 0u; }

TIDE_EXTERN_C_END
#endif
