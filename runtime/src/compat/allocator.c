/* SPDX-License-Identifier: Apache-2.0 */
#include "rcutils/allocator.h"

#include "internal.h"
#include "tide/message_heap.h"
#include "tide/options.h"

#if TIDE_HEAP
static void *heap_allocate(size_t size, void *state) {
  (void)state;
  return malloc(size);
}

static void heap_deallocate(void *pointer, void *state) {
  (void)state;
  free(pointer);
}

static void *heap_reallocate(void *pointer, size_t size, void *state) {
  (void)state;
  return realloc(pointer, size);
}

static void *heap_zero_allocate(size_t number_of_elements, size_t size_of_element, void *state) {
  (void)state;
  return calloc(number_of_elements, size_of_element);
}

static rcutils_allocator_t current = {heap_allocate, heap_deallocate, heap_reallocate, heap_zero_allocate, NULL};
#else
static void *refuse_allocate(size_t size, void *state) {
  (void)size;
  (void)state;
  tide_compat_result(TIDE_ERROR_NO_HEAP);
  return NULL;
}

static void ignore_deallocate(void *pointer, void *state) {
  (void)pointer;
  (void)state;
}

static void *refuse_reallocate(void *pointer, size_t size, void *state) {
  (void)pointer;
  (void)size;
  (void)state;
  tide_compat_result(TIDE_ERROR_NO_HEAP);
  return NULL;
}

static void *refuse_zero_allocate(size_t number_of_elements, size_t size_of_element, void *state) {
  (void)number_of_elements;
  (void)size_of_element;
  (void)state;
  tide_compat_result(TIDE_ERROR_NO_HEAP);
  return NULL;
}

static rcutils_allocator_t current = {refuse_allocate, ignore_deallocate, refuse_reallocate, refuse_zero_allocate,
                                      NULL};
#endif

rcutils_allocator_t rcutils_get_zero_initialized_allocator(void) {
  rcutils_allocator_t allocator = {NULL, NULL, NULL, NULL, NULL};
  return allocator;
}

rcutils_allocator_t rcutils_get_default_allocator(void) { return current; }

bool rcutils_set_default_allocator(rcutils_allocator_t *allocator) {
  if (allocator == NULL || allocator->allocate == NULL || allocator->deallocate == NULL ||
      allocator->reallocate == NULL || allocator->zero_allocate == NULL) {
    return false;
  }
  current = *allocator;
  tide_message_set_allocator(&(tide_message_allocator_t){allocator->allocate, allocator->deallocate, allocator->state});
  return true;
}

bool rcutils_allocator_is_valid(const rcutils_allocator_t *allocator) {
  return allocator != NULL && allocator->allocate != NULL && allocator->deallocate != NULL &&
         allocator->zero_allocate != NULL && allocator->reallocate != NULL;
}
