/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__INIT_OPTIONS_H_
#define RCL__INIT_OPTIONS_H_

#include "rcl/allocator.h"
#include "rcl/types.h"

TIDE_EXTERN_C_BEGIN

typedef struct rcl_init_options_s {
  bool initialized;
  rmw_init_options_t rmw;
} rcl_init_options_t;

rcl_init_options_t rcl_get_zero_initialized_init_options(void);
rcl_ret_t rcl_init_options_init(rcl_init_options_t *init_options, rcl_allocator_t allocator);
rcl_ret_t rcl_init_options_fini(rcl_init_options_t *init_options);
/* RCL_RET_ALREADY_INIT: dst is in use. */
rcl_ret_t rcl_init_options_copy(const rcl_init_options_t *src, rcl_init_options_t *dst);
/* domain_id: 0 to 232, or 255. 0 and 255: the agent's ROS_DOMAIN_ID. */
rcl_ret_t rcl_init_options_set_domain_id(rcl_init_options_t *init_options, size_t domain_id);
/* Returns the domain that was set; 0 if none was set. */
rcl_ret_t rcl_init_options_get_domain_id(const rcl_init_options_t *init_options, size_t *domain_id);
rmw_init_options_t *rcl_init_options_get_rmw_init_options(rcl_init_options_t *init_options);

TIDE_EXTERN_C_END
#endif
