/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr's definitions for runtime/port/rtos/rtos.h. Zephyr counts priorities downwards: zephyr.c converts them. */
#ifndef TIDE_KERNEL_H
#define TIDE_KERNEL_H

#include <zephyr/kernel.h>

#define TIDE_KERNEL_LANES CONFIG_TIDE_LANES_MAXIMUM
#define TIDE_KERNEL_ONE_SET 1
#define TIDE_KERNEL_SETS_PRIORITY 1
#define TIDE_KERNEL_SWITCHES 0 /* switches are not reported, but the cycles of each thread are counted */
#define TIDE_KERNEL_ARMS_IN_SWITCH 0
#define TIDE_KERNEL_LINK_STACK_BYTES CONFIG_TIDE_LINK_STACK_BYTES
#ifdef CONFIG_SMP
#define TIDE_KERNEL_LANES_LOCK 0
#else
#define TIDE_KERNEL_LANES_LOCK 1
#endif
#ifdef CONFIG_TIDE_BUDGETS
#define TIDE_KERNEL_BUDGETS 1
#define TIDE_KERNEL_REPLENISHMENTS CONFIG_TIDE_REPLENISHMENTS
#else
#define TIDE_KERNEL_BUDGETS 0
#endif
/* With several processors waits do not use the kernel's timeouts. A timeout may be expiring on one processor while the
 * thread is woken on another and waits again. The expiring timeout then ends the new wait but leaves the thread queued,
 * which fails an assertion in Zephyr 4.3. So all waits share one timer, as do budgets. */
#define TIDE_KERNEL_ALARM (!TIDE_KERNEL_LANES_LOCK || TIDE_KERNEL_BUDGETS)

/* 1 is the least urgent preemptible priority: a lane is never as low as the idle thread. Priorities above MOST are
 * those of cooperative threads. */
#define TIDE_KERNEL_PRIORITY_LEAST 1
#define TIDE_KERNEL_PRIORITY_MOST CONFIG_NUM_PREEMPT_PRIORITIES
#define TIDE_KERNEL_PRIORITY_NORMAL (CONFIG_NUM_PREEMPT_PRIORITIES - K_LOWEST_APPLICATION_THREAD_PRIO)
#define TIDE_KERNEL_PRIORITY_LINK (CONFIG_NUM_PREEMPT_PRIORITIES - CONFIG_TIDE_LINK_PRIORITY)
#define TIDE_KERNEL_PRIORITY_KEEPER (CONFIG_NUM_PREEMPT_PRIORITIES - K_PRIO_COOP(CONFIG_NUM_COOP_PRIORITIES - 1))
#define TIDE_KERNEL_PRIORITY_BUDGET TIDE_KERNEL_PRIORITY_MOST

typedef k_tid_t tide_kernel_task_t;
typedef int64_t tide_kernel_stamp_t; /* thread time already charged to the budget */
#define tide_kernel_prepare_budgets() TIDE_OK

#endif
