/* SPDX-License-Identifier: Apache-2.0 */
#include "rcutils/types/string_array.h"

#include <string.h>

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
