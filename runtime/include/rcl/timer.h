/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__TIMER_H_
#define RCL__TIMER_H_

#include "rcl/context.h"
#include "rcl/time.h"
#include "rcutils/logging_macros.h"

TIDE_EXTERN_C_BEGIN

struct tide_timer_handle;

typedef struct rcl_timer_s {
  struct tide_timer_handle *impl;
} rcl_timer_t;

/* The second argument is the time since the previous call, in nanoseconds. */
typedef void (*rcl_timer_callback_t)(rcl_timer_t *timer, int64_t last_call_time);

rcl_timer_t rcl_get_zero_initialized_timer(void);
rcl_ret_t rcl_timer_init2(rcl_timer_t *timer, rcl_clock_t *clock, rcl_context_t *context, int64_t period,
                          const rcl_timer_callback_t callback, rcl_allocator_t allocator, bool autostart);
rcl_ret_t rcl_timer_init(rcl_timer_t *timer, rcl_clock_t *clock, rcl_context_t *context, int64_t period,
                         const rcl_timer_callback_t callback, rcl_allocator_t allocator);
rcl_ret_t rcl_timer_fini(rcl_timer_t *timer);
rcl_ret_t rcl_timer_cancel(rcl_timer_t *timer);
rcl_ret_t rcl_timer_is_canceled(const rcl_timer_t *timer, bool *is_canceled);
/* The next expiry is one period from now. */
rcl_ret_t rcl_timer_reset(rcl_timer_t *timer);
rcl_ret_t rcl_timer_exchange_period(const rcl_timer_t *timer, int64_t new_period, int64_t *old_period);
rcl_ret_t rcl_timer_get_period(const rcl_timer_t *timer, int64_t *period);
/* Time since the callback was called last, or since the timer was started, in nanoseconds. */
rcl_ret_t rcl_timer_get_time_since_last_call(const rcl_timer_t *timer, int64_t *time_since_last_call);
/* Whether the next expiry has passed. A cancelled timer is not ready. */
rcl_ret_t rcl_timer_is_ready(const rcl_timer_t *timer, bool *is_ready);
/* Runs the callback now and sets the next expiry. Only for a timer that is in no executor; otherwise RCL_RET_ERROR with
 * TIDE_ERROR_STATE. RCL_RET_TIMER_CANCELED: the timer is cancelled, and its callback does not run. */
rcl_ret_t rcl_timer_call(rcl_timer_t *timer);
rcl_timer_callback_t rcl_timer_get_callback(const rcl_timer_t *timer);
/* Sets the callback for later runs; returns the previous one. With null, expiries run no callback. */
rcl_timer_callback_t rcl_timer_exchange_callback(rcl_timer_t *timer, const rcl_timer_callback_t new_callback);
rcl_ret_t rcl_timer_get_time_until_next_call(rcl_timer_t *timer, int64_t *time_until_next_call);

TIDE_EXTERN_C_END
#endif
