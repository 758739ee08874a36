/* SPDX-License-Identifier: Apache-2.0 */
/* The user interface of the budget-based executor, with the names that its paper uses. The test is that this compiles
 * and links. */
#define RCLC_SCHED_PARAM_AS_PUBLISHED
#include <rclc/executor_sched.h>
#include <rclc/rclc.h>

rcl_ret_t sched_listing(rclc_executor_t *executor, rcl_subscription_t *subscription, void *message,
                        rclc_subscription_callback_t callback);

rcl_ret_t sched_listing(rclc_executor_t *executor, rcl_subscription_t *subscription, void *message,
                        rclc_subscription_callback_t callback) {
  struct sched_param published;
  published.sched_priority = 60;
  published.sched_ss_low_priority = 6;
  published.sched_ss_repl_period.tv_sec = 0;
  published.sched_ss_repl_period.tv_nsec = 100000000;
  published.sched_ss_init_budget.tv_sec = 0;
  published.sched_ss_init_budget.tv_nsec = 30000000;
  published.sched_ss_max_repl = 100;
  rclc_executor_sched_parameter_t parameter;
  parameter.policy = SCHED_SPORADIC;
  parameter.param = published;
  const rcl_ret_t result =
      rclc_executor_add_subscription_sched(executor, subscription, message, callback, ON_NEW_DATA, &parameter);
  return result == RCL_RET_OK ? rclc_executor_start_multi_threading_for_nuttX(executor) : result;
}
