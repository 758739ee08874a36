/* SPDX-License-Identifier: Apache-2.0 */
/* Trace records of fixed size in lock-free rings: event, time, chain and instance.
 *
 * A ring has one producer and one consumer. Each lane, each daemon and each budget has a ring of its own (the member
 * `trace` of tide_lane_t, tide_daemon_t and tide_budget_t); the daemon's critical section makes its callers one
 * producer. A full ring drops the new record and counts it; nothing is overwritten. The program drains the rings, in a
 * thread or a loop less urgent than all chains, into its own sink: a file, a socket, a topic of the least urgent level.
 * docs/internals/trace.md has the format.
 *
 * The runtime makes records only when it is built with TIDE_TRACE=1 (CMake: -DTIDE_TRACE=ON, the default on Linux), and
 * only for objects that have a ring. Otherwise the pointers do not exist and the image contains no tracing code.
 *
 * Cost: a record takes at most 40 instructions (lab/bench/trace_bench.c), and neither a lock nor another reading of the
 * clock. Memory, all the program's: 16 bytes a record, 32 bytes a ring on a 32-bit board (40 on a 64-bit one), 4 bytes
 * a level for the instances. Re-entrancy: at a time one context may write to a ring and another one read from it;
 * different rings are independent. */
#ifndef TIDE_TRACE_H
#define TIDE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/base/extern_c.h"
#include "tide/priority.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_trace_kind {
  TIDE_TRACE_RELEASE = 1, /* a timer's expiry, at its nominal time */
  TIDE_TRACE_READY, /* a callback other than a timer's became ready; like RELEASE, recorded at the callback's start,
                       with the earlier time */
  TIDE_TRACE_START, /* a callback starts; detail: its kind (tide_callback_kind_t) */
  TIDE_TRACE_END,
  TIDE_TRACE_PREEMPTION, /* the lane has preempted the callback of this priority; recorded only on platforms with
                            lanes_enter, whose lanes share one processor */
  TIDE_TRACE_SUBMIT,     /* a message was submitted to the daemon */
  TIDE_TRACE_WIRE_START, /* a frame was given to the link; detail 1: it carries no message */
  TIDE_TRACE_WIRE_END,   /* the last byte of the frame has left */
  TIDE_TRACE_RECEIVED,   /* a frame was received into a slot; instance: its sequence number; detail: its stream */
  TIDE_TRACE_DIGESTED,   /* its message was delivered; instance and detail as for RECEIVED */
  TIDE_TRACE_LOST,       /* a message will not be sent; detail: tide_node_outcome_t, or TIDE_TRACE_REFUSED. With detail
                            TIDE_TRACE_NOT_RECEIVED: frames did not arrive or found no slot; instance: how many */
  TIDE_TRACE_BUDGET,     /* detail 1: exhausted, 0: replenished */
  TIDE_TRACE_FRAME,      /* follows a wire start; instance: the frame's sequence number; detail: its stream */
  /* instance: the key of a client, in a client's trace its own key. In an agent's trace the ring belongs to this
   * client; records of frames then have the sequence number plus object id << 16 as instance, and the stream as detail.
   */
  TIDE_TRACE_CLIENT,
  TIDE_TRACE_CLOCK,   /* only in a trace sent over the link (tide/rclc_trace.h). Detail 0: time of the program's clock.
                         The next record, with detail 1, has the agent's wall clock at that moment; its instance is the
                         round trip in microseconds */
  TIDE_TRACE_DEADLINE /* a watched chain (tide/chain_watch.h): an instance ended late, or is missing at the beginning of
                         the next; detail: tide_violation_t */
} tide_trace_kind_t;

#define TIDE_TRACE_REFUSED 255u
#define TIDE_TRACE_NOT_RECEIVED 254u

typedef struct tide_trace_record {
  int64_t time_ns; /* time by the platform's clock */
  uint32_t instance;
  tide_priority_t priority; /* the level names the chain, the position the callback in it */
  uint8_t kind;
  uint8_t detail;
} tide_trace_record_t;

/* Number of each level's current chain instance; shared by the rings of a program. A callback that starts sets its
 * level's number to the number of its previous runs. A program that knows the instance better, for example by a number
 * in a message, calls tide_trace_set_instance. Memory: the program's; zero it before use. */
