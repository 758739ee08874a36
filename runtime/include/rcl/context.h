/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__CONTEXT_H_
#define RCL__CONTEXT_H_

#include "rcl/init_options.h"

TIDE_EXTERN_C_BEGIN

struct tide_support;

typedef struct rcl_context_s {
  struct tide_support *impl;
  rmw_context_t rmw;
} rcl_context_t;

rcl_context_t rcl_get_zero_initialized_context(void);
rmw_context_t *rcl_context_get_rmw_context(rcl_context_t *context);
bool rcl_context_is_valid(const rcl_context_t *context);
/* Call it after rcl_shutdown. It only checks the order, because rcl_shutdown has already released everything.
 * RCL_RET_INVALID_ARGUMENT before rcl_shutdown. */
rcl_ret_t rcl_context_fini(rcl_context_t *context);
rcl_ret_t rcl_context_get_domain_id(rcl_context_t *context, size_t *domain_id);

TIDE_EXTERN_C_END
#endif
