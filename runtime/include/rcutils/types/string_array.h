/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of strings from an allocator. */
#ifndef RCUTILS__TYPES__STRING_ARRAY_H_
#define RCUTILS__TYPES__STRING_ARRAY_H_

#include "rcutils/allocator.h"
#include "rcutils/types/rcutils_ret.h"

TIDE_EXTERN_C_BEGIN

typedef struct rcutils_string_array_t {
  size_t size;
  char **data;
  rcutils_allocator_t allocator;
} rcutils_string_array_t;

rcutils_string_array_t rcutils_get_zero_initialized_string_array(void);
/* All strings are initially null. RCUTILS_RET_BAD_ALLOC: the allocator refused. */
rcutils_ret_t rcutils_string_array_init(rcutils_string_array_t *string_array, size_t size,
                                        const rcutils_allocator_t *allocator);
rcutils_ret_t rcutils_string_array_fini(rcutils_string_array_t *string_array);

TIDE_EXTERN_C_END
#endif
