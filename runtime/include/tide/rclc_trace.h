/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a program (tide/trace.h) over its own link. Its records are published on the topic "~/tide_trace"
 * (std_msgs/msg/UInt8MultiArray, whole blocks of docs/internals/trace.md), best effort, at the least urgent level.
 * `tide trace record` and `tide run` receive them. Optional; needs no generated messages:
 *
 *   static tide_trace_ring_t rings[1 + LANES];
 *   static tide_trace_record_t records[1 + LANES][256];
 *   static const tide_trace_settings_t settings = {
 *       .rings = rings, .ring_count = 1 + LANES, .records = records[0], .records_a_ring = 256,
 *       .period_ms = 50, .most_messages = 2, .chains_only = true};
 *   tide_rclc_trace_init(&node, &support, &executor, &settings);      after the lanes are set, before anything spins
 *
 * Cost on the line: at most most_messages frames per period, of TIDE_TRACE_MESSAGE_BYTES and their headers, each of
 * which may delay a more urgent frame. In a description, describe the trace as a chain of one timer with this period
 * and payload, less urgent than all others. Cost on the processor: a callback at this lowest level. It takes some 430
 * instructions for each record on a Cortex-M7, and a message has up to 28 records.
 *
 * Messages leave only while there is a session and half of the pool is free; otherwise records stay in their rings. A
 * full ring drops the new record and counts it. A lost message leaves a gap in the numbers of the blocks. About once a
 * second a message contains the time of this clock and, after rmw_uros_sync_session, the time of the agent's clock.
 * Budgets of lanes have no ring here (tide/rclc_diagnostics.h reports their counters). */
#ifndef TIDE_RCLC_TRACE_H
#define TIDE_RCLC_TRACE_H

#include <rcl/node.h>

#include "tide/rclc.h"
#include "tide/trace.h"

TIDE_EXTERN_C_BEGIN

/* Two whole blocks. */
#define TIDE_TRACE_MESSAGE_BYTES (2u * TIDE_TRACE_BLOCK_BYTES)
#define TIDE_TRACE_EXECUTORS 4u
/* Source number of the ring that holds only clock records. */
#define TIDE_TRACE_CLOCK_SOURCE 65535u

typedef struct tide_trace_settings {
  tide_trace_ring_t *rings;     /* the program's, in use until fini; first the daemon's ring, then the lanes' */
  size_t ring_count;            /* 1 or more; lanes beyond this number have no ring */
  tide_trace_record_t *records; /* array of ring_count * records_a_ring, the program's */
  uint32_t records_a_ring;      /* a power of two, 2 or more */
  uint16_t place;               /* number of this board; distinguishes boards in one file */
  uint32_t period_ms;     /* period of the timer, 1 or more. Records that fill less than half a message wait for up to a
                             second */
  uint32_t most_messages; /* messages per period; 1 or more */
  bool chains_only;       /* omit records of level 0, which belong to no chain (the callback that sends the trace
                             has level 0, too) */
} tide_trace_settings_t;

/* Call it once per program, from one thread, before the executor spins. Takes a publisher (TIDE_PUBLISHERS) and a
 * handle of the executor, whose lanes get rings. TIDE_ERROR_ARGUMENT: a setting outside its range. TIDE_ERROR_EXISTS:
 * the trace exists already. TIDE_ERROR_UNSUPPORTED: the runtime was built without TIDE_TRACE. Other errors as from
 * rclc_publisher_init and rclc_executor_add_timer. After an error nothing remains allocated. Finalising the support
 * ends the trace too. */
rcl_ret_t tide_rclc_trace_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                               const tide_trace_settings_t *settings);
/* Gives the free rings to the lanes of a further executor (at most TIDE_TRACE_EXECUTORS in all). Call
 * it before the executor spins. TIDE_ERROR_FULL: some of its lanes got no ring. TIDE_ERROR_STATE: there is no trace. */
rcl_ret_t tide_rclc_trace_add_executor(rclc_executor_t *executor);
/* Call it while nothing spins. Records in the rings are lost. TIDE_ERROR_STATE: there is no trace. Other errors as from
 * rcl_publisher_fini. */
rcl_ret_t tide_rclc_trace_fini(rcl_node_t *node);

typedef struct tide_trace_counters {
  uint32_t messages; /* messages sent */
  uint32_t lost;     /* messages that the session refused; their records are lost */
  uint32_t held;     /* periods in which records waited for a session or for free nodes */
} tide_trace_counters_t;
/* May be called from any thread at any time. */
tide_trace_counters_t tide_rclc_trace_get_counters(void);

TIDE_EXTERN_C_END
#endif
