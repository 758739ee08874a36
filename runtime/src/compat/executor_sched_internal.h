/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls with scheduling parameters share. Each kind of callback has a file of its own, so that a program links
 * only what it uses. */
#ifndef TIDE_COMPAT_EXECUTOR_SCHED_INTERNAL_H
#define TIDE_COMPAT_EXECUTOR_SCHED_INTERNAL_H

#include "internal.h"
#include "rclc/executor_sched.h"

typedef struct sched_record {
  rclc_executor_t *executor;
  void *object; /* the program's: subscription, timer, service, guard condition */
  void *message, *response;
  void (*callback)(void); /* as its kind has it */
  rcl_ret_t (*add)(const struct sched_record *record, tide_priority_t priority);
} sched_record_t;

/* Keeps what was added until the start. A lane for it. */
rcl_ret_t tide_compat_add_sched(const sched_record_t *record, const rclc_executor_sched_parameter_t *sparam);

#endif
