/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of this image (tide/trace.h), sent to the world by a timer less urgent than all chains. An image built
 * without TIDE_TRACE contains none of it. */
#ifndef TIDE_FIRMWARE_BOARD_TRACE_H
#define TIDE_FIRMWARE_BOARD_TRACE_H

#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdint.h>

#include "tide/options.h"
#include "tide/priority.h"

#if TIDE_TRACE
/* The timer; add it to the executor. */
rcl_ret_t board_trace_create_timer(rcl_timer_t *timer, rclc_support_t *support);
/* Rings for the daemon and all lanes, before they run. */
void board_trace_attach(rclc_support_t *support, rclc_executor_t *executor);
/* Call from the running callback, with the chain's position in the plan and its instance. */
void board_trace_instance(tide_priority_t priority, uint32_t chain, uint32_t index);
/* Writes the remaining records, after the lanes. */
void board_trace_drain(void);
#else
static inline void board_trace_attach(rclc_support_t *support, rclc_executor_t *executor) {
  (void)support, (void)executor;
}
static inline void board_trace_instance(tide_priority_t priority, uint32_t chain, uint32_t index) {
  (void)priority, (void)chain, (void)index;
}
static inline void board_trace_drain(void) {}
#endif

#endif