typedef struct tide_trace_instances {
  uint32_t of_level[TIDE_LEVEL_MAXIMUM + 1u];
} tide_trace_instances_t;

typedef struct tide_trace_ring {
  tide_trace_record_t *records;
  tide_trace_instances_t *instances;
  uint32_t mask;
  uint32_t written, dropped; /* the producer's */
  uint32_t read, blocks;     /* the consumer's */
  uint16_t place, source;
} tide_trace_ring_t;

/* place: number of the board or program; source: number of the ring in it. count: a power of two, 2 or more, else
 * TIDE_ERROR_ARGUMENT. */
int tide_trace_init(tide_trace_ring_t *ring, tide_trace_record_t *records, uint32_t count,
                    tide_trace_instances_t *instances, uint16_t place, uint16_t source);

/* Takes all bytes and returns TIDE_OK, or takes none and returns a negative code, which ends the drain. */
typedef int (*tide_trace_sink_t)(void *context, const uint8_t *bytes, size_t count);

#define TIDE_TRACE_BLOCK_HEADER_BYTES 24u
#define TIDE_TRACE_BLOCK_RECORDS 14u
#define TIDE_TRACE_BLOCK_BYTES (TIDE_TRACE_BLOCK_HEADER_BYTES + TIDE_TRACE_BLOCK_RECORDS * 16u)

/* Gives the sink whole blocks of at most TIDE_TRACE_BLOCK_BYTES until the ring is empty or most_blocks blocks are
 * written. Calls at a fixed rate therefore bound the load of the link. A block that the sink refuses stays in the ring.
 * Returns the number of records, or the sink's code. Uses a block of stack. O(records). */
int tide_trace_drain(tide_trace_ring_t *ring, uint32_t most_blocks, tide_trace_sink_t sink, void *context);

/* Write the next block, of at most `capacity` octets and TIDE_TRACE_BLOCK_RECORDS records, without the records of level
 * left_out (TIDE_TRACE_ALL_LEVELS: with all). *passed: number of ring records that the block covers, for
 * tide_trace_pass. Returns the block's size in octets; 0: the ring is empty, or a record does not fit. O(passed). */
#define TIDE_TRACE_ALL_LEVELS (-1)
size_t tide_trace_next_block(const tide_trace_ring_t *ring, int left_out, uint8_t *bytes, size_t capacity,
                             uint32_t *passed);
/* Remove the block's records from the ring, after the block was delivered, or if it has no record (bytes is 0). Only
 * the ring's consumer may call this function and tide_trace_next_block. */
void tide_trace_pass(tide_trace_ring_t *ring, size_t bytes, uint32_t passed);

/* Write a record. False: the ring was full, and the record is counted in dropped. */
static inline bool tide_trace_put(tide_trace_ring_t *ring, tide_trace_kind_t kind, tide_priority_t priority,
                                  uint32_t instance, uint8_t detail, int64_t time_ns) {
  const uint32_t written = ring->written;
  if (written - __atomic_load_n(&ring->read, __ATOMIC_ACQUIRE) > ring->mask) {
    __atomic_store_n(&ring->dropped, ring->dropped + 1u, __ATOMIC_RELAXED);
    return false;
  }
  tide_trace_record_t *record = &ring->records[written & ring->mask];
  record->time_ns = time_ns;
  record->instance = instance;
  record->priority = priority;
  record->kind = (uint8_t)kind;
  record->detail = detail;
  __atomic_store_n(&ring->written, written + 1u, __ATOMIC_RELEASE);
  return true;
}

static inline uint32_t tide_trace_instance(const tide_trace_ring_t *ring, tide_priority_t priority) {
  return __atomic_load_n(&ring->instances->of_level[TIDE_PRIORITY_LEVEL(priority) % (TIDE_LEVEL_MAXIMUM + 1u)],
                         __ATOMIC_RELAXED);
}

/* Called by a running callback: its submissions and its end belong to this instance. */
static inline void tide_trace_set_instance(const tide_trace_ring_t *ring, tide_priority_t priority, uint32_t instance) {
  __atomic_store_n(&ring->instances->of_level[TIDE_PRIORITY_LEVEL(priority) % (TIDE_LEVEL_MAXIMUM + 1u)], instance,
                   __ATOMIC_RELAXED);
}

TIDE_EXTERN_C_END
#endif
