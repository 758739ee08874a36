/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW__INIT_OPTIONS_H_
#define RMW__INIT_OPTIONS_H_

#include "rcutils/allocator.h"
#include "rmw/ret_types.h"
#include "rmw/types.h"

TIDE_EXTERN_C_BEGIN

/* For options that the program creates itself, such as those of rmw_uros_ping_agent_options: UDP to port 8888 on this
 * machine until a rmw_uros_options_* call changes them. Nothing allocates. RMW_RET_INVALID_ARGUMENT: null. */
rmw_init_options_t rmw_get_zero_initialized_init_options(void);
rmw_ret_t rmw_init_options_init(rmw_init_options_t *init_options, rcutils_allocator_t allocator);
rmw_ret_t rmw_init_options_copy(const rmw_init_options_t *src, rmw_init_options_t *dst);
rmw_ret_t rmw_init_options_fini(rmw_init_options_t *init_options);

TIDE_EXTERN_C_END

#endif
