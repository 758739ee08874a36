/* SPDX-License-Identifier: Apache-2.0 */
/* Between the link of an operating system with tasks (link.c) and that system: one task, from open to close. */
#ifndef TIDE_RTOS_LINK_TASK_H
#define TIDE_RTOS_LINK_TASK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of each system. A task that calls the function once; priority as tide_link_address_t.thread_priority has it.
 * TIDE_ERROR_ARGUMENT: there is no such priority. TIDE_ERROR_FULL: no memory. */
int tide_link_task_start(void (*function)(void), int priority);
/* Until the function has returned and the task's memory is free. */
void tide_link_task_join(void);

/* Of link.c: there is something to do. From any task or interrupt, in a critical section, too. */
void tide_link_task_wake(void);

#ifdef __cplusplus
}
#endif
#endif
