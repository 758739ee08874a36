/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for POSIX hosts only: scheduling of the calling thread, and exact emulation of execution time. */
#ifndef TIDE_POSIX_H
#define TIDE_POSIX_H

#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

#define TIDE_POSIX_ANY_CPU (-1)

/* Set the scheduling of the calling thread. policy: SCHED_OTHER, SCHED_FIFO or SCHED_RR of <sched.h>; priority: 0 for
 * SCHED_OTHER, else within sched_get_priority_min..max; cpu: 0-based, or TIDE_POSIX_ANY_CPU to leave the affinity.
 * TIDE_ERROR_ARGUMENT: no such policy, priority or processor. TIDE_ERROR_NOT_PERMITTED: the system refuses (needs
 * CAP_SYS_NICE, or an rtprio limit as set by ulimit -r); nothing was changed then. TIDE_ERROR_UNSUPPORTED: a processor
 * was requested on a system without affinity. */
int tide_posix_set_scheduling(int policy, int priority, int cpu);

/* Limit the wake-up lead of all threads of the process, from their next wait on. A thread that waits for a time (an
 * executor for its next timer) requests a wake-up that is earlier by the shortest delay of its recent wake-ups. It then
 * polls the clock until the requested time, so no callback starts early. 0: no lead. Default: 50 us. */
void tide_posix_set_wake_up_lead(int64_t limit_ns);

/* Use exactly this much processor time of the calling thread. Time during which the thread is preempted does not count.
 * The excess is at most one reading of the clock, below 1 us. */
void tide_posix_spin_cpu(int64_t duration_ns);

TIDE_EXTERN_C_END
#endif
