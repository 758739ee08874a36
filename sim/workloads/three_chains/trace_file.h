/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a board that is played (tide/trace.h), drained to a file by a thread without urgency. An instance is
 * TRACE_INSTANCE of its chain's place in the plan, from 1, and its number: so levels that chains share are told apart,
 * and what is of no chain has none.
 */
#ifndef THREE_CHAINS_TRACE_FILE_H
#define THREE_CHAINS_TRACE_FILE_H

#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdbool.h>
#include <stdint.h>
#include <tide/priority.h>

#define TRACE_INSTANCE(chain, index) (((uint32_t)(chain) + 1u) << 24 | ((index)&0xFFFFFFu))

/* Opens the file and starts the thread. Call before the program raises its own priority, which threads inherit. False,
 * with a line on standard error: the file cannot be written. Without this call all others do nothing. */
bool trace_file_open(const char *path);
/* Rings for the daemon and all lanes: when the lanes are chosen, before they run. */
void trace_file_attach(rclc_support_t *support, rclc_executor_t *executor);
/* Rings for the budgets of lanes: when they have them, while they run. */
void trace_file_attach_budgets(rclc_executor_t *executor);
/* From the callback that runs. */
void trace_file_instance(tide_priority_t priority, uint32_t instance);
/* Writes what is left and ends the thread. After the lanes. */
void trace_file_close(void);

#endif
