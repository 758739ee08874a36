/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__TIMER_H_
#define RCLC__TIMER_H_

#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

rcl_ret_t rclc_timer_init_default(rcl_timer_t *timer, rclc_support_t *support, const uint64_t timeout_ns,
                                  const rcl_timer_callback_t callback);
rcl_ret_t rclc_timer_init_default2(rcl_timer_t *timer, rclc_support_t *support, const uint64_t timeout_ns,
                                   const rcl_timer_callback_t callback, bool autostart);

TIDE_EXTERN_C_END
#endif
