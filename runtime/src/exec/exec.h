/* SPDX-License-Identifier: Apache-2.0 */
/* What local delivery (local.c) needs of the executor (executor.c). */
#ifndef TIDE_EXEC_H
#define TIDE_EXEC_H

#include "tide/executor.h"

/* Make the callback ready once more. Call with interrupts masked. Returns the lane to wake afterwards, or NULL. `from`:
 * the lane whose callback does it, NULL if the caller is not a lane. */
tide_lane_t *tide_exec_notify_masked(tide_callback_t *callback, const tide_lane_t *from, int64_t ready_ns);
void tide_exec_wake_lane(const tide_executor_t *executor, tide_lane_t *lane); /* NULL: does nothing */
/* The callback's messages do not come in frames any more. Call with the lists locked. */
void tide_exec_mark_local_locked(tide_callback_t *callback);

#endif
