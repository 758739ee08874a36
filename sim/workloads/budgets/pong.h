/* SPDX-License-Identifier: Apache-2.0 */
/* Pong of plan.h as a micro-ROS program with the calls of the paper, for Linux and for boards: a subscription NAME_ping
 * and a publisher NAME_pong (std_msgs/Int32) for each lane. Platform-specific functions are in pong_place_t. */
#ifndef BUDGETS_PONG_H
#define BUDGETS_PONG_H

#include <rclc/rclc.h>
#include <stdbool.h>

#include "plan.h"

#define PONG_LANES 4
#define PONG_NAME "budget_executor_pong"

typedef struct pong_place {
  /* Called by the lanes. */
  void (*start_time)(void); /* at each ping; the first one counts */
  void (*work)(int32_t lane);
  bool (*is_over)(void);           /* a late answer is not sent */
  int64_t (*cpu_ns)(int32_t lane); /* processor time of the lane */
} pong_place_t;

/* Connects and adds the lanes. Both must exist as long as the program. Null, or an error message of one line. */
const char *pong_open(const pong_plan_t *plan, bool reliable, const pong_place_t *place, rcl_init_options_t *options);
/* Runs until pong_stop, which any context may call. Null, or an error message. */
const char *pong_run(void);
void pong_stop(void);
lane_result_t *pong_results(void);

#endif
