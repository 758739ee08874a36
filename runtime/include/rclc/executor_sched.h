/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the published prototype of the budget-based executor (Staschulat, Lange, Dasari 2021), as thin
 * wrappers of tide_rclc_executor_set_lanes. Each subscription has a lane, with a fixed priority or with a budget. Its
 * structures contain the system's sched_param if the system supports sporadic servers (NuttX), otherwise members of the
 * same names.
 *
 *   rclc_executor_sched_parameter_t sp = {.policy = SCHED_SPORADIC};
 *   sp.param.sched_priority = 60;
 *   sp.param.sched_ss_low_priority = 6;
 *   sp.param.sched_ss_repl_period.tv_nsec = 100000000;
 *   sp.param.sched_ss_init_budget.tv_nsec = 30000000;
 *   sp.param.sched_ss_max_repl = 100;
 *   rclc_executor_add_subscription_sched(&executor, &subscription, &message, callback, ON_NEW_DATA, &sp);
 *   rclc_executor_start_multi_threading_for_nuttx(&executor);
 *
 * For existing programs; new programs set lanes directly (tide/rclc.h). Memory: a fixed table for
 * RCLC_SCHED_SUBSCRIPTIONS subscriptions of all executors, linked only when these calls are used. */
#ifndef RCLC__EXECUTOR_SCHED_H_
#define RCLC__EXECUTOR_SCHED_H_

#include <stdint.h>

#include "rclc/executor.h"

TIDE_EXTERN_C_BEGIN

#define RCLC_SCHED_SUBSCRIPTIONS 16

#ifdef __has_include
#if __has_include(<sched.h>)
#include <sched.h>
#endif
#endif

/* Numbered as on NuttX and Linux; SCHED_SPORADIC as on NuttX. */
#ifndef SCHED_FIFO
#define SCHED_FIFO 1
#endif
#ifndef SCHED_SPORADIC
#define SCHED_SPORADIC 3
#endif

/* The system's own structure if it supports sporadic servers, as NuttX does. */
#if defined(CONFIG_SCHED_SPORADIC) || (defined(_POSIX_THREAD_SPORADIC_SERVER) && _POSIX_THREAD_SPORADIC_SERVER > 0)
typedef struct timespec rclc_sched_time_t;
typedef struct sched_param rclc_sched_param_t;
#else
typedef struct rclc_sched_time {
  int64_t tv_sec;
  int64_t tv_nsec; /* 0..999,999,999 */
} rclc_sched_time_t;

typedef struct rclc_sched_param {
  int sched_priority; /* in the system's numbers */
  /* SCHED_SPORADIC only: */
  int sched_ss_low_priority;
  rclc_sched_time_t sched_ss_repl_period, sched_ss_init_budget;
  int sched_ss_max_repl; /* 1 or more */
} rclc_sched_param_t;

/* For published programs that are compiled unchanged. From here on struct sched_param means the structure above, so a
 * file that includes this header can no longer pass one to the system. Include system headers before this one. */
#ifdef RCLC_SCHED_PARAM_AS_PUBLISHED
#define sched_param rclc_sched_param
#endif
#endif

typedef struct {
  int policy; /* SCHED_FIFO or SCHED_SPORADIC */
  rclc_sched_param_t param;
} rclc_executor_sched_parameter_t;

/* Discards subscriptions that were added to the executor but not started. Call it before the first add, and before
 * finalising an executor that was never started. */
void rclc_executor_real_time_scheduling_init(rclc_executor_t *executor);

/* Call it before the start, with nothing else added to the executor. All arguments are copied except the message, which
 * belongs to the callback. A larger sched_priority also means a higher level, and thus a separate stream on the wire.
 * Causes (tide_rclc_last_status): TIDE_ERROR_ARGUMENT, TIDE_ERROR_EXISTS, TIDE_ERROR_UNSUPPORTED (another policy or
 * ALWAYS), TIDE_ERROR_CAPACITY_HANDLES (RCLC_SCHED_SUBSCRIPTIONS). */
rcl_ret_t rclc_executor_add_subscription_sched(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                               rclc_subscription_callback_t callback,
                                               rclc_executor_handle_invocation_t invocation,
                                               const rclc_executor_sched_parameter_t *sparam);

/* Starts the lanes. Returns when tide_executor_stop of the executor's core has ended them, or with the error that
 * prevented them from running: see tide_rclc_executor_set_lanes and rclc_executor_spin. Needs TIDE_EXECUTOR_LANES >=
 * the number of subscriptions. */
rcl_ret_t rclc_executor_start_multi_threading_for_nuttx(rclc_executor_t *executor);

/* The paper's spelling. */
#define rclc_executor_start_multi_threading_for_nuttX rclc_executor_start_multi_threading_for_nuttx

/* Calls rcl_publish, which any lane may call. */
rcl_ret_t rclc_executor_publish(const rcl_publisher_t *publisher, const void *ros_message,
                                rmw_publisher_allocation_t *allocation);

TIDE_EXTERN_C_END
#endif
