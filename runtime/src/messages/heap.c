/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks came from the default allocator. A place is never given back, so the list is read without a lock. A
 * block is all of its allocation: a program may release it by the allocator itself, as with the stock. It is forgotten
 * when the allocator gives any of its memory once more. */
#include <stdint.h>
#include <string.h>

#include "tide/message_heap.h"
#include "tide/options.h"

#if TIDE_HEAP
#include <stdlib.h>
#endif

typedef struct place {
  struct place *next;
  void *block; /* null: free; taken: being filled or emptied */
  size_t bytes;
  void (*deallocate)(void *block, void *state);
  void *state;
} place_t;

static void *places; /* the newest */
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

/* Cores without an instruction for it have one thread that allocates (tide/message_heap.h). */
static bool exchange(void **cell, void *expected, void *desired) {
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4) || defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_8)
  return __atomic_compare_exchange_n(cell, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
#else
  if (*cell != expected) return false;
  *cell = desired;
  return true;
#endif
}

static place_t *first_place(void) { return __atomic_load_n(&places, __ATOMIC_ACQUIRE); }

/* The place of this block, now taken; null when it has none. */
static place_t *take_place_of(void *block) {
  for (place_t *place = first_place(); place != NULL; place = place->next)
    if (exchange(&place->block, block, &taken)) return place;
  return NULL;
}

static place_t *add_place(void) {
  place_t *place = allocator.allocate(sizeof *place, allocator.state);
  if (place == NULL) return NULL;
  place->block = &taken;
  do {
    place->next = first_place();
  } while (!exchange(&places, place->next, place));
  return place;
}

/* bytes is that of this block, or the place has another one by now, or is taken. */
static bool meets(const void *block, size_t block_bytes, const void *start, size_t bytes) {
  if (block == NULL || block == &taken) return false;
  return (uintptr_t)start - (uintptr_t)block < block_bytes || (uintptr_t)block - (uintptr_t)start < bytes;
}

static place_t *find_in(const void *start, size_t bytes, void **found) {
  for (place_t *place = first_place(); place != NULL; place = place->next) {
    *found = __atomic_load_n(&place->block, __ATOMIC_ACQUIRE);
    if (meets(*found, __atomic_load_n(&place->bytes, __ATOMIC_RELAXED), start, bytes)) return place;
  }
  return NULL;
}

static void forget_all_in(const void *start, size_t bytes) {
  void *block;
  for (place_t *place; (place = find_in(start, bytes, &block)) != NULL;) (void)exchange(&place->block, block, NULL);
}

static place_t *free_place(void) {
  for (place_t *place = first_place(); place != NULL; place = place->next)
    if (exchange(&place->block, NULL, &taken)) return place;
  return add_place();
}

static void leave_place(place_t *place, void *block) { __atomic_store_n(&place->block, block, __ATOMIC_RELEASE); }

void *tide_message_allocate(size_t bytes) {
  if (allocator.allocate == NULL || bytes == 0) return NULL;
  void *block = allocator.allocate(bytes, allocator.state);
  if (block == NULL) return NULL;
  forget_all_in(block, bytes);
  place_t *place = free_place();
  if (place == NULL) {
    allocator.deallocate(block, allocator.state);
    return NULL;
  }
  memset(block, 0, bytes);
  __atomic_store_n(&place->bytes, bytes, __ATOMIC_RELAXED);
  place->deallocate = allocator.deallocate;
  place->state = allocator.state;
  leave_place(place, block);
  return block;
}

bool tide_message_release(void *block) {
  place_t *place = block == NULL ? NULL : take_place_of(block);
  if (place == NULL) return false;
  void (*deallocate)(void *block, void *state) = place->deallocate;
  void *state = place->state;
  leave_place(place, NULL);
  deallocate(block, state);
  return true;
}

bool tide_message_is_allocated(const void *block) {
  if (block == NULL) return false;
  for (place_t *place = first_place(); place != NULL; place = place->next)
    if (__atomic_load_n(&place->block, __ATOMIC_ACQUIRE) == block) return true;
  return false;
}

bool tide_message_is_in_allocated(const void *pointer) {
  void *block;
  return pointer != NULL && find_in(pointer, 1, &block) != NULL;
}
