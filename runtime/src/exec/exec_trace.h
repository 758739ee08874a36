/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane records around a callback; nothing without TIDE_TRACE. */
#ifndef TIDE_EXEC_TRACE_H
#define TIDE_EXEC_TRACE_H

#include "exec.h"

#if TIDE_TRACE
/* One lane a band and one stack: a lane that starts while another is within a callback has preempted it. */
static inline void exec_trace_preempted(const tide_executor_t *executor, const tide_lane_t *lane, int64_t now_ns) {
  const tide_callback_t *preempted = NULL;
  for (size_t index = 0; exec_splits(executor) && index < exec_lane_count(executor); index++) {
    const tide_lane_t *other = &executor->config.lanes[index];
    const tide_callback_t *running = other->forgotten ? NULL : other->running;
    if (other != lane && running != NULL && (preempted == NULL || running->priority > preempted->priority)) {
      preempted = running;
    }
  }
  if (preempted != NULL) {
    (void)tide_trace_put(lane->trace, TIDE_TRACE_PREEMPTION, preempted->priority,
                         tide_trace_instance(lane->trace, preempted->priority), 0u, now_ns);
  }
}

static inline void exec_trace_start(const tide_executor_t *executor, const tide_lane_t *lane,
                                    const tide_callback_t *callback, int64_t now_ns) {
  if (lane->trace == NULL) {
    return;
  }
  const uintptr_t lock = exec_lock(executor);
  exec_trace_preempted(executor, lane, now_ns);
  exec_unlock(executor, lock);
  const uint32_t instance = (uint32_t)callback->runs;
  const tide_trace_kind_t kind = callback->kind == TIDE_CALLBACK_TIMER ? TIDE_TRACE_RELEASE : TIDE_TRACE_READY;
  tide_trace_set_instance(lane->trace, callback->priority, instance);
  (void)tide_trace_put(lane->trace, kind, callback->priority, instance, 0u, callback->ready_ns);
  (void)tide_trace_put(lane->trace, TIDE_TRACE_START, callback->priority, instance, (uint8_t)callback->kind, now_ns);
}

static inline void exec_trace_end(const tide_lane_t *lane, tide_priority_t priority, int64_t now_ns) {
  if (lane->trace != NULL) {
    (void)tide_trace_put(lane->trace, TIDE_TRACE_END, priority, tide_trace_instance(lane->trace, priority), 0u, now_ns);
  }
}
#else
static inline void exec_trace_start(const tide_executor_t *executor, const tide_lane_t *lane,
                                    const tide_callback_t *callback, int64_t now_ns) {
  (void)executor, (void)lane, (void)callback, (void)now_ns;
}
static inline void exec_trace_end(const tide_lane_t *lane, tide_priority_t priority, int64_t now_ns) {
  (void)lane, (void)priority, (void)now_ns;
}
#endif

#endif
