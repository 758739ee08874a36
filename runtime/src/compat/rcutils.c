/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of rcutils other than logging: allocators, arrays of strings, formatted text. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "rcutils/allocator.h"
#include "rcutils/snprintf.h"
#include "rcutils/types/string_array.h"
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

rcutils_string_array_t rcutils_get_zero_initialized_string_array(void) {
  rcutils_string_array_t array;
  memset(&array, 0, sizeof array);
  return array;
}

rcutils_ret_t rcutils_string_array_init(rcutils_string_array_t *string_array, size_t size,
                                        const rcutils_allocator_t *allocator) {
  if (string_array == NULL || allocator == NULL || allocator->zero_allocate == NULL) {
    return RCUTILS_RET_INVALID_ARGUMENT;
  }
  *string_array = rcutils_get_zero_initialized_string_array();
  string_array->allocator = *allocator;
  if (size == 0) return RCUTILS_RET_OK;
  string_array->data = allocator->zero_allocate(size, sizeof(char *), allocator->state);
  if (string_array->data == NULL) return RCUTILS_RET_BAD_ALLOC;
  string_array->size = size;
  return RCUTILS_RET_OK;
}

rcutils_ret_t rcutils_string_array_fini(rcutils_string_array_t *string_array) {
  if (string_array == NULL) return RCUTILS_RET_INVALID_ARGUMENT;
  const rcutils_allocator_t *allocator = &string_array->allocator;
  for (size_t i = 0; i < string_array->size; i++) {
    if (string_array->data[i] != NULL) allocator->deallocate(string_array->data[i], allocator->state);
  }
  if (string_array->data != NULL) allocator->deallocate(string_array->data, allocator->state);
  *string_array = rcutils_get_zero_initialized_string_array();
  return RCUTILS_RET_OK;
}

int rcutils_vsnprintf(char *buffer, size_t buffer_size, const char *format, va_list arguments) {
  if (format == NULL || (buffer == NULL && buffer_size > 0)) return -1;
  /* The caller called va_start. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
  return vsnprintf(buffer, buffer_size, format, arguments);
}

int rcutils_snprintf(char *buffer, size_t buffer_size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = rcutils_vsnprintf(buffer, buffer_size, format, arguments);
  va_end(arguments);
  return length;
}
