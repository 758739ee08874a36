/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCUTILS__ALLOCATOR_H_
#define RCUTILS__ALLOCATOR_H_

#include <stdbool.h>
#include <stddef.h>
/* Programs that use malloc, strlen or printf rely on the rcl headers to include these. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcutils/ret.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Only functions whose description mentions the allocator use it: wait sets, the names in the graph, string arrays, and
 * the memory of a program's own messages (micro_ros_utilities, tide/message_heap.h). All other functions accept an
 * allocator and ignore it. */
typedef struct rcutils_allocator_s {
  void *(*allocate)(size_t size, void *state);
  void (*deallocate)(void *pointer, void *state);
  void *(*reallocate)(void *pointer, size_t size, void *state);
  void *(*zero_allocate)(size_t number_of_elements, size_t size_of_element, void *state);
  void *state;
} rcutils_allocator_t;

rcutils_allocator_t rcutils_get_zero_initialized_allocator(void);
/* True if none of the allocator's four functions is null. */
bool rcutils_allocator_is_valid(const rcutils_allocator_t *allocator);
/* The allocator last set by rcutils_set_default_allocator. Initially malloc if the runtime was built with TIDE_HEAP
 * (POSIX), otherwise functions that return null with TIDE_ERROR_NO_HEAP. */
rcutils_allocator_t rcutils_get_default_allocator(void);
/* False when a function is missing. */
bool rcutils_set_default_allocator(rcutils_allocator_t *allocator);

TIDE_EXTERN_C_END
#endif
