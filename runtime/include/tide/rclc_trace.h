/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a program (tide/trace.h) over its own link: its records leave as messages of the topic "~/tide_trace"
 * (std_msgs/msg/UInt8MultiArray, whole blocks of docs/internals/trace.md), best effort, at the least urgent level.
 * `tide trace record` and `tide run` take them. Only a program that asks for it has it, and needs no generated
 * messages:
 *
 *   static tide_trace_ring_t rings[1 + LANES];
 *   static tide_trace_record_t records[1 + LANES][256];
 *   static const tide_trace_settings_t settings = {
 *       .rings = rings, .ring_count = 1 + LANES, .records = records[0], .records_a_ring = 256,
 *       .period_ms = 50, .most_messages = 2, .chains_only = true};
 *   tide_rclc_trace_init(&node, &support, &executor, &settings);      after the lanes are set, before anything spins
 *
 * What it costs the line: most_messages frames a period at most, of TIDE_TRACE_MESSAGE_BYTES and their headers, each of
 * which a more urgent frame may find on the wire. In a description it is a chain of one timer, of that period and
 * payload, less urgent than all others. What it costs the processor: a callback of that level; a record takes some 430
 * instructions on a Cortex-M7, a message 30 records.
 *
 * Messages leave only while there is a session and half of the pool is free; otherwise records stay in their rings. A
 * ring that is full drops the new record and counts it. A lost message shows in the numbers of the blocks. About once a
 * second a message has the time of this clock, and of the agent's after rmw_uros_sync_session. Budgets of lanes have no
 * ring here (tide/rclc_diagnostics.h tells their counters). */
#ifndef TIDE_RCLC_TRACE_H
#define TIDE_RCLC_TRACE_H

#include <rcl/node.h>

#include "tide/rclc.h"
#include "tide/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two whole blocks. */
#define TIDE_TRACE_MESSAGE_BYTES (2u * TIDE_TRACE_BLOCK_BYTES)
#define TIDE_TRACE_EXECUTORS 4u
/* source of the ring with the clock alone */
#define TIDE_TRACE_CLOCK_SOURCE 65535u

typedef struct tide_trace_settings {
  tide_trace_ring_t *rings;     /* the program's, until fini. The first is the daemon's, the others are the lanes' */
  size_t ring_count;            /* 1 or more; lanes beyond have none */
  tide_trace_record_t *records; /* ring_count * records_a_ring, the program's */
  uint32_t records_a_ring;      /* a power of two, 2 or more */
  uint16_t place;               /* number of this board; only tells boards of one file apart */
  uint32_t period_ms;           /* of the timer, 1 or more. It sends nothing while less than half a message waits, for
                                   a second */
  uint32_t most_messages;       /* a period; 1 or more */
  bool chains_only;             /* without records of level 0, which is of no chain: the trace's own are among them */
} tide_trace_settings_t;

/* Once a program, from one thread, before the executor spins. Takes a publisher (TIDE_PUBLISHERS) and a handle of the
 * executor, whose lanes get rings. TIDE_ERROR_ARGUMENT: a setting outside its range. TIDE_ERROR_EXISTS: there is one.
 * TIDE_ERROR_UNSUPPORTED: the runtime was built without TIDE_TRACE. Else as rclc_publisher_init and
 * rclc_executor_add_timer, and nothing is left. It ends with its support, too. */
rcl_ret_t tide_rclc_trace_init(rcl_node_t *node, rclc_support_t *support, rclc_executor_t *executor,
                               const tide_trace_settings_t *settings);
/* Rings for the lanes of a further executor, TIDE_TRACE_EXECUTORS in all, as long as there are rings; before it spins.
 * TIDE_ERROR_FULL: some of its lanes have none. TIDE_ERROR_STATE: there is no trace. */
rcl_ret_t tide_rclc_trace_add_executor(rclc_executor_t *executor);
/* While nothing spins. TIDE_ERROR_STATE: there is none. What waits in the rings is lost. As rcl_publisher_fini. */
rcl_ret_t tide_rclc_trace_fini(rcl_node_t *node);

/* The level at which it is sent, and the priority of its callback. Default 0. As tide_rclc_publisher_set_priority. */
rcl_ret_t tide_rclc_trace_set_priority(tide_priority_t priority);

typedef struct tide_trace_counters {
  uint32_t messages; /* sent */
  uint32_t lost;     /* not taken by the session; their records are gone */
  uint32_t held;     /* periods in which records waited for a session, or for half of the pool */
} tide_trace_counters_t;
/* From any thread at any time. */
tide_trace_counters_t tide_rclc_trace_get_counters(void);

#ifdef __cplusplus
}
#endif
#endif
