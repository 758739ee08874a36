/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive busy polling: a thread that waits for an imminent event polls for a bounded time before it sleeps. A
 * sleeping thread on an idle processor is woken late (25 us or more on a virtual machine). Client and agent use busy
 * polling on UDP. Like the halt polling of hypervisors it learns from each wait how long to poll in the next:
 *
 *   ended while polling             the time stays as it is
 *   ended later, within the limit   the time is doubled: longer polling would have helped
 *   lasted longer than the limit    the time is 0 from now on, unless polling has succeeded several times since the
 *                                   last such wait
 *
 * So a thread whose events are a millisecond or more apart sleeps at once. A wait never polls longer than the limit,
 * and not at all if its thread may use only one processor. On a busy machine the other side may need the processor that
 * is polling. Polling is suspended for BUSY_POLL_REST_NS (busy_poll.c) in two cases: the polling time falls to 0
 * without a success, or another thread took the processor meanwhile. This pause doubles each time the processor is
 * taken, up to BUSY_POLL_REST_MAXIMUM_NS, because the system delays threads that have used up their share. If the
 * processor is not taken for twice that maximum, the pause starts again at BUSY_POLL_REST_NS. A polling thread with a
 * real-time policy blocks all others on its processor, so it polls for at most a quarter of the time.
 *
 * Not thread-safe: the owner serialises. Nothing allocates. Cost of a call: some ten instructions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_busy_poll {
  int64_t limit_ns;                      /* limit of one wait; 0: never poll */
  int64_t window_ns;                     /* polling time of the next wait: 0 to limit_ns */
  int64_t start_ns, until_ns, looked_ns; /* the current wait: its start, time to sleep, last poll */
  int64_t rest_ns;                       /* polling stays suspended until this time */
  int64_t taken_ns, taken_rest_ns;       /* time at which the processor was last taken, and the pause that followed */
  int64_t credit_ns, credited_ns;        /* real-time threads: polling time left, and when it was computed */
  bool real_time;                        /* the thread of this wait has a real-time policy */
  int confidence;                        /* grows with each successful poll; at 0 polling stops */
  uint64_t hits, misses, polled_ns;      /* waits that ended while polling, and other waits; time spent polling */
} tide_busy_poll_t;

/* limit_ns 0: never poll. Must run in the polling thread, whose permitted processors it counts. */
void tide_busy_poll_init(tide_busy_poll_t *poll, int64_t limit_ns);
/* Reports that a wait starts now. */
void tide_busy_poll_start(tide_busy_poll_t *poll, int64_t now_ns);
/* True: poll, or poll again. False: sleep. */
bool tide_busy_poll_goes_on(tide_busy_poll_t *poll, int64_t now_ns);
/* Reports that polling has ended, because the event occurred or it is time to sleep. The calls from start to
 * tide_busy_poll_looked must not interleave with those of another wait; the rest of the waits may overlap. */
void tide_busy_poll_looked(tide_busy_poll_t *poll, int64_t now_ns, bool found);
/* Reports that a wait has ended, after polling or sleeping. waited_ns: its duration. found: the event occurred;
 * otherwise the deadline passed. */
void tide_busy_poll_end(tide_busy_poll_t *poll, int64_t waited_ns, int64_t now_ns, bool found);

#ifdef __cplusplus
}
#endif
