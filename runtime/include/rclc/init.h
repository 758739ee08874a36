/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__INIT_H_
#define RCLC__INIT_H_

#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

rcl_ret_t rclc_support_init(rclc_support_t *support, int argc, char const *const *argv, rcl_allocator_t *allocator);
rcl_ret_t rclc_support_init_with_options(rclc_support_t *support, int argc, char const *const *argv,
                                         rcl_init_options_t *init_options, rcl_allocator_t *allocator);
rcl_ret_t rclc_support_fini(rclc_support_t *support);

TIDE_EXTERN_C_END
#endif
