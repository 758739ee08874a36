/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks came from the default allocator. A place is never given back, so the lists are read without a lock. A
 * block is all of its allocation: a program may release it by the allocator itself, as with the stock. Its place is
 * used again when the allocator gives the same address once more. */
#include <stdint.h>
#include <string.h>

#include "tide/message_heap.h"
#include "tide/options.h"

#if TIDE_HEAP
#include <stdlib.h>
#endif

/* A board has few blocks. A free place serves the blocks of its own list only, so more lists keep more places. */
#define LISTS (TIDE_DESKTOP ? 64u : 1u)

typedef struct place {
  struct place *next;
  void *block; /* null: free; taken: being filled or emptied */
  size_t bytes;
  void (*deallocate)(void *block, void *state);
  void *state;
} place_t;

static void *lists[LISTS]; /* of place_t */
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

static void **list_of(const void *block) {
  const uint32_t mixed = (uint32_t)((uintptr_t)block >> 3) * 2654435761u;
  return &lists[(mixed >> 16) % LISTS];
}

static place_t *first_of(void *const *list) { return __atomic_load_n(list, __ATOMIC_ACQUIRE); }

/* The place of this block, now taken; null when it has none. */
static place_t *take_place_of(void *block) {
  for (place_t *place = first_of(list_of(block)); place != NULL; place = place->next)
    if (exchange(&place->block, block, &taken)) return place;
  return NULL;
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

static place_t *place_for(void *block) {
  place_t *place = take_place_of(block);
  if (place != NULL) return place;
  void **list = list_of(block);
  for (place = first_of(list); place != NULL; place = place->next)
    if (exchange(&place->block, NULL, &taken)) return place;
  return add_place(list);
}

static void leave_place(place_t *place, void *block) { __atomic_store_n(&place->block, block, __ATOMIC_RELEASE); }

void *tide_message_allocate(size_t bytes) {
  if (allocator.allocate == NULL || bytes == 0) return NULL;
  void *block = allocator.allocate(bytes, allocator.state);
  if (block == NULL) return NULL;
  place_t *place = place_for(block);
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
  for (place_t *place = first_of(list_of(block)); place != NULL; place = place->next)
    if (__atomic_load_n(&place->block, __ATOMIC_ACQUIRE) == block) return true;
  return false;
}

/* Its block is alive and so is the pointer, so what other threads do to other places does not matter. */
static bool is_within(const place_t *place, const void *pointer) {
  const void *block = __atomic_load_n(&place->block, __ATOMIC_ACQUIRE);
  const size_t bytes = __atomic_load_n(&place->bytes, __ATOMIC_RELAXED);
  return block != NULL && block != &taken && (uintptr_t)pointer - (uintptr_t)block < bytes;
}

bool tide_message_is_in_allocated(const void *pointer) {
  for (size_t i = 0; i < LISTS; ++i)
    for (place_t *place = first_of(&lists[i]); place != NULL; place = place->next)
      if (is_within(place, pointer)) return true;
  return false;
}
