/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__TYPES_H_
#define RCLC__TYPES_H_

#include "rcl/rcl.h"

#define RCLC_UNUSED(x) (void)x

typedef struct {
  rcl_context_t context;
  rcl_allocator_t *allocator;
  rcl_clock_t clock;
} rclc_support_t;

#endif
