/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks came from the default allocator. A place is never given back, so lists are read without a lock. A block
 * is all of its allocation: a program may release it by the allocator itself, as with the stock. It is forgotten when
 * the allocator gives any of its memory once more. Blocks within one region are in that region's list, so a look does
 * not grow with all that is out; the others, which are few or large, are in a list of their own. */
#include <stdint.h>
#include <string.h>

#include "tide/message_heap.h"
#include "tide/options.h"

#if TIDE_HEAP
#include <stdlib.h>
#endif

#define REGION_BYTES 4096u
#define REGIONS (TIDE_DESKTOP ? 1024u : 8u) /* further ones share lists */

typedef struct place {
  struct place *next;
  void *block; /* null: free; taken: being filled or emptied */
  size_t bytes;
  void (*deallocate)(void *block, void *state);
  void *state;
} place_t;

static void *lists[REGIONS + 1u]; /* of place_t, the newest first */
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

/* The place of this block, now taken; null when it has none. */
static place_t *take_place_of(void *block) {
  place_t *place = take_place_in(list_of(block, 1), block);
  return place != NULL ? place : take_place_in(&lists[REGIONS], block);
}

static place_t *add_place(void **list) {
  place_t *place = allocator.allocate(sizeof *place, allocator.state);
  if (place == NULL) return NULL;
  place->block = &taken;
  do {
    place->next = first_of(list);
  } while (!exchange(list, place->next, place));
  return place;
}

/* bytes is that of this block, or the place has another one by now, or is taken. */
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

/* A place whose block has any of this memory, or null. */
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

static place_t *free_place(void **list) {
  place_t *place = take_place_in(list, NULL);
  return place != NULL ? place : add_place(list);
}

static void leave_place(place_t *place, void *block) { __atomic_store_n(&place->block, block, __ATOMIC_RELEASE); }

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
  void *found = NULL;
  return block != NULL && find_in(block, 1, &found) != NULL && found == block;
}

bool tide_message_is_in_allocated(const void *pointer) {
  void *block;
  return pointer != NULL && find_in(pointer, 1, &block) != NULL;
}
