/* SPDX-License-Identifier: Apache-2.0 */
/* NuttX's definitions for runtime/port/rtos/rtos.h: POSIX threads, and with CONFIG_TIDE_BUDGETS the kernel's own
 * functions. Clock, sections, events and locks of the platform are those of runtime/port/posix. */
#ifndef TIDE_KERNEL_H
#define TIDE_KERNEL_H

#include <pthread.h>
#include <sched.h>

#define TIDE_KERNEL_LANES 8
#define TIDE_KERNEL_ONE_SET 0
#define TIDE_KERNEL_SETS_PRIORITY 1
#define TIDE_KERNEL_SWITCHES 1
#define TIDE_KERNEL_ARMS_IN_SWITCH 0 /* the kernel's notes may call only its clocks */
#define TIDE_KERNEL_PRIORITY_LEAST (sched_get_priority_min(SCHED_FIFO))
#define TIDE_KERNEL_PRIORITY_MOST (sched_get_priority_max(SCHED_FIFO))
#define TIDE_KERNEL_PRIORITY_NORMAL TIDE_KERNEL_PRIORITY_LEAST
#define TIDE_KERNEL_PRIORITY_KEEPER TIDE_KERNEL_PRIORITY_MOST
#define TIDE_KERNEL_PRIORITY_BUDGET (TIDE_KERNEL_PRIORITY_MOST - 1)
#ifdef CONFIG_TIDE_BUDGETS
#include <nuttx/spinlock.h>
#define TIDE_KERNEL_BUDGETS 1
#define TIDE_KERNEL_REPLENISHMENTS CONFIG_TIDE_REPLENISHMENTS
/* Each check charges the running thread, so that no slice exceeds the range of a 32-bit counter. */
#define TIDE_KERNEL_LOOK_NS INT64_C(1000000000)
irqstate_t tide_nuttx_mask(void); /* masks interrupts as well, since the platform's section is a mutex */
void tide_nuttx_unmask(irqstate_t state);
#define tide_kernel_mask() ((uintptr_t)tide_nuttx_mask())
#define tide_kernel_unmask(state) tide_nuttx_unmask((irqstate_t)(state))
#else
#define TIDE_KERNEL_BUDGETS 0
#define tide_kernel_prepare_budgets() TIDE_ERROR_UNSUPPORTED
#endif

typedef struct tide_kernel_task {
  pthread_t thread;
  struct tcb_s *tcb;
} tide_kernel_task_t;
typedef unsigned long tide_kernel_stamp_t; /* a value of the kernel's counter */

#endif
