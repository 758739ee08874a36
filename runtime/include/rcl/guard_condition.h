/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__GUARD_CONDITION_H_
#define RCL__GUARD_CONDITION_H_

#include "rcl/context.h"

TIDE_EXTERN_C_BEGIN

struct tide_guard_handle;

typedef struct rcl_guard_condition_s {
  struct tide_guard_handle *impl;
} rcl_guard_condition_t;

typedef struct rcl_guard_condition_options_s {
  rcl_allocator_t allocator;
} rcl_guard_condition_options_t;

rcl_guard_condition_t rcl_get_zero_initialized_guard_condition(void);
rcl_guard_condition_options_t rcl_guard_condition_get_default_options(void);
rcl_ret_t rcl_guard_condition_init(rcl_guard_condition_t *guard_condition, rcl_context_t *context,
                                   const rcl_guard_condition_options_t options);
rcl_ret_t rcl_guard_condition_fini(rcl_guard_condition_t *guard_condition);
/* Wakes the executor of the guard condition. The callback begins at least once after each trigger; several triggers
 * before it begins count as one. Any thread or interrupt may call it. */
rcl_ret_t rcl_trigger_guard_condition(rcl_guard_condition_t *guard_condition);

TIDE_EXTERN_C_END
#endif
