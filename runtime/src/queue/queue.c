/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/queue.h"

#include "tide/invariant.h"
#include "tide/status.h"

_Static_assert(sizeof(tide_queue_entry_t) == 16u, "documented in queue.h");

static bool precedes(const tide_queue_entry_t *a, const tide_queue_entry_t *b) {
  if (a->key != b->key) return a->key < b->key;
  return (int32_t)(a->order - b->order) < 0;
}

/* Invariant of the heap: entry i does not come after entries 2i + 1 and 2i + 2, and its `place` is i + 1. */
static bool is_heap(const tide_queue_t *queue) {
  for (size_t index = 0u; index < queue->count; index++) {
    const tide_queue_entry_t *entry = queue->entries[index];
    if (entry->place != index + 1u) return false;
    if (index > 0u && precedes(entry, queue->entries[(index - 1u) / 2u])) return false;
  }
  return queue->count <= queue->capacity;
}

static void put(tide_queue_t *queue, size_t index, tide_queue_entry_t *entry) {
  queue->entries[index] = entry;
  entry->place = (uint32_t)(index + 1u);
  TIDE_INVARIANT(index < queue->count && queue->count <= queue->capacity);
}

static void set_count(tide_queue_t *queue, size_t count) { __atomic_store_n(&queue->count, count, __ATOMIC_RELAXED); }

static void sift_up(tide_queue_t *queue, size_t index, tide_queue_entry_t *entry) {
  while (index > 0u) {
    const size_t parent = (index - 1u) / 2u;
    if (!precedes(entry, queue->entries[parent])) break;
    put(queue, index, queue->entries[parent]);
    index = parent;
  }
  put(queue, index, entry);
}

static void sift_down(tide_queue_t *queue, size_t index, tide_queue_entry_t *entry) {
  for (;;) {
    size_t child = 2u * index + 1u;
    if (child >= queue->count) break;
    if (child + 1u < queue->count && precedes(queue->entries[child + 1u], queue->entries[child])) child++;
    if (!precedes(queue->entries[child], entry)) break;
    put(queue, index, queue->entries[child]);
    index = child;
  }
  put(queue, index, entry);
}

void tide_queue_init(tide_queue_t *queue, tide_queue_entry_t **storage, size_t capacity) {
  queue->entries = storage;
  queue->capacity = capacity;
  queue->count = 0u;
  queue->next_order = 0u;
}

int tide_queue_push(tide_queue_t *queue, tide_queue_entry_t *entry, int64_t key) {
  if (entry->place != 0u) return TIDE_ERROR_STATE;
  if (queue->count >= queue->capacity) return TIDE_ERROR_FULL;
  entry->key = key;
  entry->order = queue->next_order++;
  set_count(queue, queue->count + 1u);
  sift_up(queue, queue->count - 1u, entry);
  TIDE_INVARIANT(is_heap(queue));
  return TIDE_OK;
}

tide_queue_entry_t *tide_queue_pop(tide_queue_t *queue) {
  tide_queue_entry_t *head = tide_queue_head(queue);
  if (head) tide_queue_remove(queue, head);
  return head;
}

void tide_queue_remove(tide_queue_t *queue, tide_queue_entry_t *entry) {
  if (entry->place == 0u) return;
  const size_t index = entry->place - 1u;
  TIDE_INVARIANT(index < queue->count && queue->entries[index] == entry);
  entry->place = 0u;
  set_count(queue, queue->count - 1u);
  tide_queue_entry_t *last = queue->entries[queue->count];
  if (last == entry) return;
  if (index > 0u && precedes(last, queue->entries[(index - 1u) / 2u])) {
    sift_up(queue, index, last);
  } else {
    sift_down(queue, index, last);
  }
  TIDE_INVARIANT(is_heap(queue));
}
