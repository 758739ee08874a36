/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of the link, on a static stack. */
#include "../rtos/link_task.h"

#include <zephyr/kernel.h>

#include "tide/port.h"
#include "tide/status.h"

static K_THREAD_STACK_DEFINE(link_stack, CONFIG_TIDE_LINK_STACK_BYTES);
static struct k_thread link_thread;
static void (*link_run)(void);

static void run(void *unused, void *also_unused, void *unused_too) {
  ARG_UNUSED(unused);
  ARG_UNUSED(also_unused);
  ARG_UNUSED(unused_too);
  link_run();
}

int tide_link_task_start(void (*function)(void), int priority) {
  int wanted = CONFIG_TIDE_LINK_PRIORITY;
  if (priority > CONFIG_NUM_PREEMPT_PRIORITIES) return TIDE_ERROR_ARGUMENT;
  if (priority > 0) wanted = CONFIG_NUM_PREEMPT_PRIORITIES - priority;
  if (priority == TIDE_LINK_PRIORITY_INHERIT) wanted = k_thread_priority_get(k_current_get());
  link_run = function;
  k_tid_t thread = k_thread_create(&link_thread, link_stack, K_THREAD_STACK_SIZEOF(link_stack), run, NULL, NULL, NULL,
                                   wanted, 0, K_NO_WAIT);
  (void)k_thread_name_set(thread, "tide link");
  return TIDE_OK;
}

void tide_link_task_join(void) { (void)k_thread_join(&link_thread, K_FOREVER); }
