/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the executor (executor.c) for local delivery (local.c) and for the watch over deadlines (chain.c). */
#pragma once

#include "tide/chain_watch.h"
#include "tide/executor.h"

/* Makes the callback ready once more. Call this with interrupts masked. Returns the lane to wake afterwards, or NULL.
 * `from` is the lane whose callback makes the call, or NULL if the caller is not a lane. */
tide_lane_t *tide_exec_notify_masked(tide_callback_t *callback, const tide_lane_t *from, int64_t ready_ns);
void tide_exec_wake_lane(const tide_executor_t *executor, tide_lane_t *lane); /* does nothing for NULL */
/* Marks the callback as local: its messages no longer arrive in frames. Call this with the lists locked. */
void tide_exec_mark_local_locked(tide_callback_t *callback);

/* Records a violation in the trace of the lane that runs this callback: an instance of the chain whose last callback
 * has this priority was late, or is missing because the next one begins. */
#if TIDE_TRACE
void tide_exec_trace_deadline(const tide_callback_t *runs, tide_priority_t priority, tide_violation_t violation,
                              int64_t now_ns);
#else
#define tide_exec_trace_deadline(runs, priority, violation, now_ns) ((void)(now_ns))
#endif
